//! The differences between the watched resources.

use endpointd_model::{
    DerivedService, EndpointSlice, Endpoints, Key, Meta, Namespace, Node, Object, ObjectEvent, Pod,
    ReferenceGrant, ResourceEvent, ResourceVersion, Service, ServiceExport, ServiceImport,
    SharedStr, Uid, WatchedResource,
};
use endpointd_wire::{Decoded, Deletion};

pub(super) trait Watched: Decoded + Send + Sync + 'static {
    const RESOURCE: WatchedResource;

    fn resource_event(event: ObjectEvent<Self>) -> ResourceEvent;

    /// Of an object that endpointd sends as protobuf.
    const OF_OBJECT: Option<fn(Object) -> Option<Self>> = None;

    /// A deleted object of which only the identity could be decoded.
    fn of_deletion(deletion: Deletion) -> Self;

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

    fn of_deletion(deletion: Deletion) -> Self {
        let Deletion { namespace, name, uid, resource_version } = deletion;
        let (namespace, name, uid) = (namespace.into(), name.into(), Uid::from(&*uid));
        Self { namespace, name, uid, resource_version, ..Self::default() }
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

    fn of_deletion(deletion: Deletion) -> Self {
        let Deletion { namespace, name, uid, resource_version } = deletion;
        let (namespace, name, uid) = (namespace.into(), name.into(), Uid::from(&*uid));
        Self { namespace, name, uid, resource_version, ..Self::default() }
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

    fn of_deletion(deletion: Deletion) -> Self {
        let Deletion { name, resource_version, .. } = deletion;
        Self { name: name.into(), resource_version, ..Self::default() }
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
    const OF_OBJECT: Option<fn(Object) -> Option<Self>> = Some(|object| match object {
        Object::Endpoints(endpoints) => Some(endpoints),
        Object::Slice(_) | Object::ServiceStatus(_) | Object::MultiCluster(_) => None,
    });

    fn resource_event(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Endpoints(event)
    }

    fn of_deletion(deletion: Deletion) -> Self {
        Self { meta: meta_of(deletion), ..Self::default() }
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
    const OF_OBJECT: Option<fn(Object) -> Option<Self>> = Some(|object| match object {
        Object::Slice(slice) => Some(slice),
        Object::Endpoints(_) | Object::ServiceStatus(_) | Object::MultiCluster(_) => None,
    });

    fn resource_event(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Slice(event)
    }

    fn of_deletion(deletion: Deletion) -> Self {
        Self { meta: meta_of(deletion), ..Self::default() }
    }

    fn key(&self) -> Key {
        self.meta.key()
    }

    fn version(&self) -> ResourceVersion {
        self.meta.resource_version
    }
}

impl Watched for ReferenceGrant {
    const RESOURCE: WatchedResource = WatchedResource::ReferenceGrants;

    fn resource_event(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::ReferenceGrant(event)
    }

    fn of_deletion(deletion: Deletion) -> Self {
        let Deletion { namespace, name, resource_version, .. } = deletion;
        let (namespace, name) = (namespace.into(), name.into());
        Self { namespace, name, resource_version, ..Self::default() }
    }

    fn key(&self) -> Key {
        ReferenceGrant::key(self)
    }

    fn version(&self) -> ResourceVersion {
        self.resource_version
    }
}

impl Watched for Namespace {
    const RESOURCE: WatchedResource = WatchedResource::Namespaces;

    fn resource_event(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Namespace(event)
    }

    fn of_deletion(deletion: Deletion) -> Self {
        let Deletion { name, resource_version, .. } = deletion;
        Self { name: name.into(), resource_version, ..Self::default() }
    }

    fn key(&self) -> Key {
        Key { namespace: SharedStr::default(), name: self.name.clone() }
    }

    fn version(&self) -> ResourceVersion {
        self.resource_version
    }
}

macro_rules! watched {
    ($($object:ident in $resource:ident;)*) => {$(
        impl Watched for $object {
            const RESOURCE: WatchedResource = WatchedResource::$resource;

            fn resource_event(event: ObjectEvent<Self>) -> ResourceEvent {
                ResourceEvent::$object(event)
            }

            fn of_deletion(deletion: Deletion) -> Self {
                Self { meta: meta_of(deletion), ..Self::default() }
            }

            fn key(&self) -> Key {
                self.meta.key()
            }

            fn version(&self) -> ResourceVersion {
                self.meta.resource_version
            }
        }
    )*};
}

watched! {
    ServiceExport in ServiceExports;
    ServiceImport in ServiceImports;
    DerivedService in DerivedServices;
}

fn meta_of(deletion: Deletion) -> Meta {
    let Deletion { namespace, name, uid, resource_version } = deletion;
    let (namespace, name, uid) = (namespace.into(), name.into(), Uid::from(&*uid));
    Meta { namespace, name, uid, resource_version, ..Meta::default() }
}
