//! Published objects: Endpoints and EndpointSlices as the API server stores them.

use endpointd_model::{
    Controller, EndpointSlice, Endpoints, Key, Meta, Object, PublishedResource, ResourceVersion,
    Service, SharedStr, SliceManagers, Uid, names,
};
use hashbrown::HashMap;

use super::cached::{Accept, Cached, Freshness};
use super::compact::CompactObject;
use super::selector_index::push_exact;
use super::{Cache, DirtyKeys, ListEpoch, Namespace};
use crate::interner::Interner;
use crate::queue::Priority;

/// The published objects of one namespace.
#[derive(Debug, Default)]
pub struct Published {
    pub(super) endpoints: HashMap<SharedStr, Cached<CachedEndpoints>>,
    pub(super) slices: HashMap<SharedStr, Cached<CachedSlice>>,
    /// Names of slices by the Service that their label names.
    slices_by_service: HashMap<SharedStr, Vec<SharedStr>>,
}

/// A compact slice, and the fields that are needed without decoding it.
#[derive(Debug)]
pub struct CachedSlice {
    pub(super) uid: Uid,
    pub(super) compact: CompactObject,
    /// The Service that its label names.
    pub(super) service: Option<SharedStr>,
    /// The controller of ours that its label names.
    pub(super) controller: Option<Controller>,
    /// A copy by its annotation, whatever its labels are now.
    pub(super) is_marked_copy: bool,
}

/// Compact Endpoints, likewise.
#[derive(Debug)]
pub struct CachedEndpoints {
    pub(super) uid: Uid,
    pub(super) compact: CompactObject,
    /// Written by our controller, and not a leader election lock.
    is_ours: bool,
    is_lock: bool,
}

/// Where a copy of a published object comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A watch or a live read: another client may have changed it, so its owner is synced.
    Observed,
    /// The response to our own write: its owner need not be synced again.
    OwnWrite,
}

/// Objects whose deletion the API server has confirmed and the watch has not reported yet, with the
/// epoch of that moment. Older events about them must not restore them.
pub type Tombstones = HashMap<(PublishedResource, Uid), ListEpoch>;

/// The identity of a published object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedObject {
    pub uid: Uid,
    pub version: ResourceVersion,
}

impl Published {
    pub fn is_empty(&self) -> bool {
        self.endpoints.is_empty() && self.slices.is_empty()
    }

    pub fn has_lock(&self, name: &str) -> bool {
        self.endpoints.get(name).is_some_and(|cached| cached.object.is_lock)
    }

    pub fn has_endpoints(&self, name: &str) -> bool {
        self.endpoints.contains_key(name)
    }

    /// Names of the slices of a Service, in no particular order.
    pub fn slices_of(&self, service: &str) -> &[SharedStr] {
        self.slices_by_service.get(service).map_or(&[], Vec::as_slice)
    }

    /// Names of Endpoints, and of Services that slices name, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &SharedStr> {
        let only_slices = self.slices_by_service.keys();
        let only_slices = only_slices.filter(|name| !self.endpoints.contains_key(*name));
        self.endpoints.keys().chain(only_slices)
    }

    /// Whether the mirroring controller could have something to write for this name.
    pub fn may_mirror(&self, name: &str, service: Option<&Service>) -> bool {
        let is_manual = service.is_some_and(|service| service.selector.is_empty());
        (is_manual && self.endpoints.contains_key(name))
            || self.has_slices(name, Controller::Mirror)
    }

    /// Whether the import controller could have something to write for this Service.
    pub fn may_import(&self, service: &Service) -> bool {
        let cross = service.cross_namespace.as_ref();
        cross.is_some_and(|cross| cross.from.is_some() || cross.condition.is_some())
            || self.has_slices(&service.name, Controller::Import)
    }

    pub fn has_slices(&self, name: &str, controller: Controller) -> bool {
        let slices = self.slices_of(name).iter().filter_map(|slice| self.slices.get(slice));
        slices.into_iter().any(|cached| cached.object.controllers().any(|one| one == controller))
    }

    pub fn has_our_endpoints(&self, name: &str) -> bool {
        self.endpoints.get(name).is_some_and(|cached| cached.object.is_ours)
    }

    pub(super) fn n_compact_bytes(&self) -> usize {
        let slices = self.slices.values().map(|cached| &cached.object.compact);
        let endpoints = self.endpoints.values().map(|cached| &cached.object.compact);
        slices.chain(endpoints).map(CompactObject::n_bytes).sum()
    }

    fn remove_slice(&mut self, name: &SharedStr) -> Option<CachedSlice> {
        let slice = self.slices.remove(name)?.object;
        if let Some(service) = &slice.service
            && let Some(slices) = self.slices_by_service.get_mut(service)
        {
            slices.retain(|other| other != name);
            if slices.is_empty() {
                self.slices_by_service.remove(service);
            }
        }
        Some(slice)
    }

    fn insert_slice(&mut self, name: &SharedStr, slice: Cached<CachedSlice>) {
        if let Some(service) = &slice.object.service {
            let slices = self.slices_by_service.entry(service.clone()).or_default();
            push_exact(slices, name.clone());
        }
        self.slices.insert(name.clone(), slice);
    }
}

impl CachedSlice {
    fn new(
        slice: &EndpointSlice,
        managers: &SliceManagers,
        strings: &mut Interner<SharedStr>,
    ) -> Self {
        let service = slice.meta.labels.get(names::SERVICE_NAME);
        Self {
            uid: slice.meta.uid.clone(),
            compact: CompactObject::slice(slice),
            service: service.map(|name| strings.intern(name)),
            controller: managers.controller(&slice.meta.labels),
            is_marked_copy: slice.meta.annotations.contains_key(names::SOURCE_SLICE),
        }
    }

    /// Equal except for resourceVersion and generation, which every write changes.
    fn same_content(&self, other: &Self) -> bool {
        self.uid == other.uid && self.compact.same_content(&other.compact)
    }
}

impl CachedEndpoints {
    fn new(endpoints: &Endpoints) -> Self {
        let Meta { uid, labels, annotations, .. } = &endpoints.meta;
        let is_lock = annotations.contains_key(names::LEADER);
        let is_ours = labels.has(names::ENDPOINTS_MANAGED_BY, names::MANAGED_BY_ENDPOINTS);
        Self {
            uid: uid.clone(),
            compact: CompactObject::endpoints(endpoints),
            is_ours: is_ours && !is_lock,
            is_lock,
        }
    }

    /// Equal except for resourceVersion and generation, which every write changes.
    fn same_content(&self, other: &Self) -> bool {
        self.uid == other.uid && self.compact.same_content(&other.compact)
    }
}

impl Cache {
    /// Returns whether the copy is newer than the cached object.
    pub fn put_object(
        &mut self,
        object: Object,
        origin: Origin,
        epoch: ListEpoch,
        dirty: &mut DirtyKeys,
    ) -> bool {
        if self.tombstones.contains_key(&(object.resource(), object.meta().uid.clone())) {
            return false;
        }
        match object {
            Object::Slice(slice) => {
                let key = slice.meta.key();
                let before = self.slice_before(&key);
                let is_newer = self.put_slice(&slice, origin, epoch, dirty);
                if is_newer {
                    self.add_readers_of_slice(before.as_ref(), Some(&slice), origin, dirty);
                }
                is_newer
            }
            Object::Endpoints(endpoints) => self.put_endpoints(&endpoints, origin, epoch, dirty),
            Object::ServiceStatus(status) => self.put_service_status(status, epoch, dirty),
            Object::MultiCluster(object) => self.put_multicluster(object, epoch, dirty),
        }
    }

    fn put_slice(
        &mut self,
        slice: &EndpointSlice,
        origin: Origin,
        epoch: ListEpoch,
        dirty: &mut DirtyKeys,
    ) -> bool {
        let mut freshness = Freshness::new(slice.meta.resource_version, epoch);
        let id = self.namespace_id(&slice.meta.namespace);
        let Namespace { name: namespace, published, .. } = &mut self.namespaces[id as usize];
        if let Some(cached) = published.slices.get_mut(&slice.meta.name) {
            if cached.freshness_mut().accept(freshness) != Accept::New {
                return false;
            }
            freshness = *cached.freshness();
        }
        let new = CachedSlice::new(slice, &self.managers, &mut self.strings);
        let old = published.remove_slice(&slice.meta.name);
        self.n_slices += usize::from(old.is_none());
        self.n_compact_bytes += new.compact.n_bytes();
        self.n_compact_bytes -= old.as_ref().map_or(0, |old| old.compact.n_bytes());
        let is_same = old.as_ref().is_some_and(|old| old.same_content(&new));
        if origin == Origin::Observed && !is_same {
            let before = old.iter().flat_map(|old| old.owners(namespace));
            let before = before.filter(|before| new.owners(namespace).all(|one| one != *before));
            for (controller, key) in before.chain(new.owners(namespace)) {
                dirty.add_batched(controller, key, Priority::Repair);
            }
        }
        published.insert_slice(&slice.meta.name, Cached::new(new, freshness));
        true
    }

    fn put_endpoints(
        &mut self,
        endpoints: &Endpoints,
        origin: Origin,
        epoch: ListEpoch,
        dirty: &mut DirtyKeys,
    ) -> bool {
        let mut freshness = Freshness::new(endpoints.meta.resource_version, epoch);
        let id = self.namespace_id(&endpoints.meta.namespace);
        let name = self.strings.intern(&endpoints.meta.name);
        let cached = &mut self.namespaces[id as usize].published.endpoints;
        if let Some(cached) = cached.get_mut(&name) {
            if cached.freshness_mut().accept(freshness) != Accept::New {
                return false;
            }
            freshness = *cached.freshness();
        }
        let new = CachedEndpoints::new(endpoints);
        let old = cached.get(&name).map(|cached| &cached.object);
        let is_same = old.is_some_and(|old| old.same_content(&new));
        self.n_endpoints += usize::from(old.is_none());
        self.n_compact_bytes += new.compact.n_bytes();
        self.n_compact_bytes -= old.map_or(0, |old| old.compact.n_bytes());
        cached.insert(name.clone(), Cached::new(new, freshness));
        if !is_same {
            self.add_affected_by_endpoints(id, &name, origin, dirty);
        }
        true
    }

    /// Endpoints changed. A write of our own concerns the mirroring controller only.
    fn add_affected_by_endpoints(
        &self,
        id: u32,
        name: &SharedStr,
        origin: Origin,
        dirty: &mut DirtyKeys,
    ) {
        let namespace = &self.namespaces[id as usize];
        let service = namespace.services.get(name).map(|cached| &cached.object);
        let key = Key::new(namespace.name.clone(), name.clone());
        let has_selector = service.is_some_and(|service| !service.selector.is_empty());
        // The Service was deleted while we wrote its Endpoints: nothing else will delete them.
        let is_ours = namespace.published.has_our_endpoints(name);
        let is_orphan = service.is_none() && is_ours;
        if is_orphan {
            dirty.add(Controller::Endpoints, key.clone(), Priority::Live);
        } else if origin == Origin::Observed && (has_selector || is_ours) {
            dirty.add(Controller::Endpoints, key.clone(), Priority::Repair);
        }
        if namespace.published.may_mirror(name, service) {
            dirty.add(Controller::Mirror, key, Priority::Live);
        }
    }

    /// The watch reports the deletion of this object. Returns whether it was cached: under its name
    /// there may be a newer one.
    pub fn remove_reported(
        &mut self,
        resource: PublishedResource,
        meta: &Meta,
        dirty: &mut DirtyKeys,
    ) -> bool {
        self.tombstones.remove(&(resource, meta.uid.clone()));
        let key = meta.key();
        let is_newer = |cached: &PublishedObject| {
            cached.uid != meta.uid && cached.version > meta.resource_version
        };
        match self.object(resource, &key) {
            Some(cached) if !is_newer(&cached) => self.remove_object(resource, &key, dirty),
            Some(_) | None => false,
        }
    }

    /// The API server has confirmed that the cached object is deleted; the watch will report it
    /// later.
    pub fn tombstone(
        &mut self,
        resource: PublishedResource,
        key: &Key,
        epoch: ListEpoch,
        dirty: &mut DirtyKeys,
    ) {
        let Some(PublishedObject { uid, .. }) = self.object(resource, key) else { return };
        self.tombstones.insert((resource, uid), epoch);
        self.remove_object(resource, key, dirty);
    }

    /// A complete list that started after a tombstone was set shows whether its object exists.
    pub(super) fn drop_tombstones(&mut self, resource: PublishedResource, epoch: ListEpoch) {
        self.tombstones.retain(|(of, _), set_in| *of != resource || *set_in == epoch);
    }

    pub fn n_tombstones(&self) -> usize {
        self.tombstones.len()
    }

    pub fn remove_object(
        &mut self,
        resource: PublishedResource,
        key: &Key,
        dirty: &mut DirtyKeys,
    ) -> bool {
        if let PublishedResource::MultiCluster(resource) = resource {
            return self.remove_multicluster(resource, key, dirty);
        }
        let Some(&id) = self.namespace_by_name.get(&key.namespace) else { return false };
        let is_removed = match resource {
            PublishedResource::Slices => {
                let before = self.slice_before(key);
                let is_removed = self.remove_slice(id, &key.name, dirty);
                self.add_readers_of_slice(before.as_ref(), None, Origin::Observed, dirty);
                is_removed
            }
            PublishedResource::Endpoints => self.remove_endpoints(id, &key.name, dirty),
            // Only its Service can be removed.
            PublishedResource::ServiceStatus | PublishedResource::MultiCluster(_) => false,
        };
        self.drop_namespace_if_empty(id);
        is_removed
    }

    fn remove_slice(&mut self, id: u32, name: &SharedStr, dirty: &mut DirtyKeys) -> bool {
        let namespace = &mut self.namespaces[id as usize];
        let Some(old) = namespace.published.remove_slice(name) else { return false };
        self.n_slices -= 1;
        self.n_compact_bytes -= old.compact.n_bytes();
        for (controller, owner) in old.owners(&namespace.name) {
            dirty.add_batched(controller, owner, Priority::Repair);
        }
        true
    }

    fn remove_endpoints(&mut self, id: u32, name: &SharedStr, dirty: &mut DirtyKeys) -> bool {
        let endpoints = &mut self.namespaces[id as usize].published.endpoints;
        let Some(old) = endpoints.remove(name) else { return false };
        self.n_endpoints -= 1;
        self.n_compact_bytes -= old.object.compact.n_bytes();
        self.add_affected_by_endpoints(id, name, Origin::Observed, dirty);
        true
    }
}
