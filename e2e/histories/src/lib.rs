//! Histories: what people and nodes do to a cluster, step by step, played once under
//! kube-controller-manager and once under endpointd, which must settle on the same Endpoints and
//! EndpointSlices.
//!
//! Start at [`histories`], the histories themselves. A [`Stage`] is one namespace of one API server
//! and all a history may touch; it speaks the few verbs of [`endpointd_control_plane::Api`], so
//! any server that has them can be played on. [`canonical`] says what counts as the same.
//! [`ClusterUnderTest`] is a real control plane with one of the two at work.

pub mod canonical;
pub mod view;

pub mod settle;
pub mod stage;

pub mod pods;

pub mod histories;
pub mod play;
pub mod recorded;

pub mod audit;
pub mod cluster;
pub mod daemon;
pub mod forwarder;
pub mod harness;

pub use cluster::{ClusterUnderTest, Controllers};
pub use daemon::{Daemon, DaemonFlags};
pub use histories::{HISTORIES, History};
pub use play::{Played, difference, play};
pub use settle::Wanted;
pub use stage::Stage;
