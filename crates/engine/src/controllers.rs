//! The controllers that run, each with its queue and its table of keys.

mod deletions;
mod plans;
mod refusals;
mod start;
mod work;

use std::time::Duration;

use endpointd_model::{Controller, FailureKind, Key};
use endpointd_plan::{CarriedState, Topology, is_overloaded};
use endpointd_rng::SplitMix64;

pub use self::plans::PlanReport;
pub use self::work::Work;
use crate::cache::{ChangeDelay, ChangeKind, DirtyKey, DirtyKeys, ObjectChange};
use crate::cooldown::Cooldown;
use crate::in_flight::{Owner, SyncEnd};
use crate::key_table::KeyTable;
use crate::queue::{ChangeInFlight, Dequeued, KeyPhase, Priority, Queue};
use crate::retry::{self, RetryContext, RetryInputs};
use crate::write_order::ENDPOINTS_DELAY_MAX;
use crate::{ControllerSettings, MonotonicTime, SyncResult};

/// After an outage, failed keys are retried within this time instead of all at once.
const RECOVERY_SPREAD: Duration = Duration::from_secs(1);

/// If a change concerns many keys, so many of them are due at once, and one more after each
/// [`TURN`]: the key of another change waits for few of them.
const FIRST_TURNS: u32 = 32;
const TURN: Duration = Duration::from_millis(1);

/// After so many syncs of slices that were preferred, Endpoints have a turn.
const PREFERRED_MAX: u64 = 8;

#[derive(Debug)]
pub struct Controllers {
    states: Vec<ControllerState>,
    /// Round robin: the next controller to dequeue a key.
    next: usize,
    /// At the last call of [`Self::dequeue`], Endpoints yielded to slices.
    do_endpoints_yield: bool,
    /// Syncs of slices since then.
    n_preferred: u64,
}

/// What each controller has of its own.
#[derive(Debug)]
pub struct ControllerState {
    pub settings: ControllerSettings,
    pub queue: Queue,
    pub keys: KeyTable,
    pub n_retries: u64,
    /// The initial sync of every key has been enqueued since leadership was acquired.
    is_started: bool,
}

impl Controllers {
    pub fn new(settings: Vec<ControllerSettings>) -> Self {
        let state = |settings: ControllerSettings| ControllerState {
            settings,
            queue: Queue::new(settings.syncs_max),
            keys: KeyTable::default(),
            n_retries: 0,
            is_started: false,
        };
        Self {
            states: settings.into_iter().map(state).collect(),
            next: 0,
            do_endpoints_yield: false,
            n_preferred: 0,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &ControllerState> {
        self.states.iter()
    }

    pub fn get(&self, controller: Controller) -> Option<&ControllerState> {
        self.states.iter().find(|state| state.settings.controller == controller)
    }

    /// The controller of a sync, which runs.
    pub fn of(&self, owner: &Owner) -> &ControllerState {
        self.get(owner.controller).expect("only controllers that run have syncs")
    }

    pub fn of_mut(&mut self, owner: &Owner) -> &mut ControllerState {
        self.get_mut(owner.controller).expect("only controllers that run have syncs")
    }

    pub fn get_mut(&mut self, controller: Controller) -> Option<&mut ControllerState> {
        self.states.iter_mut().find(|state| state.settings.controller == controller)
    }

    /// Before its initial sync a controller needs no keys: it will plan all of them.
    pub fn enqueue(&mut self, dirty: DirtyKeys, now: MonotonicTime) {
        for one in dirty.0 {
            if let Some(state) = self.get_mut(one.controller)
                && state.is_started
            {
                state.enqueue(&one, now);
            }
        }
    }

    /// The next key that is due, of the controllers in turn, if they have a free worker.
    pub fn dequeue(&mut self, now: MonotonicTime) -> Option<Work> {
        let n_controllers = self.states.len();
        self.do_endpoints_yield = self.must_endpoints_yield(now);
        for turn in 0..n_controllers {
            let index = (self.next + turn) % n_controllers;
            let state = &mut self.states[index];
            let controller = state.settings.controller;
            if controller == Controller::Endpoints && self.do_endpoints_yield {
                continue;
            }
            if state.queue.worker_free_at().is_some_and(|free| free <= now)
                && let Some(Dequeued { key, priority, since }) = state.queue.pop(now)
            {
                self.next = (index + 1) % n_controllers;
                self.n_preferred = match controller {
                    Controller::Slices if self.do_endpoints_yield => self.n_preferred + 1,
                    Controller::Endpoints => 0,
                    Controller::Slices
                    | Controller::Mirror
                    | Controller::Import
                    | Controller::MultiCluster => self.n_preferred,
                };
                let owner = Owner { controller, key };
                return Some(Work { owner, priority, since });
            }
        }
        None
    }

    /// When the next key of a controller with a free worker is due.
    pub fn next_due(&self) -> Option<MonotonicTime> {
        let due = |state: &ControllerState| {
            Some(state.queue.next_due()?.max(state.queue.worker_free_at()?))
        };
        let yields = |state: &&ControllerState| {
            self.do_endpoints_yield && state.settings.controller == Controller::Endpoints
        };
        self.states.iter().filter(|state| !yields(state)).filter_map(due).min()
    }

    /// The API server is slow, so that slices wait for a worker: it gets no Endpoints instead of
    /// them, except for a fair share.
    fn must_endpoints_yield(&self, now: MonotonicTime) -> bool {
        let slices = self.get(Controller::Slices);
        self.n_preferred < PREFERRED_MAX
            && slices.is_some_and(|slices| slices.queue.has_overdue(ENDPOINTS_DELAY_MAX, now))
    }

    pub fn on_change(&mut self, change: &ObjectChange, now: MonotonicTime) {
        match change {
            ObjectChange::ServiceApplied { key, is_replaced } => {
                if *is_replaced {
                    self.reset_key(key, now);
                }
                for state in &mut self.states {
                    state.keys.note_change(key, ChangeKind::Any);
                    state.keys.doubt_absence_of_service(key);
                }
                self.resync_in_flight(key, now);
            }
            ObjectChange::ServiceDeleted(key, _) => {
                self.reset_key(key, now);
                self.resync_in_flight(key, now);
            }
            ObjectChange::NodeObserved(_)
            | ObjectChange::Published { .. }
            | ObjectChange::EndpointsDeleted(..)
            | ObjectChange::NamespaceChanged(_) => {}
        }
    }

    /// The Service is deleted or another one: the state carried between its plans is void.
    fn reset_key(&mut self, key: &Key, now: MonotonicTime) {
        for state in &mut self.states {
            if state.queue.phase(key).is_none() {
                state.keys.remove(key, now);
            } else if let Some(entry) = state.keys.get_mut(key) {
                entry.carried = CarriedState::default();
                state.keys.note_change(key, ChangeKind::Any);
                state.keys.repairs.remove(key);
            }
        }
    }

    /// A sync in flight was planned for the Service as it was before. What it writes may be wrong
    /// now, and no other event will show that.
    fn resync_in_flight(&mut self, key: &Key, now: MonotonicTime) {
        for state in &mut self.states {
            if matches!(state.queue.phase(key), Some(KeyPhase::InFlight { .. })) {
                state.queue.enqueue(key, Priority::Live, now, now);
            }
        }
    }

    /// The cause of these failures is over: their keys are retried soon.
    pub fn expedite_failed(
        &mut self,
        is_over: impl Fn(FailureKind) -> bool,
        now: MonotonicTime,
        jitter: &mut SplitMix64,
    ) {
        for state in &mut self.states {
            let failed = state.keys.failures().filter(|(_, failures)| {
                failures.failure.as_ref().is_some_and(|failure| is_over(failure.kind))
            });
            let mut keys: Vec<Key> = failed.map(|(key, _)| key.clone()).collect();
            keys.sort_unstable();
            for key in keys {
                state.grant_try(&key, now);
                let due = now + jitter.up_to(RECOVERY_SPREAD);
                state.queue.expedite(&key, due.max(state.keys.throttled_until(&key)));
            }
        }
    }

    /// Services whose topology hints were refused, or whose zones have too few endpoints now.
    pub fn affected_by_topology(&self, topology: &Topology) -> DirtyKeys {
        let (priority, delay, kind) = (Priority::Live, ChangeDelay::None, ChangeKind::Any);
        let mut all = Vec::new();
        for state in &self.states {
            let controller = state.settings.controller;
            let affected = state.keys.iter().filter(|(_, entry)| {
                let hints = &entry.carried.hints;
                hints.is_refused() || is_overloaded(hints, topology)
            });
            let keys = affected.map(|(key, _)| key.clone());
            all.extend(keys.map(|key| DirtyKey { controller, key, priority, delay, kind }));
        }
        all.sort_unstable();
        DirtyKeys(all)
    }

    /// Enqueues a key for a look in the background, unless a change comes first.
    pub fn enqueue_background(&mut self, owner: &Owner, due: MonotonicTime, now: MonotonicTime) {
        self.of_mut(owner).queue.enqueue(&owner.key, Priority::Background, due, now);
    }

    /// Enqueues a dequeued key again, for later.
    pub fn postpone(&mut self, work: &Work, due: MonotonicTime, now: MonotonicTime) {
        let queue = &mut self.of_mut(&work.owner).queue;
        queue.done(&work.owner.key);
        queue.enqueue(&work.owner.key, work.priority, due, now);
    }

    /// Stops all controllers and drops everything that waits. Syncs in flight end by their responses.
    pub fn clear(&mut self, now: MonotonicTime) {
        for state in &mut self.states {
            state.is_started = false;
            state.queue.clear();
            state.keys.clear(now);
        }
    }
}

impl ControllerState {
    /// Whether it plans keys. Otherwise syncs in flight only wait for their responses.
    pub fn is_started(&self) -> bool {
        self.is_started
    }

    fn enqueue(&mut self, dirty: &DirtyKey, now: MonotonicTime) {
        let DirtyKey { controller: _, key, priority, delay, kind } = dirty;
        self.keys.note_change(key, *kind);
        let batched_until = match delay {
            ChangeDelay::None => now,
            ChangeDelay::BatchPeriod => now + self.settings.batch_period,
            ChangeDelay::Turn(turn) => now + TURN * turn.saturating_sub(FIRST_TURNS),
            ChangeDelay::UntilNextSync => return,
        };
        let is_in_flight = matches!(self.queue.phase(key), Some(KeyPhase::InFlight { .. }));
        let due = match priority {
            Priority::Background => now,
            // The end of the sync in flight decides about cooldown and back-off.
            Priority::Removal | Priority::Live | Priority::Repair if is_in_flight => batched_until,
            Priority::Removal | Priority::Live | Priority::Repair => {
                let earliest = self.earliest(key, *priority, batched_until, now);
                retry::after_change(*priority, self.keys.is_failing(key), earliest, now)
            }
        };
        self.queue.enqueue(key, *priority, due.max(self.keys.throttled_until(key)), now);
    }

    /// The delay after another client has changed what this controller publishes: upstream delays
    /// changes of slices, and none of Endpoints.
    fn batch_period_of_published(&self) -> Duration {
        match self.settings.controller {
            Controller::Slices | Controller::Mirror => self.settings.batch_period,
            Controller::Endpoints | Controller::Import | Controller::MultiCluster => Duration::ZERO,
        }
    }

    /// The latest of the end of the batch period, of the cooldown of a key, and of the wait of a
    /// repair.
    fn earliest(
        &mut self,
        key: &Key,
        priority: Priority,
        batched_until: MonotonicTime,
        now: MonotonicTime,
    ) -> MonotonicTime {
        let cooldown = self.keys.get(key).map(|entry| entry.cooldown).unwrap_or_default();
        let earliest = batched_until.max(cooldown.until(priority));
        match priority {
            Priority::Repair => earliest.max(self.keys.repairs.next(key, now)),
            Priority::Removal | Priority::Live | Priority::Background => earliest,
        }
    }

    /// A sync ended after the controller was stopped: the next initial sync starts without its results.
    pub fn abandon(&mut self, key: &Key, now: MonotonicTime) {
        self.queue.done(key);
        self.keys.remove(key, now);
    }

    /// Records the result of a sync, and enqueues its key again if it changed meanwhile or must be
    /// retried.
    pub fn finish(
        &mut self,
        key: &Key,
        end: &SyncEnd,
        RetryContext { now, jitter }: RetryContext<'_>,
    ) {
        let changed = self.queue.done(key);
        let entry = self.keys.entry(key);
        if end.summary.as_ref().is_some_and(|summary| summary.has_writes()) {
            entry.cooldown = entry.cooldown.and(Cooldown::after_writes(end.planned_at, now));
        }
        let inputs = RetryInputs {
            has_concurrent_write: end.has_concurrent_write,
            batch_period: self.batch_period_of_published(),
            ..self.record_result(key, end)
        };
        let retry = retry::after_sync(&end.result, &inputs, now, jitter);
        let throttled_until = self.keys.throttled_until(key);
        // The change first: it has waited longer, and the first entry decides the age.
        if let Some(ChangeInFlight { priority, since, due }) = changed {
            let is_failed = matches!(end.result, SyncResult::Failed(_));
            let earliest = self.earliest(key, priority, due.max(now), now);
            let due = retry::after_change(priority, is_failed, earliest, now);
            self.queue.enqueue(key, priority, due.max(throttled_until), since);
        }
        if let Some(due) = retry {
            let (priority, due) = match end.result {
                // Only a concurrent write is a reason to sync the key again.
                SyncResult::Unchanged | SyncResult::Written | SyncResult::NamespaceTerminating => {
                    (Priority::Repair, due.max(self.keys.repairs.next(key, now)))
                }
                SyncResult::ConflictRetry
                | SyncResult::Throttled
                | SyncResult::Failed(_)
                | SyncResult::LeadershipLost => (end.priority, due),
            };
            self.queue.enqueue(key, priority, due.max(throttled_until), now);
        }
    }

    fn record_result(&mut self, key: &Key, end: &SyncEnd) -> RetryInputs {
        match &end.result {
            SyncResult::Failed(failure) => {
                self.n_retries += 1;
                let failures = self.keys.failure_entry(key);
                failures.n_failures += 1;
                failures.failure = Some(failure.clone());
                failures.last_result = Some(end.result.as_str());
                failures.reads_required.extend(end.unconfirmed_reads.iter().cloned());
                RetryInputs { n_failures: failures.n_failures, ..RetryInputs::default() }
            }
            SyncResult::ConflictRetry => {
                // A sync that only read is no conflict: it corrected the cache, as it should, and
                // the plan that waited for it follows at once.
                if end.summary.is_none() {
                    return RetryInputs::default();
                }
                let failures = self.keys.failure_entry(key);
                failures.n_conflicts += 1;
                RetryInputs { n_conflicts: failures.n_conflicts, ..RetryInputs::default() }
            }
            SyncResult::Unchanged | SyncResult::Written | SyncResult::NamespaceTerminating => {
                self.keys.clear_failure(key);
                RetryInputs::default()
            }
            SyncResult::Throttled => {
                self.keys.failure_entry(key).last_result = Some(end.result.as_str());
                RetryInputs::default()
            }
            SyncResult::LeadershipLost => RetryInputs::default(),
        }
    }
}
