//! Section 2 of the specification: pods.

use endpointd_model::{Family, Phase, Pod, PodIp, TargetPort, is_forbidden_endpoint_ip};
use serde_json::Value;

use super::{Observed, Rule, rule};
use crate::deliberate::SyncStep;

pub const RULES: &[Rule] = &[
    rule("2 no selector matches nothing", |s| s.service_is(|one| one.selector.is_empty())),
    rule("2 selector of two pairs", |s| s.service_is(|one| one.selector.iter().count() > 1)),
    rule("2 a pod has only part of the selector", |s| {
        !s.matched.is_empty() && s.sync.before.pods.len() > s.matched.len()
    }),
    rule("2 a pod of another namespace", |s| {
        s.sync.before.pods.values().any(|pod| pod.namespace != s.sync.key.namespace)
    }),
    rule("2 phase Failed", |s| s.matched.iter().any(|pod| pod.phase == Phase::Failed)),
    rule("2 phase Succeeded", |s| s.matched.iter().any(|pod| pod.phase == Phase::Succeeded)),
    rule("2 phase Pending", |s| s.any_pod_text(|pod| pod["status"]["phase"] == "Pending")),
    rule("2 no address", |s| s.matched.iter().any(|pod| pod.ips.is_empty())),
    rule("2 podIP without podIPs", |s| {
        s.any_pod_text(|pod| pod["status"]["podIP"].is_string() && n_ips(pod) == 0)
    }),
    rule("2 podIPs without podIP", |s| {
        s.any_pod_text(|pod| pod["status"]["podIP"].is_null() && n_ips(pod) > 0)
    }),
    rule("2 terminating", |s| s.any_pod(|pod| pod.is_terminating)),
    rule("2 ready is True", |s| s.any_pod(Pod::is_ready)),
    rule("2 ready is False", |s| s.any_pod(|pod| pod.readiness.is_some() && !pod.is_ready())),
    rule("2 no Ready condition", |s| s.any_pod(|pod| pod.readiness.is_none())),
    rule("2 numeric port", |s| s.any_port(|port| port["targetPort"].as_u64() > Some(0))),
    rule("2 port 0", |s| s.any_port(|port| port["targetPort"] == 0)),
    rule("2 named port found", |s| finds_named(s, |found| found)),
    rule("2 named port not found", |s| finds_named(s, |found| !found)),
    rule("2 named port of another protocol", is_other_protocol),
    rule("2 named port of a sidecar", |s| asks_for(s, "side") && has_init(s, "Always")),
    rule("2 named port of an init container", |s| asks_for(s, "init") && has_init(s, "")),
    rule("2 two ports of one number", |s| {
        let ports = |service: &endpointd_model::Service| {
            let mut targets: Vec<_> = service.ports.iter().map(|one| &one.target).collect();
            let n = targets.len();
            targets.dedup();
            n > targets.len()
        };
        s.service_is(ports)
    }),
    rule("2 appProtocol", |s| s.any_port(|port| port["appProtocol"].is_string())),
    rule("2 no ports", |s| s.service_is(|one| one.ports.is_empty()) && !s.matched.is_empty()),
    rule("2 IPv4 with leading zeros", |s| has_ip(s, |ip| ip.starts_with("010."))),
    rule("2 IPv4-mapped address", |s| has_ip(s, |ip| ip.to_lowercase().starts_with("::ffff:"))),
    rule("2 IPv6 not canonical", |s| has_ip(s, |ip| ip.starts_with("FD00"))),
    rule("2 address is garbage", |s| {
        s.any_pod(|pod| pod.ips.all.iter().any(|ip| matches!(ip, PodIp::Invalid(_))))
    }),
    rule("2 address is special", |s| {
        let is_bad = |ip: &PodIp| match ip {
            PodIp::Ip(ip) => is_forbidden_endpoint_ip(*ip).is_some(),
            PodIp::Invalid(_) => false,
        };
        s.any_pod(|pod| pod.ips.all.iter().any(is_bad))
    }),
    rule("2 dual-stack pod", |s| {
        s.any_pod(|pod| n_of(pod, Family::V4) > 0 && n_of(pod, Family::V6) > 0)
    }),
    rule("2 two addresses of one family", |s| {
        s.any_pod(|pod| n_of(pod, Family::V4) > 1 || n_of(pod, Family::V6) > 1)
    }),
    rule("2 two pods share an address", |s| {
        let mut firsts: Vec<String> =
            s.live().filter_map(|pod| Some(format!("{:?}", pod.ips.all.first()?))).collect();
        let n = firsts.len();
        firsts.sort_unstable();
        firsts.dedup();
        n > firsts.len()
    }),
    rule("2 hostname published", |s| s.any_pod(|pod| is_under(s, pod) && pod.hostname.is_some())),
    rule("2 hostname of another subdomain", |s| {
        s.any_pod(|pod| pod.hostname.is_some() && pod.subdomain.is_some() && !is_under(s, pod))
    }),
    rule("2 subdomain without hostname", |s| {
        s.any_pod(|pod| is_under(s, pod) && pod.hostname.is_none())
    }),
    rule("2 trigger time is the Service's", |s| {
        s.sync.step == SyncStep::First && s.service_is(|one| one.created.is_some()) && stamps(s)
    }),
    rule("2 no trigger time", |s| s.service_is(|_| true) && !s.writes_nothing() && !stamps(s)),
    rule("2 trigger time is a pod's", |s| s.sync.step == SyncStep::AfterChange && stamps(s)),
    rule("2 publishNotReadyAddresses", |s| {
        s.service_is(|one| one.publish_not_ready) && s.any_pod(|pod| !pod.is_ready())
    }),
];

fn n_ips(pod: &Value) -> usize {
    pod["status"]["podIPs"].as_array().map_or(0, Vec::len)
}

fn n_of(pod: &Pod, family: Family) -> usize {
    pod.ips.all.iter().filter(|ip| ip.family() == family).count()
}

fn has_ip(s: &Observed, holds: impl Fn(&str) -> bool) -> bool {
    s.any_pod_text(|pod| {
        let ips = pod["status"]["podIPs"].as_array().into_iter().flatten();
        ips.into_iter().any(|ip| holds(ip["ip"].as_str().unwrap_or("")))
    })
}

fn is_under(s: &Observed, pod: &Pod) -> bool {
    pod.subdomain.as_ref() == Some(&s.sync.key.name)
}

/// Whether a named port resolves, or does not resolve, on some pod.
fn finds_named(s: &Observed, holds: impl Fn(bool) -> bool) -> bool {
    let Some(service) = s.service else { return false };
    let mut found =
        service.ports.iter().flat_map(|port| {
            s.live().filter_map(move |pod| match &port.target {
                TargetPort::Number(_) => None,
                TargetPort::Name(name) => Some(pod.named_ports.iter().any(|candidate| {
                    candidate.name == *name && candidate.protocol == port.protocol
                })),
            })
        });
    found.any(holds)
}

fn is_other_protocol(s: &Observed) -> bool {
    let Some(service) = s.service else { return false };
    service.ports.iter().any(|port| {
        s.any_pod(|pod| match &port.target {
            TargetPort::Number(_) => false,
            TargetPort::Name(name) => {
                let mut same_name = pod.named_ports.iter().filter(|one| one.name == *name);
                same_name.clone().next().is_some()
                    && same_name.all(|one| one.protocol != port.protocol)
            }
        })
    })
}

fn asks_for(s: &Observed, name: &str) -> bool {
    s.any_port(|port| port["targetPort"] == name)
}

/// An init container with this restart policy.
fn has_init(s: &Observed, policy: &str) -> bool {
    s.any_pod_text(|pod| {
        let mut inits = pod["spec"]["initContainers"].as_array().into_iter().flatten();
        inits.any(|one| one["restartPolicy"].as_str().unwrap_or("") == policy)
    })
}

fn stamps(s: &Observed) -> bool {
    let is_stamped = |text: &String| text.contains(endpointd_model::names::TRIGGER_TIME);
    s.sync.ours.writes.iter().any(is_stamped)
}
