//! Section 6: slices mirrored from Endpoints that users write.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{
    AddressType, EndpointAddress, EndpointPort, EndpointSlice, Endpoints, Family, Key, Labels,
    Service, SharedStr, Subset, SubsetPort, Uid, is_forbidden_endpoint_ip, names, parse_ip,
};

use super::{endpoints, slices_of};
use crate::instances::Instances;
use crate::script::Setup;
use endpointd_memory_api::MemoryApi;

/// Address type and ports; one slice per group.
pub type Group = (AddressType, Vec<EndpointPort>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub address: SharedStr,
    pub is_ready: bool,
    pub hostname: Option<SharedStr>,
    pub node: Option<SharedStr>,
    pub target: Option<(SharedStr, SharedStr, Uid)>,
}

/// Whether Endpoints are mirrored, given the Service of the same name.
pub fn is_mirrored(endpoints: &Endpoints, service: &Service) -> bool {
    service.selector.is_empty()
        && !endpoints::is_lock(endpoints)
        && !endpoints.meta.labels.has(names::SKIP_MIRROR, "true")
}

pub fn desired(endpoints: &Endpoints, max: usize) -> BTreeMap<Group, BTreeSet<Entry>> {
    let mut groups: BTreeMap<Group, BTreeSet<Entry>> = BTreeMap::new();
    for (ports, mut addresses) in repack(&endpoints.subsets) {
        // Ready first, then by address and uid, which is the order of the map.
        addresses.sort_by_key(|(_, is_ready)| !is_ready);
        let mut n = 0;
        for (address, is_ready) in addresses {
            let ip = parse_ip(&address.ip).filter(|ip| is_forbidden_endpoint_ip(*ip).is_none());
            let Some(ip) = ip.filter(|_| n < max) else { continue };
            n += 1;
            let group = (AddressType::from(Family::of(ip)), slice_ports(&ports));
            let target = address.target_ref.as_ref();
            groups.entry(group).or_default().insert(Entry {
                address: ip.to_string().into(),
                is_ready,
                hostname: address.hostname.clone(),
                node: address.node_name.clone(),
                target: target.map(|it| (it.namespace.clone(), it.name.clone(), it.uid.clone())),
            });
        }
    }
    groups
}

/// Ports, and the addresses that have all of them, with their readiness.
type Packed<'a> = (Vec<SubsetPort>, Vec<(&'a EndpointAddress, bool)>);

/// Section 3.5: each port with its addresses, then ports with the same addresses together.
fn repack(subsets: &[Subset]) -> Vec<Packed<'_>> {
    type Addresses<'a> = BTreeMap<(SharedStr, Option<Uid>), (&'a EndpointAddress, bool)>;
    let mut by_port: BTreeMap<Option<SubsetPort>, Addresses> = BTreeMap::new();
    for subset in subsets {
        let ports = subset.ports.iter().cloned().map(Some);
        let none = subset.ports.is_empty().then_some(None);
        for port in ports.chain(none) {
            let addresses = by_port.entry(port).or_default();
            let ready = subset.addresses.iter().map(|address| (address, true));
            let unready = subset.not_ready_addresses.iter().map(|address| (address, false));
            for (address, is_ready) in ready.chain(unready) {
                let uid = address.target_ref.as_ref().map(|target| target.uid.clone());
                let known = addresses.entry((address.ip.clone(), uid)).or_insert((address, true));
                known.1 &= is_ready;
            }
        }
    }
    let mut packed: BTreeMap<Vec<(SharedStr, Option<Uid>, bool)>, Packed> = BTreeMap::new();
    for (port, addresses) in by_port {
        let identity =
            addresses.iter().map(|((ip, uid), (_, ready))| (ip.clone(), uid.clone(), *ready));
        let subset = packed
            .entry(identity.collect())
            .or_insert_with(|| (Vec::new(), addresses.values().copied().collect()));
        subset.0.extend(port);
    }
    packed.into_values().collect()
}

fn slice_ports(ports: &[SubsetPort]) -> Vec<EndpointPort> {
    let mut ports: Vec<EndpointPort> = ports
        .iter()
        .map(|port| EndpointPort {
            name: Some(port.name.clone()),
            port: Some(port.port),
            protocol: Some(port.protocol.clone()),
            app_protocol: port.app_protocol.clone(),
        })
        .collect();
    ports.sort();
    ports
}

pub fn compare(api: &MemoryApi, setup: &Setup) -> Vec<String> {
    let with_slices = api.slices.values().filter_map(|slice| {
        let name = slice.meta.labels.get(names::SERVICE_NAME)?;
        slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_MIRROR).then_some(())?;
        Some(Key::new(slice.meta.namespace.clone(), name.clone()))
    });
    let keys: BTreeSet<Key> = api.endpoints.keys().into_iter().chain(with_slices).collect();
    keys.iter().flat_map(|key| compare_key(api, setup, key)).collect()
}

fn compare_key(api: &MemoryApi, setup: &Setup, key: &Key) -> Vec<String> {
    let slices: Vec<&EndpointSlice> = slices_of(api, key, names::MANAGED_BY_MIRROR).collect();
    let endpoints = api.endpoints.get(key);
    let service = api.services.get(key);
    if service.is_none() && setup.instances == Instances::Selectors {
        // The Service may belong to another instance.
        return Vec::new();
    }
    let mirrored =
        endpoints.zip(service).filter(|(endpoints, service)| is_mirrored(endpoints, service));
    let Some((endpoints, _)) = mirrored else {
        let names: Vec<&SharedStr> = slices.iter().map(|slice| &slice.meta.name).collect();
        let breach = format!("{key}: must not be mirrored, but has slices: {names:?}");
        return (!names.is_empty()).then_some(breach).into_iter().collect();
    };
    let mut differences = Vec::new();
    let mut published: BTreeMap<Group, BTreeSet<Entry>> = BTreeMap::new();
    for slice in &slices {
        let mut ports = slice.ports.clone();
        ports.sort();
        let group = (slice.address_type.clone(), ports);
        if published.insert(group, entries(slice)).is_some() {
            differences.push(format!("{key}: two mirrored slices for one group"));
        }
        differences.extend(compare_meta(key, endpoints, slice));
    }
    let desired = desired(endpoints, setup.mirrored_per_subset_max);
    if published != desired {
        differences.push(format!("{key}: mirrored {published:?}, not {desired:?}"));
    }
    differences
}

pub fn entries(slice: &EndpointSlice) -> BTreeSet<Entry> {
    let entry = |endpoint: &endpointd_model::Endpoint| {
        let target = endpoint.target_ref.as_ref();
        Entry {
            address: endpoint.addresses.first().cloned().unwrap_or_default(),
            is_ready: endpoint.conditions.ready == Some(true),
            hostname: endpoint.hostname.clone(),
            node: endpoint.node_name.clone(),
            target: target.map(|it| (it.namespace.clone(), it.name.clone(), it.uid.clone())),
        }
    };
    slice.endpoints.iter().map(entry).collect()
}

fn compare_meta(key: &Key, endpoints: &Endpoints, slice: &EndpointSlice) -> Vec<String> {
    let desired: Labels = endpoints
        .meta
        .labels
        .with(names::SERVICE_NAME, Some(&key.name))
        .with(names::MANAGED_BY, Some(names::MANAGED_BY_MIRROR));
    let annotations =
        endpoints.meta.annotations.with(names::TRIGGER_TIME, None).with(names::LAST_APPLIED, None);
    let (labels, notes) = (&slice.meta.labels, &slice.meta.annotations);
    let mut differences = Vec::new();
    if *labels != desired || *notes != annotations {
        differences.push(format!("{key}: mirrored slice says {labels:?} and {notes:?}"));
    }
    differences
}
