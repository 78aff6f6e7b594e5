//! Keys and controllers.

use std::fmt;

use crate::SharedStr;

/// Namespace and name of a Service (or Endpoints): queued, planned, logged, and counted per key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub namespace: SharedStr,
    pub name: SharedStr,
}

impl Key {
    pub fn new(namespace: impl Into<SharedStr>, name: impl Into<SharedStr>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// One of the controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    Slices,
    Endpoints,
    Mirror,
    /// Upstream has nothing like it: docs/spec.md, section 10.
    Import,
    /// Likewise: section 11.
    MultiCluster,
}

impl Controller {
    pub const ALL: [Self; 5] =
        [Self::Slices, Self::Endpoints, Self::Mirror, Self::Import, Self::MultiCluster];
    /// Those of upstream; the others run only if they are named.
    pub const DEFAULT: [Self; 3] = [Self::Slices, Self::Endpoints, Self::Mirror];

    /// The name in output and in `--controllers`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Slices => "endpointslice-controller",
            Self::Endpoints => "endpoints-controller",
            Self::Mirror => "endpointslice-mirroring-controller",
            Self::Import => "endpointslice-import-controller",
            Self::MultiCluster => "multicluster-controller",
        }
    }

    /// The shorter name that `--controllers` also accepts.
    pub fn alias(self) -> &'static str {
        match self {
            Self::Slices => "endpointslice",
            Self::Endpoints => "endpoint",
            Self::Mirror => "endpointslicemirroring",
            Self::Import => "endpointsliceimport",
            Self::MultiCluster => "multicluster",
        }
    }

    /// The component recorded as the source of Kubernetes Events.
    pub fn event_source(self) -> &'static str {
        match self {
            Self::Slices => "endpoint-slice-controller",
            Self::Endpoints => "endpoint-controller",
            Self::Mirror => "endpoint-slice-mirroring-controller",
            Self::Import => "endpoint-slice-import-controller",
            Self::MultiCluster => "multi-cluster-controller",
        }
    }
}
