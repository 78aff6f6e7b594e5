//! Section 4.10 and section 5: hints, checked by their rules. Which of several valid allocations is
//! chosen depends on history and is not compared.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{
    AddressType, Endpoint, EndpointSlice, Hints, Key, Node, Service, SharedStr, TopologyMode,
    TrafficDistribution, names,
};

use super::{pods, slices, slices_of};
use endpointd_memory_api::MemoryApi;

pub fn compare(api: &MemoryApi, service: &Service) -> Vec<String> {
    // A deleting Service counts the endpoints it would have, but gets no new slices.
    if !slices::publishes(service) || service.is_deleting {
        return Vec::new();
    }
    compare_slices(api, service, names::MANAGED_BY_SLICES)
}

/// The hints of all slices of this Service and manager.
pub fn compare_slices(api: &MemoryApi, service: &Service, manager: &str) -> Vec<String> {
    let key = service.key();
    let mut differences = Vec::new();
    for family in pods::families(service) {
        let slices: Vec<&EndpointSlice> = slices_of(api, &key, manager)
            .filter(|slice| slice.address_type == AddressType::from(family))
            .collect();
        let endpoints: Vec<&Endpoint> = slices.iter().flat_map(|slice| &slice.endpoints).collect();
        match (service.topology, service.traffic_distribution) {
            (TopologyMode::Auto, _) => differences.extend(compare_topology(api, &key, &endpoints)),
            (TopologyMode::Off, Some(distribution)) => {
                differences.extend(compare_traffic(&key, distribution, &endpoints));
            }
            (TopologyMode::Off, None) => differences.extend(compare_none(&key, &endpoints)),
        }
    }
    differences
}

fn compare_none(key: &Key, endpoints: &[&Endpoint]) -> Option<String> {
    let is_hinted = endpoints.iter().any(|endpoint| endpoint.hints.is_some());
    is_hinted.then(|| format!("{key}: unexpected hints"))
}

fn compare_traffic(
    key: &Key,
    distribution: TrafficDistribution,
    endpoints: &[&Endpoint],
) -> Option<String> {
    for endpoint in endpoints.iter().filter(|endpoint| endpoint.is_ready()) {
        let Some(zone) = &endpoint.zone else { continue };
        let for_nodes = match distribution {
            TrafficDistribution::PreferClose | TrafficDistribution::PreferSameZone => Vec::new(),
            TrafficDistribution::PreferSameNode => endpoint.node_name.iter().cloned().collect(),
        };
        let desired = Hints { for_zones: vec![zone.clone()], for_nodes };
        if endpoint.hints.as_ref() != Some(&desired) {
            return Some(format!("{key}: hints are {:?}, not {desired:?}", endpoint.hints));
        }
    }
    None
}

fn compare_topology(api: &MemoryApi, key: &Key, endpoints: &[&Endpoint]) -> Option<String> {
    let ready: Vec<&Endpoint> =
        endpoints.iter().copied().filter(|endpoint| endpoint.is_ready()).collect();
    let Some(zones) = zones_with_room(api, &ready) else { return compare_none(key, endpoints) };
    for endpoint in ready {
        let hinted = endpoint.hints.as_ref().map_or(&[][..], |hints| &hints.for_zones);
        let is_right =
            |zone: &SharedStr| zones.contains(zone) || endpoint.zone.as_ref() == Some(zone);
        if hinted.is_empty() || !hinted.iter().all(is_right) {
            return Some(format!("{key}: topology hints are {:?}", endpoint.hints));
        }
    }
    None
}

/// The zones that hints may name; `None` if there must be no hints.
fn zones_with_room(api: &MemoryApi, ready: &[&Endpoint]) -> Option<BTreeSet<SharedStr>> {
    let mut cpu_by_zone: BTreeMap<SharedStr, i128> = BTreeMap::new();
    let counts = |node: &&Node| node.is_ready && !node.is_control_plane;
    for node in api.nodes.values().filter(counts) {
        let zone = node.zone.clone().filter(|zone| !zone.is_empty() && node.cpu_nanos > 0)?;
        *cpu_by_zone.entry(zone).or_default() += node.cpu_nanos;
    }
    let n_zones = cpu_by_zone.len();
    if n_zones < 2 || n_zones > ready.len() {
        return None;
    }
    if ready.iter().any(|endpoint| endpoint.zone.as_ref().is_none_or(|zone| zone.is_empty())) {
        return None;
    }
    let total: i128 = cpu_by_zone.values().sum();
    let minimum = |cpu: &i128| {
        let desired = *cpu as f64 / total as f64 * ready.len() as f64;
        (desired * (1.0 / 1.2)).ceil() as usize
    };
    let minimums: usize = cpu_by_zone.values().map(minimum).sum();
    (minimums <= ready.len()).then(|| cpu_by_zone.into_keys().collect())
}
