//! What is published: Endpoints and slices as the API server has them, as far as we know.

use endpointd_model::{
    Controller, Endpoint, EndpointAddress, EndpointSlice, Endpoints, Key, Meta, Object, ObjectRef,
    Resource, Service, Text, Uid, Version, names,
};
use endpointd_mutants::{Mutant, is_on};
use hashbrown::HashMap;

use super::{Cache, Known, Marks, Picture, is_replay, later_picture};
use crate::pool::Pool;
use crate::queue::Priority;

/// The published objects of one namespace.
#[derive(Debug, Default)]
pub struct Published {
    endpoints: HashMap<Text, Known<Endpoints>>,
    slices: HashMap<Text, Known<EndpointSlice>>,
    /// Names of slices by the Service they say they belong to.
    slices_by_service: HashMap<Text, Vec<Text>>,
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
pub type Tombstones = HashMap<(Resource, Uid), Picture>;

impl Published {
    pub fn is_empty(&self) -> bool {
        self.endpoints.is_empty() && self.slices.is_empty()
    }

    pub fn endpoints(&self, name: &str) -> Option<&Endpoints> {
        self.endpoints.get(name).map(|known| &known.object)
    }

    fn is_our_endpoints(&self, name: &str) -> bool {
        self.endpoints(name).is_some_and(|one| {
            one.meta.labels.has(names::ENDPOINTS_MANAGED_BY, names::MANAGED_BY_ENDPOINTS)
                && !one.meta.annotations.contains_key(names::LEADER)
        })
    }

    pub fn slice(&self, name: &str) -> Option<&EndpointSlice> {
        self.slices.get(name).map(|known| &known.object)
    }

    /// The slices that carry the name of a Service, in no particular order.
    pub fn slices_of(&self, service: &str) -> impl Iterator<Item = &EndpointSlice> {
        let names = self.slices_by_service.get(service).into_iter().flatten();
        names.filter_map(|name| self.slice(name))
    }

    /// Names that something is published under.
    pub fn names(&self) -> impl Iterator<Item = &Text> {
        let only_slices = self.slices_by_service.keys();
        let only_slices = only_slices.filter(|name| !self.endpoints.contains_key(*name));
        self.endpoints.keys().chain(only_slices)
    }

    pub fn bytes(&self) -> usize {
        let slices: usize = self.slices.values().map(|one| one.object.endpoints.len()).sum();
        let subsets = self.endpoints.values().flat_map(|one| &one.object.subsets);
        let addresses: usize =
            subsets.map(|one| one.addresses.len() + one.not_ready_addresses.len()).sum();
        self.slices.len() * size_of::<Known<EndpointSlice>>()
            + slices * size_of::<Endpoint>()
            + self.endpoints.len() * size_of::<Known<Endpoints>>()
            + addresses * size_of::<EndpointAddress>()
    }

    /// Whether the mirroring controller could have anything to do.
    pub fn may_mirror(&self, name: &Text, service: Option<&Service>) -> bool {
        let is_manual = service.is_some_and(|service| service.selector.is_empty());
        (is_manual && self.endpoints.contains_key(name))
            || self.slices_of(name).any(|slice| controller_of(slice) == Some(Controller::Mirror))
    }
}

/// Which of our controllers manages a slice.
fn controller_of(slice: &EndpointSlice) -> Option<Controller> {
    match slice.meta.labels.get(names::MANAGED_BY)?.as_ref() {
        names::MANAGED_BY_SLICES => Some(Controller::Slices),
        names::MANAGED_BY_MIRROR => Some(Controller::Mirror),
        _ => None,
    }
}

/// Who must look again when this slice is not what it was.
fn owner_of(slice: &EndpointSlice) -> Option<(Controller, Key)> {
    let name = slice.meta.labels.get(names::SERVICE_NAME)?;
    Some((controller_of(slice)?, Key::new(slice.meta.namespace.clone(), name.clone())))
}

/// Equal but for what every write changes.
fn same_slice(a: &EndpointSlice, b: &EndpointSlice) -> bool {
    let EndpointSlice { meta, address_type, endpoints, ports } = a;
    (address_type, endpoints, ports) == (&b.address_type, &b.endpoints, &b.ports)
        && same_meta(meta, &b.meta)
}

fn same_meta(a: &Meta, b: &Meta) -> bool {
    let unversioned =
        |meta: &Meta| Meta { resource_version: Text::default(), generation: None, ..meta.clone() };
    unversioned(a) == unversioned(b)
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
            Object::Slice(slice) => self.put_slice(slice, origin, picture, marks),
            Object::Endpoints(endpoints) => self.put_endpoints(endpoints, origin, picture, marks),
        }
    }

    fn put_slice(
        &mut self,
        mut slice: EndpointSlice,
        origin: Origin,
        picture: Picture,
        marks: &mut Marks,
    ) -> bool {
        let version = Version::of(&slice.meta.resource_version);
        let id = self.namespace_id(&slice.meta.namespace);
        self.share_slice(&mut slice);
        let name = slice.meta.name.clone();
        let published = &mut self.namespaces[id as usize].published;
        let mut picture = picture;
        if let Some(known) = published.slices.get_mut(&name) {
            picture = later_picture(known.picture, picture);
            known.picture = picture;
            if is_replay(known.version, version) {
                return false;
            }
        }
        let old = published.take_slice(&name);
        self.n_slices += usize::from(old.is_none());
        let is_edit = old.is_some() && is_on(Mutant::IgnoreForeignEdit);
        if origin == Origin::Watch
            && !is_edit
            && old.as_ref().is_none_or(|old| !same_slice(old, &slice))
        {
            let owners = [old.as_ref().and_then(owner_of), owner_of(&slice)];
            let [before, after] = owners;
            let before = before.filter(|before| Some(before) != after.as_ref());
            for (controller, key) in before.into_iter().chain(after) {
                marks.add(controller, key, Priority::Live);
            }
        }
        published.insert_slice(name, Known { object: slice, version, picture });
        true
    }

    fn put_endpoints(
        &mut self,
        mut endpoints: Endpoints,
        origin: Origin,
        picture: Picture,
        marks: &mut Marks,
    ) -> bool {
        let version = Version::of(&endpoints.meta.resource_version);
        let id = self.namespace_id(&endpoints.meta.namespace);
        self.share_endpoints(&mut endpoints);
        let name = endpoints.meta.name.clone();
        let namespace = &mut self.namespaces[id as usize];
        let mut picture = picture;
        if let Some(known) = namespace.published.endpoints.get_mut(&name) {
            picture = later_picture(known.picture, picture);
            known.picture = picture;
            if is_replay(known.version, version) {
                return false;
            }
        }
        let new = Known { object: endpoints, version, picture };
        let old = namespace.published.endpoints.insert(name.clone(), new);
        self.n_endpoints += usize::from(old.is_none());
        let new = namespace.published.endpoints(&name).expect("just put");
        let is_same = old.is_some_and(|old| {
            old.object.subsets == new.subsets && same_meta(&old.object.meta, &new.meta)
        });
        if !is_same {
            self.mark_endpoints(id, &name, origin, marks);
        }
        true
    }

    /// Endpoints changed. What we wrote ourselves is news for the mirror only.
    fn mark_endpoints(&self, id: u32, name: &Text, origin: Origin, marks: &mut Marks) {
        let namespace = &self.namespaces[id as usize];
        let service = namespace.services.get(name).map(|known| &known.object);
        let key = Key::new(namespace.name.clone(), name.clone());
        let has_selector = service.is_some_and(|service| !service.selector.is_empty());
        // Ours, for a Service that went while they were being written: nobody else removes them.
        let is_orphan = service.is_none() && namespace.published.is_our_endpoints(name);
        if is_orphan || (origin == Origin::Watch && has_selector) {
            marks.add(Controller::Endpoints, key.clone(), Priority::Live);
        }
        if namespace.published.may_mirror(name, service) {
            marks.add(Controller::Mirror, key, Priority::Live);
        }
    }

    /// The watch says that this very object is gone.
    pub fn object_gone(&mut self, resource: Resource, meta: &Meta, marks: &mut Marks) -> bool {
        self.tombstones.remove(&(resource, meta.uid.clone()));
        let key = meta.key();
        let is_newer = |known: &PublishedObject| {
            known.uid != meta.uid && known.version > Version::of(&meta.resource_version)
        };
        match self.object(resource, &key) {
            Some(known) if !is_newer(&known) => self.remove_object(resource, &key, marks),
            Some(_) | None => false,
        }
    }

    /// The API server told us that the object we know is gone; the watch will say so later.
    pub fn bury(&mut self, resource: Resource, key: &Key, picture: Picture, marks: &mut Marks) {
        let Some(PublishedObject { uid, .. }) = self.object(resource, key) else { return };
        if !is_on(Mutant::NoTombstone) {
            self.tombstones.insert((resource, uid), picture);
        }
        self.remove_object(resource, key, marks);
    }

    /// A picture begun after they were set shows all there is, so that older tombstones can go.
    pub fn drop_tombstones(&mut self, resource: Resource, picture: Picture) {
        self.tombstones.retain(|(of, _), set_in| *of != resource || *set_in == picture);
    }

    pub fn n_tombstones(&self) -> usize {
        self.tombstones.len()
    }

    pub fn remove_object(&mut self, resource: Resource, key: &Key, marks: &mut Marks) -> bool {
        let Some(&id) = self.namespace_by_name.get(&key.namespace) else { return false };
        let namespace = &mut self.namespaces[id as usize];
        let is_removed = match resource {
            Resource::Slices => {
                let old = namespace.published.take_slice(&key.name);
                self.n_slices -= usize::from(old.is_some());
                if let Some((controller, owner)) = old.as_ref().and_then(owner_of)
                    && !is_on(Mutant::IgnoreForeignDelete)
                {
                    marks.add(controller, owner, Priority::Live);
                }
                old.is_some()
            }
            Resource::Endpoints => {
                let old = namespace.published.endpoints.remove(&key.name);
                self.n_endpoints -= usize::from(old.is_some());
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
    pub fn object(&self, resource: Resource, key: &Key) -> Option<PublishedObject> {
        let published = &self.namespace(&key.namespace)?.published;
        match resource {
            Resource::Slices => published.slices.get(&key.name).map(PublishedObject::of_slice),
            Resource::Endpoints => {
                published.endpoints.get(&key.name).map(PublishedObject::of_endpoints)
            }
        }
    }

    pub fn slice(&self, key: &Key) -> Option<&EndpointSlice> {
        self.namespace(&key.namespace)?.published.slice(&key.name)
    }

    pub fn endpoints(&self, key: &Key) -> Option<&Endpoints> {
        self.namespace(&key.namespace)?.published.endpoints(&key.name)
    }

    pub fn objects_not_in(
        &self,
        resource: Resource,
        picture: Picture,
        listed: Version,
    ) -> Vec<Key> {
        let is_missing = |seen: Picture, version: Version| seen != picture && version <= listed;
        let mut keys = Vec::new();
        for (_, namespace) in &self.namespaces {
            let published = &namespace.published;
            let key = |name: &Text| Key::new(namespace.name.clone(), name.clone());
            match resource {
                Resource::Slices => {
                    let all = published.slices.iter();
                    let missing = all.filter(|(_, one)| is_missing(one.picture, one.version));
                    keys.extend(missing.map(|(name, _)| key(name)));
                }
                Resource::Endpoints => {
                    let all = published.endpoints.iter();
                    let missing = all.filter(|(_, one)| is_missing(one.picture, one.version));
                    keys.extend(missing.map(|(name, _)| key(name)));
                }
            }
        }
        keys.sort_unstable();
        keys
    }

    pub fn keep_object(&mut self, resource: Resource, key: &Key, picture: Picture) {
        let Some(&id) = self.namespace_by_name.get(&key.namespace) else { return };
        let published = &mut self.namespaces[id as usize].published;
        let seen = match resource {
            Resource::Slices => published.slices.get_mut(&key.name).map(|one| &mut one.picture),
            Resource::Endpoints => {
                published.endpoints.get_mut(&key.name).map(|one| &mut one.picture)
            }
        };
        if let Some(seen) = seen {
            *seen = picture;
        }
    }

    pub fn n_objects(&self, resource: Resource) -> usize {
        match resource {
            Resource::Slices => self.n_slices,
            Resource::Endpoints => self.n_endpoints,
        }
    }

    fn share_slice(&mut self, slice: &mut EndpointSlice) {
        self.share_meta(&mut slice.meta);
        let texts = &mut self.texts;
        for endpoint in &mut slice.endpoints {
            // Decoders leave room for more.
            endpoint.addresses.shrink_to_fit();
            share_all(texts, [&mut endpoint.node_name, &mut endpoint.zone]);
            share_all(texts, [&mut endpoint.hostname]);
            if let Some(target) = &mut endpoint.target_ref {
                share_ref(texts, target);
            }
            for hints in endpoint.hints.iter_mut() {
                let zones_and_nodes = hints.for_zones.iter_mut().chain(&mut hints.for_nodes);
                zones_and_nodes.for_each(|text| *text = texts.share(text));
            }
        }
        slice.endpoints.shrink_to_fit();
    }

    fn share_endpoints(&mut self, endpoints: &mut Endpoints) {
        self.share_meta(&mut endpoints.meta);
        let texts = &mut self.texts;
        for subset in &mut endpoints.subsets {
            subset.addresses.shrink_to_fit();
            subset.not_ready_addresses.shrink_to_fit();
            let addresses = subset.addresses.iter_mut().chain(&mut subset.not_ready_addresses);
            for address in addresses {
                share_all(texts, [&mut address.node_name, &mut address.hostname]);
                if let Some(target) = &mut address.target_ref {
                    share_ref(texts, target);
                }
            }
        }
    }

    fn share_meta(&mut self, meta: &mut Meta) {
        meta.namespace = self.texts.share(&meta.namespace);
        meta.labels = self.label_sets.share(&meta.labels);
    }
}

fn share_all<const N: usize>(texts: &mut Pool<Text>, fields: [&mut Option<Text>; N]) {
    for text in fields.into_iter().flatten() {
        *text = texts.share(text);
    }
}

fn share_ref(texts: &mut Pool<Text>, target: &mut ObjectRef) {
    let ObjectRef { kind, namespace, name, uid: _, api_version, resource_version, field_path } =
        target;
    for text in [kind, namespace, name, api_version, resource_version, field_path] {
        *text = texts.share(text);
    }
}

/// What identifies a published object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedObject {
    pub uid: Uid,
    pub version: Version,
}

impl PublishedObject {
    fn of_slice(known: &Known<EndpointSlice>) -> Self {
        Self { uid: known.object.meta.uid.clone(), version: known.version }
    }

    fn of_endpoints(known: &Known<Endpoints>) -> Self {
        Self { uid: known.object.meta.uid.clone(), version: known.version }
    }
}

impl Published {
    fn take_slice(&mut self, name: &Text) -> Option<EndpointSlice> {
        let slice = self.slices.remove(name)?.object;
        if let Some(service) = slice.meta.labels.get(names::SERVICE_NAME)
            && let Some(slices) = self.slices_by_service.get_mut(service)
        {
            slices.retain(|other| other != name);
            if slices.is_empty() {
                self.slices_by_service.remove(service);
            }
        }
        Some(slice)
    }

    fn insert_slice(&mut self, name: Text, slice: Known<EndpointSlice>) {
        if let Some(service) = slice.object.meta.labels.get(names::SERVICE_NAME) {
            self.slices_by_service.entry(service.clone()).or_default().push(name.clone());
        }
        self.slices.insert(name, slice);
    }
}
