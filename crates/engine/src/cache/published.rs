//! What is published: Endpoints and slices as the API server has them, as far as we know.

use endpointd_model::{
    Controller, EndpointSlice, Endpoints, Key, Labels, Meta, Object, PublishedResource,
    ResourceVersion, Service, SharedStr, Uid, names,
};
use endpointd_mutants::{Mutant, is_on};
use hashbrown::HashMap;

use super::matching::push_lean;
use super::packed::{Identity, Packed};
use super::{Cache, Known, Marks, Namespace, Picture, is_replay, later_picture};
use crate::pool::Pool;
use crate::queue::Priority;

/// The published objects of one namespace.
#[derive(Debug, Default)]
pub struct Published {
    endpoints: HashMap<SharedStr, Known<KeptEndpoints>>,
    slices: HashMap<SharedStr, Known<KeptSlice>>,
    /// Names of slices by the Service they say they belong to.
    slices_by_service: HashMap<SharedStr, Vec<SharedStr>>,
}

/// A slice, and what is asked of it more often than it is planned with.
#[derive(Debug)]
pub struct KeptSlice {
    uid: Uid,
    packed: Packed,
    /// The Service it says it belongs to.
    service: Option<SharedStr>,
    /// Which of our controllers manages it.
    controller: Option<Controller>,
}

/// Endpoints likewise.
#[derive(Debug)]
pub struct KeptEndpoints {
    uid: Uid,
    packed: Packed,
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
pub type Tombstones = HashMap<(PublishedResource, Uid), Picture>;

impl Published {
    pub fn is_empty(&self) -> bool {
        self.endpoints.is_empty() && self.slices.is_empty()
    }

    pub fn has_lock(&self, name: &str) -> bool {
        self.endpoints.get(name).is_some_and(|known| known.object.is_lock)
    }

    pub fn has_endpoints(&self, name: &str) -> bool {
        self.endpoints.contains_key(name)
    }

    fn has_our_endpoints(&self, name: &str) -> bool {
        self.endpoints.get(name).is_some_and(|known| known.object.is_ours)
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

    fn n_packed_bytes(&self) -> usize {
        let slices = self.slices.values().map(|known| &known.object.packed);
        let endpoints = self.endpoints.values().map(|known| &known.object.packed);
        slices.chain(endpoints).map(Packed::n_bytes).sum()
    }

    /// Whether the mirroring controller could have anything to do.
    pub fn may_mirror(&self, name: &SharedStr, service: Option<&Service>) -> bool {
        let is_manual = service.is_some_and(|service| service.selector.is_empty());
        (is_manual && self.endpoints.contains_key(name))
            || self.slices_of(name).iter().any(|slice| self.is_mirrored(slice))
    }

    fn is_mirrored(&self, slice: &str) -> bool {
        let slice = self.slices.get(slice);
        slice.is_some_and(|known| known.object.controller == Some(Controller::Mirror))
    }
}

impl KeptSlice {
    fn new(slice: &EndpointSlice, texts: &mut Pool<SharedStr>) -> Self {
        let service = slice.meta.labels.get(names::SERVICE_NAME);
        Self {
            uid: slice.meta.uid.clone(),
            packed: Packed::slice(slice),
            service: service.map(|name| texts.share(name)),
            controller: controller_of(&slice.meta.labels),
        }
    }

    /// Equal but for what every write changes.
    fn says_the_same(&self, other: &Self) -> bool {
        self.uid == other.uid && self.packed.says_the_same(&other.packed)
    }

    /// Who must look again when this slice is not what it was.
    fn owner(&self, namespace: &SharedStr) -> Option<(Controller, Key)> {
        Some((self.controller?, Key::new(namespace.clone(), self.service.clone()?)))
    }
}

impl KeptEndpoints {
    fn new(endpoints: &Endpoints) -> Self {
        let Meta { uid, labels, annotations, .. } = &endpoints.meta;
        let is_lock = annotations.contains_key(names::LEADER);
        let is_ours = labels.has(names::ENDPOINTS_MANAGED_BY, names::MANAGED_BY_ENDPOINTS);
        Self {
            uid: uid.clone(),
            packed: Packed::endpoints(endpoints),
            is_ours: is_ours && !is_lock,
            is_lock,
        }
    }

    /// Equal but for what every write changes.
    fn says_the_same(&self, other: &Self) -> bool {
        self.uid == other.uid && self.packed.says_the_same(&other.packed)
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
        picture: Picture,
        marks: &mut Marks,
    ) -> bool {
        if self.tombstones.contains_key(&(object.resource(), object.meta().uid.clone())) {
            return false;
        }
        match object {
            Object::Slice(slice) => self.put_slice(&slice, origin, picture, marks),
            Object::Endpoints(endpoints) => self.put_endpoints(&endpoints, origin, picture, marks),
        }
    }

    fn put_slice(
        &mut self,
        slice: &EndpointSlice,
        origin: Origin,
        picture: Picture,
        marks: &mut Marks,
    ) -> bool {
        let version = slice.meta.resource_version;
        let id = self.namespace_id(&slice.meta.namespace);
        let Namespace { name: namespace, published, .. } = &mut self.namespaces[id as usize];
        let mut picture = picture;
        if let Some(known) = published.slices.get_mut(&slice.meta.name) {
            picture = later_picture(known.picture, picture);
            known.picture = picture;
            if is_replay(known.version, version) {
                return false;
            }
        }
        let new = KeptSlice::new(slice, &mut self.texts);
        let old = published.take_slice(&slice.meta.name);
        self.n_slices += usize::from(old.is_none());
        self.n_packed_bytes += new.packed.n_bytes();
        self.n_packed_bytes -= old.as_ref().map_or(0, |old| old.packed.n_bytes());
        let is_edit = old.is_some() && is_on(Mutant::IgnoreForeignEdit);
        if origin == Origin::Watch
            && !is_edit
            && old.as_ref().is_none_or(|old| !old.says_the_same(&new))
        {
            let before = old.as_ref().and_then(|old| old.owner(namespace));
            let after = new.owner(namespace);
            let before = before.filter(|before| Some(before) != after.as_ref());
            for (controller, key) in before.into_iter().chain(after) {
                marks.add(controller, key, Priority::Live);
            }
        }
        published.insert_slice(&slice.meta.name, Known { object: new, version, picture });
        true
    }

    fn put_endpoints(
        &mut self,
        endpoints: &Endpoints,
        origin: Origin,
        picture: Picture,
        marks: &mut Marks,
    ) -> bool {
        let version = endpoints.meta.resource_version;
        let id = self.namespace_id(&endpoints.meta.namespace);
        let name = self.texts.share(&endpoints.meta.name);
        let namespace = &mut self.namespaces[id as usize];
        let mut picture = picture;
        if let Some(known) = namespace.published.endpoints.get_mut(&name) {
            picture = later_picture(known.picture, picture);
            known.picture = picture;
            if is_replay(known.version, version) {
                return false;
            }
        }
        let new = KeptEndpoints::new(endpoints);
        let old = namespace.published.endpoints.get(&name).map(|known| &known.object);
        let is_same = old.is_some_and(|old| old.says_the_same(&new));
        self.n_endpoints += usize::from(old.is_none());
        self.n_packed_bytes += new.packed.n_bytes();
        self.n_packed_bytes -= old.map_or(0, |old| old.packed.n_bytes());
        let new = Known { object: new, version, picture };
        namespace.published.endpoints.insert(name.clone(), new);
        if !is_same {
            self.mark_endpoints(id, &name, origin, marks);
        }
        true
    }

    /// Endpoints changed. What we wrote ourselves is news for the mirror only.
    fn mark_endpoints(&self, id: u32, name: &SharedStr, origin: Origin, marks: &mut Marks) {
        let namespace = &self.namespaces[id as usize];
        let service = namespace.services.get(name).map(|known| &known.object);
        let key = Key::new(namespace.name.clone(), name.clone());
        let has_selector = service.is_some_and(|service| !service.selector.is_empty());
        // Ours, for a Service that went while they were being written: nobody else removes them.
        let is_orphan = service.is_none() && namespace.published.has_our_endpoints(name);
        if is_orphan || (origin == Origin::Watch && has_selector) {
            marks.add(Controller::Endpoints, key.clone(), Priority::Live);
        }
        if namespace.published.may_mirror(name, service) {
            marks.add(Controller::Mirror, key, Priority::Live);
        }
    }

    /// The watch says that this very object is gone.
    pub fn object_gone(
        &mut self,
        resource: PublishedResource,
        meta: &Meta,
        marks: &mut Marks,
    ) -> bool {
        self.tombstones.remove(&(resource, meta.uid.clone()));
        let key = meta.key();
        let is_newer = |known: &PublishedObject| {
            known.uid != meta.uid && known.version > meta.resource_version
        };
        match self.object(resource, &key) {
            Some(known) if !is_newer(&known) => self.remove_object(resource, &key, marks),
            Some(_) | None => false,
        }
    }

    /// The API server told us that the object we know is gone; the watch will say so later.
    pub fn bury(
        &mut self,
        resource: PublishedResource,
        key: &Key,
        picture: Picture,
        marks: &mut Marks,
    ) {
        let Some(PublishedObject { uid, .. }) = self.object(resource, key) else { return };
        if !is_on(Mutant::NoTombstone) {
            self.tombstones.insert((resource, uid), picture);
        }
        self.remove_object(resource, key, marks);
    }

    /// A picture begun after they were set shows all there is, so that older tombstones can go.
    pub fn drop_tombstones(&mut self, resource: PublishedResource, picture: Picture) {
        self.tombstones.retain(|(of, _), set_in| *of != resource || *set_in == picture);
    }

    pub fn n_tombstones(&self) -> usize {
        self.tombstones.len()
    }

    pub fn remove_object(
        &mut self,
        resource: PublishedResource,
        key: &Key,
        marks: &mut Marks,
    ) -> bool {
        let Some(&id) = self.namespace_by_name.get(&key.namespace) else { return false };
        let namespace = &mut self.namespaces[id as usize];
        let is_removed = match resource {
            PublishedResource::Slices => {
                let old = namespace.published.take_slice(&key.name);
                self.n_slices -= usize::from(old.is_some());
                self.n_packed_bytes -= old.as_ref().map_or(0, |old| old.packed.n_bytes());
                if let Some((controller, owner)) =
                    old.as_ref().and_then(|old| old.owner(&namespace.name))
                    && !is_on(Mutant::IgnoreForeignDelete)
                {
                    marks.add(controller, owner, Priority::Live);
                }
                old.is_some()
            }
            PublishedResource::Endpoints => {
                let old = namespace.published.endpoints.remove(&key.name);
                self.n_endpoints -= usize::from(old.is_some());
                self.n_packed_bytes -= old.as_ref().map_or(0, |old| old.object.packed.n_bytes());
                if old.is_some() {
                    self.mark_endpoints(id, &key.name, Origin::Watch, marks);
                }
                old.is_some()
            }
        };
        self.tidy_namespace(id);
        is_removed
    }

    /// What identifies the published object of this key.
    pub fn object(&self, resource: PublishedResource, key: &Key) -> Option<PublishedObject> {
        let published = &self.namespace(&key.namespace)?.published;
        match resource {
            PublishedResource::Slices => {
                let Known { object, version, .. } = published.slices.get(&key.name)?;
                Some(PublishedObject { uid: object.uid.clone(), version: *version })
            }
            PublishedResource::Endpoints => {
                let Known { object, version, .. } = published.endpoints.get(&key.name)?;
                Some(PublishedObject { uid: object.uid.clone(), version: *version })
            }
        }
    }

    /// Unpacked, as plans want it.
    pub fn slice(&self, namespace: &SharedStr, name: &SharedStr) -> Option<EndpointSlice> {
        let Namespace { name: namespace, published, .. } = self.namespace(namespace)?;
        let (name, Known { object, .. }) = published.slices.get_key_value(name)?;
        let identity = Identity { namespace, name, uid: &object.uid };
        Some(object.packed.unpack_slice(&identity, &self.texts))
    }

    pub fn endpoints(&self, key: &Key) -> Option<Endpoints> {
        let Namespace { name: namespace, published, .. } = self.namespace(&key.namespace)?;
        let (name, Known { object, .. }) = published.endpoints.get_key_value(&key.name)?;
        let identity = Identity { namespace, name, uid: &object.uid };
        Some(object.packed.unpack_endpoints(&identity, &self.texts))
    }

    pub fn objects_not_in(
        &self,
        resource: PublishedResource,
        picture: Picture,
        listed: ResourceVersion,
    ) -> Vec<Key> {
        let is_missing =
            |seen: Picture, version: ResourceVersion| seen != picture && version <= listed;
        let mut keys = Vec::new();
        for (_, namespace) in &self.namespaces {
            let published = &namespace.published;
            let key = |name: &SharedStr| Key::new(namespace.name.clone(), name.clone());
            match resource {
                PublishedResource::Slices => {
                    let all = published.slices.iter();
                    let missing = all.filter(|(_, one)| is_missing(one.picture, one.version));
                    keys.extend(missing.map(|(name, _)| key(name)));
                }
                PublishedResource::Endpoints => {
                    let all = published.endpoints.iter();
                    let missing = all.filter(|(_, one)| is_missing(one.picture, one.version));
                    keys.extend(missing.map(|(name, _)| key(name)));
                }
            }
        }
        keys.sort_unstable();
        keys
    }

    pub fn keep_object(&mut self, resource: PublishedResource, key: &Key, picture: Picture) {
        let Some(&id) = self.namespace_by_name.get(&key.namespace) else { return };
        let published = &mut self.namespaces[id as usize].published;
        let seen = match resource {
            PublishedResource::Slices => {
                published.slices.get_mut(&key.name).map(|one| &mut one.picture)
            }
            PublishedResource::Endpoints => {
                published.endpoints.get_mut(&key.name).map(|one| &mut one.picture)
            }
        };
        if let Some(seen) = seen {
            *seen = picture;
        }
    }

    /// One by one, to check what is kept.
    pub fn count_packed_bytes(&self) -> usize {
        self.namespaces.iter().map(|(_, namespace)| namespace.published.n_packed_bytes()).sum()
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
    fn take_slice(&mut self, name: &SharedStr) -> Option<KeptSlice> {
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

    fn insert_slice(&mut self, name: &SharedStr, slice: Known<KeptSlice>) {
        if let Some(service) = &slice.object.service {
            let slices = self.slices_by_service.entry(service.clone()).or_default();
            push_lean(slices, name.clone());
        }
        self.slices.insert(name.clone(), slice);
    }
}
