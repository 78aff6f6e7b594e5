//! Signals of a watch.

use crate::{
    DerivedService, EndpointSlice, Endpoints, Key, Namespace, Node, Pod, ReferenceGrant,
    ResourceVersion, Service, ServiceExport, ServiceImport, SharedStr,
};

/// The resources that endpointd watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WatchedResource {
    Services,
    Pods,
    Nodes,
    Endpoints,
    Slices,
    /// Not every cluster serves them; then there are none.
    ReferenceGrants,
    Namespaces,
    /// Not every cluster serves them, either.
    ServiceExports,
    ServiceImports,
    /// The Services with the label of an import.
    DerivedServices,
}

impl WatchedResource {
    pub const ALL: [Self; 10] = [
        Self::Services,
        Self::Pods,
        Self::Nodes,
        Self::Endpoints,
        Self::Slices,
        Self::ReferenceGrants,
        Self::Namespaces,
        Self::ServiceExports,
        Self::ServiceImports,
        Self::DerivedServices,
    ];
    /// Those that the controllers of Kubernetes read.
    pub const DEFAULT: [Self; 5] =
        [Self::Services, Self::Pods, Self::Nodes, Self::Endpoints, Self::Slices];

    /// The plural name in the API, except for derived Services; also used in metrics, logs, and the
    /// report.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Services => "services",
            Self::Pods => "pods",
            Self::Nodes => "nodes",
            Self::Endpoints => "endpoints",
            Self::Slices => "endpointslices",
            Self::ReferenceGrants => "referencegrants",
            Self::Namespaces => "namespaces",
            Self::ServiceExports => "serviceexports",
            Self::ServiceImports => "serviceimports",
            Self::DerivedServices => "derivedservices",
        }
    }
}

/// The signals of one watched resource. A list is `InitStarted`, any number of `Event`, `InitDone`;
/// events follow until the next list.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchSignal {
    /// A list starts. Objects that have no event before `InitDone` do not exist.
    InitStarted,
    Event(Box<ResourceEvent>),
    /// The object exists and cannot be decoded. The key of a node has an empty namespace. In a list,
    /// an empty name means that the object could be any.
    DecodeError {
        key: Key,
        reason: SharedStr,
    },
    /// The list is complete, at this version.
    InitDone(ResourceVersion),
    /// All events up to this version have been sent.
    Bookmark(ResourceVersion),
    /// The watch is closed or idle, so the cache can be stale.
    Disconnected(SharedStr),
    /// The watch continues from the version where it ended.
    Reconnected,
}

/// An event about one object.
#[derive(Clone, Debug, PartialEq)]
pub enum ResourceEvent {
    Service(ObjectEvent<Service>),
    Pod(ObjectEvent<Pod>),
    Node(ObjectEvent<Node>),
    Endpoints(ObjectEvent<Endpoints>),
    Slice(ObjectEvent<EndpointSlice>),
    ReferenceGrant(ObjectEvent<ReferenceGrant>),
    Namespace(ObjectEvent<Namespace>),
    ServiceExport(ObjectEvent<ServiceExport>),
    ServiceImport(ObjectEvent<ServiceImport>),
    DerivedService(ObjectEvent<DerivedService>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectEvent<T> {
    Applied(T),
    /// Deleted: the last state of the object, with the resourceVersion of the deletion.
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
            Self::ReferenceGrant(_) => WatchedResource::ReferenceGrants,
            Self::Namespace(_) => WatchedResource::Namespaces,
            Self::ServiceExport(_) => WatchedResource::ServiceExports,
            Self::ServiceImport(_) => WatchedResource::ServiceImports,
            Self::DerivedService(_) => WatchedResource::DerivedServices,
        }
    }
}
