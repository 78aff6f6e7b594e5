//! Pods that the last list does not contain, although the watch has not reported their deletion. A
//! faulty API server can send an empty or a short list, and published endpoints depend on it. So these
//! pods stay in the cache until a live list of their namespace shows that they are gone. Until then
//! they stay published where they are, and are published nowhere else.
//!
//! The first list has nothing before it: there, the pods that published objects name are expected.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{EndpointSlice, Endpoints, Key, ObjectRef, PodUids, SharedStr};

use super::pods::PodId;
use super::{Cache, ChangeKind, DirtyKeys, ListEpoch, Namespace};
use crate::queue::Priority;

/// Names by namespace.
#[derive(Debug, Default)]
pub struct UnlistedPods(BTreeMap<SharedStr, BTreeSet<SharedStr>>);

/// What a live list of a namespace showed of its unlisted pods.
#[derive(Debug, Default)]
pub struct ConfirmedPods {
    /// Keys that have lost pods, because these are gone.
    pub lost: DirtyKeys,
    /// Keys that select pods which exist.
    pub existing: DirtyKeys,
    /// Some exist: the list of all pods was short.
    pub was_list_short: bool,
}

impl UnlistedPods {
    /// The watch has reported the pod, or its deletion. Returns whether it was unlisted.
    pub(super) fn forget(&mut self, key: &Key) -> bool {
        let Some(names) = self.0.get_mut(&key.namespace) else { return false };
        let was_unlisted = names.remove(&key.name);
        if names.is_empty() {
            self.0.remove(&key.namespace);
        }
        was_unlisted
    }
}

impl Cache {
    /// A list of all pods is complete and does not contain these.
    pub(super) fn miss_pods(&mut self, missing: Vec<Key>, dirty: &mut DirtyKeys) {
        self.unlisted_pods = UnlistedPods::default();
        for key in missing {
            let Some(id) = self.pod_id(&key) else { continue };
            self.add_affected_by_unlisted(&key, id, dirty);
            self.unlisted_pods.0.entry(key.namespace).or_default().insert(key.name);
        }
    }

    /// An unlisted pod exists: Services that did not publish it yet may do so.
    pub(super) fn note_listed_pod(&mut self, key: &Key, dirty: &mut DirtyKeys) {
        if self.unlisted_pods.forget(key)
            && let Some(id) = self.pod_id(key)
        {
            self.add_affected_by_unlisted(key, id, dirty);
        }
    }

    /// Pods that published objects of a namespace name and that are not cached.
    pub fn uncached_published_pods(&self, namespace: &SharedStr) -> BTreeSet<SharedStr> {
        let Some(Namespace { published, .. }) = self.namespace(namespace) else {
            return BTreeSet::new();
        };
        let key = |name: &SharedStr| Key::new(namespace.clone(), name.clone());
        let slices = published.slices.keys().filter_map(|name| self.slice(&key(name)));
        let endpoints = published.endpoints.keys().map(|name| self.endpoints(&key(name)));
        let of_endpoints = endpoints.map(|one| self.uncached_pods_of_endpoints(namespace, &one));
        let of_slices = slices.map(|one| self.uncached_pods_of_slices(namespace, &[one]));
        of_endpoints.chain(of_slices).flatten().collect()
    }

    pub(super) fn uncached_pods_of_slices(
        &self,
        namespace: &SharedStr,
        slices: &[EndpointSlice],
    ) -> BTreeSet<SharedStr> {
        let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
        self.uncached_pods(namespace, endpoints.map(|one| &one.target_ref))
    }

    pub(super) fn uncached_pods_of_endpoints(
        &self,
        namespace: &SharedStr,
        endpoints: &Option<Endpoints>,
    ) -> BTreeSet<SharedStr> {
        let subsets = endpoints.iter().flat_map(|endpoints| &endpoints.subsets);
        let addresses =
            subsets.flat_map(|subset| subset.addresses.iter().chain(&subset.not_ready_addresses));
        self.uncached_pods(namespace, addresses.map(|one| &one.target_ref))
    }

    fn uncached_pods<'a>(
        &self,
        namespace: &SharedStr,
        targets: impl Iterator<Item = &'a Option<ObjectRef>>,
    ) -> BTreeSet<SharedStr> {
        let pods = targets.flatten().filter(|target| &*target.kind == "Pod");
        let keys = pods.map(|pod| Key::new(namespace.clone(), pod.name.clone()));
        keys.filter(|pod| self.pod_id(pod).is_none()).map(|pod| pod.name).collect()
    }

    /// Published objects name these pods, which the cache does not hold.
    pub fn expect_pods(&mut self, namespace: &SharedStr, names: BTreeSet<SharedStr>) {
        self.unlisted_pods.0.entry(namespace.clone()).or_default().extend(names);
    }

    pub fn has_unlisted_pods(&self, namespace: &SharedStr) -> bool {
        self.unlisted_pods.0.contains_key(namespace)
    }

    /// Namespaces with unlisted pods, sorted.
    pub fn unlisted_namespaces(&self) -> Vec<SharedStr> {
        self.unlisted_pods.0.keys().cloned().collect()
    }

    pub(super) fn unlisted_pods_of(&self, namespace: &SharedStr) -> Option<&BTreeSet<SharedStr>> {
        self.unlisted_pods.0.get(namespace)
    }

    /// Applies a live list of a namespace that was sent after the list of all pods.
    pub fn apply_live_pods(
        &mut self,
        namespace: &SharedStr,
        existing: &PodUids,
        epoch: ListEpoch,
    ) -> ConfirmedPods {
        let unlisted = self.unlisted_pods.0.remove(namespace).unwrap_or_default();
        let mut confirmed = ConfirmedPods::default();
        for name in unlisted {
            let key = Key::new(namespace.clone(), name);
            let Some(id) = self.pod_id(&key) else {
                if existing.contains_key(&key.name) {
                    // Expected until the next list of all pods is complete, or the watch reports it.
                    confirmed.was_list_short = true;
                    self.expect_pods(namespace, BTreeSet::from([key.name]));
                }
                continue;
            };
            let of = &self.namespaces[self.pods[id.index()].object.namespace as usize];
            let uid = self.decode_pod(of, id.0).uid;
            if existing.get(&key.name) == Some(&uid) {
                self.pods[id.index()].freshness_mut().retain(epoch);
                self.add_affected_by_unlisted(&key, id, &mut confirmed.existing);
                confirmed.was_list_short = true;
            } else {
                self.remove_pod(&key, &mut confirmed.lost);
            }
        }
        confirmed
    }

    fn add_affected_by_unlisted(&self, key: &Key, id: PodId, dirty: &mut DirtyKeys) {
        for service in self.services_of(id) {
            let key = Key::new(key.namespace.clone(), service.clone());
            dirty.add_pods_batched(key, Priority::Removal, ChangeKind::Any);
        }
    }

    fn services_of(&self, id: PodId) -> &[SharedStr] {
        let record = &self.pods[id.index()].object;
        self.namespaces[record.namespace as usize].selectors.services(record.slot.set)
    }
}
