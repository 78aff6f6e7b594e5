//! The nodes as scheduler and kubelets see them.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_apiserver::store::Stored;

use super::action::ControllerAction;
use super::addresses::Addresses;
use super::facts::{NodeFacts, ZONE_LABEL, read};
use super::kubelet::PodNode;
use super::scheduler::{NodeCandidate, choose};
use crate::cluster_spec::PODS_PER_NODE;

#[derive(Default)]
pub struct NodeTable {
    by_name: BTreeMap<String, Node>,
    /// Nodes whose kubelet has not reported yet.
    unreported: BTreeSet<String>,
    n_ever: u16,
    /// Set by changes after which an unschedulable pod may fit.
    pub may_have_room: bool,
}

/// A node that exists, existed, or is only named in a pod.
#[derive(Default)]
struct Node {
    number: u16,
    state: Option<State>,
    n_pods: usize,
    addresses: Addresses,
}

struct State {
    zone: String,
    labels: BTreeMap<String, String>,
    is_ready: bool,
    is_cordoned: bool,
    n_pods_max: usize,
}

/// The input of a scheduling decision.
pub struct PodPlacement<'a> {
    pub node_selector: &'a BTreeMap<String, String>,
    pub n_siblings_by_zone: Option<&'a BTreeMap<String, usize>>,
}

impl NodeTable {
    pub fn numbered_from(first: u16) -> Self {
        Self { n_ever: first, ..Self::default() }
    }

    pub fn apply(&mut self, name: &str, object: Option<&Stored>) {
        self.may_have_room = true;
        self.unreported.remove(name);
        let state = object.map(|stored| {
            let facts: NodeFacts = read(stored);
            if facts.is_ready().is_none() {
                self.unreported.insert(name.to_owned());
            }
            State {
                zone: stored.labels.get(ZONE_LABEL).cloned().unwrap_or_default(),
                labels: stored.labels.clone(),
                is_ready: facts.is_ready() == Some(true),
                is_cordoned: facts.is_cordoned(),
                n_pods_max: facts.n_pods_max().unwrap_or(PODS_PER_NODE),
            }
        });
        self.node(name).state = state;
    }

    /// Entries are never removed: a node that is created again keeps its addresses.
    fn node(&mut self, name: &str) -> &mut Node {
        if !self.by_name.contains_key(name) {
            let node = Node { number: self.n_ever, ..Node::default() };
            self.n_ever = self.n_ever.wrapping_add(1);
            self.by_name.insert(name.to_owned(), node);
        }
        self.by_name.get_mut(name).expect("it was just put there")
    }

    pub fn unreported(&mut self) -> impl Iterator<Item = ControllerAction> {
        let names = std::mem::take(&mut self.unreported).into_iter();
        let numbered: Vec<ControllerAction> = names
            .map(|node| ControllerAction::ReportNode { number: self.node(&node).number, node })
            .collect();
        numbered.into_iter()
    }

    pub fn pod_node(&self, name: Option<&str>) -> PodNode {
        let Some(name) = name else { return PodNode::Unassigned };
        match self.by_name.get(name).and_then(|node| node.state.as_ref()) {
            None => PodNode::Missing,
            Some(state) if state.is_ready => PodNode::Ready,
            Some(_) => PodNode::Unreachable,
        }
    }

    pub fn zone(&self, name: &str) -> Option<&str> {
        let state = self.by_name.get(name)?.state.as_ref()?;
        Some(&state.zone)
    }

    pub fn number(&mut self, name: &str) -> u16 {
        self.node(name).number
    }

    pub fn choose(&self, placement: &PodPlacement<'_>) -> Option<&str> {
        let candidates = self.by_name.iter().filter_map(|(name, node)| {
            let state = node.state.as_ref()?;
            let mut wanted = placement.node_selector.iter();
            let is_selected = wanted.all(|(key, value)| state.labels.get(key) == Some(value));
            let siblings =
                placement.n_siblings_by_zone.and_then(|by_zone| by_zone.get(&state.zone));
            Some(NodeCandidate {
                name,
                is_fit: state.is_ready && !state.is_cordoned && is_selected,
                n_pods: node.n_pods,
                n_pods_max: state.n_pods_max,
                n_siblings_in_zone: siblings.copied().unwrap_or(0),
            })
        });
        choose(candidates)
    }

    pub fn add_pod(&mut self, name: &str) {
        self.node(name).n_pods += 1;
    }

    pub fn remove_pod(&mut self, name: &str) {
        self.node(name).n_pods -= 1;
    }

    pub fn allocate_address(&mut self, name: &str) -> Option<u8> {
        self.node(name).addresses.allocate()
    }

    /// Releases the address of a deleted pod.
    pub fn free_address(&mut self, name: &str, slot: Option<u8>) {
        self.may_have_room = true;
        if let Some(slot) = slot {
            self.node(name).addresses.free(slot);
        }
    }
}
