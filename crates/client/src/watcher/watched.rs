//! The differences between the five watched resources.

use endpointd_model::{
    EndpointSlice, Endpoints, Key, Node, ObjectEvent, Pod, ResourceEvent, ResourceVersion, Service,
    SharedStr, WatchedResource,
};
use endpointd_wire::Decoded;

pub(super) trait Watched: Decoded + Send + Sync + 'static {
    const RESOURCE: WatchedResource;

    fn resource_event(event: ObjectEvent<Self>) -> ResourceEvent;

    /// The namespace of a node is empty.
    fn key(&self) -> Key;

    /// The version that a watch can continue from after this object.
    fn version(&self) -> ResourceVersion;
}

impl Watched for Service {
    const RESOURCE: WatchedResource = WatchedResource::Services;

    fn resource_event(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Service(event)
    }

    fn key(&self) -> Key {
        Service::key(self)
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

    fn key(&self) -> Key {
        Pod::key(self)
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

    fn key(&self) -> Key {
        Key::new(SharedStr::default(), self.name.clone())
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

    fn key(&self) -> Key {
        self.meta.key()
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

    fn key(&self) -> Key {
        self.meta.key()
    }

    fn version(&self) -> ResourceVersion {
        self.meta.resource_version
    }
}
