//! Pure functions that compute the writes for one key: equal snapshots give byte-identical plans.
//!
//! Start with [`slices`], [`endpoints`], and [`mirror`]: each takes a snapshot of one key and
//! returns a [`Plan`]. Nothing here does I/O, reads a clock, or can fail; a pod that cannot be
//! published is listed in the plan with its reason. `docs/spec.md` states the rules, which are
//! those of Kubernetes v1.36, and `docs/parity.md` maps each of them to its function and its test.

mod snapshot;

mod plan;

mod changes;
mod cluster_state;
mod endpoints;
mod hints;
mod import;
mod left_behind;
mod mirror;
mod multicluster;
mod observed_copies;
mod packing;
mod pods;
mod port_set;
mod slice_names;
mod slices;
mod subsets;
mod text;
mod tolerate_unready;
mod trigger;
mod writes;

pub use changes::{PodDifference, pod_difference};
pub use cluster_state::{ClusterState, IndexedCluster};
pub use endpoints::endpoints;
pub use hints::{CarriedHints, Topology, is_overloaded};
pub use import::{ImportPlan, ImportSnapshot, ImportState, PortLabel, import};
pub use left_behind::{OrphanPolicy, endpoints_left_behind, slices_left_behind};
pub use mirror::mirror;
pub use multicluster::{
    Access, Adoption, ClusterObjects, ClusterSetState, Conflict, ConflictKind, Contact,
    ContactLimits, ExportState, ImportNamespace, Knowledge, KubeconfigFile, MultiClusterPlan,
    MultiClusterSettings, MultiClusterSnapshot, SourceCluster, SourceReport, SourceState, Zones,
    multicluster, source_states, write_summary,
};
pub use plan::{CarriedState, Counts, ExcludedPod, ExclusionReason, Plan, Retry};
pub use port_set::PORTS_MAX;
pub use slice_names::{cluster_slices_named_as_copy, slices_named_as_copy};
pub use slices::{
    InPlacePlan, InPlaceSnapshot, PlacedSlice, SliceWithPods, placement, slices, slices_in_place,
};
pub use snapshot::{
    EndpointsSnapshot, MirrorSnapshot, NamesInUse, NodeState, PodOnNode, ServicesSeen, Settings,
    SliceSnapshot,
};
pub use tolerate_unready::{AnnotationPolicy, publishes_not_ready};
pub use trigger::CarriedTrigger;

/// Compiles and runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
