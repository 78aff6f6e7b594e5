//! The resources in one place: what a watch event, a live read, and a complete list change,
//! and what follows for the controllers.

use endpointd_model::{
    Key, MultiClusterObject, MultiClusterResource, Node, Object, ObjectEvent, PublishedResource,
    ResourceEvent, ResourceVersion, Service, SharedStr, WatchedResource,
};

use super::{Cache, DirtyKeys, ListEpoch, Origin};

/// What a change of the cache means for the controllers.
#[derive(Debug, Default)]
pub struct Changes {
    /// Keys that must be synced.
    pub dirty: DirtyKeys,
    /// Empty for pods: they concern only the keys in `dirty`.
    pub objects: Vec<ObjectChange>,
}

/// A change that concerns more than the keys to sync.
#[derive(Debug, PartialEq)]
pub enum ObjectChange {
    /// Replaced: under its name there is another Service now.
    ServiceApplied {
        key: Key,
        is_replaced: bool,
    },
    ServiceDeleted(Key, DeletionEvidence),
    /// The watch has reported this node, or its deletion.
    NodeObserved(SharedStr),
    /// A published object differs from the cached one.
    Published {
        resource: PublishedResource,
        key: Key,
        event: PublishedEvent,
    },
    EndpointsDeleted(Key, DeletionEvidence),
    /// The namespace exists now, or is being deleted, or is gone.
    NamespaceChanged(SharedStr),
}

impl ObjectChange {
    /// The key of the Endpoints that the cache does not hold any more.
    pub fn removed_endpoints(&self) -> Option<&Key> {
        match self {
            Self::Published {
                resource: PublishedResource::Endpoints,
                key,
                event: PublishedEvent::Deleted,
            }
            | Self::EndpointsDeleted(key, DeletionEvidence::List) => Some(key),
            Self::Published { .. }
            | Self::EndpointsDeleted(_, DeletionEvidence::Event)
            | Self::ServiceApplied { .. }
            | Self::ServiceDeleted(..)
            | Self::NodeObserved(_)
            | Self::NamespaceChanged(_) => None,
        }
    }
}

/// How the cache learned that an object does not exist any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionEvidence {
    /// The watch has reported the deletion.
    Event,
    /// A complete list does not contain the object.
    List,
}

/// What the watch has reported of an object that we publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedEvent {
    Applied(ResourceVersion),
    Deleted,
}

impl Cache {
    /// Applies an event of a watch or of a list with this epoch.
    pub fn apply(&mut self, event: ResourceEvent, epoch: ListEpoch) -> Changes {
        let mut changes = Changes::default();
        match event {
            ResourceEvent::Service(ObjectEvent::Applied(service)) => {
                let key = service.key();
                let is_replaced = self.put_service(service, epoch, &mut changes.dirty);
                changes.objects.push(ObjectChange::ServiceApplied { key, is_replaced });
            }
            ResourceEvent::Service(ObjectEvent::Deleted(service)) => {
                self.delete_service(service.key(), DeletionEvidence::Event, &mut changes);
            }
            ResourceEvent::Pod(ObjectEvent::Applied(pod)) => {
                self.put_pod(pod, epoch, &mut changes.dirty);
            }
            ResourceEvent::Pod(ObjectEvent::Deleted(pod)) => {
                self.remove_pod(&pod.key(), &mut changes.dirty);
            }
            ResourceEvent::Node(ObjectEvent::Applied(node)) => {
                changes.objects.push(ObjectChange::NodeObserved(node.name.clone()));
                self.put_node(node, epoch, &mut changes.dirty);
            }
            ResourceEvent::Node(ObjectEvent::Deleted(node)) => {
                self.delete_node(&node.name, &mut changes);
            }
            ResourceEvent::Endpoints(ObjectEvent::Applied(endpoints)) => {
                self.apply_published(Object::Endpoints(endpoints), epoch, &mut changes);
            }
            ResourceEvent::Slice(ObjectEvent::Applied(slice)) => {
                self.apply_published(Object::Slice(slice), epoch, &mut changes);
            }
            ResourceEvent::Endpoints(ObjectEvent::Deleted(endpoints)) => {
                let key = endpoints.meta.key();
                self.delete_published(&Object::Endpoints(endpoints), &mut changes);
                let evidence = DeletionEvidence::Event;
                changes.objects.push(ObjectChange::EndpointsDeleted(key, evidence));
            }
            ResourceEvent::Slice(ObjectEvent::Deleted(slice)) => {
                self.delete_published(&Object::Slice(slice), &mut changes);
            }
            ResourceEvent::ReferenceGrant(ObjectEvent::Applied(grant)) => {
                self.put_grant(grant, epoch, &mut changes.dirty);
            }
            ResourceEvent::ReferenceGrant(ObjectEvent::Deleted(grant)) => {
                self.remove_grant(&grant.key(), &mut changes.dirty);
            }
            ResourceEvent::Namespace(ObjectEvent::Applied(namespace)) => {
                let name = namespace.name.clone();
                if self.put_namespace_object(namespace, epoch) {
                    changes.objects.push(ObjectChange::NamespaceChanged(name));
                }
            }
            ResourceEvent::Namespace(ObjectEvent::Deleted(namespace)) => {
                self.delete_namespace_object(&namespace.name, &mut changes);
            }
            ResourceEvent::ServiceExport(event) => {
                let (object, is_deleted) = parts(event);
                let object = MultiClusterObject::ExportStatus(object);
                self.apply_multicluster(object, is_deleted, epoch, &mut changes);
            }
            ResourceEvent::ServiceImport(event) => {
                let (object, is_deleted) = parts(event);
                let object = MultiClusterObject::Import(object);
                self.apply_multicluster(object, is_deleted, epoch, &mut changes);
            }
            ResourceEvent::DerivedService(event) => {
                let (object, is_deleted) = parts(event);
                let object = MultiClusterObject::Derived(object);
                self.apply_multicluster(object, is_deleted, epoch, &mut changes);
            }
        }
        changes
    }

    /// Removes what a complete list with this epoch and version does not contain.
    pub fn remove_missing(
        &mut self,
        resource: WatchedResource,
        epoch: ListEpoch,
        listed: ResourceVersion,
    ) -> Changes {
        let mut changes = Changes::default();
        let missing = self.missing_from(resource, epoch, listed);
        if resource == WatchedResource::Pods {
            self.miss_pods(missing, &mut changes.dirty);
            return changes;
        }
        for key in missing {
            match resource {
                WatchedResource::Services => {
                    self.delete_service(key, DeletionEvidence::List, &mut changes);
                }
                WatchedResource::Pods => {}
                WatchedResource::Nodes => self.delete_node(&key.name, &mut changes),
                WatchedResource::Endpoints => {
                    self.remove_object(PublishedResource::Endpoints, &key, &mut changes.dirty);
                    let evidence = DeletionEvidence::List;
                    changes.objects.push(ObjectChange::EndpointsDeleted(key, evidence));
                }
                WatchedResource::Slices => {
                    self.remove_object(PublishedResource::Slices, &key, &mut changes.dirty);
                }
                WatchedResource::ReferenceGrants => self.remove_grant(&key, &mut changes.dirty),
                WatchedResource::Namespaces => {
                    self.delete_namespace_object(&key.name, &mut changes);
                }
                WatchedResource::ServiceExports
                | WatchedResource::ServiceImports
                | WatchedResource::DerivedServices => {
                    if let Some(resource) = published(resource) {
                        self.remove_object(resource, &key, &mut changes.dirty);
                    }
                }
            }
        }
        if let Some(resource) = published(resource) {
            self.drop_tombstones(resource, epoch);
        }
        changes
    }

    /// Applies what a live read found. The read is newer than the cache, as the caller has checked.
    pub fn apply_read_service(&mut self, service: Service, epoch: ListEpoch) -> Changes {
        let mut changes = Changes::default();
        let key = service.key();
        if self.put_service(service, epoch, &mut changes.dirty) {
            changes.objects.push(ObjectChange::ServiceApplied { key, is_replaced: true });
        }
        changes
    }

    pub fn apply_read_node(&mut self, node: Node, epoch: ListEpoch) -> Changes {
        let mut changes = Changes::default();
        self.put_node(node, epoch, &mut changes.dirty);
        changes
    }

    fn delete_service(&mut self, key: Key, evidence: DeletionEvidence, changes: &mut Changes) {
        self.remove_service(&key, &mut changes.dirty);
        changes.objects.push(ObjectChange::ServiceDeleted(key, evidence));
    }

    /// Services with pods on the node must be synced, although nothing is unpublished before a
    /// live read confirms that the node is gone.
    fn delete_node(&mut self, name: &SharedStr, changes: &mut Changes) {
        self.remove_node(name);
        self.add_affected_by_node_name(name, &mut changes.dirty);
        changes.objects.push(ObjectChange::NodeObserved(name.clone()));
    }

    fn delete_namespace_object(&mut self, name: &SharedStr, changes: &mut Changes) {
        if self.remove_namespace_object(name) {
            changes.objects.push(ObjectChange::NamespaceChanged(name.clone()));
        }
    }

    fn apply_multicluster(
        &mut self,
        object: MultiClusterObject,
        is_deleted: bool,
        epoch: ListEpoch,
        changes: &mut Changes,
    ) {
        let resource = PublishedResource::MultiCluster(object.resource());
        if is_deleted {
            self.remove_reported(resource, object.meta(), &mut changes.dirty);
        } else {
            let object = Object::MultiCluster(object);
            self.put_object(object, Origin::Observed, epoch, &mut changes.dirty);
        }
    }

    fn apply_published(&mut self, object: Object, epoch: ListEpoch, changes: &mut Changes) {
        let (resource, meta) = (object.resource(), object.meta());
        let (key, version) = (meta.key(), meta.resource_version);
        if self.put_object(object, Origin::Observed, epoch, &mut changes.dirty) {
            let event = PublishedEvent::Applied(version);
            changes.objects.push(ObjectChange::Published { resource, key, event });
        }
    }

    fn delete_published(&mut self, object: &Object, changes: &mut Changes) {
        let (resource, meta) = (object.resource(), object.meta());
        if self.remove_reported(resource, meta, &mut changes.dirty) {
            let (key, event) = (meta.key(), PublishedEvent::Deleted);
            changes.objects.push(ObjectChange::Published { resource, key, event });
        }
    }
}

fn parts<T>(event: ObjectEvent<T>) -> (T, bool) {
    match event {
        ObjectEvent::Applied(object) => (object, false),
        ObjectEvent::Deleted(object) => (object, true),
    }
}

fn published(resource: WatchedResource) -> Option<PublishedResource> {
    match resource {
        WatchedResource::Endpoints => Some(PublishedResource::Endpoints),
        WatchedResource::Slices => Some(PublishedResource::Slices),
        WatchedResource::ServiceExports => {
            Some(PublishedResource::MultiCluster(MultiClusterResource::ExportStatus))
        }
        WatchedResource::ServiceImports => {
            Some(PublishedResource::MultiCluster(MultiClusterResource::Imports))
        }
        WatchedResource::DerivedServices => {
            Some(PublishedResource::MultiCluster(MultiClusterResource::Derived))
        }
        WatchedResource::Services
        | WatchedResource::Pods
        | WatchedResource::Nodes
        | WatchedResource::ReferenceGrants
        | WatchedResource::Namespaces => None,
    }
}
