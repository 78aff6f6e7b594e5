//! Our last observed copy of the cluster, with its reverse indexes. A change costs what it
//! touches: a pod event finds its Services through its label set, a node event through its pods.

mod gather;
mod matching;
mod nodes;
mod packed;
mod pods;
mod published;
mod services;

use std::hash::BuildHasher;
use std::sync::Arc;

use endpointd_model::{Controller, Key, Labels, Pod, ResourceVersion, Service, SharedStr};
use endpointd_mutants::{Mutant, is_on};
use endpointd_plan::{PodDifference, pod_difference};
use hashbrown::{HashMap, HashTable};
use slab::Slab;

use self::matching::Matching;
use self::nodes::Nodes;
use self::pods::{PodId, PodRecord, PortList, Surroundings};
use self::published::{KeptEndpoints, KeptSlice, Published, Tombstones};
use crate::pool::Pool;
use crate::queue::Priority;

pub use self::published::Origin;

/// Which complete picture an object was last seen in. Numbers come around, so only equality counts.
pub type Picture = u8;

#[derive(Debug, Default)]
pub struct Cache {
    texts: Pool<SharedStr>,
    label_sets: Pool<Labels>,
    port_lists: Pool<PortList>,
    namespaces: Slab<Namespace>,
    namespace_by_name: HashMap<SharedStr, u32>,
    pods: Slab<PodRecord>,
    nodes: Nodes,
    tombstones: Tombstones,
    n_services: usize,
    n_endpoints: usize,
    n_slices: usize,
    /// What published objects are packed into, all together.
    n_packed_bytes: usize,
    /// Names hash the same wherever pods are looked up.
    hasher: hashbrown::DefaultHashBuilder,
}

#[derive(Debug, Default)]
struct Namespace {
    name: SharedStr,
    matching: Matching,
    /// By name, which is kept in the record alone.
    pods: HashTable<PodId>,
    services: HashMap<SharedStr, Known<Service>>,
    published: Published,
}

/// An object and how recent it is.
#[derive(Debug)]
struct Known<T> {
    object: T,
    version: ResourceVersion,
    picture: Picture,
}

/// Who must be synced because of a change.
#[derive(Debug, Default)]
pub struct Marks(pub Vec<Mark>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    pub controller: Controller,
    pub key: Key,
    pub priority: Priority,
}

impl Marks {
    fn add(&mut self, controller: Controller, key: Key, priority: Priority) {
        self.0.push(Mark { controller, key, priority });
    }

    /// The two controllers that publish pods.
    fn add_pods(&mut self, key: Key, priority: Priority) {
        self.add(Controller::Slices, key.clone(), priority);
        self.add(Controller::Endpoints, key, priority);
    }
}

/// The later of the picture an object was seen in and the one it is put under now, which is either
/// the same, a later one, or the one before.
fn later_picture(seen: Picture, now: Picture) -> Picture {
    if seen == now.wrapping_add(1) { seen } else { now }
}

/// Versions that are both known and say that `new` tells nothing new.
fn is_replay(known: ResourceVersion, new: ResourceVersion) -> bool {
    let is_known = known != ResourceVersion::NONE && !is_on(Mutant::OldEventWins);
    is_known && new != ResourceVersion::NONE && new <= known
}

impl Cache {
    pub fn put_pod(&mut self, mut pod: Pod, picture: Picture, marks: &mut Marks) {
        let version = pod.resource_version;
        let namespace = self.namespace_id(&pod.namespace);
        let known = self.find_pod(namespace, &pod.name);
        if let Some(id) = known {
            let record = &mut self.pods[id.index()];
            record.picture = picture;
            if is_replay(record.version, version) {
                return;
            }
        }
        let old = known.map(|id| self.unseat_pod(id));
        pod.labels = self.share_labels(&pod.labels);
        self.mark_pod(namespace, old.as_ref(), Some(&pod), marks);
        let id = known.unwrap_or_else(|| PodId(self.pods.vacant_key() as u32));
        let matching = &mut self.namespaces[namespace as usize].matching;
        let seat = matching.seat(&pod.labels, id);
        // What is remembered of the pod has this name too, and nobody else.
        let name = known.map_or(&pod.name, |id| &self.pods[id.index()].name).clone();
        let node_name = pod.node_name.take();
        let node = node_name.map(|node| self.nodes.seat(&self.texts.share(&node), id));
        let named_ports = self.share_ports(&pod);
        let around = Surroundings { namespace, name, version, seat, node, named_ports, picture };
        let record = PodRecord::new(pod, around);
        if known.is_some() {
            self.pods[id.index()] = record;
        } else {
            let name = record.name.clone();
            self.pods.insert(record);
            self.index_pod(namespace, &name, id);
        }
    }

    pub fn remove_pod(&mut self, key: &Key, marks: &mut Marks) {
        let Some(&namespace) = self.namespace_by_name.get(&key.namespace) else { return };
        let Some(id) = self.find_pod(namespace, &key.name) else { return };
        let hash = self.hasher.hash_one(&key.name);
        let pods = &mut self.namespaces[namespace as usize].pods;
        if let Ok(entry) = pods.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
        let old = self.unseat_pod(id);
        self.pods.remove(id.index());
        self.mark_pod(namespace, Some(&old), None, marks);
        self.tidy_namespace(namespace);
    }

    /// The pods that a complete picture did not show.
    pub fn pods_not_in(&self, picture: Picture, listed: ResourceVersion) -> Vec<Key> {
        let missing = self
            .pods
            .iter()
            .filter(|(_, record)| record.picture != picture && record.version <= listed);
        let key = |record: &PodRecord| Key {
            namespace: self.namespaces[record.namespace as usize].name.clone(),
            name: record.name.clone(),
        };
        let mut keys: Vec<Key> = missing.map(|(_, record)| key(record)).collect();
        keys.sort_unstable();
        keys
    }

    /// Keeps an object that cannot be read from being taken for gone.
    pub fn keep_pod(&mut self, key: &Key, picture: Picture) {
        let Some(&namespace) = self.namespace_by_name.get(&key.namespace) else { return };
        if let Some(id) = self.find_pod(namespace, &key.name) {
            self.pods[id.index()].picture = picture;
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
        self.namespaces.iter().map(|(_, namespace)| namespace.matching.n_sets()).sum()
    }

    pub fn n_interned_strings(&self) -> usize {
        self.texts.len() + self.label_sets.len() + self.port_lists.len()
    }

    /// What records and the objects in them occupy, shared texts counted once.
    pub fn bytes(&self) -> usize {
        /// A shared text: two counters, and a typical name.
        const TEXT_BYTES: usize = 16 + 24;
        debug_assert_eq!(self.n_packed_bytes, self.count_packed_bytes());
        self.pods.len() * (size_of::<PodRecord>() + 2 * size_of::<PodId>() + TEXT_BYTES)
            + self.n_interned_strings() * (size_of::<SharedStr>() + TEXT_BYTES)
            + self.n_services * size_of::<Known<Service>>()
            + self.n_slices * size_of::<Known<KeptSlice>>()
            + self.n_endpoints * size_of::<Known<KeptEndpoints>>()
            + self.n_packed_bytes
    }

    /// Keys and values are mostly those of others, whatever set they are in.
    fn share_labels(&mut self, labels: &Labels) -> Labels {
        if let Some(found) = self.label_sets.find(labels) {
            return found.clone();
        }
        let texts = &mut self.texts;
        let pairs = labels.iter().map(|(key, value)| (texts.share(key), texts.share(value)));
        self.label_sets.share(&pairs.collect())
    }

    fn share_ports(&mut self, pod: &Pod) -> PortList {
        match self.port_lists.find(&pod.named_ports) {
            Some(found) => found.clone(),
            None => self.port_lists.share(&Arc::new(pod.named_ports.clone())),
        }
    }

    /// Takes a pod out of the indexes, and says what it was.
    fn unseat_pod(&mut self, id: PodId) -> Pod {
        let record = &self.pods[id.index()];
        let (seat, node) = (record.seat, record.node);
        let namespace = &mut self.namespaces[record.namespace as usize];
        let labels = namespace.matching.labels(seat.set);
        let node_name = node.map(|node| self.nodes.name(node.node()));
        let old = record.unpack(&namespace.name, labels, node_name);
        if let Some(moved) = namespace.matching.leave(seat) {
            self.pods[moved.index()].seat.position = seat.position;
        }
        if let Some(node) = node
            && let Some(moved) = self.nodes.leave(node)
            && let Some(moved) = &mut self.pods[moved.index()].node
        {
            moved.position = node.position;
        }
        old
    }

    /// Marks the Services that publish either version of a pod, as far as they must look again.
    fn mark_pod(
        &mut self,
        namespace: u32,
        old: Option<&Pod>,
        new: Option<&Pod>,
        marks: &mut Marks,
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
        let before = old.map(|pod| space.matching.selecting(&pod.labels)).unwrap_or_default();
        let after = new.map(|pod| space.matching.selecting(&pod.labels)).unwrap_or_default();
        let priority = if takes_out(old, new) { Priority::Removal } else { Priority::Live };
        for service in &before {
            let stays = after.binary_search(service).is_ok();
            if !stays || difference == PodDifference::Content {
                let priority = if stays { priority } else { leaving_priority(old, priority) };
                marks.add_pods(Key::new(space.name.clone(), service.clone()), priority);
            }
        }
        for service in after.iter().filter(|service| before.binary_search(service).is_err()) {
            marks.add_pods(Key::new(space.name.clone(), service.clone()), Priority::Live);
        }
    }

    fn namespace_id(&mut self, name: &SharedStr) -> u32 {
        if let Some(id) = self.namespace_by_name.get(name) {
            return *id;
        }
        let name = self.texts.share(name);
        let namespace = Namespace { name: name.clone(), ..Namespace::default() };
        let id = self.namespaces.insert(namespace) as u32;
        self.namespace_by_name.insert(name, id);
        id
    }

    fn namespace(&self, name: &SharedStr) -> Option<&Namespace> {
        self.namespace_by_name.get(name).map(|id| &self.namespaces[*id as usize])
    }

    fn tidy_namespace(&mut self, id: u32) {
        let Namespace { name, matching, pods, services, published } = &self.namespaces[id as usize];
        if matching.is_empty() && pods.is_empty() && services.is_empty() && published.is_empty() {
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
