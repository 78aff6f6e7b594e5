//! Section 3: the Endpoints of a Service.

use std::collections::BTreeSet;

use endpointd_model::{
    ClusterIp, EndpointAddress, Endpoints, Pod, Service, SharedStr, SubsetPort, Uid, names,
};

use super::{plain_labels, pods, slices};
use endpointd_memory_api::MemoryApi;

/// More are truncated; then only the number of addresses is compared.
const ADDRESSES_MAX: usize = 1000;

/// One address with one port, or without a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub port: Option<SubsetPort>,
    pub ip: SharedStr,
    pub pod: SharedStr,
    pub uid: Uid,
    pub is_ready: bool,
    pub node: Option<SharedStr>,
    pub hostname: Option<SharedStr>,
}

impl Entry {
    pub fn all(endpoints: &Endpoints) -> BTreeSet<Self> {
        let mut entries = BTreeSet::new();
        for subset in &endpoints.subsets {
            let ready = subset.addresses.iter().map(|address| (address, true));
            let not_ready = subset.not_ready_addresses.iter().map(|address| (address, false));
            for (address, is_ready) in ready.chain(not_ready) {
                if subset.ports.is_empty() {
                    entries.insert(Self::new(None, address, is_ready));
                }
                for port in &subset.ports {
                    entries.insert(Self::new(Some(port), address, is_ready));
                }
            }
        }
        entries
    }

    fn new(port: Option<&SubsetPort>, address: &EndpointAddress, is_ready: bool) -> Self {
        let target = address.target_ref.clone().unwrap_or_default();
        Self {
            port: port.cloned(),
            ip: address.ip.clone(),
            pod: target.name,
            uid: target.uid,
            is_ready,
            node: address.node_name.clone(),
            hostname: address.hostname.clone(),
        }
    }
}

/// The entries of one pod.
pub fn entries(service: &Service, pod: &Pod) -> Vec<Entry> {
    let is_wanted = slices::publishes(service)
        && pods::matches(service, pod)
        && pods::is_eligible(pod)
        && (!pod.is_terminating || pods::publishes_not_ready(service));
    let family = pods::primary_family(service, pod);
    let address = pods::addresses(pod, family).into_iter().next();
    let Some(ip) = address.filter(|_| is_wanted) else { return Vec::new() };
    let entry = |port| Entry {
        port,
        ip: ip.clone(),
        pod: pod.name.clone(),
        uid: pod.uid.clone(),
        is_ready: pod.is_ready() || pods::publishes_not_ready(service),
        node: Some(pod.node_name.clone().unwrap_or_default()),
        hostname: pods::hostname(service, pod),
    };
    if service.ports.is_empty() {
        let is_headless = service.cluster_ip == ClusterIp::Headless;
        return is_headless.then(|| entry(None)).into_iter().collect();
    }
    let ports = pods::ports(service, pod).into_iter().map(|port| SubsetPort {
        name: port.name.unwrap_or_default(),
        port: port.port.unwrap_or_default(),
        protocol: port.protocol.unwrap_or_default(),
        app_protocol: port.app_protocol,
    });
    ports.map(|port| entry(Some(port))).collect()
}

pub fn compare(api: &MemoryApi, service: &Service) -> Vec<String> {
    if !slices::publishes(service) {
        return Vec::new();
    }
    let key = service.key();
    let Some(endpoints) = api.endpoints.get(&key) else {
        return vec![format!("{key}: no Endpoints")];
    };
    let desired: BTreeSet<Entry> =
        api.pods.values().flat_map(|pod| entries(service, pod)).collect();
    let published = Entry::all(endpoints);
    let mut differences = compare_meta(service, endpoints);
    if desired.len() > ADDRESSES_MAX {
        let is_marked = endpoints.meta.annotations.has(names::OVER_CAPACITY, names::TRUNCATED);
        if published.len() != ADDRESSES_MAX || !published.is_subset(&desired) || !is_marked {
            differences.push(format!("{key}: {} addresses, wrongly truncated", published.len()));
        }
        return differences;
    }
    for entry in published.difference(&desired) {
        differences.push(format!("{key}: Endpoints have what is not desired: {entry:?}"));
    }
    for entry in desired.difference(&published) {
        differences.push(format!("{key}: Endpoints lack: {entry:?}"));
    }
    differences
}

fn compare_meta(service: &Service, endpoints: &Endpoints) -> Vec<String> {
    let reserved = [names::HEADLESS, names::ENDPOINTS_MANAGED_BY];
    let desired = plain_labels(&service.labels, &reserved);
    let labels = plain_labels(&endpoints.meta.labels, &reserved);
    let manager = endpoints.meta.labels.get(names::ENDPOINTS_MANAGED_BY);
    let mut differences = Vec::new();
    if labels != desired || manager.map(AsRef::as_ref) != Some(names::MANAGED_BY_ENDPOINTS) {
        let (key, labels) = (service.key(), &endpoints.meta.labels);
        differences.push(format!("{key}: labels of Endpoints: {labels:?}"));
    }
    differences
}

/// Endpoints of ours without a Service.
pub fn find_leftovers(api: &MemoryApi) -> Vec<String> {
    let mut differences = Vec::new();
    for (key, endpoints) in api.endpoints.iter() {
        if !api.services.contains(key) && is_ours(endpoints) {
            differences.push(format!("{key}: Endpoints without a Service"));
        }
    }
    differences
}

/// Written by the endpoints controller; no leader election lock.
pub fn is_ours(endpoints: &Endpoints) -> bool {
    let meta = &endpoints.meta;
    meta.labels.has(names::ENDPOINTS_MANAGED_BY, names::MANAGED_BY_ENDPOINTS) && !is_lock(endpoints)
}

pub fn is_lock(endpoints: &Endpoints) -> bool {
    endpoints.meta.annotations.contains_key(names::LEADER)
}
