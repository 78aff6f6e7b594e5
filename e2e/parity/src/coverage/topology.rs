//! Section 5 of the specification: topology hints.

use endpointd_model::{Endpoint, Node, TopologyMode, names};

use super::{Observed, Rule, rule};
use crate::deliberate::SyncStep;

pub const RULES: &[Rule] = &[
    rule("5 annotation Auto", |s| is_auto(s) && annotated(s, "Auto")),
    rule("5 annotation auto", |s| is_auto(s) && annotated(s, "auto")),
    rule("5 annotation of another value", |s| annotated(s, "Off")),
    rule("5 both annotations, the older wins", |s| {
        s.text.services.iter().any(|one| {
            let annotations = &one["metadata"]["annotations"];
            let (old, new) = (names::TOPOLOGY_AWARE_HINTS, names::TOPOLOGY_MODE);
            annotations[old].is_string()
                && annotations[new].is_string()
                && annotations[old] != annotations[new]
        })
    }),
    rule("5 annotation wins over trafficDistribution", |s| {
        is_auto(s) && s.service_is(|one| one.traffic_distribution.is_some())
    }),
    rule("5 node not ready", |s| any_node(s, |one| !one.is_ready)),
    rule("5 node of the control plane", |s| any_node(s, |one| one.is_control_plane)),
    rule("5 node without zone", |s| any_node(s, |one| one.zone.is_none())),
    rule("5 node without CPU", |s| any_node(s, |one| one.cpu_nanos == 0)),
    rule("5 odd quantity", |s| {
        let odd = ["100m", "1e1", "0.5", "2k", "1500000u", "1Ki", "12E-1", "1n"];
        s.text
            .nodes
            .iter()
            .any(|one| odd.iter().any(|cpu| one["status"]["allocatable"]["cpu"] == *cpu))
    }),
    rule("5 no node was ever observed", |s| is_auto(s) && s.sync.before.nodes.is_empty()),
    rule("5 refused: insufficient node information", |s| {
        s.has_event("Insufficient Node information")
    }),
    rule("5 refused: one zone", |s| s.has_event("Nodes only ready in one zone")),
    rule("5 refused: too few endpoints", |s| s.has_event("Insufficient number of endpoints")),
    rule("5 refused: overload", |s| s.has_event("without exceeding overload threshold")),
    rule("5 refused: endpoint without zone", |s| s.has_event("do not have a zone specified")),
    rule("5 enabled", |s| s.has_event("\"TopologyAwareHintsEnabled\"")),
    rule("5 turned off", |s| {
        s.sync.step == SyncStep::AfterChange
            && s.has_event("Topology Aware Hints has been disabled")
    }),
    rule("5 hint for the own zone", |s| hinted(s, |one, zone| one.zone.as_deref() == Some(zone))),
    rule("5 hint for another zone", |s| hinted(s, |one, zone| one.zone.as_deref() != Some(zone))),
    rule("5 hints kept", |s| {
        s.writes_nothing()
            && is_auto(s)
            && s.slices.iter().any(|slice| slice.endpoints.iter().any(|one| one.hints.is_some()))
    }),
    rule("5 hints wrong, slice rewritten", |s| {
        is_auto(s)
            && s.updated().any(|(old, new)| {
                let pairs = old.endpoints.iter().zip(&new.endpoints);
                let is_same = |(a, b): (&Endpoint, &Endpoint)| a.addresses == b.addresses;
                old.endpoints.len() == new.endpoints.len()
                    && pairs.clone().all(is_same)
                    && pairs.clone().any(|(a, b)| a.hints.is_some() && a.hints != b.hints)
            })
    }),
    rule("5 hints of endpoints that are not ready", |s| {
        s.slices
            .iter()
            .any(|slice| slice.endpoints.iter().any(|one| one.hints.is_some() && !one.is_ready()))
    }),
    rule("5 three zones or more", |s| {
        let mut zones: Vec<_> =
            s.sync.before.nodes.values().filter_map(|node| node.zone.clone()).collect();
        zones.sort_unstable();
        zones.dedup();
        zones.len() > 2 && s.has_event("\"TopologyAwareHintsEnabled\"")
    }),
];

fn is_auto(s: &Observed) -> bool {
    s.service_is(|one| one.topology == TopologyMode::Auto)
}

fn annotated(s: &Observed, value: &str) -> bool {
    s.text.services.iter().any(|one| {
        let annotations = &one["metadata"]["annotations"];
        let keys = [names::TOPOLOGY_AWARE_HINTS, names::TOPOLOGY_MODE];
        keys.iter().any(|key| annotations[*key] == value)
    })
}

fn any_node(s: &Observed, holds: impl Fn(&Node) -> bool) -> bool {
    is_auto(s) && s.sync.before.nodes.values().any(holds)
}

/// Whether an endpoint that we wrote with the annotation on has such a hint.
fn hinted(s: &Observed, holds: impl Fn(&Endpoint, &str) -> bool) -> bool {
    let mut slices = s.created().chain(s.updated().map(|(_, new)| new));
    is_auto(s)
        && slices.any(|slice| {
            slice.endpoints.iter().any(|one| {
                let zones = one.hints.iter().flat_map(|hints| &hints.for_zones);
                zones.into_iter().any(|zone| holds(one, zone))
            })
        })
}
