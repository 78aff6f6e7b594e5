//! Computes the endpoints to publish from the matching pods, group by group (docs/spec.md, 4.6).

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{BadAddress, EndpointSlice, Family, Pod, Service, SharedStr, Uid};

use super::missing_nodes_event;
use super::published::PublishedPod;
use crate::port_set::{PortResolver, PortSet};
use crate::{CarriedState, ExcludedPod, ExclusionReason, NodeState, Plan, PodOnNode, Retry, pods};

/// The matching pods, sorted by name, with everything that does not depend on the family.
pub struct PodsByName<'a> {
    service: &'a Service,
    eligible: Vec<Eligible<'a>>,
    port_sets: Vec<PortSet>,
    excluded_pods: BTreeSet<ExcludedPod>,
    invalid_by_pod: BTreeMap<SharedStr, BadAddress>,
    /// Pods on an unknown node that stay published because they already are (B10).
    kept: BTreeSet<SharedStr>,
}

struct Eligible<'a> {
    pod: &'a Pod,
    node: NodeState<'a>,
    port_set: usize,
}

/// The pods to publish in one family. A group can be empty: the port set of an excluded pod stays
/// in use.
pub struct Groups<'a> {
    pub family: Family,
    pub pods_by_ports: BTreeMap<PortSet, Vec<PublishedPod<'a>>>,
}

impl<'a> PodsByName<'a> {
    pub fn of(service: &'a Service, pods: &[PodOnNode<'a>]) -> Self {
        let mut sorted: Vec<&PodOnNode> = pods.iter().collect();
        sorted.sort_by(|a, b| a.pod.name.cmp(&b.pod.name));
        let mut resolver = PortResolver::new(service);
        let mut eligible = Vec::with_capacity(sorted.len());
        let mut excluded_pods = BTreeSet::new();
        for &&PodOnNode { pod, node } in &sorted {
            let port_set = pods::ineligible(pod).map_or_else(|| resolver.resolve(pod), Err);
            match port_set {
                Ok(port_set) => eligible.push(Eligible { pod, node, port_set }),
                Err(reason) => {
                    excluded_pods.insert(ExcludedPod { pod: pod.name.clone(), reason });
                }
            }
        }
        let port_sets = resolver.into_port_sets();
        let (invalid_by_pod, kept) = (BTreeMap::new(), BTreeSet::new());
        Self { service, eligible, port_sets, excluded_pods, invalid_by_pod, kept }
    }

    /// The pods of one family, sorted by name. Records the reasons for excluded pods.
    pub fn publish(&mut self, family: Family, observed: &[&'a EndpointSlice]) -> Groups<'a> {
        let mut groups: Vec<Vec<PublishedPod>> = Vec::new();
        groups.resize_with(self.port_sets.len(), Vec::new);
        if let [only] = &mut *groups {
            only.reserve_exact(self.eligible.len());
        }
        let mut published_zones = None;
        for Eligible { pod, node, port_set } in &self.eligible {
            let missing = missing_node(self.service, pod, *node);
            let zone = match (missing, *node) {
                (None, NodeState::Known { zone }) => zone,
                (None, NodeState::Unknown | NodeState::Gone) => None,
                (Some(_), NodeState::Unknown) => {
                    // An unobserved node must not remove a published endpoint (B10).
                    let zones = published_zones.get_or_insert_with(|| zone_by_pod(observed));
                    let Some(zone) = zones.get(&pod.uid) else { continue };
                    self.kept.insert(pod.name.clone());
                    *zone
                }
                (Some(_), NodeState::Known { .. } | NodeState::Gone) => continue,
            };
            let addresses = pods::addresses(pod, family);
            self.invalid_by_pod.extend(addresses.bad.map(|bad| (pod.name.clone(), bad)));
            match PublishedPod::new(self.service, pod, &addresses, zone) {
                Some(published) => groups[*port_set].push(published),
                None => {
                    let reason = addresses.why_none(family);
                    self.excluded_pods.insert(ExcludedPod { pod: pod.name.clone(), reason });
                }
            }
        }
        Groups { family, pods_by_ports: self.port_sets.iter().cloned().zip(groups).collect() }
    }

    /// Adds the excluded pods with their reasons and the events about them to the plan.
    pub fn report(mut self, carried: &mut CarriedState, plan: &mut Plan) {
        let mut messages = Vec::new();
        let not_kept = self.eligible.iter().filter(|one| !self.kept.contains(&one.pod.name));
        for Eligible { pod, node, .. } in not_kept {
            if let Some(reason) = missing_node(self.service, pod, *node) {
                messages.push(skipped_message(self.service, pod));
                self.excluded_pods.insert(ExcludedPod { pod: pod.name.clone(), reason });
            }
        }
        plan.excluded_pods = self.excluded_pods.into_iter().collect();
        if !messages.is_empty() {
            let retry = Retry::MissingNodes(messages);
            plan.event_records.push(missing_nodes_event(self.service, &retry));
            plan.retry = Some(retry);
        }
        plan.event_records.extend(pods::invalid_address_event(
            &self.invalid_by_pod,
            &mut carried.reported_invalid_pods,
        ));
    }
}

/// Why a pod is excluded for its node. A Service with `publishNotReadyAddresses` publishes pods
/// without a node.
fn missing_node(service: &Service, pod: &Pod, node: NodeState) -> Option<ExclusionReason> {
    let is_missing = match node {
        NodeState::Known { .. } => pod.node_name.is_none(),
        NodeState::Unknown | NodeState::Gone => true,
    };
    if !is_missing || service.publish_not_ready {
        return None;
    }
    Some(if pod.node_name.is_some() {
        ExclusionReason::NodeNotFound
    } else {
        ExclusionReason::NotScheduled
    })
}

/// The zones of the published endpoints, by pod uid: a new pod can have the name of a published
/// one.
fn zone_by_pod<'a>(observed: &[&'a EndpointSlice]) -> BTreeMap<&'a Uid, Option<&'a SharedStr>> {
    let endpoints = observed.iter().copied().flat_map(|slice| &slice.endpoints);
    let zone = |endpoint: &'a endpointd_model::Endpoint| {
        Some((&endpoint.target_ref.as_ref()?.uid, endpoint.zone.as_ref()))
    };
    endpoints.filter_map(zone).collect()
}

/// Upstream's error text, including its two spaces for an unscheduled pod.
fn skipped_message(service: &Service, pod: &Pod) -> String {
    let node = pod.node_name.as_deref().unwrap_or("");
    format!("skipping Pod {} for Service {}: Node {node} Not Found", pod.name, service.key())
}
