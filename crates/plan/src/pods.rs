//! What a pod contributes, before any grouping.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::LazyLock;

use endpointd_model::{
    BadAddress, EventReason, EventRecord, Family, InvolvedKind, ObjectRef, Phase, Pod, PodIp,
    Service, SharedStr, is_forbidden_endpoint_ip,
};

use endpointd_mutants::{Mutant, is_on};

use crate::ExclusionReason;

/// Why a pod is not published at all, whatever the controller. Upstream: `ShouldPodBeInEndpoints`.
pub fn ineligible(pod: &Pod) -> Option<ExclusionReason> {
    match pod.phase {
        Phase::Failed | Phase::Succeeded if is_on(Mutant::PublishFinished) => None,
        Phase::Failed => Some(ExclusionReason::Failed),
        Phase::Succeeded => Some(ExclusionReason::Succeeded),
        Phase::Active => pod.ips.is_empty().then_some(ExclusionReason::NoAddress),
    }
}

/// Published only for pods that asked to be found by name under this very Service.
/// Upstream: `ShouldSetHostname`.
pub fn hostname<'a>(pod: &'a Pod, service: &Service) -> Option<&'a SharedStr> {
    let is_named_under =
        pod.subdomain.as_ref() == Some(&service.name) && pod.namespace == service.namespace;
    pod.hostname.as_ref().filter(|_| is_named_under)
}

/// A pod's addresses of one family, in their order, without those the API server would refuse.
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
                Some(bad) if !is_on(Mutant::PublishBadAddress) => addresses.bad = Some(bad),
                _ if addresses.first.is_none() => addresses.first = Some(*ip),
                _ => addresses.more.push(*ip),
            },
        }
    }
    addresses
}

impl Addresses {
    /// Why there is nothing to publish.
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

/// Tells about bad addresses once, and again only when further pods have them.
pub fn bad_address_notice(
    bad_by_pod: &BTreeMap<SharedStr, BadAddress>,
    told: &mut BTreeSet<SharedStr>,
) -> Option<EventRecord> {
    let is_news = bad_by_pod.keys().any(|pod| !told.contains(pod));
    *told = bad_by_pod.keys().cloned().collect();
    let (pod, bad) = bad_by_pod.first_key_value()?;
    let n_more = bad_by_pod.len() - 1;
    let more = if n_more == 0 { String::new() } else { format!(" and {n_more} more") };
    is_news.then(|| EventRecord {
        reason: EventReason::InvalidIPAddress,
        message: format!("Skipped invalid IP addresses of Pods: {pod} ({bad}){more}"),
        involved_kind: InvolvedKind::Service,
    })
}
