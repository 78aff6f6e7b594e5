//! Services, and who must look again when one changes.

use endpointd_model::{
    Controller, Key, ResourceVersion, Selection, Service, ServicePort, SharedStr, TargetPort,
};

use super::{Cache, Cached, DirtyKeys, ListEpoch, Namespace, is_replay, newer_epoch};
use crate::interner::Interner;
use crate::queue::Priority;

impl Cache {
    /// Says whether the Service is another one than before under the same name.
    pub fn put_service(
        &mut self,
        service: Service,
        epoch: ListEpoch,
        dirty: &mut DirtyKeys,
    ) -> bool {
        let version = service.resource_version;
        let id = self.namespace_id(&service.namespace);
        let name = self.strings.intern(&service.name);
        let namespace = &mut self.namespaces[id as usize];
        let mut epoch = epoch;
        if let Some(cached) = namespace.services.get_mut(&name) {
            epoch = newer_epoch(cached.epoch, epoch);
            cached.epoch = epoch;
            if is_replay(cached.version, version) {
                return false;
            }
        }
        let service = self.intern_service(service, &name);
        let namespace = &mut self.namespaces[id as usize];
        let old = namespace.services.remove(&name).map(|cached| cached.object);
        let is_other = old.as_ref().is_some_and(|old| old.uid != service.uid);
        self.n_services += usize::from(old.is_none());
        if old.as_ref() != Some(&service) {
            update_selector(namespace, old.as_ref(), &service);
            add_affected_by_service(namespace, &service, dirty);
        }
        namespace.services.insert(name, Cached { object: service, version, epoch });
        is_other
    }

    /// The same Service, of texts that others have too.
    fn intern_service(&mut self, mut service: Service, name: &SharedStr) -> Service {
        service.ports.iter_mut().for_each(|port| intern_port(&mut self.strings, port));
        service.ports.shrink_to_fit();
        service.families.shrink_to_fit();
        Service {
            namespace: self.strings.intern(&service.namespace),
            name: name.clone(),
            resource_version: ResourceVersion::NONE,
            labels: self.intern_labels(&service.labels),
            selector: self.intern_labels(&service.selector),
            ..service
        }
    }

    pub fn remove_service(&mut self, key: &Key, dirty: &mut DirtyKeys) {
        let Some(&id) = self.namespace_by_name.get(&key.namespace) else { return };
        let namespace = &mut self.namespaces[id as usize];
        let Some(cached) = namespace.services.remove(&key.name) else { return };
        self.n_services -= 1;
        namespace.selectors.remove_service(&key.name, &cached.object.selector);
        add_orphan(namespace, &key.name, dirty);
        self.drop_namespace_if_empty(id);
    }

    pub fn service(&self, key: &Key) -> Option<&Service> {
        Some(&self.namespace(&key.namespace)?.services.get(&key.name)?.object)
    }

    pub fn services_missing_from_list(
        &self,
        epoch: ListEpoch,
        listed: ResourceVersion,
    ) -> Vec<Key> {
        let mut keys = Vec::new();
        for (_, namespace) in &self.namespaces {
            let is_missing =
                |cached: &Cached<Service>| cached.epoch != epoch && cached.version <= listed;
            let missing = namespace.services.iter().filter(|(_, cached)| is_missing(cached));
            let key = |name: &SharedStr| Key::new(namespace.name.clone(), name.clone());
            keys.extend(missing.map(|(name, _)| key(name)));
        }
        keys.sort_unstable();
        keys
    }

    pub fn retain_service(&mut self, key: &Key, epoch: ListEpoch) {
        let Some(&id) = self.namespace_by_name.get(&key.namespace) else { return };
        if let Some(cached) = self.namespaces[id as usize].services.get_mut(&key.name) {
            cached.epoch = newer_epoch(cached.epoch, epoch);
        }
    }

    pub fn n_services(&self) -> usize {
        self.n_services
    }

    /// What a controller visits when it starts: every Service, and what an absent one may have
    /// left behind. Leader election locks are nobody's leftovers.
    pub fn add_all_keys(&self, dirty: &mut DirtyKeys) {
        let mut found = DirtyKeys::default();
        for (_, namespace) in &self.namespaces {
            for cached in namespace.services.values() {
                add_affected_by_service(namespace, &cached.object, &mut found);
            }
            for name in namespace.published.names() {
                if !namespace.services.contains_key(name) {
                    add_orphan(namespace, name, &mut found);
                }
            }
        }
        found.0.iter_mut().for_each(|mark| mark.priority = Priority::Background);
        found.0.sort_unstable();
        dirty.0.append(&mut found.0);
    }
}

fn intern_port(strings: &mut Interner<SharedStr>, port: &mut ServicePort) {
    port.name = strings.intern(&port.name);
    if let TargetPort::Name(name) = &mut port.target {
        *name = strings.intern(name);
    }
}

/// Tells the index of selectors, if the selector is another one.
fn update_selector(namespace: &mut Namespace, old: Option<&Service>, new: &Service) {
    if old.is_some_and(|old| old.selector == new.selector) {
        return;
    }
    if let Some(old) = old {
        namespace.selectors.remove_service(&old.name, &old.selector);
    }
    namespace.selectors.add_service(&new.name, &new.selector);
}

fn add_affected_by_service(namespace: &Namespace, service: &Service, dirty: &mut DirtyKeys) {
    match service.selection() {
        Selection::Pods(_) => dirty.add_pods(service.key(), Priority::Live),
        Selection::Manual | Selection::External => {}
    }
    // Upstream looks at every Service without selector, and when a selector comes or goes; what
    // is mirrored says as much.
    if namespace.published.may_mirror(&service.name, Some(service)) {
        dirty.add(Controller::Mirror, service.key(), Priority::Live);
    }
}

/// A Service that is not there: its Endpoints must go, and what was mirrored for it.
pub fn add_orphan(namespace: &Namespace, name: &SharedStr, dirty: &mut DirtyKeys) {
    let key = Key::new(namespace.name.clone(), name.clone());
    if namespace.published.has_endpoints(name) && !namespace.published.has_lock(name) {
        dirty.add(Controller::Endpoints, key.clone(), Priority::Live);
    }
    if namespace.published.may_mirror(name, None) {
        dirty.add(Controller::Mirror, key, Priority::Live);
    }
}
