//! What to write for one key, decided by pure functions: same snapshot, same plan, to the byte.
//!
//! Start with [`slices`], [`endpoints`], and [`mirror`]: each takes a snapshot of one key and
//! gives a [`Plan`]. Nothing here does I/O, reads a clock, or can fail: what a plan must skip is
//! said in the plan. The rules are those of upstream v1.36; `docs/parity.md` maps each of them to
//! its function and its test.

mod snapshot;

mod plan;

mod changes;
mod endpoints;
mod hints;
mod mirror;
mod packing;
mod pods;
mod port_set;
mod slice_names;
mod slices;
mod subsets;
mod text;
mod trigger;
mod world;
mod writes;

pub use changes::{PodDifference, pod_difference};
pub use endpoints::endpoints;
pub use hints::{CarriedHints, Topology, is_overloaded};
pub use mirror::{is_mirrored, mirror};
pub use plan::{CarriedState, Counts, ExcludedPod, ExclusionReason, Plan, Retry};
pub use slices::slices;
pub use snapshot::{
    EndpointsSnapshot, MirrorSnapshot, NodeState, PodOnNode, Settings, SliceSnapshot,
};
pub use trigger::CarriedTrigger;
pub use world::{ClusterState, IndexedCluster};
