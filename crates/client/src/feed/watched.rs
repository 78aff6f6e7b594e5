//! What differs between the five kinds.

use endpointd_model::{
    EndpointSlice, Endpoints, Node, ObjectEvent, Pod, PublishedResource, ResourceEvent,
    ResourceVersion, Service, WatchedResource,
};
use endpointd_wire::Decoded;

pub(super) trait Watched: Decoded + Send + Sync + 'static {
    const WATCHED: WatchedResource;
    /// If it is something we write.
    const WRITTEN: Option<PublishedResource> = None;

    fn change(sight: ObjectEvent<Self>) -> ResourceEvent;

    /// Where a watch can go on after this object.
    fn version(&self) -> ResourceVersion;
}

impl Watched for Service {
    const WATCHED: WatchedResource = WatchedResource::Services;

    fn change(sight: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Service(sight)
    }

    fn version(&self) -> ResourceVersion {
        self.resource_version
    }
}

impl Watched for Pod {
    const WATCHED: WatchedResource = WatchedResource::Pods;

    fn change(sight: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Pod(sight)
    }

    fn version(&self) -> ResourceVersion {
        self.resource_version
    }
}

impl Watched for Node {
    const WATCHED: WatchedResource = WatchedResource::Nodes;

    fn change(sight: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Node(sight)
    }

    fn version(&self) -> ResourceVersion {
        self.resource_version
    }
}

impl Watched for Endpoints {
    const WATCHED: WatchedResource = WatchedResource::Endpoints;
    const WRITTEN: Option<PublishedResource> = Some(PublishedResource::Endpoints);

    fn change(sight: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Endpoints(sight)
    }

    fn version(&self) -> ResourceVersion {
        self.meta.resource_version
    }
}

impl Watched for EndpointSlice {
    const WATCHED: WatchedResource = WatchedResource::Slices;
    const WRITTEN: Option<PublishedResource> = Some(PublishedResource::Slices);

    fn change(sight: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Slice(sight)
    }

    fn version(&self) -> ResourceVersion {
        self.meta.resource_version
    }
}
