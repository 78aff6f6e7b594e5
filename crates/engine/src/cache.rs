//! Our last observed copy of the cluster, with its reverse indexes. A change costs what it
//! touches: a pod event finds its Services through its label set, a node event through its pods.

mod compact;
mod nodes;
mod pods;
mod published;
mod selector_index;
mod services;
mod snapshots;

use std::hash::BuildHasher;
use std::sync::Arc;

use endpointd_model::{Controller, Key, Labels, Pod, ResourceVersion, Service, SharedStr};
use endpointd_mutants::{Mutant, is_on};
use endpointd_plan::{PodDifference, pod_difference};
use hashbrown::{HashMap, HashTable};
use slab::Slab;

use self::nodes::Nodes;
use self::pods::{PodId, PodIndexing, PodRecord, PortList};
use self::published::{CachedEndpoints, CachedSlice, Published, Tombstones};
use self::selector_index::SelectorIndex;
use crate::interner::Interner;
use crate::queue::Priority;

pub use self::published::Origin;

/// Which complete picture an object was last seen in. Numbers come around, so only equality counts.
pub type ListEpoch = u8;

#[derive(Debug, Default)]
pub struct Cache {
    strings: Interner<SharedStr>,
    label_sets: Interner<Labels>,
    port_lists: Interner<PortList>,
    namespaces: Slab<Namespace>,
    namespace_by_name: HashMap<SharedStr, u32>,
    pods: Slab<PodRecord>,
    nodes: Nodes,
    tombstones: Tombstones,
    n_services: usize,
    n_endpoints: usize,
    n_slices: usize,
    /// What published objects are packed into, all together.
    n_compact_bytes: usize,
    /// Names hash the same wherever pods are looked up.
    hasher: hashbrown::DefaultHashBuilder,
}

#[derive(Debug, Default)]
struct Namespace {
    name: SharedStr,
    selectors: SelectorIndex,
    /// By name, which is kept in the record alone.
    pods: HashTable<PodId>,
    services: HashMap<SharedStr, Cached<Service>>,
    published: Published,
}

/// An object and how recent it is.
#[derive(Debug)]
struct Cached<T> {
    object: T,
    version: ResourceVersion,
    epoch: ListEpoch,
}

/// Who must be synced because of a change.
#[derive(Debug, Default)]
pub struct DirtyKeys(pub Vec<DirtyKey>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirtyKey {
    pub controller: Controller,
    pub key: Key,
    pub priority: Priority,
}

impl DirtyKeys {
    fn add(&mut self, controller: Controller, key: Key, priority: Priority) {
        self.0.push(DirtyKey { controller, key, priority });
    }

    /// The two controllers that publish pods.
    fn add_pods(&mut self, key: Key, priority: Priority) {
        self.add(Controller::Slices, key.clone(), priority);
        self.add(Controller::Endpoints, key, priority);
    }
}

/// The later of the picture an object was seen in and the one it is put under now, which is either
/// the same, a later one, or the one before.
fn newer_epoch(seen: ListEpoch, now: ListEpoch) -> ListEpoch {
    if seen == now.wrapping_add(1) { seen } else { now }
}

/// Versions that are both known and say that `new` tells nothing new.
fn is_replay(cached: ResourceVersion, new: ResourceVersion) -> bool {
    let is_known = cached != ResourceVersion::NONE && !is_on(Mutant::OldEventWins);
    is_known && new != ResourceVersion::NONE && new <= cached
}

impl Cache {
    pub fn put_pod(&mut self, mut pod: Pod, epoch: ListEpoch, dirty: &mut DirtyKeys) {
        let version = pod.resource_version;
        let namespace = self.namespace_id(&pod.namespace);
        let cached = self.find_pod(namespace, &pod.name);
        if let Some(id) = cached {
            let record = &mut self.pods[id.index()];
            record.epoch = epoch;
            if is_replay(record.version, version) {
                return;
            }
        }
        let old = cached.map(|id| self.unindex_pod(id));
        pod.labels = self.intern_labels(&pod.labels);
        self.add_affected_by_pod(namespace, old.as_ref(), Some(&pod), dirty);
        let id = cached.unwrap_or_else(|| PodId(self.pods.vacant_key() as u32));
        let selectors = &mut self.namespaces[namespace as usize].selectors;
        let slot = selectors.insert(&pod.labels, id);
        // What is remembered of the pod has this name too, and nobody else.
        let name = cached.map_or(&pod.name, |id| &self.pods[id.index()].name).clone();
        let node_name = pod.node_name.take();
        let node = node_name.map(|node| self.nodes.insert(&self.strings.intern(&node), id));
        let named_ports = self.intern_ports(&pod);
        let indexing = PodIndexing { namespace, name, version, slot, node, named_ports, epoch };
        let record = PodRecord::new(pod, indexing);
        if cached.is_some() {
            self.pods[id.index()] = record;
        } else {
            let name = record.name.clone();
            self.pods.insert(record);
            self.index_pod(namespace, &name, id);
        }
    }

    pub fn remove_pod(&mut self, key: &Key, dirty: &mut DirtyKeys) {
        let Some(&namespace) = self.namespace_by_name.get(&key.namespace) else { return };
        let Some(id) = self.find_pod(namespace, &key.name) else { return };
        let hash = self.hasher.hash_one(&key.name);
        let pods = &mut self.namespaces[namespace as usize].pods;
        if let Ok(entry) = pods.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
        let old = self.unindex_pod(id);
        self.pods.remove(id.index());
        self.add_affected_by_pod(namespace, Some(&old), None, dirty);
        self.drop_namespace_if_empty(namespace);
    }

    /// The pods that a complete picture did not show.
    pub fn pods_missing_from_list(&self, epoch: ListEpoch, listed: ResourceVersion) -> Vec<Key> {
        let missing = self
            .pods
            .iter()
            .filter(|(_, record)| record.epoch != epoch && record.version <= listed);
        let key = |record: &PodRecord| Key {
            namespace: self.namespaces[record.namespace as usize].name.clone(),
            name: record.name.clone(),
        };
        let mut keys: Vec<Key> = missing.map(|(_, record)| key(record)).collect();
        keys.sort_unstable();
        keys
    }

    /// Keeps an object that cannot be read from being taken for gone.
    pub fn retain_pod(&mut self, key: &Key, epoch: ListEpoch) {
        let Some(&namespace) = self.namespace_by_name.get(&key.namespace) else { return };
        if let Some(id) = self.find_pod(namespace, &key.name) {
            self.pods[id.index()].epoch = epoch;
        }
    }

    pub fn has_pod(&self, key: &Key) -> bool {
        let namespace = self.namespace_by_name.get(&key.namespace);
        namespace.is_some_and(|namespace| self.find_pod(*namespace, &key.name).is_some())
    }

    pub fn n_pods(&self) -> usize {
        self.pods.len()
    }

    pub fn n_label_sets(&self) -> usize {
        self.namespaces.iter().map(|(_, namespace)| namespace.selectors.n_sets()).sum()
    }

    pub fn n_interned_strings(&self) -> usize {
        self.strings.len() + self.label_sets.len() + self.port_lists.len()
    }

    /// What records and the objects in them occupy, shared texts counted once.
    pub fn bytes(&self) -> usize {
        /// A shared text: two counters, and a typical name.
        const TEXT_BYTES: usize = 16 + 24;
        debug_assert_eq!(self.n_compact_bytes, self.count_compact_bytes());
        self.pods.len() * (size_of::<PodRecord>() + 2 * size_of::<PodId>() + TEXT_BYTES)
            + self.n_interned_strings() * (size_of::<SharedStr>() + TEXT_BYTES)
            + self.n_services * size_of::<Cached<Service>>()
            + self.n_slices * size_of::<Cached<CachedSlice>>()
            + self.n_endpoints * size_of::<Cached<CachedEndpoints>>()
            + self.n_compact_bytes
    }

    /// Keys and values are mostly those of others, whatever set they are in.
    fn intern_labels(&mut self, labels: &Labels) -> Labels {
        if let Some(found) = self.label_sets.find(labels) {
            return found.clone();
        }
        let strings = &mut self.strings;
        let pairs = labels.iter().map(|(key, value)| (strings.intern(key), strings.intern(value)));
        self.label_sets.intern(&pairs.collect())
    }

    fn intern_ports(&mut self, pod: &Pod) -> PortList {
        match self.port_lists.find(&pod.named_ports) {
            Some(found) => found.clone(),
            None => self.port_lists.intern(&Arc::new(pod.named_ports.clone())),
        }
    }

    /// Takes a pod out of the indexes, and says what it was.
    fn unindex_pod(&mut self, id: PodId) -> Pod {
        let record = &self.pods[id.index()];
        let (slot, node) = (record.slot, record.node);
        let namespace = &mut self.namespaces[record.namespace as usize];
        let labels = namespace.selectors.labels(slot.set);
        let node_name = node.map(|node| self.nodes.name(node.node()));
        let old = record.decode(&namespace.name, labels, node_name);
        if let Some(moved) = namespace.selectors.remove(slot) {
            self.pods[moved.index()].slot.position = slot.position;
        }
        if let Some(node) = node
            && let Some(moved) = self.nodes.remove(node)
            && let Some(moved) = &mut self.pods[moved.index()].node
        {
            moved.position = node.position;
        }
        old
    }

    /// Marks the Services that publish either version of a pod, as far as they must look again.
    fn add_affected_by_pod(
        &mut self,
        namespace: u32,
        old: Option<&Pod>,
        new: Option<&Pod>,
        dirty: &mut DirtyKeys,
    ) {
        let difference = match (old, new) {
            (Some(old), Some(new)) => pod_difference(old, new),
            (Some(_), None) | (None, Some(_)) => PodDifference::Content,
            (None, None) => PodDifference::None,
        };
        if difference == PodDifference::None {
            return;
        }
        let space = &mut self.namespaces[namespace as usize];
        let before = old.map(|pod| space.selectors.selecting(&pod.labels)).unwrap_or_default();
        let after = new.map(|pod| space.selectors.selecting(&pod.labels)).unwrap_or_default();
        let priority = if takes_out(old, new) { Priority::Removal } else { Priority::Live };
        for service in &before {
            let stays = after.binary_search(service).is_ok();
            if !stays || difference == PodDifference::Content {
                let priority = if stays { priority } else { leaving_priority(old, priority) };
                dirty.add_pods(Key::new(space.name.clone(), service.clone()), priority);
            }
        }
        for service in after.iter().filter(|service| before.binary_search(service).is_err()) {
            dirty.add_pods(Key::new(space.name.clone(), service.clone()), Priority::Live);
        }
    }

    fn namespace_id(&mut self, name: &SharedStr) -> u32 {
        if let Some(id) = self.namespace_by_name.get(name) {
            return *id;
        }
        let name = self.strings.intern(name);
        let namespace = Namespace { name: name.clone(), ..Namespace::default() };
        let id = self.namespaces.insert(namespace) as u32;
        self.namespace_by_name.insert(name, id);
        id
    }

    fn namespace(&self, name: &SharedStr) -> Option<&Namespace> {
        self.namespace_by_name.get(name).map(|id| &self.namespaces[*id as usize])
    }

    fn drop_namespace_if_empty(&mut self, id: u32) {
        let Namespace { name, selectors, pods, services, published } =
            &self.namespaces[id as usize];
        if selectors.is_empty() && pods.is_empty() && services.is_empty() && published.is_empty() {
            self.namespace_by_name.remove(name);
            self.namespaces.remove(id as usize);
        }
    }

    fn find_pod(&self, namespace: u32, name: &SharedStr) -> Option<PodId> {
        let pods = &self.namespaces[namespace as usize].pods;
        pods.find(self.hasher.hash_one(name), |id| self.pods[id.index()].name == *name).copied()
    }

    fn index_pod(&mut self, namespace: u32, name: &SharedStr, id: PodId) {
        let Self { pods, namespaces, hasher, .. } = self;
        let rehash = |id: &PodId| hasher.hash_one(&pods[id.index()].name);
        namespaces[namespace as usize].pods.insert_unique(hasher.hash_one(name), id, rehash);
    }
}

impl PodId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whether traffic must stop going somewhere.
fn takes_out(old: Option<&Pod>, new: Option<&Pod>) -> bool {
    let serves = |pod: &Pod| pod.is_ready() && !pod.is_terminating;
    match (old, new) {
        (Some(old), Some(new)) => {
            serves(old) && (!serves(new) || old.phase != new.phase || old.ips != new.ips)
        }
        (Some(old), None) => old.phase == endpointd_model::Phase::Active,
        (None, _) => false,
    }
}

/// A pod that leaves a Service takes traffic with it if it was getting any.
fn leaving_priority(old: Option<&Pod>, otherwise: Priority) -> Priority {
    if old.is_some_and(Pod::is_ready) { Priority::Removal } else { otherwise }
}
