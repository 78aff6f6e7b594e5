//! Section 4: the slices of a Service.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{
    AddressType, Endpoint, EndpointPort, EndpointSlice, Family, Key, Node, Pod, Service, SharedStr,
    Uid, names,
};

use super::{plain_labels, pods, slices_of};
use crate::script::Setup;
use endpointd_memory_api::MemoryApi;

pub const RESERVED: [&str; 3] = [names::SERVICE_NAME, names::MANAGED_BY, names::HEADLESS];

/// One endpoint with its ports, without hints.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub address_type: AddressType,
    pub addresses: Vec<SharedStr>,
    pub ports: Vec<EndpointPort>,
    pub pod: SharedStr,
    pub uid: Uid,
    /// Ready, serving, terminating.
    pub conditions: [Option<bool>; 3],
    pub node: Option<SharedStr>,
    pub zone: Option<SharedStr>,
    pub hostname: Option<SharedStr>,
}

impl Entry {
    /// An endpoint of a slice.
    pub fn of(slice: &EndpointSlice, endpoint: &Endpoint) -> Self {
        let target = endpoint.target_ref.clone().unwrap_or_default();
        let mut ports = slice.ports.clone();
        ports.sort();
        let conditions = endpoint.conditions;
        Self {
            address_type: slice.address_type.clone(),
            addresses: endpoint.addresses.clone(),
            ports,
            pod: target.name,
            uid: target.uid,
            conditions: [conditions.ready, conditions.serving, conditions.terminating],
            node: endpoint.node_name.clone(),
            zone: endpoint.zone.clone(),
            hostname: endpoint.hostname.clone(),
        }
    }

    /// Same pod, addresses, ports, and hostname.
    pub fn is_same_place(&self, other: &Self) -> bool {
        self.address_type == other.address_type
            && self.hostname == other.hostname
            && self.addresses == other.addresses
            && self.ports == other.ports
            && (&self.pod, &self.uid) == (&other.pod, &other.uid)
    }
}

/// The endpoint of a pod, if it is published. `node` is the node that the pod names.
pub fn entry(service: &Service, pod: &Pod, node: Option<&Node>, family: Family) -> Option<Entry> {
    if !publishes(service) || !pods::matches(service, pod) || !pods::is_eligible(pod) {
        return None;
    }
    if !pods::families(service).contains(&family) {
        return None;
    }
    let has_node = pod.node_name.is_some() && node.is_some();
    if !has_node && !pods::publishes_not_ready(service) {
        return None;
    }
    let addresses = pods::addresses(pod, family);
    if addresses.is_empty() {
        return None;
    }
    let serving = pod.is_ready();
    let ready = pods::publishes_not_ready(service) || (serving && !pod.is_terminating);
    Some(Entry {
        address_type: family.into(),
        addresses,
        ports: pods::ports(service, pod),
        pod: pod.name.clone(),
        uid: pod.uid.clone(),
        conditions: [Some(ready), Some(serving), Some(pod.is_terminating)],
        node: pod.node_name.clone(),
        zone: node.filter(|_| has_node).and_then(|node| node.zone.clone()),
        hostname: pods::hostname(service, pod),
    })
}

/// A Service whose pods are published.
pub fn publishes(service: &Service) -> bool {
    !service.is_external_name && !service.selector.is_empty()
}

pub fn is_owned(slice: &EndpointSlice, service: &Service) -> bool {
    slice.meta.owners.iter().any(|owner| {
        owner.uid == service.uid && &*owner.kind == "Service" && &*owner.api_version == "v1"
    })
}

pub fn desired(api: &MemoryApi, service: &Service) -> BTreeSet<Entry> {
    let mut desired = BTreeSet::new();
    for pod in api.pods.values() {
        let node = pod.node_name.as_ref();
        let node = node.and_then(|name| api.nodes.get(&Key::new("", name.clone())));
        for family in [Family::V4, Family::V6] {
            desired.extend(entry(service, pod, node.map(AsRef::as_ref), family));
        }
    }
    desired
}

pub fn compare(api: &MemoryApi, setup: &Setup, service: &Service) -> Vec<String> {
    if !publishes(service) {
        return Vec::new();
    }
    let key = service.key();
    let slices: Vec<&EndpointSlice> = slices_of(api, &key, names::MANAGED_BY_SLICES).collect();
    let mut differences = compare_content(api, service, &slices);
    for slice in &slices {
        differences.extend(compare_slice(setup, service, slice));
    }
    differences.extend(compare_placeholders(service, &slices));
    differences
}

pub fn unwanted(api: &MemoryApi, service: &Service) -> Vec<String> {
    let key = service.key();
    let desired = desired(api, service);
    let slices = slices_of(api, &key, names::MANAGED_BY_SLICES);
    slices
        .flat_map(|slice| slice.endpoints.iter().map(move |endpoint| Entry::of(slice, endpoint)))
        .filter(|entry| !desired.contains(entry))
        .map(|entry| format!("{key}: published but not desired: {entry:?}"))
        .collect()
}

fn compare_content(api: &MemoryApi, service: &Service, slices: &[&EndpointSlice]) -> Vec<String> {
    let key = service.key();
    let desired = desired(api, service);
    let mut differences = Vec::new();
    let mut published: BTreeSet<Entry> = BTreeSet::new();
    for slice in slices {
        for endpoint in &slice.endpoints {
            let entry = Entry::of(slice, endpoint);
            if !published.insert(entry.clone()) {
                differences.push(format!("{key}: published twice: {entry:?}"));
            }
        }
    }
    for entry in published.difference(&desired) {
        differences.push(format!("{key}: published but not desired: {entry:?}"));
    }
    // A Service that is being deleted gets no new slices.
    if !service.is_deleting {
        for entry in desired.difference(&published) {
            differences.push(format!("{key}: desired but not published: {entry:?}"));
        }
    }
    differences
}

fn compare_slice(setup: &Setup, service: &Service, slice: &EndpointSlice) -> Vec<String> {
    let (key, name) = (service.key(), &slice.meta.name);
    let mut differences = Vec::new();
    let is_placeholder = slice.endpoints.is_empty() && slice.ports.is_empty();
    if !is_owned(slice, service) && !is_placeholder {
        differences.push(format!("{key}: slice {name} has another owner"));
    }
    if slice.endpoints.len() > setup.endpoints_per_slice_max {
        differences.push(format!("{key}: slice {name} holds {}", slice.endpoints.len()));
    }
    let types: Vec<AddressType> =
        pods::families(service).into_iter().map(AddressType::from).collect();
    if !types.contains(&slice.address_type) {
        differences.push(format!("{key}: slice {name} is {}", slice.address_type));
    }
    let labels =
        (plain_labels(&slice.meta.labels, &RESERVED), plain_labels(&service.labels, &RESERVED));
    if labels.0 != labels.1 {
        differences.push(format!("{key}: labels of {name}: {:?}, not {:?}", labels.0, labels.1));
    }
    differences
}

/// Every family has a slice. Empty slices beside others are not compared: upstream keeps the slice
/// of a group that has lost its endpoints.
fn compare_placeholders(service: &Service, slices: &[&EndpointSlice]) -> Vec<String> {
    let key = service.key();
    let mut differences = Vec::new();
    let mut by_type: BTreeMap<&AddressType, Vec<&EndpointSlice>> = BTreeMap::new();
    for slice in slices {
        by_type.entry(&slice.address_type).or_default().push(slice);
    }
    for family in pods::families(service) {
        let address_type = AddressType::from(family);
        let slices = by_type.get(&address_type).map_or(&[][..], Vec::as_slice);
        if slices.is_empty() && !service.is_deleting {
            differences.push(format!("{key}: no {address_type} slice at all"));
        }
    }
    differences
}
