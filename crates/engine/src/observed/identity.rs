//! Which object an event, a write, or a live read is about, and its version.

use endpointd_model::{
    Key, LiveRead, LiveReadResult, MultiClusterResource, PublishedResource, ResourceEvent,
    ResourceVersion, SharedStr, WatchedResource,
};

/// The version of the object that a live read found.
pub fn version_of(result: &LiveReadResult) -> Option<ResourceVersion> {
    match result {
        LiveReadResult::Service(service) => Some(service.resource_version),
        LiveReadResult::Node(node) => Some(node.resource_version),
        LiveReadResult::Object(object) => Some(object.meta().resource_version),
        LiveReadResult::FieldManager(_)
        | LiveReadResult::Pods(_)
        | LiveReadResult::Absent
        | LiveReadResult::Failed(_) => None,
    }
}

/// A node has no namespace.
pub(super) fn key_of(read: &LiveRead) -> Key {
    match read {
        LiveRead::Service(key) | LiveRead::Object(_, key) | LiveRead::FieldManager(_, key) => {
            key.clone()
        }
        LiveRead::Pods(namespace) => Key::new(namespace.clone(), SharedStr::default()),
        LiveRead::Source(_, read) => key_of(read),
        LiveRead::Node(name) => Key::new(SharedStr::default(), name.clone()),
    }
}

/// The resource whose watch reports the object of a live read.
pub fn resource_of(read: &LiveRead) -> WatchedResource {
    match read {
        LiveRead::Service(_) => WatchedResource::Services,
        LiveRead::Node(_) => WatchedResource::Nodes,
        LiveRead::Pods(_) => WatchedResource::Pods,
        LiveRead::Source(_, read) => resource_of(read),
        LiveRead::Object(resource, _) | LiveRead::FieldManager(resource, _) => watched(*resource),
    }
}

pub(super) fn watched(resource: PublishedResource) -> WatchedResource {
    match resource {
        PublishedResource::Slices => WatchedResource::Slices,
        PublishedResource::Endpoints => WatchedResource::Endpoints,
        PublishedResource::ServiceStatus => WatchedResource::Services,
        PublishedResource::MultiCluster(resource) => match resource {
            MultiClusterResource::Imports | MultiClusterResource::ImportStatus => {
                WatchedResource::ServiceImports
            }
            MultiClusterResource::ExportStatus => WatchedResource::ServiceExports,
            MultiClusterResource::Derived => WatchedResource::DerivedServices,
        },
    }
}

/// A node has no namespace.
pub(super) fn identity(event: &ResourceEvent) -> (Key, ResourceVersion) {
    match event {
        ResourceEvent::Service(event) => (event.object().key(), event.object().resource_version),
        ResourceEvent::Pod(event) => (event.object().key(), event.object().resource_version),
        ResourceEvent::Node(event) => {
            let node = event.object();
            (Key::new(SharedStr::default(), node.name.clone()), node.resource_version)
        }
        ResourceEvent::Endpoints(event) => {
            let meta = &event.object().meta;
            (meta.key(), meta.resource_version)
        }
        ResourceEvent::Slice(event) => {
            let meta = &event.object().meta;
            (meta.key(), meta.resource_version)
        }
        ResourceEvent::ReferenceGrant(event) => {
            (event.object().key(), event.object().resource_version)
        }
        ResourceEvent::Namespace(event) => {
            let namespace = event.object();
            let key = Key::new(SharedStr::default(), namespace.name.clone());
            (key, namespace.resource_version)
        }
        ResourceEvent::ServiceExport(event) => {
            let meta = &event.object().meta;
            (meta.key(), meta.resource_version)
        }
        ResourceEvent::ServiceImport(event) => {
            let meta = &event.object().meta;
            (meta.key(), meta.resource_version)
        }
        ResourceEvent::DerivedService(event) => {
            let meta = &event.object().meta;
            (meta.key(), meta.resource_version)
        }
    }
}
