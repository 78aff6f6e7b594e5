//! What a watch tells.

use crate::{EndpointSlice, Endpoints, Key, Node, Pod, ResourceVersion, Service, SharedStr};

/// The kinds of objects we watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WatchedResource {
    Services,
    Pods,
    Nodes,
    Endpoints,
    Slices,
}

impl WatchedResource {
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
pub enum WatchSignal {
    /// A complete picture begins. What it does not show by its end is gone.
    InitStarted,
    Event(Box<ResourceEvent>),
    /// The object is there but cannot be read. A node has an empty namespace.
    DecodeError {
        key: Key,
        reason: SharedStr,
    },
    /// The picture is complete as of this version.
    InitDone(ResourceVersion),
    /// All changes up to this version have been told.
    Bookmark(ResourceVersion),
    /// The watch is cut off or silent; what is known may be old.
    Disconnected(SharedStr),
    /// The watch runs again from where it was.
    Reconnected,
}

/// One object as it is now, or as it was last.
#[derive(Clone, Debug, PartialEq)]
pub enum ResourceEvent {
    Service(ObjectEvent<Service>),
    Pod(ObjectEvent<Pod>),
    Node(ObjectEvent<Node>),
    Endpoints(ObjectEvent<Endpoints>),
    Slice(ObjectEvent<EndpointSlice>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectEvent<T> {
    Applied(T),
    /// Deleted; what was last known of it, with the version of the deletion.
    Deleted(T),
}

impl<T> ObjectEvent<T> {
    pub fn object(&self) -> &T {
        match self {
            Self::Applied(object) | Self::Deleted(object) => object,
        }
    }
}

impl ResourceEvent {
    pub fn kind(&self) -> WatchedResource {
        match self {
            Self::Service(_) => WatchedResource::Services,
            Self::Pod(_) => WatchedResource::Pods,
            Self::Node(_) => WatchedResource::Nodes,
            Self::Endpoints(_) => WatchedResource::Endpoints,
            Self::Slice(_) => WatchedResource::Slices,
        }
    }
}
