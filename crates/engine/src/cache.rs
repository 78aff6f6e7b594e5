//! The last observed copy of the cluster, with its indexes. An event costs what it touches: a pod
//! finds its Services through its label set, a node through the pods on it.

mod cached;
mod compact;
mod freshness;
mod imports;
mod in_place;
mod multicluster;
mod nodes;
mod pods;
mod published;
mod published_reads;
mod resources;
mod selector_index;
mod services;
mod snapshots;
mod unlisted_pods;

use std::sync::Arc;

use endpointd_model::{Controller, Key, Labels, Pod, Service, SharedStr, SliceManagers};
use hashbrown::{HashMap, HashTable};
use slab::Slab;

use self::cached::{Cached, Freshness};
use self::imports::Imports;
use self::multicluster::MultiCluster;
use self::nodes::Nodes;
use self::pods::{PodRecord, PortList};
use self::published::{CachedEndpoints, CachedSlice, Published, Tombstones};
use self::selector_index::SelectorIndex;
use self::unlisted_pods::UnlistedPods;
use crate::interner::Interner;
use crate::queue::Priority;

pub use self::cached::ListEpoch;
pub use self::multicluster::Place;
pub use self::pods::PodId;
pub use self::published::Origin;
pub use self::published_reads::EncodedSlice;
pub use self::resources::{Changes, DeletionEvidence, ObjectChange, PublishedEvent};
pub use self::snapshots::EndpointsInputs;
pub use self::unlisted_pods::ConfirmedPods;

#[derive(Debug, Default)]
pub struct Cache {
    /// By which slices belong to a controller of ours.
    managers: SliceManagers,
    strings: Interner<SharedStr>,
    label_sets: Interner<Labels>,
    port_lists: Interner<PortList>,
    namespaces: Slab<Namespace>,
    namespace_by_name: HashMap<SharedStr, u32>,
    pods: Slab<Cached<PodRecord>>,
    nodes: Nodes,
    tombstones: Tombstones,
    /// None if the import controller does not run.
    imports: Option<Box<Imports>>,
    /// None if the controller for Services of several clusters does not run.
    multicluster: Option<Box<MultiCluster>>,
    unlisted_pods: UnlistedPods,
    n_services: usize,
    n_endpoints: usize,
    n_slices: usize,
    /// Size of all compact objects.
    n_compact_bytes: usize,
    /// Hashes pod names for [`Namespace::pods`], which does not store them.
    hasher: hashbrown::DefaultHashBuilder,
}

#[derive(Debug, Default)]
struct Namespace {
    name: SharedStr,
    selectors: SelectorIndex,
    /// By name. The name itself is only in the pod's record.
    pods: HashTable<PodId>,
    services: HashMap<SharedStr, Cached<Service>>,
    published: Published,
}

/// Keys that must be synced because of a change.
#[derive(Debug, Default)]
pub struct DirtyKeys(pub Vec<DirtyKey>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirtyKey {
    pub controller: Controller,
    pub key: Key,
    pub priority: Priority,
    pub delay: ChangeDelay,
    pub kind: ChangeKind,
}

/// What a change can change in the slices of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    Any,
    /// Only conditions of the endpoints of this pod, and the trigger time.
    Conditions(PodId),
}

/// What delays the sync of a changed key, besides its cooldown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeDelay {
    None,
    /// Changes of pods and slices come in bursts. Upstream: `AddAfter` in `syncPod` and in
    /// `queueServiceForEndpointSlice`; every other change is added at once.
    BatchPeriod,
    /// The same change concerns many keys: this one is the n-th.
    Turn(u32),
    /// Nothing that is published changes. The next sync takes it into account, whatever causes it.
    UntilNextSync,
}

impl DirtyKeys {
    pub fn add(&mut self, controller: Controller, key: Key, priority: Priority) {
        self.push(controller, key, priority, ChangeDelay::None);
    }

    /// The same change concerns all these keys.
    pub fn in_turns(
        controller: Controller,
        keys: impl IntoIterator<Item = Key>,
        priority: Priority,
    ) -> Self {
        let mut dirty = Self::default();
        for (turn, key) in (0u32..).zip(keys) {
            dirty.push(controller, key, priority, ChangeDelay::Turn(turn));
        }
        dirty
    }

    /// A pod or a slice has changed.
    fn add_batched(&mut self, controller: Controller, key: Key, priority: Priority) {
        self.push(controller, key, priority, ChangeDelay::BatchPeriod);
    }

    fn push(&mut self, controller: Controller, key: Key, priority: Priority, delay: ChangeDelay) {
        self.0.push(DirtyKey { controller, key, priority, delay, kind: ChangeKind::Any });
    }

    /// A pod has changed: for the two controllers that publish pods.
    fn add_pods_batched(&mut self, key: Key, priority: Priority, kind: ChangeKind) {
        let delay = ChangeDelay::BatchPeriod;
        for controller in [Controller::Slices, Controller::Endpoints] {
            self.0.push(DirtyKey { controller, key: key.clone(), priority, delay, kind });
        }
    }

    /// Takes out a key whose own write caused the change.
    pub fn remove(&mut self, controller: Controller, key: &Key) {
        self.0.retain(|dirty| (dirty.controller, &dirty.key) != (controller, key));
    }
}

impl Cache {
    pub fn new(managers: &SliceManagers) -> Self {
        Self { managers: managers.clone(), ..Self::default() }
    }

    pub fn managers(&self) -> &SliceManagers {
        &self.managers
    }

    pub fn n_label_sets(&self) -> usize {
        self.namespaces.iter().map(|(_, namespace)| namespace.selectors.n_sets()).sum()
    }

    pub fn n_interned_strings(&self) -> usize {
        self.strings.len() + self.label_sets.len() + self.port_lists.len()
    }

    /// Size of all records and the objects in them, with each shared string counted once.
    pub fn bytes(&self) -> usize {
        /// A shared string: two reference counters, and a typical name.
        const STRING_BYTES: usize = 16 + 24;
        debug_assert_eq!(self.n_compact_bytes, self.count_compact_bytes());
        self.pods.len() * (size_of::<Cached<PodRecord>>() + 2 * size_of::<PodId>() + STRING_BYTES)
            + self.n_interned_strings() * (size_of::<SharedStr>() + STRING_BYTES)
            + self.n_services * size_of::<Cached<Service>>()
            + self.n_slices * size_of::<Cached<CachedSlice>>()
            + self.n_endpoints * size_of::<Cached<CachedEndpoints>>()
            + self.n_compact_bytes
    }

    /// Interns keys and values, too: most of them occur in other label sets as well.
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

    fn namespace_mut(&mut self, key: &Key) -> Option<&mut Namespace> {
        let id = self.namespace_by_name.get(&key.namespace)?;
        Some(&mut self.namespaces[*id as usize])
    }

    fn drop_namespace_if_empty(&mut self, id: u32) {
        let Namespace { name, selectors, pods, services, published } =
            &self.namespaces[id as usize];
        if selectors.is_empty() && pods.is_empty() && services.is_empty() && published.is_empty() {
            self.namespace_by_name.remove(name);
            self.namespaces.remove(id as usize);
        }
    }
}
