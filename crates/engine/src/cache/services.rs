//! Services, and the keys that a change of a Service concerns.

use endpointd_model::{
    Controller, InvolvedKind, Key, Meta, PublishedResource, ResourceVersion, Selection, Service,
    ServicePort, ServiceStatus, SharedStr, TargetPort, Uid, WatchedResource,
};

use super::cached::{Accept, Cached, Freshness};
use super::{Cache, DirtyKeys, ListEpoch, Namespace};
use crate::HintsKind;
use crate::interner::Interner;
use crate::queue::Priority;

impl Cache {
    /// Returns whether the Service replaces another one of the same name.
    pub fn put_service(
        &mut self,
        service: Service,
        epoch: ListEpoch,
        dirty: &mut DirtyKeys,
    ) -> bool {
        let mut freshness = Freshness::new(service.resource_version, epoch);
        let id = self.namespace_id(&service.namespace);
        let name = self.strings.intern(&service.name);
        let services = &mut self.namespaces[id as usize].services;
        if let Some(cached) = services.get_mut(&name) {
            if cached.freshness_mut().accept(freshness) != Accept::New {
                return false;
            }
            freshness = *cached.freshness();
        }
        let service = self.intern_service(service, &name);
        let namespace = &mut self.namespaces[id as usize];
        let old = namespace.services.remove(&name).map(|cached| cached.object);
        let is_replaced = old.as_ref().is_some_and(|old| old.uid != service.uid);
        self.n_services += usize::from(old.is_none());
        if old.as_ref().is_some_and(|old| only_condition_differs(old, &service)) {
            dirty.add(Controller::Import, service.key(), Priority::Live);
        } else if old.as_ref() != Some(&service) {
            update_selector(namespace, old.as_ref(), &service);
            add_affected_by_service(namespace, &service, dirty);
            self.follow_imports(&service.key(), old.as_ref(), Some(&service), dirty);
            self.follow_exports(&service.key(), false, dirty);
        }
        let namespace = &mut self.namespaces[id as usize];
        namespace.services.insert(name, Cached::new(service, freshness));
        is_replaced
    }

    /// The response to a write of the condition. The rest of the Service is as it was: the write
    /// named its version.
    pub fn put_service_status(
        &mut self,
        status: ServiceStatus,
        epoch: ListEpoch,
        dirty: &mut DirtyKeys,
    ) -> bool {
        let ServiceStatus { meta, condition } = status;
        let Some(cached) = self.service(&meta.key()) else { return false };
        if cached.uid != meta.uid || self.is_at_least(&meta) {
            return false;
        }
        let mut service = cached.clone();
        service.set_condition(condition);
        service.resource_version = meta.resource_version;
        self.put_service(service, epoch, dirty);
        true
    }

    fn is_at_least(&self, meta: &Meta) -> bool {
        let cached = self.version(WatchedResource::Services, &meta.key());
        cached.is_some_and(|cached| cached >= meta.resource_version)
    }

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
        self.follow_imports(key, Some(&cached.object), None, dirty);
        self.follow_exports(key, true, dirty);
        self.drop_namespace_if_empty(id);
    }

    pub fn service(&self, key: &Key) -> Option<&Service> {
        Some(&self.namespace(&key.namespace)?.services.get(&key.name)?.object)
    }

    pub fn hints_kind(&self, key: &Key) -> HintsKind {
        let service = self.service(key);
        service.map_or_else(HintsKind::default, |service| HintsKind {
            topology: service.topology,
            traffic_distribution: service.traffic_distribution,
        })
    }

    /// The uid of the object that an Event is about; empty if it is not cached.
    pub fn involved_uid(&self, kind: InvolvedKind, key: &Key) -> Uid {
        let uid = match kind {
            InvolvedKind::Service => self.service(key).map(|service| service.uid.clone()),
            InvolvedKind::Endpoints => {
                self.object(PublishedResource::Endpoints, key).map(|endpoints| endpoints.uid)
            }
        };
        uid.unwrap_or_default()
    }

    /// The controller and the key that publish a cached object; none if we do not publish it.
    pub fn publisher(&self, resource: PublishedResource, key: &Key) -> Option<(Controller, Key)> {
        let namespace = self.namespace(&key.namespace)?;
        match resource {
            PublishedResource::Slices => {
                namespace.published.slices.get(&key.name)?.object.owner(&namespace.name)
            }
            PublishedResource::Endpoints => {
                let service = &namespace.services.get(&key.name)?.object;
                (!service.selector.is_empty()).then(|| (Controller::Endpoints, key.clone()))
            }
            PublishedResource::ServiceStatus | PublishedResource::MultiCluster(_) => None,
        }
    }

    pub fn services(&self) -> impl Iterator<Item = &Service> {
        let all = self.namespaces.iter().flat_map(|(_, namespace)| namespace.services.values());
        all.map(|cached| &cached.object)
    }

    /// Sorted.
    pub fn service_keys(&self) -> Vec<Key> {
        let mut keys = Vec::with_capacity(self.n_services);
        for (_, namespace) in &self.namespaces {
            let services = namespace.services.values();
            keys.extend(services.map(|cached| cached.object.key()));
        }
        keys.sort_unstable();
        keys
    }

    /// The keys of the initial sync: every Service, and objects whose Service may have been deleted
    /// while no controller ran.
    pub fn all_keys(&self) -> DirtyKeys {
        let mut dirty = DirtyKeys::default();
        for (_, namespace) in &self.namespaces {
            for cached in namespace.services.values() {
                add_affected_by_service(namespace, &cached.object, &mut dirty);
            }
            for name in namespace.published.names() {
                if !namespace.services.contains_key(name) {
                    add_orphan(namespace, name, &mut dirty);
                }
            }
        }
        let own = self.exports().map(|(key, _)| key).chain(self.imports().map(|(key, _)| key));
        for key in own {
            dirty.add(Controller::MultiCluster, key.clone(), Priority::Background);
        }
        dirty.0.iter_mut().for_each(|dirty| dirty.priority = Priority::Background);
        dirty.0.sort_unstable();
        dirty.0.dedup();
        dirty
    }
}

fn intern_port(strings: &mut Interner<SharedStr>, port: &mut ServicePort) {
    port.name = strings.intern(&port.name);
    if let TargetPort::Name(name) = &mut port.target {
        *name = strings.intern(name);
    }
}

fn update_selector(namespace: &mut Namespace, old: Option<&Service>, new: &Service) {
    if old.is_some_and(|old| old.selector == new.selector) {
        return;
    }
    if let Some(old) = old {
        namespace.selectors.remove_service(&old.name, &old.selector);
    }
    namespace.selectors.add_service(&new.name, &new.selector);
}

/// Other controllers do not read it.
fn only_condition_differs(old: &Service, new: &Service) -> bool {
    let condition =
        |service: &Service| service.cross_namespace.as_ref().and_then(|one| one.condition.clone());
    let wanted = condition(new);
    if condition(old) == wanted {
        return false;
    }
    let mut changed = old.clone();
    changed.set_condition(wanted);
    changed == *new
}

fn add_affected_by_service(namespace: &Namespace, service: &Service, dirty: &mut DirtyKeys) {
    match service.selection() {
        Selection::Pods(_) => {
            dirty.add(Controller::Slices, service.key(), Priority::Live);
            dirty.add(Controller::Endpoints, service.key(), Priority::Live);
        }
        Selection::Manual | Selection::External => {
            let published = &namespace.published;
            if published.has_slices(&service.name, Controller::Slices) {
                dirty.add(Controller::Slices, service.key(), Priority::Live);
            }
            if published.has_our_endpoints(&service.name) {
                dirty.add(Controller::Endpoints, service.key(), Priority::Live);
            }
        }
    }
    // Upstream enqueues every Service without selector, and on each change of a selector. The
    // mirrored slices in the cache tell as much with fewer syncs.
    if namespace.published.may_mirror(&service.name, Some(service)) {
        dirty.add(Controller::Mirror, service.key(), Priority::Live);
    }
    if namespace.published.may_import(service) {
        dirty.add(Controller::Import, service.key(), Priority::Live);
    }
}

/// For a name without a Service: its Endpoints must be deleted, and the slices mirrored from them.
/// Leader election locks are Endpoints without a Service, too, and stay.
fn add_orphan(namespace: &Namespace, name: &SharedStr, dirty: &mut DirtyKeys) {
    let key = Key::new(namespace.name.clone(), name.clone());
    if namespace.published.has_endpoints(name) && !namespace.published.has_lock(name) {
        dirty.add(Controller::Endpoints, key.clone(), Priority::Live);
    }
    if namespace.published.may_mirror(name, None) {
        dirty.add(Controller::Mirror, key, Priority::Live);
    }
}
