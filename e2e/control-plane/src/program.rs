//! The three programs of the control plane: names, pinned versions, and Go packages. `go/*/go.mod`
//! pins the same versions, which a test below checks.

use std::fmt;

pub const KUBERNETES_VERSION: &str = "v1.36.4";
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

    pub fn version(self) -> &'static str {
        match self {
            Self::Etcd => ETCD_VERSION,
            Self::ApiServer | Self::ControllerManager => KUBERNETES_VERSION,
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

    /// The directory below `go/` with the Go module that pins it. There are two modules, because
    /// Kubernetes must keep the version of the etcd client that it was released with.
    pub(crate) fn module(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer | Self::ControllerManager => "kubernetes",
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
    fn the_go_modules_pin_the_same_versions() {
        let etcd = include_str!("../go/etcd/go.mod");
        assert!(etcd.contains(&format!("require go.etcd.io/etcd/server/v3 {ETCD_VERSION}\n")));

        let kubernetes = include_str!("../go/kubernetes/go.mod");
        assert!(kubernetes.contains(&format!("require k8s.io/kubernetes {KUBERNETES_VERSION}\n")));
    }

    #[test]
    fn the_staging_modules_are_those_of_the_same_release() {
        let published = KUBERNETES_VERSION.replace("v1.", "v0.");
        let replaced: Vec<&str> = include_str!("../go/kubernetes/go.mod")
            .lines()
            .filter(|line| line.contains(" => "))
            .filter(|line| !line.ends_with(&published))
            .collect();
        assert!(replaced.is_empty(), "not {published}: {replaced:?}");
    }
}
