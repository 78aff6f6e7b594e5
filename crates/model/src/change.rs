//! What a watch tells.

use crate::{EndpointSlice, Endpoints, Node, Pod, Service};

/// The kinds of objects we watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Services,
    Pods,
    Nodes,
    Endpoints,
    Slices,
}

impl Kind {
    pub const ALL: [Self; 5] =
        [Self::Services, Self::Pods, Self::Nodes, Self::Endpoints, Self::Slices];

    /// The plural name in the API; also used in metrics, logs, and the report.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Services => "services",
            Self::Pods => "pods",
            Self::Nodes => "nodes",
            Self::Endpoints => "endpoints",
            Self::Slices => "endpointslices",
        }
    }
}

/// One object as it is now, or as it was last.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Service(Sight<Service>),
    Pod(Sight<Pod>),
    Node(Sight<Node>),
    Endpoints(Sight<Endpoints>),
    Slice(Sight<EndpointSlice>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight<T> {
    Present(T),
    /// Deleted; what was last known of it, with the version of the deletion.
    Gone(T),
}

impl<T> Sight<T> {
    pub fn object(&self) -> &T {
        match self {
            Self::Present(object) | Self::Gone(object) => object,
        }
    }
}

impl Change {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Service(_) => Kind::Services,
            Self::Pod(_) => Kind::Pods,
            Self::Node(_) => Kind::Nodes,
            Self::Endpoints(_) => Kind::Endpoints,
            Self::Slice(_) => Kind::Slices,
        }
    }
}
