//! Pods that are missing from a list: a live list of their namespace decides whether they are gone.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{Controller, Key, LiveRead, LiveReadResult, SharedStr, WatchedResource};

use super::Engine;
use crate::backoff::BACKOFF_MAX;
use crate::controllers::Work;
use crate::in_flight::Owner;
use crate::planning::Planned;
use crate::retry::NODE_RETRY;
use crate::{Effect, MonotonicTime, SyncSummary};

/// What the first plans after the start would un-publish because the first list of pods does not contain
/// it. A live list for all keys of a namespace decides.
#[derive(Debug, Default)]
pub(super) struct FirstPlans {
    /// Keys that wait for the live list.
    waiting: BTreeMap<(Controller, SharedStr), BTreeSet<Key>>,
    /// Namespaces whose live list has shown which published pods are gone.
    compared: BTreeSet<(Controller, SharedStr)>,
}

impl FirstPlans {
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Engine {
    /// Whether the first plan of a key must wait for the live list of its namespace.
    pub(super) fn awaits_pods(
        &mut self,
        work: &Work,
        planned: &mut Planned,
        now: MonotonicTime,
    ) -> bool {
        let Some(unlisted) = planned.unlisted.take() else { return false };
        let Owner { controller, key } = &work.owner;
        let place = (*controller, key.namespace.clone());
        let are_pods_compared = self.first_plans.compared.contains(&place)
            || !self.observed.has_unlisted(&key.namespace, unlisted);
        self.controllers.of_mut(&work.owner).keys.entry(key).are_pods_compared = are_pods_compared;
        if are_pods_compared {
            return false;
        }
        let FirstPlans { waiting, .. } = &mut self.first_plans;
        if !waiting.contains_key(&place) {
            self.observed.expect_published_pods(&key.namespace);
            for controller in self.controllers.iter().filter(|one| one.is_started()) {
                let controller = controller.settings.controller;
                waiting.entry((controller, key.namespace.clone())).or_default();
            }
        }
        waiting.entry(place).or_default().insert(key.clone());
        self.syncs.read_shared(LiveRead::Pods(key.namespace.clone()));
        self.controllers.postpone(work, now + BACKOFF_MAX, now);
        true
    }

    /// Another client, maybe another leader, has changed what a key publishes: it may publish pods that
    /// no list has contained.
    pub(super) fn compare_again(&mut self, owner: &Owner) {
        if let Some(entry) = self.controllers.of_mut(owner).keys.get_mut(&owner.key) {
            entry.are_pods_compared = false;
            let place = (owner.controller, owner.key.namespace.clone());
            self.first_plans.compared.remove(&place);
        }
    }

    /// A live list has shown which pods of the namespace are gone.
    fn release_first_plans(&mut self, namespace: &SharedStr, now: MonotonicTime) {
        for controller in Controller::DEFAULT {
            let place = (controller, namespace.clone());
            if let Some(keys) = self.first_plans.waiting.remove(&place) {
                self.first_plans.compared.insert(place);
                self.controllers.expedite(controller, &keys, now);
            }
        }
    }

    /// The list of all pods is complete: first plans are compared with it.
    pub(super) fn repeat_first_plans(&mut self, now: MonotonicTime) {
        for ((controller, _), keys) in std::mem::take(&mut self.first_plans.waiting) {
            self.controllers.expedite(controller, &keys, now);
        }
    }

    /// Also of pods that no Service selects now. Only the leader asks.
    pub(super) fn read_unlisted_pods(&mut self) {
        if self.can_plan() {
            self.repeat_pod_reads_at = None;
            for namespace in self.observed.cache().unlisted_namespaces() {
                self.syncs.read_shared(LiveRead::Pods(namespace));
            }
        }
    }

    pub(super) fn on_pods_read(
        &mut self,
        namespace: &SharedStr,
        result: LiveReadResult,
        now: MonotonicTime,
    ) {
        let LiveReadResult::Pods(pods) = result else {
            // Still unknown, whether a Service selects them now or not: its own list may be short, too.
            self.repeat_pod_reads_at = Some(now + NODE_RETRY);
            return;
        };
        let confirmed = self.observed.apply_pods(namespace, &pods);
        self.controllers.note_lost_pods(&confirmed.lost);
        self.controllers.enqueue(confirmed.lost, now);
        self.controllers.enqueue(confirmed.existing, now);
        if confirmed.was_list_short {
            // Changes of these pods may be missing as well. First plans wait for the list.
            return self.syncs.push_effect(Effect::Relist(WatchedResource::Pods));
        }
        self.release_first_plans(namespace, now);
    }

    /// The deletion limiter counts Services that lose their last endpoint to a list.
    pub(super) fn limit_lost_pods(
        &mut self,
        owner: &Owner,
        summary: &SyncSummary,
        now: MonotonicTime,
    ) -> Result<(), MonotonicTime> {
        if !self.controllers.of_mut(owner).keys.entry(&owner.key).has_lost_pods {
            return Ok(());
        }
        if summary.counts.n_desired == 0 && summary.has_writes() {
            let n_all = self.observed.cache().n_objects(WatchedResource::Endpoints);
            self.deletion_limiter.try_acquire(&owner.key, n_all, now)?;
        }
        self.controllers.of_mut(owner).keys.entry(&owner.key).has_lost_pods = false;
        Ok(())
    }
}
