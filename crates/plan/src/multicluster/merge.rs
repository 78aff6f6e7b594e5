//! One Service of many: which value of each field counts, and who disagrees (C rules).

use std::collections::BTreeSet;
use std::fmt;

use endpointd_model::{
    Annotations, ClusterId, Family, ImportPort, ImportType, Labels, Service, ServiceImportSpec,
    ServiceTraffic, SessionAffinity, TrafficDistribution,
};

use super::members::{Member, Members};
use super::{is_reserved, ports};
use crate::slices;

/// The fields of the import as all exports together determine them.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    pub spec: ServiceImportSpec,
    pub labels: Labels,
    pub annotations: Annotations,
    pub conflicts: Vec<Conflict>,
    pub passed_over: BTreeSet<ClusterId>,
}

/// A field that the exports define differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub kind: ConflictKind,
    /// The value that counts, as text.
    pub value: String,
    /// The cluster with the oldest export.
    pub oldest: ClusterId,
    pub n_disagree: usize,
    pub n_clusters: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConflictKind {
    Port,
    Type,
    SessionAffinity,
    SessionAffinityConfig,
    Annotations,
    Labels,
    InternalTrafficPolicy,
    TrafficDistribution,
    IpFamily,
}

impl ConflictKind {
    pub const ALL: [Self; 9] = [
        Self::Port,
        Self::Type,
        Self::SessionAffinity,
        Self::SessionAffinityConfig,
        Self::Annotations,
        Self::Labels,
        Self::InternalTrafficPolicy,
        Self::TrafficDistribution,
        Self::IpFamily,
    ];

    /// The reason of the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Port => "PortConflict",
            Self::Type => "TypeConflict",
            Self::SessionAffinity => "SessionAffinityConflict",
            Self::SessionAffinityConfig => "SessionAffinityConfigConflict",
            Self::Annotations => "AnnotationsConflict",
            Self::Labels => "LabelsConflict",
            Self::InternalTrafficPolicy => "InternalTrafficPolicyConflict",
            Self::TrafficDistribution => "TrafficDistributionConflict",
            Self::IpFamily => "IPFamilyConflict",
        }
    }

    fn field(self) -> &'static str {
        match self {
            Self::Port => "ports",
            Self::Type => "type",
            Self::SessionAffinity => "session affinity",
            Self::SessionAffinityConfig => "session affinity timeout",
            Self::Annotations => "exported annotations",
            Self::Labels => "exported labels",
            Self::InternalTrafficPolicy => "internal traffic policy",
            Self::TrafficDistribution => "traffic distribution",
            Self::IpFamily => "IP families",
        }
    }
}

/// The sentence of the condition, in the words of the KEP.
impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, value, oldest, n_disagree, n_clusters } = self;
        write!(
            f,
            "Conflicting {}. Using {value} from oldest service export in \"{oldest}\". \
             {n_disagree}/{n_clusters} clusters disagree.",
            kind.field()
        )
    }
}

/// None if nobody exports.
pub fn merge(members: &Members) -> Option<Merged> {
    let oldest = members.list.first()?;
    let (families, passed_over) = common_families(&members.list);
    let counted = || members.list.iter().filter(|one| !passed_over.contains(one.id()));
    let traffic = traffic(oldest);
    let spec = ServiceImportSpec {
        import_type: import_type(oldest.service),
        ports: ports::union(counted().map(|one| one.service)),
        ips: Vec::new(),
        families,
        traffic,
        traffic_distribution: oldest.service.traffic_distribution,
    };
    let conflicts = conflicts(&members.list, &spec, &passed_over);
    Some(Merged {
        labels: exported(&oldest.export.labels),
        annotations: exported(&oldest.export.annotations),
        spec,
        conflicts,
        passed_over,
    })
}

pub fn import_type(service: &Service) -> ImportType {
    match service.cluster_ip {
        endpointd_model::ClusterIp::Headless => ImportType::Headless,
        endpointd_model::ClusterIp::Ip(_) | endpointd_model::ClusterIp::Unset => {
            ImportType::ClusterSetIp
        }
    }
}

/// The exported labels or annotations that may be taken over.
fn exported(pairs: &Labels) -> Labels {
    let allowed = pairs.iter().filter(|(key, _)| !is_reserved(key));
    allowed.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// With the API server's default, which objects from files may lack.
fn traffic(member: &Member) -> ServiceTraffic {
    const DEFAULT_TIMEOUT_SECS: i32 = 3 * 60 * 60;
    let mut traffic = member.service.traffic.as_deref().copied().unwrap_or_default();
    if let SessionAffinity::ClientIp { timeout_secs } = &mut traffic.session_affinity {
        timeout_secs.get_or_insert(DEFAULT_TIMEOUT_SECS);
    }
    traffic
}

/// In the order of the Service.
fn families(service: &Service) -> Vec<Family> {
    match service.families.as_slice() {
        [] => slices::families(service),
        families => families.to_vec(),
    }
}

/// C8: those of the oldest that every other one has; a cluster without any of them is passed over, so
/// that every family reaches all clusters that count.
fn common_families(members: &[Member]) -> (Vec<Family>, BTreeSet<ClusterId>) {
    let mut passed_over = BTreeSet::new();
    let mut common: Option<Vec<Family>> = None;
    for member in members {
        let theirs = families(member.service);
        match &mut common {
            None => common = Some(theirs),
            Some(common) if common.iter().any(|family| theirs.contains(family)) => {
                common.retain(|family| theirs.contains(family));
            }
            Some(_) => drop(passed_over.insert(member.id().clone())),
        }
    }
    (common.unwrap_or_default(), passed_over)
}

fn conflicts(
    members: &[Member],
    spec: &ServiceImportSpec,
    passed_over: &BTreeSet<ClusterId>,
) -> Vec<Conflict> {
    let Some(oldest) = members.first() else { return Vec::new() };
    let conflicts = ConflictKind::ALL.into_iter().filter_map(|kind| {
        let disagrees = |member: &&Member| match kind {
            ConflictKind::IpFamily => passed_over.contains(member.id()),
            ConflictKind::Port
            | ConflictKind::Type
            | ConflictKind::SessionAffinity
            | ConflictKind::SessionAffinityConfig
            | ConflictKind::Annotations
            | ConflictKind::Labels
            | ConflictKind::InternalTrafficPolicy
            | ConflictKind::TrafficDistribution => differ(kind, oldest, member),
        };
        let n_disagree = members.iter().filter(disagrees).count();
        (n_disagree > 0).then(|| Conflict {
            kind,
            value: value(kind, spec),
            oldest: oldest.id().clone(),
            n_disagree,
            n_clusters: members.len(),
        })
    });
    conflicts.collect()
}

fn differ(kind: ConflictKind, oldest: &Member, other: &Member) -> bool {
    let (ours, theirs) = (traffic(oldest), traffic(other));
    let (affinity, other_affinity) = (ours.session_affinity, theirs.session_affinity);
    match kind {
        // C5: as sets.
        ConflictKind::Port => ports::set(oldest.service) != ports::set(other.service),
        ConflictKind::Type => import_type(oldest.service) != import_type(other.service),
        ConflictKind::SessionAffinity => affinity.as_str() != other_affinity.as_str(),
        ConflictKind::SessionAffinityConfig => {
            let both = affinity.timeout_secs().zip(other_affinity.timeout_secs());
            both.is_some_and(|(one, other)| one != other)
        }
        ConflictKind::Annotations => {
            exported(&oldest.export.annotations) != exported(&other.export.annotations)
        }
        ConflictKind::Labels => exported(&oldest.export.labels) != exported(&other.export.labels),
        ConflictKind::InternalTrafficPolicy => ours.internal_policy != theirs.internal_policy,
        ConflictKind::TrafficDistribution => {
            oldest.service.traffic_distribution != other.service.traffic_distribution
        }
        // Decided for all clusters together.
        ConflictKind::IpFamily => false,
    }
}

fn value(kind: ConflictKind, spec: &ServiceImportSpec) -> String {
    let ServiceImportSpec { import_type, families, traffic, traffic_distribution, .. } = spec;
    match kind {
        ConflictKind::Port => "the first definition of each name and number,".to_owned(),
        ConflictKind::Type => format!("\"{}\"", import_type.as_str()),
        ConflictKind::SessionAffinity => format!("\"{}\"", traffic.session_affinity.as_str()),
        ConflictKind::SessionAffinityConfig => {
            format!("{} s", traffic.session_affinity.timeout_secs().unwrap_or_default())
        }
        ConflictKind::Annotations | ConflictKind::Labels => "those".to_owned(),
        ConflictKind::InternalTrafficPolicy => format!("\"{}\"", traffic.internal_policy.as_str()),
        ConflictKind::TrafficDistribution => {
            format!("\"{}\"", traffic_distribution.map_or("", TrafficDistribution::as_str))
        }
        ConflictKind::IpFamily => {
            let families: Vec<String> = families.iter().map(ToString::to_string).collect();
            format!("\"{}\"", families.join(","))
        }
    }
}

/// What this cluster publishes: the merged fields, or those of the import while it must not change.
pub struct Effective {
    pub import_type: ImportType,
    /// As in the import.
    pub ports: Vec<ImportPort>,
    /// Those that this cluster can have.
    pub families: Vec<Family>,
    pub traffic: ServiceTraffic,
    pub traffic_distribution: Option<TrafficDistribution>,
    pub basis: Basis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    Merged,
    /// A cluster is unknown.
    Observed,
}

impl Effective {
    pub fn merged(merged: &Merged, refused: &BTreeSet<Family>) -> Self {
        let families = merged.spec.families.iter().filter(|family| !refused.contains(family));
        Self::new(&merged.spec, families.copied().collect(), Basis::Merged)
    }

    /// `published` are the families of its derived Service and its slices: an import that has no
    /// addresses yet has no families either.
    pub fn observed(spec: &ServiceImportSpec, published: &[Family]) -> Self {
        let has_families = spec.import_type == ImportType::Headless || !spec.families.is_empty();
        let families: &[Family] = if has_families { &spec.families } else { published };
        Self::new(spec, families.to_vec(), Basis::Observed)
    }

    fn new(spec: &ServiceImportSpec, families: Vec<Family>, basis: Basis) -> Self {
        Self {
            import_type: spec.import_type,
            ports: spec.ports.clone(),
            families,
            traffic: spec.traffic,
            traffic_distribution: spec.traffic_distribution,
            basis,
        }
    }
}
