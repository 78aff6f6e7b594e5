//! What one pod contributes to any object: eligibility, hostname, addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::LazyLock;

use endpointd_model::{
    BadAddress, EventReason, EventRecord, Family, InvolvedKind, ObjectRef, Phase, Pod, PodIp,
    Service, SharedStr, is_forbidden_endpoint_ip,
};

use crate::ExclusionReason;

/// Why no controller publishes this pod. Upstream: `ShouldPodBeInEndpoints`.
pub fn ineligible(pod: &Pod) -> Option<ExclusionReason> {
    match pod.phase {
        Phase::Failed => Some(ExclusionReason::Failed),
        Phase::Succeeded => Some(ExclusionReason::Succeeded),
        Phase::Active => pod.ips.is_empty().then_some(ExclusionReason::NoAddress),
    }
}

/// The pod's hostname, if the pod names this Service as its subdomain.
/// Upstream: `ShouldSetHostname`.
pub fn hostname<'a>(pod: &'a Pod, service: &Service) -> Option<&'a SharedStr> {
    let is_named_under =
        pod.subdomain.as_ref() == Some(&service.name) && pod.namespace == service.namespace;
    pod.hostname.as_ref().filter(|_| is_named_under)
}

/// A pod's addresses of one family, in their order, without those that the API server would
/// reject (B9).
pub struct Addresses {
    pub first: Option<IpAddr>,
    pub more: Vec<IpAddr>,
    pub bad: Option<BadAddress>,
}

pub fn addresses(pod: &Pod, family: Family) -> Addresses {
    let mut addresses = Addresses { first: None, more: Vec::new(), bad: None };
    for ip in pod.ips.all.iter().filter(|ip| ip.family() == family) {
        match ip {
            PodIp::Invalid(_) => addresses.bad = Some(BadAddress::NotAnIp),
            PodIp::Ip(ip) => match is_forbidden_endpoint_ip(*ip) {
                Some(bad) => addresses.bad = Some(bad),
                None if addresses.first.is_none() => addresses.first = Some(*ip),
                None => addresses.more.push(*ip),
            },
        }
    }
    addresses
}

impl Addresses {
    /// Why the pod has no address to publish.
    pub fn why_none(&self, family: Family) -> ExclusionReason {
        self.bad.map_or(ExclusionReason::NoAddressOfFamily(family), ExclusionReason::InvalidAddress)
    }
}

pub fn object_ref(pod: &Pod) -> ObjectRef {
    static KIND: LazyLock<SharedStr> = LazyLock::new(|| "Pod".into());
    ObjectRef {
        kind: KIND.clone(),
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        ..ObjectRef::default()
    }
}

/// An event about invalid addresses, only if a pod is affected that no event has reported.
pub fn invalid_address_event(
    invalid_by_pod: &BTreeMap<SharedStr, BadAddress>,
    reported: &mut BTreeSet<SharedStr>,
) -> Option<EventRecord> {
    let is_new = invalid_by_pod.keys().any(|pod| !reported.contains(pod));
    *reported = invalid_by_pod.keys().cloned().collect();
    let (pod, bad) = invalid_by_pod.first_key_value()?;
    let n_more = invalid_by_pod.len() - 1;
    let more = if n_more == 0 { String::new() } else { format!(" and {n_more} more") };
    is_new.then(|| EventRecord {
        reason: EventReason::InvalidIPAddress,
        message: format!("Skipped invalid IP addresses of Pods: {pod} ({bad}){more}"),
        involved_kind: InvolvedKind::Service,
    })
}
