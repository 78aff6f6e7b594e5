//! A pod as it should be published. An endpoint is allocated only if its slice is written: in most
//! syncs most pods are already published, and comparing them allocates nothing.

use std::cmp::Ordering;
use std::net::IpAddr;

use endpointd_model::{Conditions, Endpoint, IpStr, Pod, Service, SharedStr};

use crate::packing::DesiredEndpoint;
use crate::pods::{self, Addresses};

pub struct PublishedPod<'a> {
    pod: &'a Pod,
    conditions: Conditions,
    hostname: Option<&'a SharedStr>,
    zone: Option<&'a SharedStr>,
    /// Sorted as text, in upstream's order.
    addresses: PodAddresses,
}

/// Nearly every pod has one address per family.
enum PodAddresses {
    One(IpAddr),
    Many(Vec<SharedStr>),
}

impl<'a> PublishedPod<'a> {
    /// Upstream: `podToEndpoint`. None if the pod has no valid address of the family.
    pub fn new(
        service: &Service,
        pod: &'a Pod,
        addresses: &Addresses,
        zone: Option<&'a SharedStr>,
    ) -> Option<Self> {
        let first = addresses.first?;
        let addresses = if addresses.more.is_empty() {
            PodAddresses::One(first)
        } else {
            let all = std::iter::once(&first).chain(&addresses.more);
            let mut texts: Vec<SharedStr> = all.map(|ip| IpStr::new(*ip).into()).collect();
            texts.sort_unstable();
            PodAddresses::Many(texts)
        };
        let serving = pod.is_ready();
        let terminating = pod.is_terminating;
        let conditions = Conditions {
            ready: Some(service.publish_not_ready || (serving && !terminating)),
            serving: Some(serving),
            terminating: Some(terminating),
        };
        Some(Self { pod, conditions, hostname: pods::hostname(pod, service), zone, addresses })
    }

    pub fn is_ready(&self) -> bool {
        self.conditions.ready == Some(true)
    }

    fn has_addresses(&self, observed: &[SharedStr]) -> bool {
        match (&self.addresses, observed) {
            (PodAddresses::One(ip), [text]) => *IpStr::new(*ip) == **text,
            (PodAddresses::One(_), _) => false,
            (PodAddresses::Many(texts), observed) => {
                let mut sorted = observed.to_vec();
                sorted.sort_unstable();
                *texts == sorted
            }
        }
    }
}

impl DesiredEndpoint for PublishedPod<'_> {
    /// Pods are sorted by name, and names are unique. The other parts of the identity therefore
    /// only decide equality, not order.
    fn compare(&self, observed: &Endpoint) -> Ordering {
        let target = observed.target_ref.as_ref();
        let by_name = self.pod.name.as_ref().cmp(target.map_or("", |target| &target.name));
        by_name.then_with(|| {
            let is_same = target.is_some_and(|target| target.namespace == self.pod.namespace)
                && self.hostname.map_or("", AsRef::as_ref)
                    == observed.hostname.as_deref().unwrap_or("")
                && self.has_addresses(&observed.addresses);
            if is_same { Ordering::Equal } else { Ordering::Less }
        })
    }

    fn is_current(&self, observed: &Endpoint) -> bool {
        let same_target = observed.target_ref.as_ref().is_some_and(|target| {
            target.uid == self.pod.uid
                && target.kind.as_ref() == "Pod"
                && target.api_version.is_empty()
                && target.field_path.is_empty()
        });
        same_target
            && self.conditions == observed.conditions
            && self.pod.node_name == observed.node_name
            && self.zone == observed.zone.as_ref()
    }

    fn to_endpoint(&self) -> Endpoint {
        Endpoint {
            addresses: match &self.addresses {
                PodAddresses::One(ip) => vec![IpStr::new(*ip).into()],
                PodAddresses::Many(texts) => texts.clone(),
            },
            conditions: self.conditions,
            hostname: self.hostname.cloned(),
            node_name: self.pod.node_name.clone(),
            target_ref: Some(pods::object_ref(self.pod)),
            zone: self.zone.cloned(),
            ..Endpoint::default()
        }
    }
}
