//! The clusters whose exports count, in their order of precedence (E1, E2, M1, C1).

use std::collections::BTreeSet;

use endpointd_model::{
    AddressType, ClusterId, EndpointSlice, Family, Selection, Service, ServiceExport, SharedStr,
    Timestamp, derived_name, names,
};

use super::contact::SourceState;
use super::merge::{Effective, Merged};
use super::{MultiClusterSnapshot, SourceCluster};

/// What an export is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportState {
    NotExported,
    NoService,
    /// ExternalName.
    InvalidServiceType,
    Valid,
}

/// What a plan made of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceReport {
    pub cluster: ClusterId,
    pub state: SourceState,
    pub export: ExportState,
    pub exported_since: Option<Timestamp>,
    /// It has no address family that all clusters before it have.
    pub is_passed_over: bool,
    /// Ports that an older export defines otherwise.
    pub left_out_ports: Vec<SharedStr>,
    /// Families whose endpoints are not ready because the cluster is lost.
    pub demoted: Vec<Family>,
    pub n_slices: usize,
    pub n_endpoints: usize,
    pub n_ready: usize,
}

/// A cluster with a valid export.
pub struct Member<'a> {
    pub cluster: &'a SourceCluster<'a>,
    pub export: &'a ServiceExport,
    pub service: &'a Service,
    pub place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Home,
    Remote,
}

pub struct Members<'a> {
    snapshot: &'a MultiClusterSnapshot<'a>,
    /// The oldest export first.
    pub list: Vec<Member<'a>>,
    /// Clusters of unknown state that the published objects name. What is published of them stays.
    pub unseen: BTreeSet<SharedStr>,
}

impl<'a> Members<'a> {
    pub fn of(snapshot: &'a MultiClusterSnapshot<'a>) -> Self {
        let home = std::iter::once((&snapshot.home, Place::Home));
        let clusters = home.chain(snapshot.remotes.iter().map(|one| (one, Place::Remote)));
        let mut list: Vec<Member> =
            clusters.filter_map(|(cluster, place)| Member::of(cluster, place)).collect();
        // Timestamps have whole seconds. An object of a file may have none; it counts as newest.
        let created = |member: &Member| member.export.meta.created.unwrap_or(Timestamp::MAX);
        list.sort_by(|a, b| (created(a), a.id()).cmp(&(created(b), b.id())));
        Self { snapshot, list, unseen: unseen(snapshot) }
    }

    pub fn clusters(&self) -> impl Iterator<Item = &'a ClusterId> {
        self.list.iter().map(|member| member.cluster.id)
    }

    /// Whether the slice has endpoints of a cluster that is unknown now.
    pub fn is_unseen(&self, slice: &EndpointSlice) -> bool {
        let cluster = slice.meta.labels.get(names::SOURCE_CLUSTER);
        cluster.is_some_and(|cluster| is_unknown(self.snapshot, cluster))
    }

    /// Whether slices of this import have endpoints of unknown clusters.
    pub fn has_unseen_slices(&self) -> bool {
        self.published().any(|slice| self.is_unseen(slice))
    }

    fn published(&self) -> impl Iterator<Item = &'a EndpointSlice> {
        let snapshot = self.snapshot;
        let derived = derived_name(&snapshot.key);
        let slices = snapshot.slices.iter().copied();
        slices.filter(move |slice| is_of_import(snapshot, &derived, slice))
    }

    fn published_families(&self) -> Vec<Family> {
        let derived = self.snapshot.derived.iter().flat_map(|service| &service.families).copied();
        let mut families: Vec<Family> = derived.collect();
        for family in self.published().filter_map(|slice| family(&slice.address_type)) {
            if !families.contains(&family) {
                families.push(family);
            }
        }
        families
    }

    /// While the lists of a cluster that counts are unknown, the import stays as it is.
    pub fn effective(&self, merged: &Merged, snapshot: &MultiClusterSnapshot) -> Effective {
        match snapshot.import {
            Some(import) if !self.unseen.is_empty() => {
                Effective::observed(&import.spec, &self.published_families())
            }
            Some(_) | None => Effective::merged(merged, snapshot.refused_families),
        }
    }

    /// Of the clusters that export, that are unknown, and of this one. What is published is added
    /// later.
    pub fn reports(&self, merged: Option<&Merged>) -> Vec<SourceReport> {
        let snapshot = self.snapshot;
        let mut remotes: Vec<&SourceCluster> = snapshot.remotes.iter().collect();
        remotes.sort_by_key(|cluster| cluster.id);
        let is_reported = |cluster: &&SourceCluster| {
            cluster.export.is_some() || cluster.state == SourceState::Unknown
        };
        let clusters =
            std::iter::once(&snapshot.home).chain(remotes.into_iter().filter(is_reported));
        let report = |cluster: &SourceCluster| SourceReport {
            cluster: cluster.id.clone(),
            state: cluster.state,
            export: export_state(cluster),
            exported_since: cluster.export.and_then(|export| export.meta.created),
            is_passed_over: merged.is_some_and(|merged| merged.passed_over.contains(cluster.id)),
            left_out_ports: Vec::new(),
            demoted: Vec::new(),
            n_slices: 0,
            n_endpoints: 0,
            n_ready: 0,
        };
        clusters.map(report).collect()
    }
}

impl<'a> Member<'a> {
    fn of(cluster: &'a SourceCluster<'a>, place: Place) -> Option<Self> {
        match cluster.state {
            SourceState::InSync | SourceState::Lost { .. } | SourceState::Demoted { .. } => {}
            SourceState::Unknown | SourceState::Expired | SourceState::Removed => return None,
        }
        if export_state(cluster) != ExportState::Valid {
            return None;
        }
        Some(Self { cluster, export: cluster.export?, service: cluster.service?, place })
    }

    pub fn id(&self) -> &'a ClusterId {
        self.cluster.id
    }
}

/// An export that is being deleted exports nothing (E3).
pub fn export_state(cluster: &SourceCluster) -> ExportState {
    let is_exported = cluster.export.is_some_and(|export| !export.meta.is_deleting());
    match cluster.service.map(Service::selection) {
        _ if !is_exported => ExportState::NotExported,
        None => ExportState::NoService,
        Some(Selection::External) => ExportState::InvalidServiceType,
        Some(Selection::Pods(_) | Selection::Manual) => ExportState::Valid,
    }
}

/// None for an addressType that no Service has.
pub fn family(address_type: &AddressType) -> Option<Family> {
    match address_type {
        AddressType::IPv4 => Some(Family::V4),
        AddressType::IPv6 => Some(Family::V6),
        AddressType::Fqdn | AddressType::Other(_) => None,
    }
}

fn unseen(snapshot: &MultiClusterSnapshot) -> BTreeSet<SharedStr> {
    let listed = snapshot.import.iter().flat_map(|import| &import.status.clusters);
    let derived = derived_name(&snapshot.key);
    let ours = snapshot.slices.iter().filter(|slice| is_of_import(snapshot, &derived, slice));
    let published = ours.filter_map(|slice| slice.meta.labels.get(names::SOURCE_CLUSTER));
    listed.chain(published).filter(|id| is_unknown(snapshot, id)).cloned().collect()
}

fn is_of_import(snapshot: &MultiClusterSnapshot, derived: &str, slice: &EndpointSlice) -> bool {
    let labels = &slice.meta.labels;
    slice.meta.namespace == snapshot.key.namespace
        && labels.has(names::MANAGED_BY, names::MANAGED_BY_CLUSTER_IMPORT)
        && (labels.has(names::IMPORT_NAME, &snapshot.key.name)
            || labels.has(names::SERVICE_NAME, derived))
}

fn is_unknown(snapshot: &MultiClusterSnapshot, id: &str) -> bool {
    let unknown = |cluster: &&SourceCluster| cluster.state == SourceState::Unknown;
    snapshot.remotes.iter().filter(unknown).any(|cluster| cluster.id.as_str() == id)
}
