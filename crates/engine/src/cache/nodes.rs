//! Nodes, the pods on them, and the share of each zone.

use endpointd_model::{Node, ResourceVersion, SharedStr};
use endpointd_mutants::{Mutant, is_on};
use endpointd_plan::{NodeState, Topology};
use hashbrown::HashMap;
use slab::Slab;

use super::pods::{NodeSlot, PodId};
use super::{Cache, Cached, DirtyKeys, ListEpoch, is_replay, newer_epoch};
use crate::queue::Priority;
use endpointd_model::{Controller, Key};

#[derive(Debug, Default)]
pub struct Nodes {
    records: Slab<NodeRecord>,
    by_name: HashMap<SharedStr, u32>,
    n_known: usize,
    topology: Topology,
    is_topology_old: bool,
}

/// A node that exists, or that pods say they run on.
#[derive(Debug)]
struct NodeRecord {
    name: SharedStr,
    cached: Option<Cached<Node>>,
    /// A live read said that there is no such node.
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

    /// Frees the seat. Says which pod sits there now, if one moved.
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
        let version = node.resource_version;
        let name = self.strings.intern(&node.name);
        let id = self.nodes.id(&name);
        let record = &mut self.nodes.records[id as usize];
        let mut epoch = epoch;
        if let Some(cached) = &mut record.cached {
            epoch = newer_epoch(cached.epoch, epoch);
            cached.epoch = epoch;
            if is_replay(cached.version, version) {
                return;
            }
        }
        let zone = node.zone.as_ref().map(|zone| self.strings.intern(zone));
        let node = Node { name, zone, resource_version: ResourceVersion::NONE, ..node };
        record.is_confirmed_absent = false;
        let new = Cached { object: node, version, epoch };
        let old = record.cached.replace(new).map(|cached| cached.object);
        let new = &record.cached.as_ref().expect("just put").object;
        self.nodes.n_known += usize::from(old.is_none());
        if old.as_ref() != Some(new) {
            self.nodes.is_topology_old = true;
        }
        let is_late = old.is_none() && is_on(Mutant::LateNodeIgnored);
        if !is_late && old.is_none_or(|old| old.zone != new.zone) {
            self.add_affected_by_node(id, dirty);
        }
    }

    pub fn remove_node(&mut self, name: &SharedStr) {
        let Some(&id) = self.nodes.by_name.get(name) else { return };
        // What is published stays until a live read confirms it: a lost view of the nodes must
        // not empty every Service.
        if self.nodes.records[id as usize].cached.take().is_some() {
            self.nodes.records[id as usize].is_confirmed_absent = is_on(Mutant::LostNodeIsGone);
            self.nodes.n_known -= 1;
            self.nodes.is_topology_old = true;
        }
        self.nodes.drop_if_unused(id);
    }

    /// Pods that ran on a node that is gone from our view: their Services must look again.
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

    pub fn nodes_missing_from_list(
        &self,
        epoch: ListEpoch,
        listed: ResourceVersion,
    ) -> Vec<SharedStr> {
        let missing = self.nodes.records.iter().filter(|(_, record)| {
            let is_old = |cached: &Cached<Node>| cached.epoch != epoch && cached.version <= listed;
            record.cached.as_ref().is_some_and(is_old)
        });
        let mut names: Vec<SharedStr> = missing.map(|(_, record)| record.name.clone()).collect();
        names.sort_unstable();
        names
    }

    pub fn retain_node(&mut self, name: &SharedStr, epoch: ListEpoch) {
        let Some(&id) = self.nodes.by_name.get(name) else { return };
        if let Some(cached) = &mut self.nodes.records[id as usize].cached {
            cached.epoch = newer_epoch(cached.epoch, epoch);
        }
    }

    pub fn has_node(&self, name: &SharedStr) -> bool {
        let id = self.nodes.by_name.get(name);
        id.is_some_and(|id| self.nodes.records[*id as usize].cached.is_some())
    }

    pub fn n_nodes(&self) -> usize {
        self.nodes.n_known
    }

    /// Recomputes the shares of zones if a node changed. Says whether they are different now.
    pub fn refresh_topology(&mut self) -> bool {
        if !std::mem::take(&mut self.nodes.is_topology_old) {
            return false;
        }
        let records = self.nodes.records.iter();
        let cached = records.filter_map(|(_, record)| Some(&record.cached.as_ref()?.object));
        let topology = Topology::of(cached);
        let is_different = topology != self.nodes.topology;
        self.nodes.topology = topology;
        is_different
    }

    pub fn topology(&self) -> &Topology {
        &self.nodes.topology
    }

    fn add_affected_by_node(&self, id: u32, dirty: &mut DirtyKeys) {
        let mut keys = Vec::new();
        for pod in &self.nodes.records[id as usize].pods {
            let record = &self.pods[pod.index()];
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
