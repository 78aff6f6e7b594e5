//! Nodes, the pods on them, and the share of each zone.

use endpointd_model::{Node, ResourceVersion, SharedStr};
use endpointd_mutants::{Mutant, is_on};
use endpointd_plan::{NodeState, Topology};
use hashbrown::HashMap;
use slab::Slab;

use super::pods::{NodeSeat, PodId};
use super::{Cache, Known, Marks, Picture, is_replay, later_picture};
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
    known: Option<Known<Node>>,
    /// A live read said that there is no such node.
    is_gone: bool,
    pods: Vec<PodId>,
}

impl Nodes {
    pub fn seat(&mut self, name: &SharedStr, pod: PodId) -> NodeSeat {
        let node = self.id(name);
        let pods = &mut self.records[node as usize].pods;
        pods.push(pod);
        NodeSeat::new(node, (pods.len() - 1) as u32)
    }

    /// Frees the seat. Says which pod sits there now, if one moved.
    pub fn leave(&mut self, seat: NodeSeat) -> Option<PodId> {
        let pods = &mut self.records[seat.node() as usize].pods;
        pods.swap_remove(seat.position as usize);
        let moved = pods.get(seat.position as usize).copied();
        self.tidy(seat.node());
        moved
    }

    pub fn name(&self, node: u32) -> &SharedStr {
        &self.records[node as usize].name
    }

    pub fn state(&self, node: u32) -> NodeState<'_> {
        let record = &self.records[node as usize];
        match &record.known {
            Some(known) => NodeState::Known { zone: known.object.zone.as_ref() },
            None if record.is_gone => NodeState::Gone,
            None => NodeState::Unknown,
        }
    }

    fn id(&mut self, name: &SharedStr) -> u32 {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let record =
            NodeRecord { name: name.clone(), known: None, is_gone: false, pods: Vec::new() };
        let id = self.records.insert(record) as u32;
        self.by_name.insert(name.clone(), id);
        id
    }

    fn tidy(&mut self, node: u32) {
        let NodeRecord { name, known, pods, .. } = &self.records[node as usize];
        if known.is_none() && pods.is_empty() {
            self.by_name.remove(name);
            self.records.remove(node as usize);
        }
    }
}

impl Cache {
    pub fn put_node(&mut self, node: Node, picture: Picture, marks: &mut Marks) {
        let version = node.resource_version;
        let name = self.texts.share(&node.name);
        let id = self.nodes.id(&name);
        let record = &mut self.nodes.records[id as usize];
        let mut picture = picture;
        if let Some(known) = &mut record.known {
            picture = later_picture(known.picture, picture);
            known.picture = picture;
            if is_replay(known.version, version) {
                return;
            }
        }
        let zone = node.zone.as_ref().map(|zone| self.texts.share(zone));
        let node = Node { name, zone, resource_version: ResourceVersion::NONE, ..node };
        record.is_gone = false;
        let new = Known { object: node, version, picture };
        let old = record.known.replace(new).map(|known| known.object);
        let new = &record.known.as_ref().expect("just put").object;
        self.nodes.n_known += usize::from(old.is_none());
        if old.as_ref() != Some(new) {
            self.nodes.is_topology_old = true;
        }
        let is_late = old.is_none() && is_on(Mutant::LateNodeIgnored);
        if !is_late && old.is_none_or(|old| old.zone != new.zone) {
            self.mark_node(id, marks);
        }
    }

    pub fn remove_node(&mut self, name: &SharedStr) {
        let Some(&id) = self.nodes.by_name.get(name) else { return };
        // What is published stays until a live read confirms it: a lost view of the nodes must
        // not empty every Service.
        if self.nodes.records[id as usize].known.take().is_some() {
            self.nodes.records[id as usize].is_gone = is_on(Mutant::LostNodeIsGone);
            self.nodes.n_known -= 1;
            self.nodes.is_topology_old = true;
        }
        self.nodes.tidy(id);
    }

    /// Pods that ran on a node that is gone from our view: their Services must look again.
    pub fn mark_pods_on(&self, name: &SharedStr, marks: &mut Marks) {
        if let Some(&id) = self.nodes.by_name.get(name) {
            self.mark_node(id, marks);
        }
    }

    /// A live read found no such node.
    pub fn confirm_no_node(&mut self, name: &SharedStr, marks: &mut Marks) {
        let Some(&id) = self.nodes.by_name.get(name) else { return };
        let record = &mut self.nodes.records[id as usize];
        if record.known.is_none() && !record.is_gone {
            record.is_gone = true;
            self.mark_node(id, marks);
        }
    }

    pub fn nodes_not_in(&self, picture: Picture, listed: ResourceVersion) -> Vec<SharedStr> {
        let missing = self.nodes.records.iter().filter(|(_, record)| {
            let is_old = |known: &Known<Node>| known.picture != picture && known.version <= listed;
            record.known.as_ref().is_some_and(is_old)
        });
        let mut names: Vec<SharedStr> = missing.map(|(_, record)| record.name.clone()).collect();
        names.sort_unstable();
        names
    }

    pub fn keep_node(&mut self, name: &SharedStr, picture: Picture) {
        let Some(&id) = self.nodes.by_name.get(name) else { return };
        if let Some(known) = &mut self.nodes.records[id as usize].known {
            known.picture = later_picture(known.picture, picture);
        }
    }

    pub fn has_node(&self, name: &SharedStr) -> bool {
        let id = self.nodes.by_name.get(name);
        id.is_some_and(|id| self.nodes.records[*id as usize].known.is_some())
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
        let known = records.filter_map(|(_, record)| Some(&record.known.as_ref()?.object));
        let topology = Topology::of(known);
        let is_different = topology != self.nodes.topology;
        self.nodes.topology = topology;
        is_different
    }

    pub fn topology(&self) -> &Topology {
        &self.nodes.topology
    }

    fn mark_node(&self, id: u32, marks: &mut Marks) {
        let mut keys = Vec::new();
        for pod in &self.nodes.records[id as usize].pods {
            let record = &self.pods[pod.index()];
            let namespace = &self.namespaces[record.namespace as usize];
            for service in namespace.matching.services(record.seat.set) {
                keys.push(Key { namespace: namespace.name.clone(), name: service.clone() });
            }
        }
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            marks.add(Controller::Slices, key, Priority::Live);
        }
    }
}
