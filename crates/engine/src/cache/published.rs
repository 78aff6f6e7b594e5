//! What is published: Endpoints and slices as the API server has them, as far as we know.

use endpointd_model::{
    Controller, EndpointSlice, Endpoints, Key, Labels, Meta, Object, PublishedResource,
    ResourceVersion, Service, SharedStr, Uid, names,
};
use endpointd_mutants::{Mutant, is_on};
use hashbrown::HashMap;

use super::compact::{CompactObject, Identity};
use super::selector_index::push_exact;
use super::{Cache, Cached, DirtyKeys, ListEpoch, Namespace, is_replay, newer_epoch};
use crate::interner::Interner;
use crate::queue::Priority;

/// The published objects of one namespace.
#[derive(Debug, Default)]
pub struct Published {
    endpoints: HashMap<SharedStr, Cached<CachedEndpoints>>,
    slices: HashMap<SharedStr, Cached<CachedSlice>>,
    /// Names of slices by the Service they say they belong to.
    slices_by_service: HashMap<SharedStr, Vec<SharedStr>>,
}

/// A slice, and what is asked of it more often than it is planned with.
#[derive(Debug)]
pub struct CachedSlice {
    uid: Uid,
    compact: CompactObject,
    /// The Service it says it belongs to.
    service: Option<SharedStr>,
    /// Which of our controllers manages it.
    controller: Option<Controller>,
}

/// Endpoints likewise.
#[derive(Debug)]
pub struct CachedEndpoints {
    uid: Uid,
    compact: CompactObject,
    /// Written by our controller, and no lock.
    is_ours: bool,
    /// For the election of a leader.
    is_lock: bool,
}

/// Where a copy of an object comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The watch: someone may have changed it behind our back.
    Watch,
    /// The answer to our own write, or a live read of it.
    Answer,
}

/// Objects that the API server told us are gone, until the watch says so too. Older events about
/// them must not bring them back.
pub type Tombstones = HashMap<(PublishedResource, Uid), ListEpoch>;

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

    fn has_our_endpoints(&self, name: &str) -> bool {
        self.endpoints.get(name).is_some_and(|cached| cached.object.is_ours)
    }

    /// The names of the slices that carry the name of a Service, in no particular order.
    pub fn slices_of(&self, service: &str) -> &[SharedStr] {
        self.slices_by_service.get(service).map_or(&[], Vec::as_slice)
    }

    /// Names that something is published under.
    pub fn names(&self) -> impl Iterator<Item = &SharedStr> {
        let only_slices = self.slices_by_service.keys();
        let only_slices = only_slices.filter(|name| !self.endpoints.contains_key(*name));
        self.endpoints.keys().chain(only_slices)
    }

    fn n_compact_bytes(&self) -> usize {
        let slices = self.slices.values().map(|cached| &cached.object.compact);
        let endpoints = self.endpoints.values().map(|cached| &cached.object.compact);
        slices.chain(endpoints).map(CompactObject::n_bytes).sum()
    }

    /// Whether the mirroring controller could have anything to do.
    pub fn may_mirror(&self, name: &SharedStr, service: Option<&Service>) -> bool {
        let is_manual = service.is_some_and(|service| service.selector.is_empty());
        (is_manual && self.endpoints.contains_key(name))
            || self.slices_of(name).iter().any(|slice| self.is_mirrored(slice))
    }

    fn is_mirrored(&self, slice: &str) -> bool {
        let slice = self.slices.get(slice);
        slice.is_some_and(|cached| cached.object.controller == Some(Controller::Mirror))
    }
}

impl CachedSlice {
    fn new(slice: &EndpointSlice, strings: &mut Interner<SharedStr>) -> Self {
        let service = slice.meta.labels.get(names::SERVICE_NAME);
        Self {
            uid: slice.meta.uid.clone(),
            compact: CompactObject::slice(slice),
            service: service.map(|name| strings.intern(name)),
            controller: controller_of(&slice.meta.labels),
        }
    }

    /// Equal but for what every write changes.
    fn same_content(&self, other: &Self) -> bool {
        self.uid == other.uid && self.compact.same_content(&other.compact)
    }

    /// Who must look again when this slice is not what it was.
    fn owner(&self, namespace: &SharedStr) -> Option<(Controller, Key)> {
        Some((self.controller?, Key::new(namespace.clone(), self.service.clone()?)))
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

    /// Equal but for what every write changes.
    fn same_content(&self, other: &Self) -> bool {
        self.uid == other.uid && self.compact.same_content(&other.compact)
    }
}

fn controller_of(labels: &Labels) -> Option<Controller> {
    match labels.get(names::MANAGED_BY)?.as_ref() {
        names::MANAGED_BY_SLICES => Some(Controller::Slices),
        names::MANAGED_BY_MIRROR => Some(Controller::Mirror),
        _ => None,
    }
}

impl Cache {
    /// Says whether the copy told something new.
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
            Object::Slice(slice) => self.put_slice(&slice, origin, epoch, dirty),
            Object::Endpoints(endpoints) => self.put_endpoints(&endpoints, origin, epoch, dirty),
        }
    }

    fn put_slice(
        &mut self,
        slice: &EndpointSlice,
        origin: Origin,
        epoch: ListEpoch,
        dirty: &mut DirtyKeys,
    ) -> bool {
        let version = slice.meta.resource_version;
        let id = self.namespace_id(&slice.meta.namespace);
        let Namespace { name: namespace, published, .. } = &mut self.namespaces[id as usize];
        let mut epoch = epoch;
        if let Some(cached) = published.slices.get_mut(&slice.meta.name) {
            epoch = newer_epoch(cached.epoch, epoch);
            cached.epoch = epoch;
            if is_replay(cached.version, version) {
                return false;
            }
        }
        let new = CachedSlice::new(slice, &mut self.strings);
        let old = published.take_slice(&slice.meta.name);
        self.n_slices += usize::from(old.is_none());
        self.n_compact_bytes += new.compact.n_bytes();
        self.n_compact_bytes -= old.as_ref().map_or(0, |old| old.compact.n_bytes());
        let is_edit = old.is_some() && is_on(Mutant::IgnoreForeignEdit);
        if origin == Origin::Watch
            && !is_edit
            && old.as_ref().is_none_or(|old| !old.same_content(&new))
        {
            let before = old.as_ref().and_then(|old| old.owner(namespace));
            let after = new.owner(namespace);
            let before = before.filter(|before| Some(before) != after.as_ref());
            for (controller, key) in before.into_iter().chain(after) {
                dirty.add(controller, key, Priority::Live);
            }
        }
        published.insert_slice(&slice.meta.name, Cached { object: new, version, epoch });
        true
    }

    fn put_endpoints(
        &mut self,
        endpoints: &Endpoints,
        origin: Origin,
        epoch: ListEpoch,
        dirty: &mut DirtyKeys,
    ) -> bool {
        let version = endpoints.meta.resource_version;
        let id = self.namespace_id(&endpoints.meta.namespace);
        let name = self.strings.intern(&endpoints.meta.name);
        let namespace = &mut self.namespaces[id as usize];
        let mut epoch = epoch;
        if let Some(cached) = namespace.published.endpoints.get_mut(&name) {
            epoch = newer_epoch(cached.epoch, epoch);
            cached.epoch = epoch;
            if is_replay(cached.version, version) {
                return false;
            }
        }
        let new = CachedEndpoints::new(endpoints);
        let old = namespace.published.endpoints.get(&name).map(|cached| &cached.object);
        let is_same = old.is_some_and(|old| old.same_content(&new));
        self.n_endpoints += usize::from(old.is_none());
        self.n_compact_bytes += new.compact.n_bytes();
        self.n_compact_bytes -= old.map_or(0, |old| old.compact.n_bytes());
        let new = Cached { object: new, version, epoch };
        namespace.published.endpoints.insert(name.clone(), new);
        if !is_same {
            self.add_affected_by_endpoints(id, &name, origin, dirty);
        }
        true
    }

    /// Endpoints changed. What we wrote ourselves is news for the mirror only.
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
        // Ours, for a Service that went while they were being written: nobody else removes them.
        let is_orphan = service.is_none() && namespace.published.has_our_endpoints(name);
        if is_orphan || (origin == Origin::Watch && has_selector) {
            dirty.add(Controller::Endpoints, key.clone(), Priority::Live);
        }
        if namespace.published.may_mirror(name, service) {
            dirty.add(Controller::Mirror, key, Priority::Live);
        }
    }

    /// The watch says that this very object is gone.
    pub fn object_gone(
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

    /// The API server told us that the object we know is gone; the watch will say so later.
    pub fn tombstone(
        &mut self,
        resource: PublishedResource,
        key: &Key,
        epoch: ListEpoch,
        dirty: &mut DirtyKeys,
    ) {
        let Some(PublishedObject { uid, .. }) = self.object(resource, key) else { return };
        if !is_on(Mutant::NoTombstone) {
            self.tombstones.insert((resource, uid), epoch);
        }
        self.remove_object(resource, key, dirty);
    }

    /// A picture begun after they were set shows all there is, so that older tombstones can go.
    pub fn drop_tombstones(&mut self, resource: PublishedResource, epoch: ListEpoch) {
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
        let Some(&id) = self.namespace_by_name.get(&key.namespace) else { return false };
        let namespace = &mut self.namespaces[id as usize];
        let is_removed = match resource {
            PublishedResource::Slices => {
                let old = namespace.published.take_slice(&key.name);
                self.n_slices -= usize::from(old.is_some());
                self.n_compact_bytes -= old.as_ref().map_or(0, |old| old.compact.n_bytes());
                if let Some((controller, owner)) =
                    old.as_ref().and_then(|old| old.owner(&namespace.name))
                    && !is_on(Mutant::IgnoreForeignDelete)
                {
                    dirty.add(controller, owner, Priority::Live);
                }
                old.is_some()
            }
            PublishedResource::Endpoints => {
                let old = namespace.published.endpoints.remove(&key.name);
                self.n_endpoints -= usize::from(old.is_some());
                self.n_compact_bytes -= old.as_ref().map_or(0, |old| old.object.compact.n_bytes());
                if old.is_some() {
                    self.add_affected_by_endpoints(id, &key.name, Origin::Watch, dirty);
                }
                old.is_some()
            }
        };
        self.drop_namespace_if_empty(id);
        is_removed
    }

    /// What identifies the published object of this key.
    pub fn object(&self, resource: PublishedResource, key: &Key) -> Option<PublishedObject> {
        let published = &self.namespace(&key.namespace)?.published;
        match resource {
            PublishedResource::Slices => {
                let Cached { object, version, .. } = published.slices.get(&key.name)?;
                Some(PublishedObject { uid: object.uid.clone(), version: *version })
            }
            PublishedResource::Endpoints => {
                let Cached { object, version, .. } = published.endpoints.get(&key.name)?;
                Some(PublishedObject { uid: object.uid.clone(), version: *version })
            }
        }
    }

    /// Unpacked, as plans want it.
    pub fn slice(&self, namespace: &SharedStr, name: &SharedStr) -> Option<EndpointSlice> {
        let Namespace { name: namespace, published, .. } = self.namespace(namespace)?;
        let (name, Cached { object, .. }) = published.slices.get_key_value(name)?;
        let identity = Identity { namespace, name, uid: &object.uid };
        Some(object.compact.decode_slice(&identity, &self.strings))
    }

    pub fn endpoints(&self, key: &Key) -> Option<Endpoints> {
        let Namespace { name: namespace, published, .. } = self.namespace(&key.namespace)?;
        let (name, Cached { object, .. }) = published.endpoints.get_key_value(&key.name)?;
        let identity = Identity { namespace, name, uid: &object.uid };
        Some(object.compact.decode_endpoints(&identity, &self.strings))
    }

    pub fn objects_missing_from_list(
        &self,
        resource: PublishedResource,
        epoch: ListEpoch,
        listed: ResourceVersion,
    ) -> Vec<Key> {
        let is_missing =
            |seen: ListEpoch, version: ResourceVersion| seen != epoch && version <= listed;
        let mut keys = Vec::new();
        for (_, namespace) in &self.namespaces {
            let published = &namespace.published;
            let key = |name: &SharedStr| Key::new(namespace.name.clone(), name.clone());
            match resource {
                PublishedResource::Slices => {
                    let all = published.slices.iter();
                    let missing = all.filter(|(_, one)| is_missing(one.epoch, one.version));
                    keys.extend(missing.map(|(name, _)| key(name)));
                }
                PublishedResource::Endpoints => {
                    let all = published.endpoints.iter();
                    let missing = all.filter(|(_, one)| is_missing(one.epoch, one.version));
                    keys.extend(missing.map(|(name, _)| key(name)));
                }
            }
        }
        keys.sort_unstable();
        keys
    }

    pub fn retain_object(&mut self, resource: PublishedResource, key: &Key, epoch: ListEpoch) {
        let Some(&id) = self.namespace_by_name.get(&key.namespace) else { return };
        let published = &mut self.namespaces[id as usize].published;
        let seen = match resource {
            PublishedResource::Slices => {
                published.slices.get_mut(&key.name).map(|one| &mut one.epoch)
            }
            PublishedResource::Endpoints => {
                published.endpoints.get_mut(&key.name).map(|one| &mut one.epoch)
            }
        };
        if let Some(seen) = seen {
            *seen = epoch;
        }
    }

    /// One by one, to check what is kept.
    pub fn count_compact_bytes(&self) -> usize {
        self.namespaces.iter().map(|(_, namespace)| namespace.published.n_compact_bytes()).sum()
    }

    pub fn n_objects(&self, resource: PublishedResource) -> usize {
        match resource {
            PublishedResource::Slices => self.n_slices,
            PublishedResource::Endpoints => self.n_endpoints,
        }
    }
}

/// What identifies a published object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedObject {
    pub uid: Uid,
    pub version: ResourceVersion,
}

impl Published {
    fn take_slice(&mut self, name: &SharedStr) -> Option<CachedSlice> {
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
