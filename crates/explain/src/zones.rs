//! Zones, hints, and Local policies: EPD601 to EPD608.

use std::collections::BTreeSet;

use endpointd_model::{
    AddressType, Endpoint, EndpointSlice, Family, Node, Selection, SharedStr, TopologyMode,
    TrafficDistribution,
};
use endpointd_plan::Topology;
use strsim::damerau_levenshtein;

use crate::code::{Code, Level};
use crate::facts::ServiceFacts;
use crate::fields::{self, text};
use crate::finding::{Finding, ObjectName};

const DISTRIBUTIONS: [TrafficDistribution; 3] = [
    TrafficDistribution::PreferSameZone,
    TrafficDistribution::PreferSameNode,
    TrafficDistribution::PreferClose,
];

pub fn explain(facts: &ServiceFacts, findings: &mut Vec<Finding>) {
    match facts.service.selection() {
        Selection::Pods(_) => {}
        Selection::Manual | Selection::External => return,
    }
    findings.extend(unknown_distribution(facts));
    match facts.service.topology {
        TopologyMode::Auto => {
            findings.extend(annotation_wins(facts));
            findings.extend(topology_refused(facts));
        }
        TopologyMode::Off => {}
    }
    findings.extend(partly_hinted(facts));
    findings.extend(local_policy(facts));
}

/// EPD604.
fn annotation_wins(facts: &ServiceFacts) -> Option<Finding> {
    let distribution = text(facts.raw, "/spec/trafficDistribution");
    if distribution.is_empty() {
        return None;
    }
    let message = format!(
        "the topology annotation `Auto` wins: trafficDistribution `{distribution}` is ignored"
    );
    Some(Finding::new(Code::AnnotationWins, facts.object(), message))
}

/// EPD605.
fn unknown_distribution(facts: &ServiceFacts) -> Option<Finding> {
    let found = text(facts.raw, "/spec/trafficDistribution");
    if found.is_empty() || TrafficDistribution::parse(found).is_some() {
        return None;
    }
    let message = format!("trafficDistribution `{found}` is not a known value and is ignored");
    let near = DISTRIBUTIONS
        .iter()
        .map(|one| one.as_str())
        .min_by_key(|known| (!has_letters_of(known, found), damerau_levenshtein(known, found)));
    let near = near.map(|near| format!("did you mean `{near}`?"));
    Some(Finding::new(Code::UnknownDistribution, facts.object(), message).near_miss(near))
}

/// Whether a word becomes another one by leaving out letters: `PreferZone` of `PreferSameZone`.
fn has_letters_of(known: &str, found: &str) -> bool {
    let mut letters = known.chars();
    found.chars().all(|wanted| letters.any(|letter| letter == wanted))
}

/// EPD601, EPD602, EPD603: the annotation asks for hints, and the plan gives none.
fn topology_refused(facts: &ServiceFacts) -> Option<Finding> {
    if !facts.plan.carried.hints.is_refused() || facts.n_ready() == 0 {
        return None;
    }
    let nodes: Vec<&Node> = facts
        .context
        .objects
        .cluster
        .nodes
        .values()
        .filter(|node| node.is_ready && !node.is_control_plane)
        .collect();
    if let Some(node) = nodes.iter().find(|node| node.zone.is_none()) {
        let message = format!(
            "no hints: node {} has no label `topology.kubernetes.io/zone`, and all nodes need it",
            node.name
        );
        let near =
            zone_of_similar(node, &nodes).map(|(name, zone)| format!("node {name} is in {zone}"));
        let object = ObjectName::new("Node", "", &node.name);
        return Some(Finding::new(Code::NodeWithoutZone, object, message).near_miss(near));
    }
    if let Some(node) = nodes.iter().find(|node| node.cpu_nanos == 0) {
        let message = format!("no hints: node {} reports no allocatable CPU", node.name);
        let object = ObjectName::new("Node", "", &node.name);
        return Some(Finding::new(Code::NodeWithoutCpu, object, message));
    }
    let topology = Topology::of(nodes);
    Some(too_few(facts, &topology))
}

/// A node whose name differs only in its last part.
fn zone_of_similar<'n>(node: &Node, nodes: &[&'n Node]) -> Option<(&'n str, &'n str)> {
    let stem = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_alphanumeric()).to_owned();
    let similar = nodes.iter().find(|one| {
        one.zone.is_some() && !stem(&one.name).is_empty() && stem(&one.name) == stem(&node.name)
    })?;
    Some((&similar.name, similar.zone.as_deref()?))
}

fn too_few(facts: &ServiceFacts, topology: &Topology) -> Finding {
    let Topology::Zones(shares) = topology else {
        let message = "no hints: the nodes are in one zone only".to_owned();
        return Finding::new(Code::TooFewForHints, facts.object(), message);
    };
    let n_ready =
        facts.service.families.iter().map(|family| n_ready(&facts.desired, *family)).min();
    let n_ready = n_ready.unwrap_or_else(|| facts.n_ready());
    let percents: Vec<String> =
        shares.values().map(|share| format!("{:.0}", share * 100.0)).collect();
    let message = format!(
        "no hints: {n_ready} ready endpoints cannot be shared among {} zones by their CPU ({} %) \
         without one zone being more than 20 % short",
        shares.len(),
        percents.join("/")
    );
    let near = topology.enough_endpoints(n_ready + 1).map(|n| format!("{n} could"));
    Finding::new(Code::TooFewForHints, facts.object(), message).near_miss(near)
}

fn n_ready(slices: &[EndpointSlice], family: Family) -> usize {
    let of_family = slices.iter().filter(|one| one.address_type == AddressType::from(family));
    of_family.flat_map(|slice| &slice.endpoints).filter(|one| one.is_ready()).count()
}

/// EPD606 and EPD607, from what is published: that is what kube-proxy sees. Upstream:
/// `CategorizeEndpoints` in pkg/proxy/topology.go.
fn partly_hinted(facts: &ServiceFacts) -> Option<Finding> {
    let endpoints = facts.published.iter().flat_map(|slice| &slice.endpoints);
    let ready: Vec<&Endpoint> = endpoints.filter(|endpoint| endpoint.is_ready()).collect();
    let zones_of = |endpoint: &Endpoint| -> Vec<SharedStr> {
        endpoint.hints.as_ref().map_or_else(Vec::new, |hints| hints.for_zones.clone())
    };
    let hinted: BTreeSet<SharedStr> = ready.iter().flat_map(|one| zones_of(one)).collect();
    if hinted.is_empty() {
        return None;
    }
    let without: Vec<String> = ready
        .iter()
        .filter(|one| zones_of(one).is_empty())
        .map(|one| one.target_ref.as_ref().map_or("?", |target| &target.name).to_owned())
        .collect();
    if !without.is_empty() {
        let message = format!(
            "kube-proxy ignores all hints while a ready endpoint has none: {}",
            fields::names(&without)
        );
        return Some(Finding::new(Code::EndpointWithoutHints, facts.object(), message));
    }
    let nodes = facts.context.objects.cluster.nodes.values();
    let zones = nodes.filter(|node| node.is_ready).filter_map(|node| node.zone.clone());
    let zones: BTreeSet<SharedStr> = zones.collect();
    let left: Vec<String> = zones.difference(&hinted).map(|zone| format!("`{zone}`")).collect();
    if left.is_empty() {
        return None;
    }
    let message = format!(
        "clients in zone {} are sent to endpoints of all zones: no endpoint is hinted for them",
        fields::names(&left)
    );
    Some(Finding::new(Code::ZoneWithoutHints, facts.object(), message))
}

/// EPD608.
fn local_policy(facts: &ServiceFacts) -> Option<Finding> {
    let is_local = |field: &str| text(facts.raw, &format!("/spec/{field}")) == "Local";
    let (policy, effect, level) = if is_local("internalTrafficPolicy") {
        ("internalTrafficPolicy", "pods there cannot reach the Service", Level::Warning)
    } else if is_local("externalTrafficPolicy") {
        ("externalTrafficPolicy", "load balancers have to skip them", Level::Info)
    } else {
        return None;
    };
    let endpoints = facts.published.iter().flat_map(|slice| &slice.endpoints);
    let serving: BTreeSet<&SharedStr> = endpoints
        .filter(|endpoint| endpoint.is_ready())
        .filter_map(|endpoint| endpoint.node_name.as_ref())
        .collect();
    let nodes = facts.context.objects.of_kind("Node", "").map(fields::name);
    let without = nodes.filter(|name| !serving.iter().any(|one| one.as_ref() == *name));
    let without: Vec<String> = without.map(|name| format!("`{name}`")).collect();
    if without.is_empty() || facts.published.is_empty() {
        return None;
    }
    let have = if without.len() == 1 { "has" } else { "have" };
    let message = format!(
        "{policy} is Local and {} {have} no endpoint of this Service: {effect}; hints do not count",
        fields::names(&without)
    );
    Some(Finding::new(Code::LocalPolicy, facts.object(), message).level(level))
}
