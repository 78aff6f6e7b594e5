//! Services, and who must look again when one changes.

use endpointd_model::{
    Controller, Key, ResourceVersion, Selection, Service, ServicePort, SharedStr, TargetPort,
};

use super::{Cache, Known, Marks, Namespace, Picture, is_replay, later_picture};
use crate::pool::Pool;
use crate::queue::Priority;

impl Cache {
    /// Says whether the Service is another one than before under the same name.
    pub fn put_service(&mut self, service: Service, picture: Picture, marks: &mut Marks) -> bool {
        let version = service.resource_version;
        let id = self.namespace_id(&service.namespace);
        let name = self.texts.share(&service.name);
        let namespace = &mut self.namespaces[id as usize];
        let mut picture = picture;
        if let Some(known) = namespace.services.get_mut(&name) {
            picture = later_picture(known.picture, picture);
            known.picture = picture;
            if is_replay(known.version, version) {
                return false;
            }
        }
        let service = self.share_service(service, &name);
        let namespace = &mut self.namespaces[id as usize];
        let old = namespace.services.remove(&name).map(|known| known.object);
        let is_other = old.as_ref().is_some_and(|old| old.uid != service.uid);
        self.n_services += usize::from(old.is_none());
        if old.as_ref() != Some(&service) {
            rematch(namespace, old.as_ref(), &service);
            mark_service(namespace, &service, marks);
        }
        namespace.services.insert(name, Known { object: service, version, picture });
        is_other
    }

    /// The same Service, of texts that others have too.
    fn share_service(&mut self, mut service: Service, name: &SharedStr) -> Service {
        service.ports.iter_mut().for_each(|port| share_port(&mut self.texts, port));
        service.ports.shrink_to_fit();
        service.families.shrink_to_fit();
        Service {
            namespace: self.texts.share(&service.namespace),
            name: name.clone(),
            resource_version: ResourceVersion::NONE,
            labels: self.share_labels(&service.labels),
            selector: self.share_labels(&service.selector),
            ..service
        }
    }

    pub fn remove_service(&mut self, key: &Key, marks: &mut Marks) {
        let Some(&id) = self.namespace_by_name.get(&key.namespace) else { return };
        let namespace = &mut self.namespaces[id as usize];
        let Some(known) = namespace.services.remove(&key.name) else { return };
        self.n_services -= 1;
        namespace.matching.remove_service(&key.name, &known.object.selector);
        mark_absent(namespace, &key.name, marks);
        self.tidy_namespace(id);
    }

    pub fn service(&self, key: &Key) -> Option<&Service> {
        Some(&self.namespace(&key.namespace)?.services.get(&key.name)?.object)
    }

    pub fn services_not_in(&self, picture: Picture, listed: ResourceVersion) -> Vec<Key> {
        let mut keys = Vec::new();
        for (_, namespace) in &self.namespaces {
            let is_missing =
                |known: &Known<Service>| known.picture != picture && known.version <= listed;
            let missing = namespace.services.iter().filter(|(_, known)| is_missing(known));
            let key = |name: &SharedStr| Key::new(namespace.name.clone(), name.clone());
            keys.extend(missing.map(|(name, _)| key(name)));
        }
        keys.sort_unstable();
        keys
    }

    pub fn keep_service(&mut self, key: &Key, picture: Picture) {
        let Some(&id) = self.namespace_by_name.get(&key.namespace) else { return };
        if let Some(known) = self.namespaces[id as usize].services.get_mut(&key.name) {
            known.picture = later_picture(known.picture, picture);
        }
    }

    pub fn n_services(&self) -> usize {
        self.n_services
    }

    /// What a controller visits when it starts: every Service, and what an absent one may have
    /// left behind. Leader election locks are nobody's leftovers.
    pub fn mark_all(&self, marks: &mut Marks) {
        let mut found = Marks::default();
        for (_, namespace) in &self.namespaces {
            for known in namespace.services.values() {
                mark_service(namespace, &known.object, &mut found);
            }
            for name in namespace.published.names() {
                if !namespace.services.contains_key(name) {
                    mark_absent(namespace, name, &mut found);
                }
            }
        }
        found.0.iter_mut().for_each(|mark| mark.priority = Priority::Background);
        found.0.sort_unstable();
        marks.0.append(&mut found.0);
    }
}

fn share_port(texts: &mut Pool<SharedStr>, port: &mut ServicePort) {
    port.name = texts.share(&port.name);
    if let TargetPort::Name(name) = &mut port.target {
        *name = texts.share(name);
    }
}

/// Tells the index of selectors, if the selector is another one.
fn rematch(namespace: &mut Namespace, old: Option<&Service>, new: &Service) {
    if old.is_some_and(|old| old.selector == new.selector) {
        return;
    }
    if let Some(old) = old {
        namespace.matching.remove_service(&old.name, &old.selector);
    }
    namespace.matching.add_service(&new.name, &new.selector);
}

fn mark_service(namespace: &Namespace, service: &Service, marks: &mut Marks) {
    match service.selection() {
        Selection::Pods(_) => marks.add_pods(service.key(), Priority::Live),
        Selection::Manual | Selection::External => {}
    }
    // Upstream looks at every Service without selector, and when a selector comes or goes; what
    // is mirrored says as much.
    if namespace.published.may_mirror(&service.name, Some(service)) {
        marks.add(Controller::Mirror, service.key(), Priority::Live);
    }
}

/// A Service that is not there: its Endpoints must go, and what was mirrored for it.
pub fn mark_absent(namespace: &Namespace, name: &SharedStr, marks: &mut Marks) {
    let key = Key::new(namespace.name.clone(), name.clone());
    if namespace.published.has_endpoints(name) && !namespace.published.has_lock(name) {
        marks.add(Controller::Endpoints, key.clone(), Priority::Live);
    }
    if namespace.published.may_mirror(name, None) {
        marks.add(Controller::Mirror, key, Priority::Live);
    }
}
