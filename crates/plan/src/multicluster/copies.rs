//! The slices of an import: one for each slice of a member that has a port left (M7, S1–S5).

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{
    ClusterId, DeleteTarget, Endpoint, EndpointSlice, Family, Hints, ImportType, Labels, Meta,
    Object, PublishedResource, ServiceImport, SharedStr, TrafficDistribution, Write, derived_name,
    names,
};

use super::contact::SourceState;
use super::derived::owner;
use super::members::{Member, Members, Place, SourceReport, family};
use super::merge::Effective;
use super::ports::PortMap;
use super::{MultiClusterSnapshot, Zones, freshness};
use crate::import::is_allowed;
use crate::observed_copies::{CopyOwner, ObservedCopies};
use crate::packing::reuse_name_of;
use crate::slice_names::imported_name_of_cluster;

pub struct Copies<'a> {
    copies: Vec<Copy<'a>>,
    demoted: BTreeSet<(ClusterId, Family)>,
    left_out_ports: BTreeMap<&'a ClusterId, Vec<SharedStr>>,
}

pub struct Copy<'a> {
    pub member: &'a Member<'a>,
    pub family: Family,
    source: &'a EndpointSlice,
    /// Without name.
    pub slice: EndpointSlice,
}

/// An address that two clusters have: at most one of them is right.
pub struct Overlap {
    pub address: SharedStr,
    pub clusters: [SharedStr; 2],
    pub n_more: usize,
}

impl<'a> Copies<'a> {
    pub fn of(
        snapshot: &MultiClusterSnapshot,
        members: &'a Members<'a>,
        effective: &Effective,
        import: &ServiceImport,
    ) -> Self {
        let meta = meta(snapshot, effective, import);
        let mut copies = Vec::new();
        let mut left_out_ports = BTreeMap::new();
        for member in &members.list {
            let ports = PortMap::new(member.service, effective);
            for source in sources(snapshot, member) {
                let Some(family) = family(&source.address_type) else { continue };
                if !effective.families.contains(&family) {
                    continue;
                }
                let slice = copy(source, member, &meta, &ports);
                copies.extend(slice.map(|slice| Copy { member, family, source, slice }));
            }
            left_out_ports.insert(member.id(), ports.left_out);
        }
        let demoted = freshness::demoted(&copies, snapshot.settings.fresh_percent_min);
        for copy in &mut copies {
            let is_demoted = demoted.contains(&(copy.member.id().clone(), copy.family));
            for endpoint in &mut copy.slice.endpoints {
                if is_demoted {
                    demote(endpoint);
                }
                endpoint.hints = hints(endpoint, copy.member, effective);
            }
        }
        Self { copies, demoted, left_out_ports }
    }

    pub fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// The lost clusters whose endpoints are not ready therefore, with the time they were seen last.
    pub fn demoted(&self) -> Vec<String> {
        let members = self.copies.iter().map(|copy| (copy.member.id(), copy.member.cluster.state));
        let states: BTreeMap<&ClusterId, SourceState> = members.collect();
        let ids: BTreeSet<&ClusterId> = self.demoted.iter().map(|(id, _)| id).collect();
        let text = |id: &ClusterId| match states.get(id) {
            Some(SourceState::Demoted { last_contact: Some(at) }) => {
                format!("{id} last seen {at:.0}, demoted")
            }
            Some(_) | None => format!("{id} demoted"),
        };
        ids.into_iter().map(text).collect()
    }

    pub fn overlap(&self) -> Option<Overlap> {
        let mut seen: BTreeMap<&SharedStr, &ClusterId> = BTreeMap::new();
        let mut found: BTreeMap<&SharedStr, [&ClusterId; 2]> = BTreeMap::new();
        for copy in &self.copies {
            let id = copy.member.id();
            for address in copy.slice.endpoints.iter().flat_map(|one| &one.addresses) {
                let first = *seen.entry(address).or_insert(id);
                if first != id {
                    found.insert(address, [first.min(id), first.max(id)]);
                }
            }
        }
        let n_more = found.len().saturating_sub(1);
        let (address, clusters) = found.into_iter().next()?;
        let clusters = clusters.map(|id| SharedStr::from(id.as_str()));
        Some(Overlap { address: address.clone(), clusters, n_more })
    }

    pub fn report(&self, reports: &mut [SourceReport]) {
        for report in reports {
            let copies = || self.copies.iter().filter(|copy| *copy.member.id() == report.cluster);
            let endpoints = || copies().flat_map(|copy| &copy.slice.endpoints);
            report.n_slices = copies().count();
            report.n_endpoints = endpoints().count();
            report.n_ready = endpoints().filter(|endpoint| endpoint.is_ready()).count();
            let of_cluster = self.demoted.iter().filter(|(id, _)| *id == report.cluster);
            report.demoted = of_cluster.map(|(_, family)| *family).collect();
            report.left_out_ports =
                self.left_out_ports.get(&report.cluster).cloned().unwrap_or_default();
        }
    }

    /// The writes that lead from the observed slices to these.
    pub fn writes(
        self,
        snapshot: &MultiClusterSnapshot,
        members: &Members,
        import: &ServiceImport,
    ) -> Vec<Write> {
        let derived = derived_name(&snapshot.key);
        let owner = CopyOwner {
            namespace: &snapshot.key.namespace,
            manager: names::MANAGED_BY_CLUSTER_IMPORT,
            name_labels: &name_labels(snapshot, &derived),
            uid: Some(&import.meta.uid),
        };
        let name = |copy: &Copy, ordinal| {
            imported_name_of_cluster(&derived, copy.member.id(), copy.source, ordinal)
        };
        let mut observed = ObservedCopies::of(&owner, &snapshot.slices, &self.copies, name);
        observed.leave(|slice| members.is_unseen(slice));
        let mut writes = Vec::new();
        for copy in self.copies {
            let address_type = &copy.source.address_type;
            match observed.copy_or_name(address_type, |ordinal| name(&copy, ordinal)) {
                Ok(old) => writes.extend(update(old, copy.slice)),
                Err(name) => {
                    let mut slice = copy.slice;
                    slice.meta.name = name;
                    writes.push(Write::Create(Object::Slice(slice)));
                }
            }
        }
        writes.extend(observed.rest().map(delete));
        writes
    }
}

/// The deletion of all slices of the key that are ours, except those of unknown clusters.
pub fn all_deleted(snapshot: &MultiClusterSnapshot, members: Option<&Members>) -> Vec<Write> {
    let derived = derived_name(&snapshot.key);
    let owner = CopyOwner {
        namespace: &snapshot.key.namespace,
        manager: names::MANAGED_BY_CLUSTER_IMPORT,
        name_labels: &name_labels(snapshot, &derived),
        uid: snapshot.import.map(|import| &import.meta.uid),
    };
    let no_sources: [(); 0] = [];
    let mut observed =
        ObservedCopies::of(&owner, &snapshot.slices, &no_sources, |(), _| SharedStr::default());
    observed.leave(|slice| members.is_some_and(|members| members.is_unseen(slice)));
    observed.rest().map(delete).collect()
}

fn name_labels<'s>(
    snapshot: &'s MultiClusterSnapshot,
    derived: &'s str,
) -> [(&'static str, &'s str); 2] {
    [(names::IMPORT_NAME, &snapshot.key.name), (names::SERVICE_NAME, derived)]
}

fn delete(slice: &EndpointSlice) -> Write {
    Write::Delete(DeleteTarget::of(PublishedResource::Slices, &slice.meta))
}

/// Imported slices are not exported again, so there are no loops.
fn sources<'a>(snapshot: &MultiClusterSnapshot, member: &Member<'a>) -> Vec<&'a EndpointSlice> {
    let is_source = |slice: &&&EndpointSlice| {
        let EndpointSlice { meta, .. } = slice;
        meta.namespace == snapshot.key.namespace
            && meta.labels.has(names::SERVICE_NAME, &snapshot.key.name)
            && !meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_CLUSTER_IMPORT)
            && !meta.labels.contains_key(names::IMPORT_NAME)
    };
    let mut sources: Vec<&EndpointSlice> =
        member.cluster.slices.iter().filter(is_source).copied().collect();
    sources.sort_by(|a, b| a.meta.name.cmp(&b.meta.name));
    sources
}

/// The metadata of every slice. Labels are only ours: kube-proxy reads the name of the derived
/// Service, CoreDNS that of the import and the cluster.
fn meta(snapshot: &MultiClusterSnapshot, effective: &Effective, import: &ServiceImport) -> Meta {
    let derived = derived_name(&snapshot.key);
    let headless = (effective.import_type == ImportType::Headless).then_some((names::HEADLESS, ""));
    let labels: Labels = [
        (names::SERVICE_NAME, derived.as_ref()),
        (names::IMPORT_NAME, snapshot.key.name.as_ref()),
        (names::MANAGED_BY, names::MANAGED_BY_CLUSTER_IMPORT),
    ]
    .into_iter()
    .chain(headless)
    .collect();
    Meta {
        namespace: snapshot.key.namespace.clone(),
        labels,
        owners: vec![owner(snapshot, import)],
        ..Meta::default()
    }
}

fn copy(
    source: &EndpointSlice,
    member: &Member,
    meta: &Meta,
    ports: &PortMap,
) -> Option<EndpointSlice> {
    let ports = ports.ports_of(source)?;
    let trigger_time = source.meta.annotations.get(names::TRIGGER_TIME);
    let annotations = trigger_time
        .map(|time| (names::TRIGGER_TIME, time.as_ref()))
        .into_iter()
        .chain([(names::SOURCE_SLICE, source.meta.name.as_ref())]);
    // The API server would reject the whole slice because of one such address (B9).
    let is_valid = |endpoint: &&Endpoint| endpoint.addresses.iter().all(is_allowed);
    let endpoints = source.endpoints.iter().filter(is_valid).map(|one| endpoint(one, member));
    Some(EndpointSlice {
        meta: Meta {
            labels: meta.labels.with(names::SOURCE_CLUSTER, Some(member.id().as_str())),
            annotations: annotations.collect(),
            ..meta.clone()
        },
        address_type: source.address_type.clone(),
        endpoints: endpoints.collect(),
        ports,
    })
}

/// Nodes and pods of another cluster mean nothing here: kube-proxy compares node names, Istio looks
/// for the pod.
fn endpoint(source: &Endpoint, member: &Member) -> Endpoint {
    let Endpoint {
        addresses,
        conditions,
        hostname,
        node_name,
        target_ref,
        zone,
        hints: _,
        deprecated_topology,
    } = source;
    let is_home = member.place == Place::Home;
    Endpoint {
        addresses: addresses.clone(),
        conditions: *conditions,
        hostname: hostname.clone(),
        node_name: node_name.clone().filter(|_| is_home),
        target_ref: target_ref.clone().filter(|_| is_home),
        zone: zone.as_ref().and_then(|zone| zone_here(zone, member)),
        hints: None,
        deprecated_topology: if is_home { deprecated_topology.clone() } else { Labels::default() },
    }
}

/// M8. A zone is the value of a label, and so must its name be here.
fn zone_here(zone: &SharedStr, member: &Member) -> Option<SharedStr> {
    const LABEL_VALUE_LEN_MAX: usize = 63;
    match member.cluster.zones {
        _ if member.place == Place::Home => Some(zone.clone()),
        Zones::Keep => Some(zone.clone()),
        Zones::Drop => None,
        Zones::Prefix => {
            let prefixed = format!("{}.{zone}", member.id());
            (prefixed.len() <= LABEL_VALUE_LEN_MAX).then(|| prefixed.into())
        }
    }
}

/// Serving and terminating stay as they were seen last; an absent `serving` means what `ready` does.
fn demote(endpoint: &mut Endpoint) {
    let conditions = &mut endpoint.conditions;
    conditions.serving = conditions.serving.or(Some(conditions.ready != Some(false)));
    conditions.ready = Some(false);
}

/// Decided for the derived Service, endpoint by endpoint, as upstream does for a Service. kube-proxy
/// obeys node hints only if every ready endpoint has one, so a remote endpoint gets a name that no node
/// here has.
fn hints(endpoint: &Endpoint, member: &Member, effective: &Effective) -> Option<Hints> {
    if effective.import_type == ImportType::Headless || !endpoint.is_ready() {
        return None;
    }
    let distribution = effective.traffic_distribution?;
    let for_nodes = match (distribution, member.place) {
        (TrafficDistribution::PreferClose | TrafficDistribution::PreferSameZone, _) => Vec::new(),
        (TrafficDistribution::PreferSameNode, Place::Home) => {
            endpoint.node_name.iter().cloned().collect()
        }
        (TrafficDistribution::PreferSameNode, Place::Remote) => {
            vec![format!("{}.clusterset.local", member.id()).into()]
        }
    };
    let hints = Hints { for_zones: endpoint.zone.iter().cloned().collect(), for_nodes };
    (hints != Hints::default()).then_some(hints)
}

/// None if only annotations differ: they alone are no reason to write.
fn update(observed: &EndpointSlice, slice: EndpointSlice) -> Option<Write> {
    let is_current = observed.meta.labels == slice.meta.labels
        && observed.meta.owners == slice.meta.owners
        && observed.ports == slice.ports
        && observed.endpoints == slice.endpoints;
    let update = || Object::Slice(reuse_name_of(observed, slice));
    (!is_current).then(|| Write::Update(update()))
}
