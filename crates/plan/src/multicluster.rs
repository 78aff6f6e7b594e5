//! Plans one Service over many clusters (docs/spec.md, section 11): merges what the clusters export,
//! and publishes it in this one. Upstream's controllers have nothing like it; the rules are those of
//! the Multi-Cluster Services API (KEP-1645).

mod contact;
mod copies;
mod derived;
mod freshness;
mod members;
mod merge;
mod metadata;
mod ports;
mod state;
mod status;
mod text;

use std::collections::BTreeSet;

use endpointd_model::{
    ClusterId, DeleteTarget, DerivedService, EndpointSlice, Family, Key, MultiClusterObject,
    MultiClusterResource, MultiClusterVersion, Object, PublishedResource, Service, ServiceExport,
    ServiceImport, SharedStr, Timestamp, Write, names,
};

pub use self::contact::{
    Access, Contact, ContactLimits, Knowledge, KubeconfigFile, SourceState, source_states,
};
use self::copies::Copies;
use self::derived::{Derived, derived_service};
use self::members::Members;
pub use self::members::{ExportState, SourceReport};
pub use self::merge::{Conflict, ConflictKind};
use self::merge::{Merged, merge};
pub use self::state::{ClusterObjects, ClusterSetState};
pub use self::text::{multicluster_text, write_summary};

/// Input of [`multicluster`].
#[derive(Clone, Debug)]
pub struct MultiClusterSnapshot<'a> {
    pub key: Key,
    /// For the transition times of conditions.
    pub now: Timestamp,
    pub namespace: ImportNamespace,
    /// This cluster.
    pub home: SourceCluster<'a>,
    pub remotes: Vec<SourceCluster<'a>>,
    /// The import of this key in this cluster.
    pub import: Option<&'a ServiceImport>,
    /// The Service of this cluster that has the derived name.
    pub derived: Option<&'a DerivedService>,
    /// The slices of the namespace in this cluster that have the name of the import as label, or a
    /// name that a new slice could want.
    pub slices: Vec<&'a EndpointSlice>,
    /// Families that this cluster's API server refused for the derived Service.
    pub refused_families: &'a BTreeSet<Family>,
    pub settings: &'a MultiClusterSettings,
}

/// What one cluster says about the key.
#[derive(Clone, Debug)]
pub struct SourceCluster<'a> {
    pub id: &'a ClusterId,
    pub state: SourceState,
    pub export: Option<&'a ServiceExport>,
    pub service: Option<&'a Service>,
    /// The slices with the Service's name as service-name label, whichever controller manages them.
    pub slices: Vec<&'a EndpointSlice>,
    pub zones: Zones,
}

/// What becomes of the zones of a cluster's endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zones {
    /// Equal names are the same place.
    #[default]
    Keep,
    Drop,
    /// With the id of the cluster: equal names are different places.
    Prefix,
}

/// The namespace of the import in this cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImportNamespace {
    Missing,
    Terminating,
    /// The settings exclude it.
    Excluded,
    #[default]
    Included,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiClusterSettings {
    /// The version of the API that this cluster serves.
    pub version: MultiClusterVersion,
    /// Endpoints of a lost cluster are demoted if at least this many percent of all ready endpoints
    /// are in clusters that are in sync.
    pub fresh_percent_min: usize,
    pub adoption: Adoption,
}

/// What becomes of imports that another implementation manages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Adoption {
    #[default]
    LeaveForeign,
    /// The derived Service keeps its name, so clients keep their address.
    Adopt,
}

impl Default for MultiClusterSettings {
    fn default() -> Self {
        Self {
            version: MultiClusterVersion::default(),
            fresh_percent_min: 50,
            adoption: Adoption::default(),
        }
    }
}

/// The writes for one key, and what else planning found out. The writes of one plan do not depend
/// on each other; those that must wait for them come in the next plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MultiClusterPlan {
    pub writes: Vec<Write>,
    pub conflicts: Vec<Conflict>,
    /// This cluster first, then by id.
    pub sources: Vec<SourceReport>,
}

/// Plans the import of one key, and the status of this cluster's export.
pub fn multicluster(snapshot: &MultiClusterSnapshot) -> MultiClusterPlan {
    match snapshot.namespace {
        // The API server deletes what is there and rejects what is new.
        ImportNamespace::Missing | ImportNamespace::Terminating => {
            return MultiClusterPlan::default();
        }
        ImportNamespace::Included | ImportNamespace::Excluded => {}
    }
    let members = Members::of(snapshot);
    let merged = merge(&members);
    let mut plan = MultiClusterPlan {
        conflicts: merged.as_ref().map_or_else(Vec::new, |merged| merged.conflicts.clone()),
        sources: members.reports(merged.as_ref()),
        writes: Vec::new(),
    };
    let foreign = is_foreign(snapshot);
    plan.writes.extend(status::export_write(snapshot, &members, merged.as_ref(), foreign));
    let is_being_deleted = snapshot.import.is_some_and(|import| import.meta.is_deleting());
    if foreign == Foreign::Import || is_being_deleted {
        return plan;
    }
    let is_excluded = snapshot.namespace == ImportNamespace::Excluded;
    match merged {
        Some(merged) if !is_excluded => publish(snapshot, &members, &merged, &mut plan),
        // The others export no more, but the import may have to stay.
        None if !is_excluded && !members.unseen.is_empty() => {
            plan.writes.extend(copies::all_deleted(snapshot, Some(&members)));
        }
        Some(_) | None => plan.writes.extend(removal(snapshot)),
    }
    plan
}

/// Whose object stands where ours would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Foreign {
    Nothing,
    Import,
}

/// An import without our label is ours all the same if what we made for it is there: somebody has
/// edited the label.
fn is_foreign(snapshot: &MultiClusterSnapshot) -> Foreign {
    let Some(import) = snapshot.import else { return Foreign::Nothing };
    let is_labelled = import.meta.labels.has(names::APP_MANAGED_BY, names::ENDPOINTD);
    let mut ours = snapshot
        .slices
        .iter()
        .filter(|slice| slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_CLUSTER_IMPORT));
    let has_ours = ours.any(|slice| slice.meta.owners.iter().any(|one| one.uid == import.meta.uid));
    match snapshot.settings.adoption {
        Adoption::LeaveForeign if !is_labelled && !has_ours => Foreign::Import,
        Adoption::LeaveForeign | Adoption::Adopt => Foreign::Nothing,
    }
}

/// M12: the import first, because the others are owned by it; then the derived Service and the
/// slices; then the addresses of the import; its status last.
fn publish(
    snapshot: &MultiClusterSnapshot,
    members: &Members,
    merged: &Merged,
    plan: &mut MultiClusterPlan,
) {
    let effective = members.effective(merged, snapshot);
    let derived = derived_service(snapshot, &effective);
    let wanted = metadata::wanted_import(snapshot, merged, &effective, &derived);
    let Some(import) = snapshot.import else {
        plan.writes.push(Write::Create(object(MultiClusterObject::Import(wanted))));
        return;
    };
    let copies = Copies::of(snapshot, members, &effective, import);
    copies.report(&mut plan.sources);
    let status = status::of_import(snapshot, members, &copies, &derived, &effective);
    let slices = copies.writes(snapshot, members, import);
    let mut must_wait = false;
    if (&wanted.meta, &wanted.spec) != (&import.meta, &import.spec) {
        plan.writes.push(Write::Update(object(MultiClusterObject::Import(wanted))));
        must_wait = true;
    }
    let before = plan.writes.len();
    plan.writes.extend(derived_write(&derived));
    must_wait |= plan.writes.len() > before;
    must_wait |= slices.iter().any(|write| !matches!(write, Write::Update(_)));
    let slices_change = !slices.is_empty();
    plan.writes.extend(slices);
    // Clients use the old one until the new is there.
    if let Derived::Delete(target) = derived {
        if !must_wait && !slices_change {
            plan.writes.push(Write::Delete(target));
        }
        return;
    }
    if !must_wait && status != import.status {
        let import = ServiceImport { status, ..import.clone() };
        plan.writes.push(Write::Update(object(MultiClusterObject::ImportStatus(import))));
    }
}

fn derived_write(derived: &Derived) -> Option<Write> {
    let object = |service: &DerivedService| object(MultiClusterObject::Derived(service.clone()));
    match derived {
        Derived::Create(service) => Some(Write::Create(object(service))),
        Derived::Update(service) => Some(Write::Update(object(service))),
        Derived::Unneeded
        | Derived::Keep(_)
        | Derived::Delete(_)
        | Derived::BeingDeleted
        | Derived::Foreign => None,
    }
}

fn object(object: MultiClusterObject) -> Object {
    Object::MultiCluster(object)
}

/// M2, M12: slices, then the derived Service, then the import; each when the former are gone.
fn removal(snapshot: &MultiClusterSnapshot) -> Vec<Write> {
    let slices = copies::all_deleted(snapshot, None);
    if !slices.is_empty() {
        return slices;
    }
    if let Some(target) = derived::deleted(snapshot) {
        return vec![Write::Delete(target)];
    }
    let import = snapshot.import.map(|import| {
        let resource = PublishedResource::MultiCluster(MultiClusterResource::Imports);
        Write::Delete(DeleteTarget::of(resource, &import.meta))
    });
    import.into_iter().collect()
}

/// `kubernetes.io`, `k8s.io`, their subdomains, and our own domain: labels and annotations with such
/// a prefix mean something to programs, so they are not taken over from another cluster.
fn is_reserved(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    let is_in = |reserved: &str| {
        domain.strip_suffix(reserved).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    domain == names::ENDPOINTD || is_in("kubernetes.io") || is_in("k8s.io")
}

/// Texts joined as in a sentence.
fn listed<'a>(texts: impl IntoIterator<Item = &'a SharedStr>) -> String {
    let texts: Vec<&str> = texts.into_iter().map(AsRef::as_ref).collect();
    texts.join(", ")
}
