//! Pods: the index by name, and the Services that a change of a pod concerns.

mod record;

use std::hash::BuildHasher;

use endpointd_model::{Controller, Key, Phase, Pod, SharedStr};
use endpointd_plan::{PodDifference, pod_difference};

use self::record::PodIndexing;
use super::cached::{Accept, Cached, Freshness};
use super::{Cache, ChangeDelay, ChangeKind, DirtyKey, DirtyKeys, ListEpoch};
use crate::queue::Priority;

pub use self::record::{NodeSlot, PodId, PodRecord, PortList};

impl Cache {
    pub fn put_pod(&mut self, mut pod: Pod, epoch: ListEpoch, dirty: &mut DirtyKeys) {
        self.note_listed_pod(&pod.key(), dirty);
        let mut freshness = Freshness::new(pod.resource_version, epoch);
        let namespace = self.namespace_id(&pod.namespace);
        let cached = self.find_pod(namespace, &pod.name);
        if let Some(id) = cached {
            let known = self.pods[id.index()].freshness_mut();
            if known.accept(freshness) != Accept::New {
                return;
            }
            freshness = *known;
        }
        let old = cached.map(|id| self.unindex_pod(id));
        pod.labels = self.intern_labels(&pod.labels);
        let id = cached.unwrap_or_else(|| PodId(self.pods.vacant_key() as u32));
        self.add_affected_by_pod((namespace, id), old.as_ref(), Some(&pod), dirty);
        let selectors = &mut self.namespaces[namespace as usize].selectors;
        let slot = selectors.insert(&pod.labels, id);
        // Reuses the string that the record holds already.
        let name = cached.map_or(&pod.name, |id| &self.pods[id.index()].object.name).clone();
        let node_name = pod.node_name.take();
        let node = node_name.map(|node| self.nodes.insert(&self.strings.intern(&node), id));
        let named_ports = self.intern_ports(&pod);
        let indexing = PodIndexing { namespace, name, slot, node, named_ports };
        let record = Cached::new(PodRecord::new(pod, indexing), freshness);
        if cached.is_some() {
            self.pods[id.index()] = record;
        } else {
            let name = record.object.name.clone();
            self.pods.insert(record);
            self.index_pod(namespace, &name, id);
        }
    }

    pub fn remove_pod(&mut self, key: &Key, dirty: &mut DirtyKeys) {
        self.unlisted_pods.forget(key);
        let Some(&namespace) = self.namespace_by_name.get(&key.namespace) else { return };
        let Some(id) = self.find_pod(namespace, &key.name) else { return };
        let hash = self.hasher.hash_one(&key.name);
        let pods = &mut self.namespaces[namespace as usize].pods;
        if let Ok(entry) = pods.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
        let old = self.unindex_pod(id);
        self.pods.remove(id.index());
        self.add_affected_by_pod((namespace, id), Some(&old), None, dirty);
        self.drop_namespace_if_empty(namespace);
    }

    pub(super) fn pod_id(&self, key: &Key) -> Option<PodId> {
        let namespace = self.namespace_by_name.get(&key.namespace)?;
        self.find_pod(*namespace, &key.name)
    }

    /// Takes a pod out of the indexes, and returns it as it was.
    fn unindex_pod(&mut self, id: PodId) -> Pod {
        let record = &self.pods[id.index()].object;
        let (slot, node) = (record.slot, record.node);
        let namespace = &mut self.namespaces[record.namespace as usize];
        let labels = namespace.selectors.labels(slot.set);
        let node_name = node.map(|node| self.nodes.name(node.node()));
        let old = record.decode(&namespace.name, labels, node_name);
        if let Some(moved) = namespace.selectors.remove(slot) {
            self.pods[moved.index()].object.slot.position = slot.position;
        }
        if let Some(node) = node
            && let Some(moved) = self.nodes.remove(node)
            && let Some(moved) = &mut self.pods[moved.index()].object.node
        {
            moved.position = node.position;
        }
        old
    }

    /// Adds the Services that publish either version of a pod, if the change concerns them.
    fn add_affected_by_pod(
        &self,
        (namespace, id): (u32, PodId),
        old: Option<&Pod>,
        new: Option<&Pod>,
        dirty: &mut DirtyKeys,
    ) {
        let difference = match (old, new) {
            (Some(old), Some(new)) => pod_difference(old, new),
            (Some(_), None) | (None, Some(_)) => PodDifference::Content,
            (None, None) => PodDifference::None,
        };
        let has_new_time = old.zip(new).is_some_and(|(old, new)| old.readiness != new.readiness);
        if difference == PodDifference::None && !has_new_time {
            return;
        }
        let namespace = &self.namespaces[namespace as usize];
        let selecting = |pod: &Pod| namespace.selectors.selecting(&pod.labels);
        let before = old.map(selecting).unwrap_or_default();
        let after = new.map(selecting).unwrap_or_default();
        let priority = if stops_traffic(old, new) { Priority::Removal } else { Priority::Live };
        for service in &before {
            let key = Key::new(namespace.name.clone(), service.clone());
            if after.binary_search(service).is_err() {
                let priority = leaving_priority(old, priority);
                dirty.add_pods_batched(key, priority, ChangeKind::Any);
                continue;
            }
            let kind = ChangeKind::Conditions(id);
            match difference {
                PodDifference::Content => dirty.add_pods_batched(key, priority, ChangeKind::Any),
                PodDifference::Conditions => dirty.add_pods_batched(key, priority, kind),
                PodDifference::None | PodDifference::Membership if has_new_time => {
                    let (controller, delay) = (Controller::Slices, ChangeDelay::UntilNextSync);
                    dirty.0.push(DirtyKey { controller, key, priority, delay, kind });
                }
                PodDifference::None | PodDifference::Membership => {}
            }
        }
        for service in after.iter().filter(|service| before.binary_search(service).is_err()) {
            dirty.add_pods_batched(
                Key::new(namespace.name.clone(), service.clone()),
                Priority::Live,
                ChangeKind::Any,
            );
        }
    }

    pub(super) fn find_pod(&self, namespace: u32, name: &SharedStr) -> Option<PodId> {
        let pods = &self.namespaces[namespace as usize].pods;
        let is_it = |id: &PodId| self.pods[id.index()].object.name == *name;
        pods.find(self.hasher.hash_one(name), is_it).copied()
    }

    fn index_pod(&mut self, namespace: u32, name: &SharedStr, id: PodId) {
        let Self { pods, namespaces, hasher, .. } = self;
        let rehash = |id: &PodId| hasher.hash_one(&pods[id.index()].object.name);
        namespaces[namespace as usize].pods.insert_unique(hasher.hash_one(name), id, rehash);
    }
}

/// Whether the change takes an endpoint out of traffic.
fn stops_traffic(old: Option<&Pod>, new: Option<&Pod>) -> bool {
    let serves = |pod: &Pod| pod.is_ready() && !pod.is_terminating;
    match (old, new) {
        (Some(old), Some(new)) => {
            serves(old) && (!serves(new) || old.phase != new.phase || old.ips != new.ips)
        }
        // A terminating endpoint gets traffic only if no endpoint is ready.
        (Some(old), None) => old.phase == Phase::Active && !old.is_terminating,
        (None, _) => false,
    }
}

/// A pod that a Service no longer selects stops getting its traffic, if it got any.
fn leaving_priority(old: Option<&Pod>, otherwise: Priority) -> Priority {
    if old.is_some_and(Pod::is_ready) { Priority::Removal } else { otherwise }
}
