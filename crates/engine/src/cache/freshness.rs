//! Which objects of each resource are cached, and how fresh they are.

use endpointd_model::{Key, PublishedResource, ResourceVersion, SharedStr, WatchedResource};
use hashbrown::HashMap;

use super::{Cache, Cached, Changes, Freshness, ListEpoch, Namespace};

impl Cache {
    pub fn contains(&self, resource: WatchedResource, key: &Key) -> bool {
        match resource {
            WatchedResource::Services => self.service(key).is_some(),
            WatchedResource::Pods => self.pod_id(key).is_some(),
            WatchedResource::Nodes => self.nodes.contains(&key.name),
            WatchedResource::Endpoints => self.object(PublishedResource::Endpoints, key).is_some(),
            WatchedResource::Slices => self.object(PublishedResource::Slices, key).is_some(),
            WatchedResource::ReferenceGrants
            | WatchedResource::Namespaces
            | WatchedResource::ServiceExports
            | WatchedResource::ServiceImports
            | WatchedResource::DerivedServices => self.version(resource, key).is_some(),
        }
    }

    /// Keeps an object that could not be decoded, as it was, in the list with this epoch.
    pub fn retain(&mut self, resource: WatchedResource, key: &Key, epoch: ListEpoch) -> Changes {
        let mut changes = Changes::default();
        if let Some(freshness) = self.freshness_mut(resource, key) {
            freshness.retain(epoch);
        }
        if resource == WatchedResource::Pods {
            self.note_listed_pod(key, &mut changes.dirty);
        }
        changes
    }

    pub fn n_objects(&self, resource: WatchedResource) -> usize {
        match resource {
            WatchedResource::Services => self.n_services,
            WatchedResource::Pods => self.pods.len(),
            WatchedResource::Nodes => self.nodes.n_cached(),
            WatchedResource::Endpoints => self.n_endpoints,
            WatchedResource::Slices => self.n_slices,
            WatchedResource::ReferenceGrants => self.n_grants(),
            WatchedResource::Namespaces
            | WatchedResource::ServiceExports
            | WatchedResource::ServiceImports
            | WatchedResource::DerivedServices => {
                self.multicluster.as_ref().map_or(0, |all| all.n_objects(resource))
            }
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
            WatchedResource::Namespaces
            | WatchedResource::ServiceExports
            | WatchedResource::ServiceImports
            | WatchedResource::DerivedServices => {
                self.multicluster.as_ref()?.freshness(resource, key)?
            }
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
            WatchedResource::Namespaces
            | WatchedResource::ServiceExports
            | WatchedResource::ServiceImports
            | WatchedResource::DerivedServices => {
                self.multicluster.as_mut()?.freshness_mut(resource, key)
            }
        }
    }

    /// Sorted, because the order of removals decides the order of syncs.
    pub(super) fn missing_from(
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
            WatchedResource::Namespaces
            | WatchedResource::ServiceExports
            | WatchedResource::ServiceImports
            | WatchedResource::DerivedServices => {
                let all = self.multicluster.as_ref();
                all.map_or_else(Vec::new, |all| all.keys_of_resource(resource, &is_missing))
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
}
