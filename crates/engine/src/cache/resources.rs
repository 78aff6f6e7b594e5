//! The resources in one place: what a watch event, a live read, and a complete list change,
//! and what follows for the controllers.

use endpointd_model::{
    Key, Node, Object, ObjectEvent, PublishedResource, ResourceEvent, ResourceVersion, Service,
    SharedStr, WatchedResource,
};
use hashbrown::HashMap;

use super::{Cache, Cached, DirtyKeys, Freshness, ListEpoch, Namespace, Origin};

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
            | Self::NodeObserved(_) => None,
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

    pub fn contains(&self, resource: WatchedResource, key: &Key) -> bool {
        match resource {
            WatchedResource::Services => self.service(key).is_some(),
            WatchedResource::Pods => self.pod_id(key).is_some(),
            WatchedResource::Nodes => self.nodes.contains(&key.name),
            WatchedResource::Endpoints => self.object(PublishedResource::Endpoints, key).is_some(),
            WatchedResource::Slices => self.object(PublishedResource::Slices, key).is_some(),
            WatchedResource::ReferenceGrants => self.version(resource, key).is_some(),
        }
    }

    /// Keeps an object that could not be decoded, as it was, in the list with this epoch.
    pub fn retain(&mut self, resource: WatchedResource, key: &Key, epoch: ListEpoch) {
        if let Some(freshness) = self.freshness_mut(resource, key) {
            freshness.retain(epoch);
        }
    }

    pub fn n_objects(&self, resource: WatchedResource) -> usize {
        match resource {
            WatchedResource::Services => self.n_services,
            WatchedResource::Pods => self.pods.len(),
            WatchedResource::Nodes => self.nodes.n_cached(),
            WatchedResource::Endpoints => self.n_endpoints,
            WatchedResource::Slices => self.n_slices,
            WatchedResource::ReferenceGrants => self.n_grants(),
        }
    }

    /// The version of a cached object.
    pub fn version(&self, resource: WatchedResource, key: &Key) -> Option<ResourceVersion> {
        let freshness = match resource {
            WatchedResource::Nodes => self.nodes.freshness(&key.name)?,
            WatchedResource::Pods => self.pods[self.pod_id(key)?.index()].freshness(),
            WatchedResource::Services => {
                self.namespace(&key.namespace)?.services.get(&key.name)?.freshness()
            }
            WatchedResource::Endpoints => {
                let published = &self.namespace(&key.namespace)?.published;
                published.endpoints.get(&key.name)?.freshness()
            }
            WatchedResource::Slices => {
                let published = &self.namespace(&key.namespace)?.published;
                published.slices.get(&key.name)?.freshness()
            }
            WatchedResource::ReferenceGrants => self.imports.as_ref()?.grants.get(key)?.freshness(),
        };
        Some(freshness.version())
    }

    fn freshness_mut(&mut self, resource: WatchedResource, key: &Key) -> Option<&mut Freshness> {
        match resource {
            WatchedResource::Nodes => self.nodes.freshness_mut(&key.name),
            WatchedResource::Pods => {
                let id = self.pod_id(key)?;
                Some(self.pods[id.index()].freshness_mut())
            }
            WatchedResource::Services => {
                Some(self.namespace_mut(key)?.services.get_mut(&key.name)?.freshness_mut())
            }
            WatchedResource::Endpoints => {
                let published = &mut self.namespace_mut(key)?.published;
                Some(published.endpoints.get_mut(&key.name)?.freshness_mut())
            }
            WatchedResource::Slices => {
                let published = &mut self.namespace_mut(key)?.published;
                Some(published.slices.get_mut(&key.name)?.freshness_mut())
            }
            WatchedResource::ReferenceGrants => {
                Some(self.imports.as_mut()?.grants.get_mut(key)?.freshness_mut())
            }
        }
    }

    /// Sorted, because the order of removals decides the order of syncs.
    fn missing_from(
        &self,
        resource: WatchedResource,
        epoch: ListEpoch,
        listed: ResourceVersion,
    ) -> Vec<Key> {
        let is_missing = |freshness: &Freshness| freshness.is_missing_from(epoch, listed);
        let mut keys: Vec<Key> = match resource {
            WatchedResource::Nodes => self
                .nodes
                .names(is_missing)
                .map(|name| Key::new(SharedStr::default(), name.clone()))
                .collect(),
            WatchedResource::Pods => {
                let missing = self.pods.iter().filter(|(_, pod)| is_missing(pod.freshness()));
                let namespace = |id: u32| self.namespaces[id as usize].name.clone();
                let key = |(_, pod): (usize, &Cached<super::pods::PodRecord>)| {
                    Key::new(namespace(pod.object.namespace), pod.object.name.clone())
                };
                missing.map(key).collect()
            }
            WatchedResource::Services => self.keys_of(|one| &one.services, is_missing),
            WatchedResource::Endpoints => self.keys_of(|one| &one.published.endpoints, is_missing),
            WatchedResource::Slices => self.keys_of(|one| &one.published.slices, is_missing),
            WatchedResource::ReferenceGrants => {
                let grants = self.imports.iter().flat_map(|imports| &imports.grants);
                let missing = grants.filter(|(_, grant)| is_missing(grant.freshness()));
                missing.map(|(key, _)| key.clone()).collect()
            }
        };
        keys.sort_unstable();
        keys
    }

    fn keys_of<T>(
        &self,
        objects: impl Fn(&Namespace) -> &HashMap<SharedStr, Cached<T>>,
        is_wanted: impl Fn(&Freshness) -> bool,
    ) -> Vec<Key> {
        let mut keys = Vec::new();
        for (_, namespace) in &self.namespaces {
            let wanted =
                objects(namespace).iter().filter(|(_, cached)| is_wanted(cached.freshness()));
            keys.extend(wanted.map(|(name, _)| Key::new(namespace.name.clone(), name.clone())));
        }
        keys
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

fn published(resource: WatchedResource) -> Option<PublishedResource> {
    match resource {
        WatchedResource::Endpoints => Some(PublishedResource::Endpoints),
        WatchedResource::Slices => Some(PublishedResource::Slices),
        WatchedResource::Services
        | WatchedResource::Pods
        | WatchedResource::Nodes
        | WatchedResource::ReferenceGrants => None,
    }
}
