//! What differs between the five kinds.

use endpointd_model::{
    Change, EndpointSlice, Endpoints, Kind, Node, Pod, Resource, Service, Sight, Text,
};
use endpointd_wire::Decoded;

pub(super) trait Watched: Decoded + Send + Sync + 'static {
    const WATCHED: Kind;
    /// If it is something we write.
    const WRITTEN: Option<Resource> = None;

    fn change(sight: Sight<Self>) -> Change;

    /// Where a watch can go on after this object.
    fn version(&self) -> &Text;
}

impl Watched for Service {
    const WATCHED: Kind = Kind::Services;

    fn change(sight: Sight<Self>) -> Change {
        Change::Service(sight)
    }

    fn version(&self) -> &Text {
        &self.resource_version
    }
}

impl Watched for Pod {
    const WATCHED: Kind = Kind::Pods;

    fn change(sight: Sight<Self>) -> Change {
        Change::Pod(sight)
    }

    fn version(&self) -> &Text {
        &self.resource_version
    }
}

impl Watched for Node {
    const WATCHED: Kind = Kind::Nodes;

    fn change(sight: Sight<Self>) -> Change {
        Change::Node(sight)
    }

    fn version(&self) -> &Text {
        &self.resource_version
    }
}

impl Watched for Endpoints {
    const WATCHED: Kind = Kind::Endpoints;
    const WRITTEN: Option<Resource> = Some(Resource::Endpoints);

    fn change(sight: Sight<Self>) -> Change {
        Change::Endpoints(sight)
    }

    fn version(&self) -> &Text {
        &self.meta.resource_version
    }
}

impl Watched for EndpointSlice {
    const WATCHED: Kind = Kind::Slices;
    const WRITTEN: Option<Resource> = Some(Resource::Slices);

    fn change(sight: Sight<Self>) -> Change {
        Change::Slice(sight)
    }

    fn version(&self) -> &Text {
        &self.meta.resource_version
    }
}
