//! The differences between the five watched resources.

use endpointd_model::{
    EndpointSlice, Endpoints, Node, ObjectEvent, Pod, ResourceEvent, ResourceVersion, Service,
    WatchedResource,
};
use endpointd_wire::Decoded;

pub(super) trait Watched: Decoded + Send + Sync + 'static {
    const RESOURCE: WatchedResource;

    fn resource_event(event: ObjectEvent<Self>) -> ResourceEvent;

    /// The version that a watch can continue from after this object.
    fn version(&self) -> ResourceVersion;
}

impl Watched for Service {
    const RESOURCE: WatchedResource = WatchedResource::Services;

    fn resource_event(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Service(event)
    }

    fn version(&self) -> ResourceVersion {
        self.resource_version
    }
}

impl Watched for Pod {
    const RESOURCE: WatchedResource = WatchedResource::Pods;

    fn resource_event(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Pod(event)
    }

    fn version(&self) -> ResourceVersion {
        self.resource_version
    }
}

impl Watched for Node {
    const RESOURCE: WatchedResource = WatchedResource::Nodes;

    fn resource_event(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Node(event)
    }

    fn version(&self) -> ResourceVersion {
        self.resource_version
    }
}

impl Watched for Endpoints {
    const RESOURCE: WatchedResource = WatchedResource::Endpoints;

    fn resource_event(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Endpoints(event)
    }

    fn version(&self) -> ResourceVersion {
        self.meta.resource_version
    }
}

impl Watched for EndpointSlice {
    const RESOURCE: WatchedResource = WatchedResource::Slices;

    fn resource_event(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Slice(event)
    }

    fn version(&self) -> ResourceVersion {
        self.meta.resource_version
    }
}
