//! Pods that are missing from a list: a live list of their namespace decides whether they are gone.

use endpointd_model::{LiveRead, LiveReadResult, SharedStr, WatchedResource};

use super::Engine;
use crate::in_flight::Owner;
use crate::retry::NODE_RETRY;
use crate::{Effect, MonotonicTime, SyncSummary};

impl Engine {
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
            // Changes of these pods may be missing as well.
            self.syncs.push_effect(Effect::Relist(WatchedResource::Pods));
        }
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
            self.deletion_limiter.try_acquire_for(&owner.key, n_all, now)?;
        }
        self.controllers.of_mut(owner).keys.entry(&owner.key).has_lost_pods = false;
        Ok(())
    }
}
