//! A real Kubernetes control plane for tests: etcd, kube-apiserver and kube-controller-manager at
//! the versions in [`program`].
//!
//! Start at [`Binaries::find`], which says where the programs are. [`source::build`] builds them.

pub mod program;

pub mod binaries;
pub mod source;

pub use binaries::{Binaries, Missing, Places};
pub use program::Program;
