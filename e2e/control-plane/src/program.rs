//! The three programs of the control plane: names, versions, and Go packages. `go/etcd/go.mod` pins
//! the same version, which a test below checks; [`Release`] has those of Kubernetes.

use std::fmt;

use crate::release::Release;

pub const ETCD_VERSION: &str = "v3.6.16";

/// One program of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    Etcd,
    ApiServer,
    ControllerManager,
}

impl Program {
    /// In the order they are built and started.
    pub const ALL: [Self; 3] = [Self::Etcd, Self::ApiServer, Self::ControllerManager];

    /// The name of its executable file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
        }
    }

    pub fn version(self, release: Release) -> &'static str {
        match self {
            Self::Etcd => ETCD_VERSION,
            Self::ApiServer | Self::ControllerManager => release.version(),
        }
    }

    /// The Go package of the program.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::ApiServer => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::ControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
        }
    }

    /// The directory below `go/` with the Go module that pins it. etcd has its own, because
    /// Kubernetes must keep the version of the etcd client that it was released with.
    pub(crate) fn module(self, release: Release) -> String {
        match self {
            Self::Etcd => "etcd".to_owned(),
            Self::ApiServer | Self::ControllerManager => release.module(),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_go_module_of_etcd_pins_the_same_version() {
        let etcd = include_str!("../go/etcd/go.mod");
        assert!(etcd.contains(&format!("require go.etcd.io/etcd/server/v3 {ETCD_VERSION}\n")));
    }
}
