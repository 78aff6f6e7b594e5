//! What a plan leaves behind: numbers, carried state, and when its key may be synced again.

use endpointd_model::Controller;
use endpointd_plan::{CarriedState, Counts, ExcludedPod};

use super::Controllers;
use crate::MonotonicTime;
use crate::absence::ConfirmedFacts;
use crate::cooldown::Cooldown;
use crate::in_flight::Owner;
use crate::key_stats::KeyStats;
use crate::queue::Priority;

/// What a plan reports about its key.
#[derive(Clone, Copy, Debug)]
pub struct PlanReport<'a> {
    pub counts: &'a Counts,
    pub excluded_pods: &'a [ExcludedPod],
    /// Label of the Service's traffic distribution.
    pub distribution: Option<&'static str>,
}

impl Controllers {
    /// Records what a plan reports, and returns what live reads have confirmed for it.
    pub fn record_plan(
        &mut self,
        owner: &Owner,
        mut carried: CarriedState,
        report: PlanReport<'_>,
        now: MonotonicTime,
    ) -> ConfirmedFacts {
        self.share_trigger_times(owner, &mut carried);
        let PlanReport { counts, excluded_pods, distribution } = report;
        let stats = KeyStats::new(counts, excluded_pods, distribution);
        let n_pods = counts.n_desired + excluded_pods.len();
        let addition_delay = self.of(owner).settings.addition_delay.of(counts.n_ready);
        let cooldown = Cooldown::after_plan(now, n_pods, addition_delay);
        let cooldown = match owner.controller {
            Controller::Endpoints => cooldown.for_all_priorities(),
            Controller::Slices
            | Controller::Mirror
            | Controller::Import
            | Controller::MultiCluster => cooldown,
        };
        let keys = &mut self.of_mut(owner).keys;
        keys.record_plan(&owner.key, carried, stats, cooldown);
        let failures = keys.failure_mut(&owner.key);
        let mut confirmed =
            failures.map(|one| std::mem::take(&mut one.confirmed)).unwrap_or_default();
        confirmed.forget_old(now);
        confirmed
    }

    /// A removal in flight leaves additions for later: the key is synced again when they are due.
    pub fn postpone_additions(&mut self, owner: &Owner, due: MonotonicTime, now: MonotonicTime) {
        let state = self.of_mut(owner);
        let entry = state.keys.entry(&owner.key);
        entry.cooldown = entry.cooldown.with_others_at(due);
        state.queue.enqueue(&owner.key, Priority::Live, due, now);
    }

    /// Two controllers publish the same pods, and must write the same trigger times for them.
    fn share_trigger_times(&self, owner: &Owner, carried: &mut CarriedState) {
        let Some(trigger) = &mut carried.trigger else { return };
        for other in &self.states {
            if other.settings.controller != owner.controller
                && let Some(entry) = other.keys.get(&owner.key)
                && let Some(known) = &entry.carried.trigger
            {
                trigger.share_with(known);
            }
        }
    }
}
