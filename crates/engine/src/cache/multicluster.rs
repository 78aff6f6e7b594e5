//! What one cluster exports, and what is imported into it. Only kept if the controller for Services
//! of several clusters runs.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{
    Controller, DerivedService, EndpointSlice, Key, MultiClusterObject, MultiClusterResource,
    Namespace, ServiceExport, ServiceImport, SharedStr, WatchedResource, derived_name, names,
};

use super::cached::{Cached, Freshness, put_newer};
use super::imports::{is_removal, priority};
use super::published::PublishedObject;
use super::{Cache, DirtyKeys, ListEpoch, Origin};
use crate::queue::Priority;

/// The objects of a resource, shared or not.
macro_rules! table {
    ($all:ident, $resource:ident, $($borrow:tt)+) => {
        match $resource {
            WatchedResource::Namespaces => Some($($borrow)+ $all.namespaces),
            WatchedResource::ServiceExports => Some($($borrow)+ $all.exports),
            WatchedResource::ServiceImports => Some($($borrow)+ $all.imports),
            WatchedResource::DerivedServices => Some($($borrow)+ $all.derived),
            WatchedResource::Services
            | WatchedResource::Pods
            | WatchedResource::Nodes
            | WatchedResource::Endpoints
            | WatchedResource::Slices
            | WatchedResource::ReferenceGrants => None,
        }
    };
}

#[derive(Debug)]
pub struct MultiCluster {
    place: Place,
    pub(super) exports: BTreeMap<Key, Cached<ServiceExport>>,
    pub(super) imports: BTreeMap<Key, Cached<ServiceImport>>,
    pub(super) derived: BTreeMap<Key, Cached<DerivedService>>,
    /// Their keys have no namespace.
    pub(super) namespaces: BTreeMap<Key, Cached<Namespace>>,
    /// By the key of the derived Service, whether that exists or not.
    keys_by_derived: BTreeMap<Key, Key>,
}

/// Whose objects a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Of this cluster: the imports are written here.
    Home,
    /// Of another one, which only exports.
    Remote,
}

impl MultiCluster {
    fn new(place: Place) -> Self {
        Self {
            place,
            exports: BTreeMap::new(),
            imports: BTreeMap::new(),
            derived: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            keys_by_derived: BTreeMap::new(),
        }
    }

    fn follow_name(&mut self, key: &Key) {
        if self.place == Place::Remote {
            return;
        }
        let derived = derived_key(key);
        let is_known = self.exports.contains_key(key) || self.imports.contains_key(key);
        match is_known {
            true => drop(self.keys_by_derived.insert(derived, key.clone())),
            false => drop(self.keys_by_derived.remove(&derived)),
        }
    }

    pub(super) fn n_objects(&self, resource: WatchedResource) -> usize {
        self.table(resource).map_or(0, Table::n_objects)
    }

    pub(super) fn freshness(&self, resource: WatchedResource, key: &Key) -> Option<&Freshness> {
        self.table(resource)?.freshness(key)
    }

    pub(super) fn freshness_mut(
        &mut self,
        resource: WatchedResource,
        key: &Key,
    ) -> Option<&mut Freshness> {
        self.table_mut(resource)?.freshness_mut(key)
    }

    pub(super) fn keys_of_resource(
        &self,
        resource: WatchedResource,
        is_wanted: &dyn Fn(&Freshness) -> bool,
    ) -> Vec<Key> {
        self.table(resource).map_or_else(Vec::new, |table| table.keys(is_wanted))
    }

    fn table(&self, resource: WatchedResource) -> Option<&dyn Table> {
        table!(self, resource, &)
    }

    fn table_mut(&mut self, resource: WatchedResource) -> Option<&mut dyn Table> {
        table!(self, resource, &mut)
    }

    fn owner_of_derived(&self, derived: &Key) -> Option<Key> {
        if let Some(key) = self.keys_by_derived.get(derived) {
            return Some(key.clone());
        }
        let service = &self.derived.get(derived)?.object;
        let name = service.meta.labels.get(names::IMPORT_NAME)?;
        Some(Key::new(derived.namespace.clone(), name.clone()))
    }

    /// The keys whose plans read this slice: those that export it, and those it was written for.
    fn keys_of(&self, slice: &EndpointSlice) -> BTreeSet<Key> {
        let EndpointSlice { meta, .. } = slice;
        let key = |name: &SharedStr| Key::new(meta.namespace.clone(), name.clone());
        let service = meta.labels.get(names::SERVICE_NAME).map(key);
        let mut keys = BTreeSet::new();
        if self.place == Place::Home && meta.labels.contains_key(names::IMPORT_NAME) {
            keys.extend(meta.labels.get(names::IMPORT_NAME).map(key));
        }
        if let Some(service) = &service {
            keys.extend(self.keys_by_derived.get(service).cloned());
        }
        keys.extend(service.filter(|service| self.exports.contains_key(service)));
        keys
    }
}

impl Cache {
    pub fn follow_clusters(mut self, place: Place) -> Self {
        self.multicluster = Some(Box::new(MultiCluster::new(place)));
        self
    }

    pub fn export(&self, key: &Key) -> Option<&ServiceExport> {
        Some(&self.multicluster.as_ref()?.exports.get(key)?.object)
    }

    pub fn import(&self, key: &Key) -> Option<&ServiceImport> {
        Some(&self.multicluster.as_ref()?.imports.get(key)?.object)
    }

    /// The Service that has the name of the one derived from this import.
    pub fn derived_of(&self, key: &Key) -> Option<&DerivedService> {
        Some(&self.multicluster.as_ref()?.derived.get(&derived_key(key))?.object)
    }

    pub fn namespace_object(&self, name: &SharedStr) -> Option<&Namespace> {
        Some(&self.multicluster.as_ref()?.namespaces.get(&name_key(name))?.object)
    }

    /// Sorted.
    pub fn exports(&self) -> impl Iterator<Item = (&Key, &ServiceExport)> {
        let exports = self.multicluster.iter().flat_map(|one| &one.exports);
        exports.map(|(key, cached)| (key, &cached.object))
    }

    /// Sorted.
    pub fn imports(&self) -> impl Iterator<Item = (&Key, &ServiceImport)> {
        let imports = self.multicluster.iter().flat_map(|one| &one.imports);
        imports.map(|(key, cached)| (key, &cached.object))
    }

    pub(super) fn multicluster_object(
        &self,
        resource: MultiClusterResource,
        key: &Key,
    ) -> Option<PublishedObject> {
        let all = self.multicluster.as_ref()?;
        let (meta, version) = match resource {
            MultiClusterResource::Imports | MultiClusterResource::ImportStatus => {
                let cached = all.imports.get(key)?;
                (&cached.object.meta, cached.version())
            }
            MultiClusterResource::ExportStatus => {
                let cached = all.exports.get(key)?;
                (&cached.object.meta, cached.version())
            }
            MultiClusterResource::Derived => {
                let cached = all.derived.get(key)?;
                (&cached.object.meta, cached.version())
            }
        };
        Some(PublishedObject { uid: meta.uid.clone(), version })
    }

    /// Returns whether the copy is newer than the cached object. Our own writes make their key dirty,
    /// too: what must wait for them comes in the next plan.
    pub(super) fn put_multicluster(
        &mut self,
        object: MultiClusterObject,
        epoch: ListEpoch,
        dirty: &mut DirtyKeys,
    ) -> bool {
        let Some(all) = &mut self.multicluster else { return false };
        let freshness = Freshness::new(object.meta().resource_version, epoch);
        let mut key = object.meta().key();
        let is_newer = match object {
            MultiClusterObject::Import(import) | MultiClusterObject::ImportStatus(import) => {
                put_newer(&mut all.imports, key.clone(), import, freshness).is_some()
            }
            MultiClusterObject::ExportStatus(export) => {
                put_newer(&mut all.exports, key.clone(), export, freshness).is_some()
            }
            MultiClusterObject::Derived(service) => {
                let is_newer = put_newer(&mut all.derived, key.clone(), service, freshness);
                let Some(owner) = all.owner_of_derived(&key) else { return is_newer.is_some() };
                key = owner;
                is_newer.is_some()
            }
        };
        if is_newer {
            all.follow_name(&key);
            dirty.add(Controller::MultiCluster, key, Priority::Live);
        }
        is_newer
    }

    /// Returns whether the object was cached.
    pub(super) fn remove_multicluster(
        &mut self,
        resource: MultiClusterResource,
        key: &Key,
        dirty: &mut DirtyKeys,
    ) -> bool {
        let Some(all) = &mut self.multicluster else { return false };
        let owner = match resource {
            MultiClusterResource::Derived => all.owner_of_derived(key),
            MultiClusterResource::Imports
            | MultiClusterResource::ImportStatus
            | MultiClusterResource::ExportStatus => Some(key.clone()),
        };
        let is_removed = match resource {
            MultiClusterResource::Imports | MultiClusterResource::ImportStatus => {
                all.imports.remove(key).is_some()
            }
            MultiClusterResource::ExportStatus => all.exports.remove(key).is_some(),
            MultiClusterResource::Derived => all.derived.remove(key).is_some(),
        };
        if let Some(owner) = owner.filter(|_| is_removed) {
            all.follow_name(&owner);
            dirty.add(Controller::MultiCluster, owner, Priority::Live);
        }
        is_removed
    }

    /// Returns whether something is different for the imports of this namespace.
    pub(super) fn put_namespace_object(&mut self, namespace: Namespace, epoch: ListEpoch) -> bool {
        let Some(all) = &mut self.multicluster else { return false };
        let freshness = Freshness::new(namespace.resource_version, epoch);
        let (key, is_terminating) = (name_key(&namespace.name), namespace.is_terminating);
        let old = put_newer(&mut all.namespaces, key, namespace, freshness);
        old.is_some_and(|old| old.is_none_or(|old| old.is_terminating != is_terminating))
    }

    pub(super) fn remove_namespace_object(&mut self, name: &SharedStr) -> bool {
        let all = self.multicluster.as_mut();
        all.is_some_and(|all| all.namespaces.remove(&name_key(name)).is_some())
    }

    /// A Service was cached or removed.
    pub(super) fn follow_exports(&mut self, key: &Key, is_removed: bool, dirty: &mut DirtyKeys) {
        let Some(all) = &mut self.multicluster else { return };
        if all.exports.contains_key(key) {
            dirty.add(Controller::MultiCluster, key.clone(), Priority::Live);
        }
        // The watch of derived Services reports only those with their label.
        let is_unlabelled = |cached: &Cached<DerivedService>| {
            !cached.object.meta.labels.contains_key(names::IMPORT_NAME)
        };
        if is_removed && all.derived.get(key).is_some_and(is_unlabelled) {
            self.remove_multicluster(MultiClusterResource::Derived, key, dirty);
        }
    }

    /// The cached slice of this key, if a plan of this controller may read it.
    pub(super) fn slice_of_clusters(&self, key: &Key) -> Option<EndpointSlice> {
        let all = self.multicluster.as_ref()?;
        let published = &self.namespace(&key.namespace)?.published;
        let service = published.slices.get(&key.name)?.object.service.clone();
        let is_read = service.is_some_and(|service| {
            let service = Key::new(key.namespace.clone(), service);
            all.exports.contains_key(&service) || all.keys_by_derived.contains_key(&service)
        });
        if is_read { self.slice(key) } else { None }
    }

    /// After an update of our own nothing is
    /// left to write.
    pub(super) fn add_affected_by_slice_of_clusters(
        &self,
        old: Option<&EndpointSlice>,
        new: Option<&EndpointSlice>,
        origin: Origin,
        dirty: &mut DirtyKeys,
    ) {
        let Some(all) = &self.multicluster else { return };
        let is_own_update = origin == Origin::OwnWrite && old.is_some() && new.is_some();
        if is_own_update || (old.is_some() && old.map(content) == new.map(content)) {
            return;
        }
        let keys: BTreeSet<Key> =
            old.into_iter().chain(new).flat_map(|slice| all.keys_of(slice)).collect();
        let priority = priority(is_removal(old, new));
        for key in keys {
            dirty.add(Controller::MultiCluster, key, priority);
        }
    }
}

/// What a plan reads of a slice.
fn content(slice: &EndpointSlice) -> impl PartialEq {
    let EndpointSlice { meta, address_type, endpoints, ports } = slice;
    let meta = (meta.labels.clone(), meta.annotations.clone(), meta.owners.clone(), meta.deleted);
    (meta, address_type.clone(), endpoints.clone(), ports.clone())
}

/// The objects of one resource, whatever their type.
trait Table {
    fn n_objects(&self) -> usize;
    fn freshness(&self, key: &Key) -> Option<&Freshness>;
    fn freshness_mut(&mut self, key: &Key) -> Option<&mut Freshness>;
    fn keys(&self, is_wanted: &dyn Fn(&Freshness) -> bool) -> Vec<Key>;
}

impl<T> Table for BTreeMap<Key, Cached<T>> {
    fn n_objects(&self) -> usize {
        self.len()
    }

    fn freshness(&self, key: &Key) -> Option<&Freshness> {
        self.get(key).map(Cached::freshness)
    }

    fn freshness_mut(&mut self, key: &Key) -> Option<&mut Freshness> {
        self.get_mut(key).map(Cached::freshness_mut)
    }

    fn keys(&self, is_wanted: &dyn Fn(&Freshness) -> bool) -> Vec<Key> {
        let wanted = self.iter().filter(|(_, cached)| is_wanted(cached.freshness()));
        wanted.map(|(key, _)| key.clone()).collect()
    }
}

fn name_key(namespace: &SharedStr) -> Key {
    Key::new(SharedStr::default(), namespace.clone())
}

fn derived_key(key: &Key) -> Key {
    Key::new(key.namespace.clone(), derived_name(key))
}
