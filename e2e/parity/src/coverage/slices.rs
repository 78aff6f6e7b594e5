//! Section 4 of the specification: the endpointslice controller.

use endpointd_model::{
    AddressType, ClusterIp, Endpoint, EndpointSlice, Family, Labels, TrafficDistribution, names,
};

use super::{Observed, Rule, rule};

pub const RULES: &[Rule] = &[
    rule("4.1 Service gone", |s| s.service.is_none() && !s.slices.is_empty()),
    rule("4.2 ExternalName", |s| s.service_is(|one| one.is_external_name)),
    rule("4.3 slice being deleted", |s| s.slices.iter().any(|one| one.meta.is_deleting())),
    rule("4.3 slice of another manager", |s| {
        s.sync.before.slices.values().any(|one| {
            one.meta.labels.has(names::SERVICE_NAME, &s.sync.key.name)
                && !one.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_SLICES)
        })
    }),
    rule("4.4 IPv4", |s| s.service_is(|one| one.families == [Family::V4])),
    rule("4.4 IPv6", |s| s.service_is(|one| one.families == [Family::V6])),
    rule("4.4 both families", |s| s.service_is(|one| one.families == [Family::V4, Family::V6])),
    rule("4.4 both families, IPv6 first", |s| {
        s.service_is(|one| one.families == [Family::V6, Family::V4])
    }),
    rule("4.4 family by ClusterIP", |s| {
        s.service_is(|one| one.families.is_empty() && matches!(one.cluster_ip, ClusterIp::Ip(_)))
    }),
    rule("4.4 headless without families", |s| {
        s.service_is(|one| one.families.is_empty() && !matches!(one.cluster_ip, ClusterIp::Ip(_)))
    }),
    rule("4.4 slice of another family deleted", |s| {
        let lacks = |one: &EndpointSlice| match one.address_type {
            AddressType::IPv4 => !has_family(s, Family::V4),
            AddressType::IPv6 => !has_family(s, Family::V6),
            AddressType::Fqdn | AddressType::Other(_) => false,
        };
        s.deleted().any(lacks)
    }),
    rule("4.4 FQDN slice deleted", |s| {
        s.deleted().any(|one| one.address_type == AddressType::Fqdn)
    }),
    rule("4.5 owner of another uid", |s| {
        s.slices.iter().any(|one| {
            one.meta.owners.len() == 1 && one.meta.owners.iter().all(|owner| !is_uid(s, &owner.uid))
        })
    }),
    rule("4.5 no owner", |s| s.deleted().any(|one| one.meta.owners.is_empty())),
    rule("4.5 two owners", |s| s.slices.iter().any(|one| one.meta.owners.len() > 1)),
    rule("4.5 owner of another kind", |s| {
        s.slices.iter().any(|one| {
            let is_odd = |owner: &endpointd_model::OwnerRef| {
                is_uid(s, &owner.uid)
                    && (owner.kind.as_ref(), owner.api_version.as_ref()) != ("Service", "v1")
            };
            one.meta.owners.iter().any(is_odd)
        })
    }),
    rule("4.6 node unknown, pod excluded", |s| s.sync.plan.retry.is_some()),
    rule("4.6 node unknown, published anyway", |s| {
        let unknown = |pod: &endpointd_model::Pod| match &pod.node_name {
            Some(node) => !s.sync.before.nodes.contains_key(node),
            None => true,
        };
        s.service_is(|one| one.publish_not_ready) && s.any_pod(unknown)
    }),
    rule("4.6 no IP of the family", |s| {
        s.sync.plan.excluded_pods.iter().any(|one| one.reason.as_str().starts_with("NoIP"))
    }),
    rule("4.6 serving while terminating", |s| {
        any_written(s, |one| {
            one.conditions.serving == Some(true) && one.conditions.terminating == Some(true)
        })
    }),
    rule("4.6 ready while not serving", |s| {
        any_written(s, |one| {
            one.conditions.serving == Some(false) && one.conditions.ready == Some(true)
        })
    }),
    rule("4.6 no zone", |s| any_written(s, |one| one.zone.is_none() && one.node_name.is_some())),
    rule("4.6 several groups of a family", |s| {
        let mut groups: Vec<_> = written(s).map(|one| (&one.address_type, &one.ports)).collect();
        let n_types = |groups: &[(&AddressType, &Vec<_>)]| {
            let mut types: Vec<_> = groups.iter().map(|(kind, _)| *kind).collect();
            types.dedup();
            types.len()
        };
        groups.sort_unstable();
        groups.dedup();
        groups.len() > n_types(&groups)
    }),
    rule("4.6 ports in another order", |s| s.slices.iter().any(|one| one.ports.len() > 1)),
    rule("4.6 pod without any port", |s| {
        written(s).any(|one| one.ports.is_empty() && !one.endpoints.is_empty())
    }),
    rule("4.7a endpoint differs", |s| {
        s.updated().any(|(old, new)| {
            old.ports == new.ports
                && new
                    .endpoints
                    .iter()
                    .any(|one| found(old, one).is_some_and(|was| !same(was, one)))
        })
    }),
    rule("4.7a endpoint dropped", |s| {
        s.updated().any(|(old, new)| {
            !new.endpoints.is_empty() && old.endpoints.iter().any(|one| found(new, one).is_none())
        })
    }),
    rule("4.7a emptied slice deleted", |s| s.deleted().any(|one| !one.endpoints.is_empty())),
    rule("4.7a labels out of date", |s| {
        s.updated().any(|(old, new)| {
            old.endpoints == new.endpoints
                && inherited(&old.meta.labels) != inherited(&new.meta.labels)
        })
    }),
    rule("4.7a duplicate endpoint", |s| {
        s.slices.iter().any(|one| {
            (1..one.endpoints.len()).any(|at| one.endpoints[..at].contains(&one.endpoints[at]))
        })
    }),
    rule("4.7b fills a slice that changes anyway", |s| {
        s.updated().any(|(old, new)| {
            is_added_to(old, new)
                && old.endpoints.iter().any(|one| found(new, one).is_none_or(|now| !same(now, one)))
        })
    }),
    rule("4.7c exact fit", |s| fills(s, |n, max| n == max)),
    rule("4.7c fullest that takes them all", |s| fills(s, |n, max| n < max)),
    rule("4.7c new slice beside existing ones", |s| {
        s.created().any(|new| {
            s.slices.iter().any(|one| one.ports == new.ports && !one.endpoints.is_empty())
        })
    }),
    rule("4.7c several new slices", |s| {
        s.created().filter(|one| one.endpoints.len() == max(s)).count() > 1
    }),
    rule("4.7 overfull slice", |s| s.slices.iter().any(|one| one.endpoints.len() > max(s))),
    rule("4.7 empty slice of wanted ports", |s| {
        s.slices.iter().any(|one| {
            one.endpoints.is_empty()
                && s.slices
                    .iter()
                    .any(|other| other.ports == one.ports && !other.endpoints.is_empty())
        })
    }),
    rule("4.7 slice of unwanted ports deleted", |s| {
        s.deleted().any(|one| !s.sync.after.slices.values().any(|other| other.ports == one.ports))
    }),
    rule("4.7 more than a hundred endpoints", |s| s.live().count() > 100),
    rule("4.8 placeholder created", |s| s.created().any(is_placeholder)),
    rule("4.8 placeholder kept", |s| {
        s.writes_nothing() && s.slices.iter().any(|one| is_placeholder(one))
    }),
    rule("4.8 placeholder replaced", |s| {
        s.slices.iter().any(|one| is_placeholder(one)) && !s.writes_nothing()
    }),
    rule("4.9 headless label", |s| {
        s.service_is(|one| one.is_labelled_headless()) && s.created().next().is_some()
    }),
    rule("4.9 Service with a reserved label", |s| {
        let keys = [names::SERVICE_NAME, names::MANAGED_BY, names::HEADLESS];
        s.service_is(|one| keys.iter().any(|key| one.labels.contains_key(key)))
    }),
    rule("4.9 reserved label alone differs", |s| {
        let is_headless = |one: &EndpointSlice| one.meta.labels.contains_key(names::HEADLESS);
        s.writes_nothing()
            && s.slices.iter().any(|one| {
                s.service_is(|service| is_headless(one) != service.is_labelled_headless())
            })
    }),
    rule("4.10 PreferClose", |s| prefers(s, TrafficDistribution::PreferClose)),
    rule("4.10 PreferSameZone", |s| prefers(s, TrafficDistribution::PreferSameZone)),
    rule("4.10 PreferSameNode", |s| prefers(s, TrafficDistribution::PreferSameNode)),
    rule("4.10 unknown trafficDistribution", |s| {
        s.text.services.iter().any(|one| one["spec"]["trafficDistribution"] == "PreferNothing")
    }),
    rule("4.10 rewritten for hints alone", |s| {
        s.updated().any(|(old, new)| {
            old.endpoints != new.endpoints
                && old.meta.labels == new.meta.labels
                && old.endpoints.len() == new.endpoints.len()
                && old
                    .endpoints
                    .iter()
                    .zip(&new.endpoints)
                    .all(|(a, b)| same(a, b) && a.addresses == b.addresses)
        })
    }),
    rule("4.10 hints removed", |s| {
        s.updated().any(|(old, new)| {
            old.endpoints.iter().any(|one| one.hints.is_some())
                && new.endpoints.iter().all(|one| one.hints.is_none())
        })
    }),
    rule("4.11 recycled", |s| s.updated().any(|(old, new)| old.ports != new.ports)),
    rule("4.12 Service being deleted", |s| {
        s.service_is(|one| one.is_deleting) && s.live().next().is_some()
    }),
    rule("4 nothing to write", |s| {
        s.writes_nothing() && s.live().next().is_some() && !s.slices.is_empty()
    }),
    rule("4.13 failure event", |s| s.has_event("\"FailedToUpdateEndpointSlices\"")),
];

fn max(s: &Observed) -> usize {
    s.sync.case.settings().endpoints_per_slice_max
}

fn has_family(s: &Observed, family: Family) -> bool {
    s.service_is(|one| one.families.is_empty() || one.families.contains(&family))
}

fn is_uid(s: &Observed, uid: &endpointd_model::Uid) -> bool {
    s.service_is(|one| one.uid == *uid)
}

fn written<'a>(s: &Observed<'a>) -> impl Iterator<Item = &'a EndpointSlice> {
    s.created().chain(s.updated().map(|(_, new)| new))
}

fn any_written(s: &Observed, holds: impl Fn(&Endpoint) -> bool) -> bool {
    written(s).any(|slice| slice.endpoints.iter().any(&holds))
}

/// The endpoint of the same pod.
fn found<'a>(slice: &'a EndpointSlice, sought: &Endpoint) -> Option<&'a Endpoint> {
    let name = |one: &Endpoint| one.target_ref.as_ref().map(|target| target.name.clone());
    slice
        .endpoints
        .iter()
        .find(|one| name(one) == name(sought) && one.addresses == sought.addresses)
}

fn same(a: &Endpoint, b: &Endpoint) -> bool {
    (a.conditions, &a.node_name, &a.zone) == (b.conditions, &b.node_name, &b.zone)
        && match (&a.target_ref, &b.target_ref) {
            (Some(a), Some(b)) => a.same_object(b),
            (a, b) => a == b,
        }
}

fn is_added_to(old: &EndpointSlice, new: &EndpointSlice) -> bool {
    old.ports == new.ports && new.endpoints.iter().any(|one| found(old, one).is_none())
}

/// A slice that only gained endpoints, with its size and the maximum.
fn fills(s: &Observed, holds: impl Fn(usize, usize) -> bool) -> bool {
    s.updated().any(|(old, new)| {
        let is_kept = |one: &Endpoint| found(new, one).is_some_and(|now| same(now, one));
        is_added_to(old, new)
            && !old.endpoints.is_empty()
            && old.endpoints.iter().all(is_kept)
            && holds(new.endpoints.len(), max(s))
    })
}

fn is_placeholder(slice: &EndpointSlice) -> bool {
    slice.ports.is_empty() && slice.endpoints.is_empty()
}

fn inherited(labels: &Labels) -> Labels {
    labels.with(names::SERVICE_NAME, None).with(names::MANAGED_BY, None).with(names::HEADLESS, None)
}

fn prefers(s: &Observed, wish: TrafficDistribution) -> bool {
    s.service_is(|one| one.traffic_distribution == Some(wish))
        && any_written(s, |one| one.hints.is_some())
}
