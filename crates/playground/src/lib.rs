//! A cluster in one process, to observe the controllers: the embedded API server, fake cluster
//! components, and the three controllers with their real client. Start at
//! [`ClusterSet::start`], which starts one or several.
//!
//! The initial objects ([`cluster_spec`]), the scenarios ([`scenario`]), and the fake scheduler,
//! kubelets, and workload controllers (`cluster`) are data and decisions without I/O. `apply`
//! writes the decisions to the API server, `observer` collects statistics, `view` renders them.

pub mod cluster_spec;
pub mod scenario;
pub mod view;
pub mod view_state;

mod apply;
mod cluster;
mod cluster_set;
mod controls;
mod fake_controllers;
mod kubeconfig;
mod observer;
mod playground;
mod seeded;
mod store_reader;
mod summary;

pub use cluster_set::{CLUSTERS_MAX, ClusterSet, LIMITS};
pub use fake_controllers::TimeScale;
pub use kubeconfig::KubeconfigTarget;
pub use observer::Milestones;
pub use playground::{Options, Playground, StartError, Workload};
pub use summary::{Memory, Summary};
