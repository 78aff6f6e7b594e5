//! The derived Service: without selector, it gives the import addresses that kube-proxy serves (M5).

use endpointd_model::{
    DeleteTarget, DerivedService, Family, ImportType, Labels, Meta, MultiClusterResource, OwnerRef,
    PublishedResource, ServiceImport, SharedStr, derived_name, names,
};

use super::merge::Effective;
use super::ports;
use super::{Adoption, MultiClusterSnapshot};

const DERIVED: PublishedResource = PublishedResource::MultiCluster(MultiClusterResource::Derived);

/// What becomes of the derived Service.
#[derive(Clone, Debug, PartialEq)]
pub enum Derived {
    /// The import needs none, and there is none.
    Unneeded,
    Create(DerivedService),
    Update(DerivedService),
    Keep(DerivedService),
    /// It is not needed, or it must be created again.
    Delete(DeleteTarget),
    /// It must be gone before another can be created.
    BeingDeleted,
    /// Somebody else's Service has the name.
    Foreign,
}

impl Derived {
    /// The addresses of the import, in the order of its families.
    pub fn addresses(&self) -> Option<(&[Family], &[SharedStr])> {
        let service = match self {
            Self::Update(service) | Self::Keep(service) => service,
            Self::Unneeded
            | Self::Create(_)
            | Self::Delete(_)
            | Self::BeingDeleted
            | Self::Foreign => return None,
        };
        let DerivedService { families, cluster_ips, .. } = service;
        let n = families.len().min(cluster_ips.len());
        (n > 0).then(|| (&families[..n], &cluster_ips[..n]))
    }
}

pub fn derived_service(snapshot: &MultiClusterSnapshot, effective: &Effective) -> Derived {
    let is_needed =
        effective.import_type == ImportType::ClusterSetIp && !effective.families.is_empty();
    let Some(observed) = snapshot.derived else {
        return match snapshot.import {
            Some(import) if is_needed => {
                Derived::Create(wanted(snapshot, effective, import, &DerivedService::default()))
            }
            Some(_) | None => Derived::Unneeded,
        };
    };
    if !is_ours(snapshot, observed) {
        return if is_needed { Derived::Foreign } else { Derived::Unneeded };
    }
    if observed.meta.is_deleting() {
        return Derived::BeingDeleted;
    }
    // The API server lets nobody change the first family.
    let first = observed.families.first();
    let can_stay = first.is_none_or(|first| effective.families.contains(first));
    match snapshot.import {
        Some(import) if is_needed && can_stay => {
            let wanted = wanted(snapshot, effective, import, observed);
            match wanted == *observed {
                true => Derived::Keep(wanted),
                false => Derived::Update(wanted),
            }
        }
        // The new import must be there first.
        None if is_needed => Derived::Unneeded,
        Some(_) | None => Derived::Delete(DeleteTarget::of(DERIVED, &observed.meta)),
    }
}

/// The derived Service that must go because nobody exports, if it is ours.
pub fn deleted(snapshot: &MultiClusterSnapshot) -> Option<DeleteTarget> {
    let observed = snapshot.derived?;
    let is_deletable = is_ours(snapshot, observed) && !observed.meta.is_deleting();
    is_deletable.then(|| DeleteTarget::of(DERIVED, &observed.meta))
}

fn is_ours(snapshot: &MultiClusterSnapshot, service: &DerivedService) -> bool {
    let DerivedService { meta, .. } = service;
    let is_of_import = meta.labels.has(names::IMPORT_NAME, &snapshot.key.name);
    let is_labelled = is_of_import && meta.labels.has(names::APP_MANAGED_BY, names::ENDPOINTD);
    let is_owned = snapshot.import.is_some_and(|import| {
        !import.meta.uid.is_empty() && meta.owners.iter().any(|one| one.uid == import.meta.uid)
    });
    let is_adopted = snapshot.settings.adoption == Adoption::Adopt && is_of_import;
    is_labelled || is_owned || is_adopted
}

/// What is observed stays where the import does not determine it: other labels, addresses, and the
/// order of families.
fn wanted(
    snapshot: &MultiClusterSnapshot,
    effective: &Effective,
    import: &ServiceImport,
    observed: &DerivedService,
) -> DerivedService {
    let ours: Labels =
        [(names::IMPORT_NAME, &*snapshot.key.name), (names::APP_MANAGED_BY, names::ENDPOINTD)]
            .into_iter()
            .collect();
    let labels = ours
        .iter()
        .fold(observed.meta.labels.clone(), |labels, (key, value)| labels.with(key, Some(value)));
    let owner = owner(snapshot, import);
    let meta = Meta {
        namespace: snapshot.key.namespace.clone(),
        name: derived_name(&snapshot.key),
        labels,
        owners: match observed.meta.owners.contains(&owner) {
            true => observed.meta.owners.clone(),
            false => vec![owner],
        },
        ..observed.meta.clone()
    };
    let kept: Vec<Family> =
        observed.families.iter().filter(|one| effective.families.contains(one)).copied().collect();
    let added = effective.families.iter().filter(|one| !kept.contains(one));
    let addresses = observed.families.iter().zip(&observed.cluster_ips);
    let cluster_ips =
        addresses.filter(|(family, _)| kept.contains(family)).map(|(_, ip)| ip.clone()).collect();
    DerivedService {
        meta,
        ports: ports::of_service(&effective.ports),
        families: kept.iter().chain(added).copied().collect(),
        cluster_ips,
        traffic: effective.traffic,
        traffic_distribution: effective.traffic_distribution,
    }
}

/// Without blockOwnerDeletion, which needs a permission on the import where the admission plugin
/// OwnerReferencesPermissionEnforcement is on.
pub fn owner(snapshot: &MultiClusterSnapshot, import: &ServiceImport) -> OwnerRef {
    OwnerRef {
        api_version: snapshot.settings.version.api_version().into(),
        kind: "ServiceImport".into(),
        name: import.meta.name.clone(),
        uid: import.meta.uid.clone(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}
