//! What must be published once nothing fails: written from docs/spec.md, section 11, in the simplest
//! way. It shares only `model` with the product.

use std::collections::BTreeSet;

use endpointd_model::{
    AddressType, ClusterIp, ConditionStatus, Endpoint, EndpointPort, EndpointSlice, Family,
    ImportType, Key, Service, ServiceExport, ServicePort, SharedStr, TrafficDistribution,
    derived_name, names,
};

use super::site::{HOME, Site};
use super::workload::keys;

/// One exported Service.
pub struct Member<'a> {
    pub site: usize,
    pub export: &'a ServiceExport,
    pub service: &'a Service,
}

/// What all exports together make of one key.
pub struct Merged<'a> {
    /// The oldest export first.
    pub members: Vec<Member<'a>>,
    families: Vec<Family>,
    /// Name and number.
    ports: Vec<(SharedStr, i32)>,
    import_type: ImportType,
    distribution: Option<TrafficDistribution>,
    has_conflict: bool,
}

pub fn compare(sites: &[Site]) -> Vec<String> {
    keys().flat_map(|key| compare_key(sites, &key)).collect()
}

/// None if no cluster exports the key.
pub fn merged<'a>(sites: &'a [Site], key: &Key) -> Option<Merged<'a>> {
    let mut members = Vec::new();
    for site in sites {
        let (export, service) = (site.api.exports.get(key), site.api.services.get(key));
        if let (Some(export), Some(service)) = (export, service)
            && !service.is_external_name
        {
            members.push(Member { site: site.number, export, service });
        }
    }
    members.sort_by_key(|member| (member.export.meta.created, Site::id(member.site)));
    let oldest = members.first()?.service;
    let mut families = oldest.families.clone();
    let mut ports: Vec<(SharedStr, i32)> = Vec::new();
    let mut has_conflict = false;
    for Member { service, export, .. } in &members {
        if !families.iter().any(|family| service.families.contains(family)) {
            has_conflict = true;
            continue;
        }
        families.retain(|family| service.families.contains(family));
        has_conflict |= differ(oldest, service) || export.labels != members[0].export.labels;
        for port in &service.ports {
            if !ports.iter().any(|(name, number)| *name == port.name || *number == port.number) {
                ports.push((port.name.clone(), port.number));
            }
        }
    }
    let (import_type, distribution) = (type_of(oldest), oldest.traffic_distribution);
    Some(Merged { families, ports, import_type, distribution, has_conflict, members })
}

fn type_of(service: &Service) -> ImportType {
    match service.cluster_ip {
        ClusterIp::Headless => ImportType::Headless,
        ClusterIp::Ip(_) | ClusterIp::Unset => ImportType::ClusterSetIp,
    }
}

fn differ(one: &Service, other: &Service) -> bool {
    let ports = |service: &Service| -> BTreeSet<(SharedStr, i32)> {
        service.ports.iter().map(|port| (port.name.clone(), port.number)).collect()
    };
    ports(one) != ports(other)
        || type_of(one) != type_of(other)
        || one.traffic != other.traffic
        || one.traffic_distribution != other.traffic_distribution
}

impl Merged<'_> {
    /// C6: of several ports, each has a name.
    fn port_name(&self, (name, number): &(SharedStr, i32)) -> SharedStr {
        match name.is_empty() && self.ports.len() > 1 {
            true => format!("port-{number}-tcp").into(),
            false => name.clone(),
        }
    }

    /// C7: the ports of a copy of this slice.
    fn ports_of(&self, service: &Service, slice: &EndpointSlice) -> Vec<EndpointPort> {
        if self.import_type == ImportType::Headless {
            return slice.ports.clone();
        }
        let mut ports = Vec::new();
        for port in &slice.ports {
            let is_of = |one: &&ServicePort| Some(&one.name) == port.name.as_ref();
            let Some(own) = service.ports.iter().find(is_of) else { continue };
            let Some(served) = self.ports.iter().find(|(_, number)| *number == own.number) else {
                continue;
            };
            ports.push(EndpointPort { name: Some(self.port_name(served)), ..port.clone() });
        }
        ports
    }

    fn is_served(&self, address_type: &AddressType) -> bool {
        self.families.iter().any(|family| AddressType::from(*family) == *address_type)
    }

    /// Each copy as text.
    pub fn copies(&self, sites: &[Site], key: &Key) -> Vec<String> {
        let mut copies = Vec::new();
        for member in &self.members {
            for slice in sites[member.site].api.slices.values() {
                if !slice.meta.labels.has(names::SERVICE_NAME, &key.name)
                    || !self.is_served(&slice.address_type)
                {
                    continue;
                }
                let ports = self.ports_of(member.service, slice);
                if !ports.is_empty() {
                    copies.push(self.copy(member.site, slice, &ports));
                }
            }
        }
        copies.sort_unstable();
        copies
    }

    fn copy(&self, site: usize, slice: &EndpointSlice, ports: &[EndpointPort]) -> String {
        let is_valid = |one: &&Endpoint| {
            !one.addresses.iter().any(|ip| **ip == *"127.0.0.1" || **ip == *"::1")
        };
        let endpoints = slice.endpoints.iter().filter(is_valid).map(|one| {
            let (zone, node) = (one.zone.clone(), one.node_name.clone().filter(|_| site == HOME));
            let zones: Vec<SharedStr> = zone.iter().cloned().collect();
            let nodes = match site {
                HOME => node.iter().cloned().collect(),
                _ => vec![format!("{}.clusterset.local", Site::id(site)).into()],
            };
            let hints = match self.distribution.filter(|_| one.conditions.ready == Some(true)) {
                _ if self.import_type == ImportType::Headless => (Vec::new(), Vec::new()),
                None => (Vec::new(), Vec::new()),
                Some(TrafficDistribution::PreferSameNode) => (zones, nodes),
                Some(TrafficDistribution::PreferClose | TrafficDistribution::PreferSameZone) => {
                    (zones, Vec::new())
                }
            };
            endpoint_text(one, node.as_ref(), hints)
        });
        let endpoints: Vec<String> = endpoints.collect();
        let headless = self.import_type == ImportType::Headless;
        copy_text(Site::id(site).as_str(), slice, &endpoints, ports, headless)
    }
}

fn endpoint_text(
    one: &Endpoint,
    node: Option<&SharedStr>,
    (zones, nodes): (Vec<SharedStr>, Vec<SharedStr>),
) -> String {
    let Endpoint { addresses, conditions, zone, .. } = one;
    let conditions = (conditions.ready, conditions.serving, conditions.terminating);
    format!("{addresses:?} {conditions:?} {zone:?} {node:?} {zones:?} {nodes:?}")
}

fn copy_text(
    cluster: &str,
    slice: &EndpointSlice,
    endpoints: &[String],
    ports: &[EndpointPort],
    is_headless: bool,
) -> String {
    format!("{cluster} {} {endpoints:?} {ports:?} {is_headless}", slice.address_type)
}

/// The copies of an import that are stored.
fn stored_copies(home: &Site, key: &Key) -> Vec<String> {
    let derived = derived_name(key);
    let slices = home.api.slices.values().filter(|slice| {
        slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_CLUSTER_IMPORT)
            && slice.meta.labels.has(names::IMPORT_NAME, &key.name)
            && slice.meta.labels.has(names::SERVICE_NAME, &derived)
    });
    let text = |slice: &EndpointSlice| {
        let endpoints: Vec<String> = slice
            .endpoints
            .iter()
            .map(|one| {
                let hints = one.hints.clone().unwrap_or_default();
                endpoint_text(one, one.node_name.as_ref(), (hints.for_zones, hints.for_nodes))
            })
            .collect();
        let cluster = slice.meta.labels.get(names::SOURCE_CLUSTER).cloned().unwrap_or_default();
        let is_headless = slice.meta.labels.contains_key(names::HEADLESS);
        copy_text(&cluster, slice, &endpoints, &slice.ports, is_headless)
    };
    let mut copies: Vec<String> = slices.map(text).collect();
    copies.sort_unstable();
    copies
}

fn compare_key(sites: &[Site], key: &Key) -> Vec<String> {
    let home = &sites[HOME];
    let (import, derived) = (
        home.api.imports.get(key),
        home.api.derived.get(&Key::new(&*key.namespace, derived_name(key))),
    );
    let copies = stored_copies(home, key);
    let mut differences = Vec::new();
    let mut differ = |what: &str, stored: String, wanted: String| {
        if stored != wanted {
            differences.push(format!("{key}: {what}: stored {stored}, wanted {wanted}"));
        }
    };
    let merged = merged(sites, key);
    differ("import", import.is_some().to_string(), merged.is_some().to_string());
    let Some(merged) = merged else {
        differ("copies", format!("{copies:?}"), "[]".to_owned());
        differ("derived Service", derived.is_some().to_string(), "false".to_owned());
        return differences;
    };
    differ("copies", format!("{copies:?}"), format!("{:?}", merged.copies(sites, key)));
    let is_derived = merged.import_type == ImportType::ClusterSetIp;
    differ("derived Service", derived.is_some().to_string(), is_derived.to_string());
    if let Some(import) = import {
        let mut clusters: Vec<String> =
            merged.members.iter().map(|one| Site::id(one.site).to_string()).collect();
        clusters.sort_unstable();
        differ("clusters", format!("{:?}", import.status.clusters), format!("{clusters:?}"));
        let ports: Vec<_> =
            import.spec.ports.iter().map(|port| (port.name.clone(), port.number)).collect();
        differ("ports", format!("{ports:?}"), format!("{:?}", merged.ports));
        let import_type = import.spec.import_type;
        differ("type", import_type.as_str().to_owned(), merged.import_type.as_str().to_owned());
        let n_ips = if is_derived { merged.families.len() } else { 0 };
        differ("addresses", import.spec.ips.len().to_string(), n_ips.to_string());
        let tier = |labels: &endpointd_model::Labels| format!("{:?}", labels.get("tier"));
        let oldest = &merged.members[0].export.labels;
        differ("exported label", tier(&import.meta.labels), tier(oldest));
    }
    if let Some(export) = home.api.exports.get(key) {
        let is_valid = merged.members.iter().any(|one| one.site == HOME);
        let has_conflict = is_valid && merged.has_conflict;
        for (about, wanted) in [("Valid", is_valid), ("Conflict", has_conflict)] {
            let stored = export.conditions.iter().find(|one| *one.condition_type == *about);
            let is_true = stored.is_some_and(|one| one.status == ConditionStatus::True);
            differ(about, is_true.to_string(), wanted.to_string());
        }
    }
    differences
}
