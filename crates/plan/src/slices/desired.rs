//! From pods to the endpoints that should be published, group by group.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{Conditions, Endpoint, EndpointSlice, Family, Pod, Service, Text};

use super::missing_nodes_notice;
use crate::port_set::{PortResolver, PortSet};
use crate::{LeftOut, Memory, NodeState, Plan, PodOnNode, Reason, Retry, pods};

/// The matching pods, sorted by name, with what does not depend on the family.
pub struct PodsByName<'a> {
    service: &'a Service,
    eligible: Vec<Eligible<'a>>,
    port_sets: Vec<PortSet>,
    left_out: Vec<LeftOut>,
}

struct Eligible<'a> {
    pod: &'a Pod,
    node: &'a NodeState,
    port_set: usize,
}

/// The desired endpoints of one family. A group may be empty: a pod that is skipped still makes
/// its port set a wanted one.
pub struct Groups {
    pub family: Family,
    pub endpoints_by_ports: BTreeMap<PortSet, Vec<Endpoint>>,
}

impl<'a> PodsByName<'a> {
    pub fn of(service: &'a Service, pods: &'a [PodOnNode<'a>]) -> Self {
        let mut sorted: Vec<&PodOnNode> = pods.iter().collect();
        sorted.sort_by(|a, b| a.pod.name.cmp(&b.pod.name));
        let mut resolver = PortResolver::new(service);
        let mut eligible = Vec::with_capacity(sorted.len());
        let mut left_out = Vec::new();
        for PodOnNode { pod, node } in sorted {
            match pods::ineligible(pod) {
                Some(reason) => left_out.push(LeftOut { pod: pod.name.clone(), reason }),
                None => eligible.push(Eligible { pod, node, port_set: resolver.resolve(pod) }),
            }
        }
        Self { service, eligible, port_sets: resolver.into_port_sets(), left_out }
    }

    pub fn publish(&self, family: Family, observed: &[&EndpointSlice]) -> Groups {
        let mut endpoints: Vec<Vec<Endpoint>> = vec![Vec::new(); self.port_sets.len()];
        let mut published = None;
        for Eligible { pod, node, port_set } in &self.eligible {
            let zone = match (self.missing_node(pod, node), node) {
                (None, NodeState::Known { zone }) => zone.clone(),
                (None, NodeState::Unknown | NodeState::Gone) => None,
                (Some(_), NodeState::Unknown) => {
                    // Not seen yet is no reason to take out what is published.
                    let published = published.get_or_insert_with(|| published_zones(observed));
                    let Some(zone) = published.get(&pod.name) else { continue };
                    zone.clone()
                }
                (Some(_), NodeState::Known { .. } | NodeState::Gone) => continue,
            };
            let addresses = pods::addresses(pod, family).good;
            if !addresses.is_empty() {
                endpoints[*port_set].push(endpoint(self.service, pod, addresses, zone));
            }
        }
        let endpoints_by_ports = self.port_sets.iter().cloned().zip(endpoints).collect();
        Groups { family, endpoints_by_ports }
    }

    /// A pod whose node is missing is skipped, unless the Service wants addresses whatever their
    /// state.
    fn missing_node(&self, pod: &Pod, node: &NodeState) -> Option<Reason> {
        let is_missing = match node {
            NodeState::Known { .. } => pod.node_name.is_none(),
            NodeState::Unknown | NodeState::Gone => true,
        };
        if !is_missing || self.service.publish_not_ready {
            return None;
        }
        let reason =
            if pod.node_name.is_some() { Reason::NodeNotFound } else { Reason::NotScheduled };
        Some(reason)
    }

    /// Says which pods were left out and why, and what people should be told about them.
    pub fn report(
        self,
        families: &[Family],
        service: &Service,
        memory: &mut Memory,
        plan: &mut Plan,
    ) {
        let mut left_out: BTreeSet<LeftOut> = self.left_out.iter().cloned().collect();
        let mut messages = Vec::new();
        let mut bad_by_pod = BTreeMap::new();
        for Eligible { pod, node, .. } in &self.eligible {
            let name = &pod.name;
            if let Some(reason) = self.missing_node(pod, node) {
                messages.push(skipped_message(service, pod));
                left_out.insert(LeftOut { pod: name.clone(), reason });
                continue;
            }
            for family in families {
                let addresses = pods::addresses(pod, *family);
                bad_by_pod.extend(addresses.bad.map(|bad| (name.clone(), bad)));
                let reason = addresses.missing(*family);
                left_out.extend(reason.map(|reason| LeftOut { pod: name.clone(), reason }));
            }
        }
        plan.left_out = left_out.into_iter().collect();
        if !messages.is_empty() {
            let retry = Retry::MissingNodes(messages);
            plan.notices.push(missing_nodes_notice(service, &retry));
            plan.retry = Some(retry);
        }
        plan.notices.extend(pods::bad_address_notice(&bad_by_pod, &mut memory.told_bad));
    }
}

/// Upstream: `podToEndpoint`.
fn endpoint(service: &Service, pod: &Pod, addresses: Vec<Text>, zone: Option<Text>) -> Endpoint {
    let serving = pod.is_ready();
    let terminating = pod.is_terminating;
    Endpoint {
        addresses,
        conditions: Conditions {
            ready: Some(service.publish_not_ready || (serving && !terminating)),
            serving: Some(serving),
            terminating: Some(terminating),
        },
        hostname: pods::hostname(pod, service),
        node_name: pod.node_name.clone(),
        target_ref: Some(pods::object_ref(pod)),
        zone,
        ..Endpoint::default()
    }
}

/// Zone by pod name of what is published now.
fn published_zones(observed: &[&EndpointSlice]) -> BTreeMap<Text, Option<Text>> {
    let endpoints = observed.iter().flat_map(|slice| &slice.endpoints);
    endpoints
        .filter_map(|endpoint| {
            let target = endpoint.target_ref.as_ref()?;
            Some((target.name.clone(), endpoint.zone.clone()))
        })
        .collect()
}

/// Upstream's error, two blanks for an unscheduled pod included.
fn skipped_message(service: &Service, pod: &Pod) -> String {
    let node = pod.node_name.as_deref().unwrap_or("");
    format!("skipping Pod {} for Service {}: Node {node} Not Found", pod.name, service.key())
}
