//! Nodes, the pods on them, and each zone's share of CPU.

use endpointd_model::{Controller, Key, Node, ResourceVersion, SharedStr};
use endpointd_plan::{NodeState, Topology};
use hashbrown::HashMap;
use slab::Slab;

use super::cached::{Accept, Cached, Freshness};
use super::pods::{NodeSlot, PodId};
use super::{Cache, DirtyKeys, ListEpoch};
use crate::queue::Priority;

#[derive(Debug, Default)]
pub struct Nodes {
    records: Slab<NodeRecord>,
    by_name: HashMap<SharedStr, u32>,
    n_cached: usize,
    n_removed: u64,
    topology: Topology,
    is_topology_outdated: bool,
}

/// A node that is cached, or that is only known as the node of a pod.
#[derive(Debug)]
struct NodeRecord {
    name: SharedStr,
    cached: Option<Cached<Node>>,
    /// A live read found no such node.
    is_confirmed_absent: bool,
    pods: Vec<PodId>,
}

impl Nodes {
    pub fn insert(&mut self, name: &SharedStr, pod: PodId) -> NodeSlot {
        let node = self.id(name);
        let pods = &mut self.records[node as usize].pods;
        pods.push(pod);
        NodeSlot::new(node, (pods.len() - 1) as u32)
    }

    /// Frees the slot. Returns the pod that has moved into it, if one has.
    pub fn remove(&mut self, slot: NodeSlot) -> Option<PodId> {
        let pods = &mut self.records[slot.node() as usize].pods;
        pods.swap_remove(slot.position as usize);
        let moved = pods.get(slot.position as usize).copied();
        self.drop_if_unused(slot.node());
        moved
    }

    pub fn name(&self, node: u32) -> &SharedStr {
        &self.records[node as usize].name
    }

    pub fn state(&self, node: u32) -> NodeState<'_> {
        let record = &self.records[node as usize];
        match &record.cached {
            Some(cached) => NodeState::Known { zone: cached.object.zone.as_ref() },
            None if record.is_confirmed_absent => NodeState::Gone,
            None => NodeState::Unknown,
        }
    }

    pub fn contains(&self, name: &SharedStr) -> bool {
        let id = self.by_name.get(name);
        id.is_some_and(|id| self.records[*id as usize].cached.is_some())
    }

    pub fn n_cached(&self) -> usize {
        self.n_cached
    }

    pub fn freshness(&self, name: &SharedStr) -> Option<&Freshness> {
        let id = self.by_name.get(name)?;
        Some(self.records[*id as usize].cached.as_ref()?.freshness())
    }

    pub fn freshness_mut(&mut self, name: &SharedStr) -> Option<&mut Freshness> {
        let id = self.by_name.get(name)?;
        Some(self.records[*id as usize].cached.as_mut()?.freshness_mut())
    }

    /// Names of the cached nodes that `is_wanted` selects, in no particular order.
    pub fn names(
        &self,
        is_wanted: impl Fn(&Freshness) -> bool,
    ) -> impl Iterator<Item = &SharedStr> {
        self.records.iter().filter_map(move |(_, record)| {
            let cached = record.cached.as_ref()?;
            is_wanted(cached.freshness()).then_some(&record.name)
        })
    }

    fn id(&mut self, name: &SharedStr) -> u32 {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let record = NodeRecord {
            name: name.clone(),
            cached: None,
            is_confirmed_absent: false,
            pods: Vec::new(),
        };
        let id = self.records.insert(record) as u32;
        self.by_name.insert(name.clone(), id);
        id
    }

    fn drop_if_unused(&mut self, node: u32) {
        let NodeRecord { name, cached, pods, .. } = &self.records[node as usize];
        if cached.is_none() && pods.is_empty() {
            self.by_name.remove(name);
            self.records.remove(node as usize);
        }
    }
}

impl Cache {
    pub fn put_node(&mut self, node: Node, epoch: ListEpoch, dirty: &mut DirtyKeys) {
        let mut freshness = Freshness::new(node.resource_version, epoch);
        let name = self.strings.intern(&node.name);
        let id = self.nodes.id(&name);
        let record = &mut self.nodes.records[id as usize];
        if let Some(cached) = &mut record.cached {
            if cached.freshness_mut().accept(freshness) != Accept::New {
                return;
            }
            freshness = *cached.freshness();
        }
        let zone = node.zone.as_ref().map(|zone| self.strings.intern(zone));
        let node = Node { name, zone, resource_version: ResourceVersion::NONE, ..node };
        let old = record.cached.take().map(|cached| cached.object);
        let is_new_zone = old.as_ref().is_none_or(|old| old.zone != node.zone);
        self.nodes.n_cached += usize::from(old.is_none());
        if old.as_ref() != Some(&node) {
            self.nodes.is_topology_outdated = true;
        }
        record.is_confirmed_absent = false;
        record.cached = Some(Cached::new(node, freshness));
        if is_new_zone {
            self.add_affected_by_node(id, dirty);
        }
    }

    /// The endpoints on this node stay published until a live read confirms that it is gone: an
    /// empty list of nodes must not empty every Service.
    pub fn remove_node(&mut self, name: &SharedStr) {
        let Some(&id) = self.nodes.by_name.get(name) else { return };
        if self.nodes.records[id as usize].cached.take().is_some() {
            self.nodes.n_cached -= 1;
            self.nodes.n_removed += 1;
            self.nodes.is_topology_outdated = true;
        }
        self.nodes.drop_if_unused(id);
    }

    /// Adds the Services with pods on the node of this name.
    pub fn add_affected_by_node_name(&self, name: &SharedStr, dirty: &mut DirtyKeys) {
        if let Some(&id) = self.nodes.by_name.get(name) {
            self.add_affected_by_node(id, dirty);
        }
    }

    /// A live read found no such node.
    pub fn confirm_no_node(&mut self, name: &SharedStr, dirty: &mut DirtyKeys) {
        let Some(&id) = self.nodes.by_name.get(name) else { return };
        let record = &mut self.nodes.records[id as usize];
        if record.cached.is_none() && !record.is_confirmed_absent {
            record.is_confirmed_absent = true;
            self.add_affected_by_node(id, dirty);
        }
    }

    /// Recomputes the topology if a node changed. Returns whether it is different now.
    pub fn refresh_topology(&mut self) -> bool {
        if !std::mem::take(&mut self.nodes.is_topology_outdated) {
            return false;
        }
        let records = self.nodes.records.iter();
        let nodes = records.filter_map(|(_, record)| Some(&record.cached.as_ref()?.object));
        let topology = Topology::of(nodes);
        let is_different = topology != self.nodes.topology;
        self.nodes.topology = topology;
        is_different
    }

    /// How often a node was removed. Services with pods on it are not synced because of that.
    pub fn n_removed_nodes(&self) -> u64 {
        self.nodes.n_removed
    }

    pub fn topology(&self) -> &Topology {
        &self.nodes.topology
    }

    fn add_affected_by_node(&self, id: u32, dirty: &mut DirtyKeys) {
        let mut keys = Vec::new();
        for pod in &self.nodes.records[id as usize].pods {
            let record = &self.pods[pod.index()].object;
            let namespace = &self.namespaces[record.namespace as usize];
            for service in namespace.selectors.services(record.slot.set) {
                keys.push(Key { namespace: namespace.name.clone(), name: service.clone() });
            }
        }
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            dirty.add(Controller::Slices, key, Priority::Live);
        }
    }
}
