//! Section 3 of the specification: the endpoints controller.

use endpointd_model::{ClusterIp, Endpoints, Object, Write, names};

use super::{Observed, Rule, rule};

pub const RULES: &[Rule] = &[
    rule("3.1 Service gone, Endpoints there", |s| s.service.is_none() && s.endpoints.is_some()),
    rule("3.1 Service gone, no Endpoints", |s| s.service.is_none() && s.endpoints.is_none()),
    rule("3.2 ExternalName", |s| s.service_is(|one| one.is_external_name)),
    rule("3.3 family by ipFamilies", |s| s.service_is(|one| !one.families.is_empty())),
    rule("3.3 family by ClusterIP", |s| {
        s.service_is(|one| one.families.is_empty() && matches!(one.cluster_ip, ClusterIp::Ip(_)))
    }),
    rule("3.3 family by podIP", |s| {
        s.service_is(|one| one.families.is_empty() && !matches!(one.cluster_ip, ClusterIp::Ip(_)))
            && s.live().next().is_some()
    }),
    rule("3.3 no IP of the family", |s| {
        s.sync.plan.excluded_pods.iter().any(|one| one.reason.as_str().starts_with("NoIP"))
    }),
    rule("3.3 pod without a node", |s| s.any_pod(|pod| pod.node_name.is_none())),
    rule("3.4 headless without ports", |s| {
        s.service_is(|one| one.ports.is_empty() && one.cluster_ip == ClusterIp::Headless)
            && s.live().next().is_some()
    }),
    rule("3.4 not ready", |s| {
        written(s).is_some_and(|one| {
            one.subsets.iter().any(|subset| !subset.not_ready_addresses.is_empty())
        })
    }),
    rule("3.4 terminating left out", |s| {
        s.sync.plan.excluded_pods.iter().any(|one| one.reason.as_str() == "Terminating")
    }),
    rule("3.4 no port found", |s| {
        s.sync.plan.excluded_pods.iter().any(|one| one.reason.as_str() == "NoPort")
    }),
    rule("3.5 several subsets", |s| written(s).is_some_and(|one| one.subsets.len() > 1)),
    rule("3.5 ports merged", |s| {
        written(s).is_some_and(|one| one.subsets.iter().any(|subset| subset.ports.len() > 1))
    }),
    rule("3.6 equal, nothing written", |s| {
        s.writes_nothing() && s.endpoints.is_some() && s.live().next().is_some()
    }),
    rule("3.6 equal in another layout", |s| {
        let desired = |one: &Endpoints| one.subsets.len() > 1;
        s.writes_nothing() && s.live().next().is_some() && s.endpoints.is_some_and(desired)
    }),
    rule("3.6 headless label alone differs", |s| {
        let is_headless = |one: &Endpoints| one.meta.labels.contains_key(names::HEADLESS);
        s.writes_nothing()
            && s.endpoints.is_some_and(|one| {
                s.service_is(|service| is_headless(one) != service.is_labelled_headless())
            })
    }),
    rule("3.6 labels differ", |s| {
        written(s).is_some_and(|new| {
            s.endpoints.is_some_and(|old| {
                old.subsets.len() == new.subsets.len() && old.meta.labels != new.meta.labels
            })
        })
    }),
    rule("3.6 over-capacity removed", |s| {
        let has = |one: &Endpoints| one.meta.annotations.contains_key(names::OVER_CAPACITY);
        s.endpoints.is_some_and(has) && written(s).is_some_and(|one| !has(one))
    }),
    rule("3.7 other annotations kept", |s| {
        written(s).is_some_and(|one| one.meta.annotations.contains_key("foreign"))
    }),
    rule("3.7 truncated, ready alone too many", |s| cut(s) && !n_not_ready(s)),
    rule("3.7 truncated, not ready cut", |s| cut(s) && n_not_ready(s)),
    rule("3.8 create", |s| matches!(s.sync.plan.writes.first(), Some(Write::Create(_)))),
    rule("3.8 update", |s| matches!(s.sync.plan.writes.first(), Some(Write::Update(_)))),
    rule("3 Endpoints being deleted", |s| s.endpoints.is_some_and(|one| one.meta.is_deleting())),
    rule("3 Service being deleted", |s| s.service_is(|one| one.is_deleting)),
    rule("3 Service with a reserved label", |s| {
        let keys = [names::HEADLESS, names::ENDPOINTS_MANAGED_BY];
        s.service_is(|one| keys.iter().any(|key| one.labels.contains_key(key)))
    }),
];

fn written<'a>(s: &Observed<'a>) -> Option<&'a Endpoints> {
    s.sync.plan.writes.iter().find_map(|write| match write {
        Write::Create(Object::Endpoints(one)) | Write::Update(Object::Endpoints(one)) => Some(one),
        _ => None,
    })
}

fn cut(s: &Observed) -> bool {
    written(s).is_some_and(|one| one.meta.annotations.contains_key(names::OVER_CAPACITY))
}

fn n_not_ready(s: &Observed) -> bool {
    let has = |one: &Endpoints| one.subsets.iter().any(|one| !one.not_ready_addresses.is_empty());
    written(s).is_some_and(has)
}
