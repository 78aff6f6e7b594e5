//! Section 6 of the specification: the mirroring controller.

use endpointd_model::{
    AddressType, EndpointAddress, Endpoints, Family, SubsetPort, names, parse_ip,
};

use super::{Observed, Rule, rule};

pub const RULES: &[Rule] = &[
    rule("6.1 mirrored", |s| s.created().next().is_some()),
    rule("6.1 no Endpoints", |s| s.endpoints.is_none()),
    rule("6.1 skip-mirror true", |s| labelled(s, names::SKIP_MIRROR, "true")),
    rule("6.1 skip-mirror of another value", |s| labelled(s, names::SKIP_MIRROR, "false")),
    rule("6.1 leader annotation", |s| {
        s.endpoints.is_some_and(|one| one.meta.annotations.contains_key(names::LEADER))
    }),
    rule("6.1 no Service", |s| s.service.is_none() && s.endpoints.is_some()),
    rule("6.1 Service with a selector", |s| s.service_is(|one| !one.selector.is_empty())),
    rule("6.1 ExternalName", |s| s.service_is(|one| one.is_external_name)),
    rule("6.1 slices cleaned up", |s| {
        s.deleted().next().is_some() && (s.service.is_none() || s.endpoints.is_none())
    }),
    rule("6.2 several subsets", |s| s.endpoints.is_some_and(|one| one.subsets.len() > 1)),
    rule("6.2 a port of two subsets", |s| {
        s.endpoints.is_some_and(|one| {
            let mut ports: Vec<&SubsetPort> =
                one.subsets.iter().flat_map(|subset| &subset.ports).collect();
            let n = ports.len();
            ports.sort_unstable();
            ports.dedup();
            n > ports.len()
        })
    }),
    rule("6.2 no ports", |s| {
        s.endpoints.is_some_and(|one| one.subsets.iter().any(|subset| subset.ports.is_empty()))
    }),
    rule("6.2 port 0", |s| {
        let is_zero = |one: &SubsetPort| one.port == 0;
        s.endpoints.is_some_and(|one| one.subsets.iter().any(|sub| sub.ports.iter().any(is_zero)))
    }),
    rule("6.2 appProtocol", |s| {
        let has = |one: &SubsetPort| one.app_protocol.is_some();
        s.endpoints.is_some_and(|one| one.subsets.iter().any(|sub| sub.ports.iter().any(has)))
    }),
    rule("6.2 no addresses", |s| s.endpoints.is_some_and(|one| addresses(one).next().is_none())),
    rule("6.2 ready and not ready", |s| {
        s.endpoints.is_some_and(|one| {
            one.subsets.iter().any(|subset| {
                let is_ready =
                    |ip: &str| subset.addresses.iter().any(|ready| ready.ip.as_ref() == ip);
                subset.not_ready_addresses.iter().any(|one| is_ready(&one.ip))
            })
        })
    }),
    rule("6.2 one address in two spellings", |s| {
        s.endpoints.is_some_and(|one| {
            let mut all: Vec<_> =
                addresses(one).filter_map(|one| Some((parse_ip(&one.ip)?, &one.ip))).collect();
            all.sort_unstable();
            all.windows(2).any(|pair| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1)
        })
    }),
    rule("6.2 cap exceeded", |s| s.has_event("\"TooManyAddressesToMirror\"")),
    rule("6.2 default cap exceeded", |s| s.has_event("A max of 1000 addresses")),
    rule("6.2 invalid address", |s| s.has_event("\"InvalidIPAddress\"")),
    rule("6.2 special address", |s| {
        s.endpoints.is_some_and(|one| {
            addresses(one).any(|one| {
                parse_ip(&one.ip)
                    .is_some_and(|ip| endpointd_model::is_forbidden_endpoint_ip(ip).is_some())
            })
        })
    }),
    rule("6.2 both families", |s| {
        let families: Vec<Family> = s
            .endpoints
            .map(|one| addresses(one).filter_map(|one| parse_ip(&one.ip)).map(Family::of).collect())
            .unwrap_or_default();
        families.contains(&Family::V4) && families.contains(&Family::V6)
    }),
    rule("6.3 rewritten: endpoints differ", |s| {
        s.updated().any(|(old, new)| old.ports == new.ports && old.endpoints != new.endpoints)
    }),
    rule("6.3 rewritten: labels differ", |s| {
        s.updated().any(|(old, new)| old.meta.labels != new.meta.labels)
    }),
    rule("6.3 rewritten: annotations differ", |s| {
        s.updated().any(|(old, new)| old.meta.annotations != new.meta.annotations)
    }),
    rule("6.3 rewritten: Endpoints were recreated", |s| {
        s.updated().any(|(old, new)| {
            let uids = |one: &endpointd_model::EndpointSlice| -> Vec<_> {
                one.meta.owners.iter().map(|owner| owner.uid.to_string()).collect()
            };
            !old.meta.owners.is_empty() && uids(old) != uids(new)
        })
    }),
    rule("6.3 further slice deleted", |s| {
        s.deleted().any(|one| {
            s.sync
                .after
                .slices
                .values()
                .any(|kept| kept.ports == one.ports && kept.address_type == one.address_type)
        })
    }),
    rule("6.3 unneeded slice deleted", |s| {
        s.endpoints.is_some()
            && s.deleted().any(|one| {
                !s.sync
                    .after
                    .slices
                    .values()
                    .any(|kept| kept.ports == one.ports && kept.address_type == one.address_type)
            })
    }),
    rule("6.3 recycled", |s| s.updated().any(|(old, new)| old.ports != new.ports)),
    rule("6.3 FQDN slice", |s| s.slices.iter().any(|one| one.address_type == AddressType::Fqdn)),
    rule("6.3 slice without owner", |s| s.slices.iter().any(|one| one.meta.owners.is_empty())),
    rule("6.3 slice being deleted", |s| s.slices.iter().any(|one| one.meta.is_deleting())),
    rule("6.3 duplicate endpoint", |s| {
        s.slices.iter().any(|one| {
            (1..one.endpoints.len()).any(|at| one.endpoints[..at].contains(&one.endpoints[at]))
        })
    }),
    rule("6.3 right as it is", |s| s.writes_nothing() && !s.slices.is_empty()),
    rule("6.4 nodeName, hostname, targetRef", |s| {
        let full = |one: &EndpointAddress| one.node_name.is_some() || one.target_ref.is_some();
        s.endpoints.is_some_and(|one| addresses(one).any(full))
    }),
    rule("6.5 reserved label on the Endpoints", |s| {
        let keys = [names::MANAGED_BY, names::SERVICE_NAME];
        s.endpoints.is_some_and(|one| keys.iter().any(|key| one.meta.labels.contains_key(key)))
    }),
    rule("6.5 annotations not copied", |s| {
        let keys = [names::TRIGGER_TIME, names::LAST_APPLIED];
        s.endpoints.is_some_and(|one| keys.iter().any(|key| one.meta.annotations.contains_key(key)))
    }),
    rule("6.6 Endpoints being deleted", |s| s.endpoints.is_some_and(|one| one.meta.is_deleting())),
];

fn labelled(s: &Observed, key: &str, value: &str) -> bool {
    s.endpoints.is_some_and(|one| one.meta.labels.has(key, value))
}

fn addresses(one: &Endpoints) -> impl Iterator<Item = &EndpointAddress> {
    one.subsets.iter().flat_map(|sub| sub.addresses.iter().chain(&sub.not_ready_addresses))
}
