//! What a watch tells.

use crate::{EndpointSlice, Endpoints, Key, Node, Pod, Service, Text, Version};

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

/// What arrives about one kind, in this order: `Listing`, any number of `Seen`, `Listed`; then
/// changes as they happen, until the picture must be taken anew.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A complete picture begins. What it does not show by its end is gone.
    Listing,
    Seen(Box<Change>),
    /// The object is there but cannot be read. A node has an empty namespace.
    Unreadable {
        key: Key,
        reason: Text,
    },
    /// The picture is complete as of this version.
    Listed(Version),
    /// All changes up to this version have been told.
    Passed(Version),
    /// The watch is cut off or silent; what is known may be old.
    Lost(Text),
    /// The watch runs again from where it was.
    Resumed,
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
