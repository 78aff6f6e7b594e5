//! Other controllers of kube-controller-manager: garbage collector and namespace controller.

use endpointd_model::{EndpointSlice, Key, OwnerRef, PublishedResource, SharedStr};

use crate::{MemoryApi, NamespaceState};

impl MemoryApi {
    /// Deletes one slice whose owners do not exist; returns whether there was one.
    pub fn collect_orphan(&mut self) -> bool {
        let orphan = self.slices.values().find(|slice| self.is_orphan(slice));
        let Some(key) = orphan.map(|slice| slice.meta.key()) else { return false };
        self.remove(PublishedResource::Slices, &key);
        true
    }

    fn is_orphan(&self, slice: &EndpointSlice) -> bool {
        let meta = &slice.meta;
        let is_gone = |owner: &OwnerRef| !self.has_owner(&meta.namespace, owner);
        !meta.is_deleting() && !meta.owners.is_empty() && meta.owners.iter().all(is_gone)
    }

    /// Owners of unknown kinds are assumed to exist.
    fn has_owner(&self, namespace: &SharedStr, owner: &OwnerRef) -> bool {
        let key = Key::new(namespace.clone(), owner.name.clone());
        match owner.kind.as_ref() {
            "Service" => self.services.get(&key).is_some_and(|one| one.uid == owner.uid),
            "Endpoints" => self.endpoints.get(&key).is_some_and(|one| one.meta.uid == owner.uid),
            _ => true,
        }
    }

    /// Deletes one object of a terminating namespace, and the namespace after its last object;
    /// returns whether there was one.
    pub fn delete_namespace_object(&mut self, choice: usize) -> bool {
        let ending =
            |(_, state): &(&SharedStr, &NamespaceState)| **state == NamespaceState::Terminating;
        let Some(namespace) = self.namespaces.iter().find(ending).map(|(name, _)| name.clone())
        else {
            return false;
        };
        let of = |keys: Vec<Key>| {
            keys.into_iter().filter(|key| key.namespace == namespace).collect::<Vec<_>>()
        };
        let services = of(self.services.keys());
        let pods = of(self.pods.keys());
        let endpoints = of(self.endpoints.keys());
        let slices = of(self.slices.keys());
        let grants = of(self.grants.keys());
        let lists = [services, pods, endpoints, slices, grants];
        let left: Vec<usize> = (0..lists.len()).filter(|n| !lists[*n].is_empty()).collect();
        let Some(kind) = left.get(choice % left.len().max(1)) else {
            self.namespaces.remove(&namespace);
            return true;
        };
        let key = lists[*kind][choice % lists[*kind].len()].clone();
        match kind {
            0 => self.remove_service(&key),
            1 => self.remove_pod(&key),
            2 => drop(self.remove(PublishedResource::Endpoints, &key)),
            3 => self.delete_slice(&key),
            _ => self.remove_grant(&key),
        }
        true
    }

    /// Deletes a slice; its finalizers are dropped first.
    fn delete_slice(&mut self, key: &Key) {
        let Some(slice) = self.slices.get(key) else { return };
        if slice.meta.finalizers.is_empty() {
            self.remove(PublishedResource::Slices, key);
        } else {
            self.drop_object(PublishedResource::Slices, key);
        }
    }
}
