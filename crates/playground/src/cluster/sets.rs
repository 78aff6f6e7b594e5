//! ReplicaSets and Deployments, and which of them must be reconciled.

mod decide;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use endpointd_apiserver::store::{Key, Stored};
use serde_json::Value;

use super::facts::{DeploymentFacts, HASH_LABEL, ReplicaSetFacts, SetStatus, read};
use crate::seeded::suffix;

#[derive(Default)]
pub struct Sets {
    replica_sets: BTreeMap<String, ReplicaSet>,
    deployments: BTreeMap<String, Deployment>,
    /// Uids of ReplicaSets by the uid of their Deployment.
    uids_by_owner: BTreeMap<String, BTreeSet<String>>,
    uid_by_key: BTreeMap<(&'static str, Key), String>,
    /// By uid: the earliest time of the next reconciliation.
    dirty: BTreeMap<String, Duration>,
}

struct ReplicaSet {
    key: Key,
    owner: Option<String>,
    hash: String,
    revision: u64,
    n_replicas: usize,
    generation: i64,
    status: SetStatus,
    is_deleting: bool,
    n_named: u64,
    next_check_at: Duration,
}

struct Deployment {
    key: Key,
    facts: DeploymentFacts,
    hash: String,
    is_deleting: bool,
}

impl Deployment {
    fn revision(&self) -> u64 {
        self.facts.metadata.revision()
    }
}

const REPLICA_SETS: &str = "replicasets";
const DEPLOYMENTS: &str = "deployments";

impl Sets {
    pub fn apply_replica_set(&mut self, key: &Key, object: Option<&Stored>, now: Duration) {
        let uid = self.forget(REPLICA_SETS, key);
        let old = uid.as_ref().and_then(|uid| self.replica_sets.remove(uid));
        if let Some(owner) = old.as_ref().and_then(|set| set.owner.clone()) {
            self.mark_dirty(&owner, now);
        }
        self.unindex_owner(old.as_ref(), uid.as_deref());
        let Some(stored) = object else { return };
        let facts: ReplicaSetFacts = read(stored);
        let set = ReplicaSet {
            key: key.clone(),
            owner: stored.owners.first().map(|owner| owner.uid.clone()),
            hash: stored.labels.get(HASH_LABEL).cloned().unwrap_or_default(),
            revision: facts.metadata.revision(),
            n_replicas: facts.spec.replicas,
            generation: facts.metadata.generation,
            status: facts.status,
            is_deleting: stored.is_deleting,
            n_named: old.as_ref().map_or(0, |set| set.n_named),
            next_check_at: old.as_ref().map_or(Duration::ZERO, |set| set.next_check_at),
        };
        self.uid_by_key.insert((REPLICA_SETS, key.clone()), stored.uid.clone());
        let owner = set.owner.clone();
        if let Some(owner) = &owner {
            let uids = self.uids_by_owner.entry(owner.clone()).or_default();
            uids.insert(stored.uid.clone());
        }
        self.replica_sets.insert(stored.uid.clone(), set);
        self.mark_dirty(&stored.uid, now);
        owner.iter().for_each(|owner| self.mark_dirty(owner, now));
    }

    pub fn apply_deployment(&mut self, key: &Key, object: Option<&Stored>, now: Duration) {
        if let Some(uid) = self.forget(DEPLOYMENTS, key) {
            self.deployments.remove(&uid);
        }
        let Some(stored) = object else { return };
        let facts: DeploymentFacts = read(stored);
        let hash = hash_of(&facts.spec.template);
        let is_deleting = stored.is_deleting;
        let deployment = Deployment { key: key.clone(), facts, hash, is_deleting };
        self.uid_by_key.insert((DEPLOYMENTS, key.clone()), stored.uid.clone());
        self.deployments.insert(stored.uid.clone(), deployment);
        self.mark_dirty(&stored.uid, now);
    }

    fn forget(&mut self, resource: &'static str, key: &Key) -> Option<String> {
        let uid = self.uid_by_key.remove(&(resource, key.clone()))?;
        self.dirty.remove(&uid);
        Some(uid)
    }

    fn unindex_owner(&mut self, set: Option<&ReplicaSet>, uid: Option<&str>) {
        let (Some(owner), Some(uid)) = (set.and_then(|set| set.owner.as_ref()), uid) else {
            return;
        };
        let Some(uids) = self.uids_by_owner.get_mut(owner) else { return };
        uids.remove(uid);
        if uids.is_empty() {
            self.uids_by_owner.remove(owner);
        }
    }

    /// Queues an owner for reconciliation, for example after a change of one of its pods.
    pub fn mark_dirty(&mut self, uid: &str, now: Duration) {
        if let Some(set) = self.replica_sets.get(uid) {
            let (at, owner) = (set.next_check_at.max(now), set.owner.clone());
            self.dirty.entry(uid.to_owned()).or_insert(at);
            if let Some(owner) = owner.filter(|owner| self.deployments.contains_key(owner)) {
                self.dirty.entry(owner).or_insert(at);
            }
        } else if self.deployments.contains_key(uid) {
            self.dirty.entry(uid.to_owned()).or_insert(now);
        }
    }

    pub fn wake_at(&self) -> Option<Duration> {
        self.dirty.values().min().copied()
    }

    pub fn replica_sets_of(&self, deployment: &Key) -> Vec<String> {
        let uid = self.uid_by_key.get(&(DEPLOYMENTS, deployment.clone()));
        let Some(uid) = uid else { return Vec::new() };
        self.owned_by(uid).into_iter().map(|(uid, _)| uid.to_owned()).collect()
    }

    /// ReplicaSets that are not in deletion, oldest first.
    fn owned_by(&self, owner: &str) -> Vec<(&str, &ReplicaSet)> {
        let uids = self.uids_by_owner.get(owner).into_iter().flatten();
        let sets = uids.filter_map(|uid| Some((uid.as_str(), self.replica_sets.get(uid)?)));
        let mut all: Vec<(&str, &ReplicaSet)> = sets.filter(|(_, set)| !set.is_deleting).collect();
        all.sort_by_key(|(_, set)| set.revision);
        all
    }
}

/// Upstream: `ComputeHash`. The value differs; equal templates have equal hashes.
fn hash_of(template: &Value) -> String {
    let text = template.to_string();
    let suffixes = [0, 1].map(|n| suffix(0, &[&text], n));
    suffixes.concat()
}
