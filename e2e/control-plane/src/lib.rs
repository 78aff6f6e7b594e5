//! A real Kubernetes control plane for tests: etcd, kube-apiserver and kube-controller-manager at
//! the versions in [`program`] and [`release`].
//!
//! Start at [`Binaries::find`], which finds the programs, and [`Cluster::start`], which runs them
//! on loopback. Most tests use [`Cluster::shared`] and a namespace of their own. `cargo xtask
//! control-plane` builds the programs with [`source::build`]; `cargo xtask cluster` runs a cluster
//! for manual use.
//!
//! No program and no file outlives the process that started a cluster: see the module
//! `process_reaper`.

pub mod program;
pub mod release;

pub mod binaries;
pub mod go_tool;
pub mod source;

pub mod certificates;

mod etcd;
mod flags;
mod kubeconfig;
mod port;
mod temp_dir;

mod process_reaper;
mod running;

#[cfg(test)]
mod test_lock;

pub mod api;
pub mod cluster;

pub use api::{Api, ApiError};
pub use binaries::{Binaries, Missing, SearchPaths};
pub use cluster::{Audit, Cluster, Options, StartError, Stop};
pub use etcd::SpaceAlarm;
pub use go_tool::GoTool;
pub use program::Program;
pub use release::Release;
