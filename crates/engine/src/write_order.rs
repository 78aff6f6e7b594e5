//! Slices go before Endpoints.
//!
//! Nearly everybody routes by slices, and two writes at the same moment make each other late: they
//! share the processors of the API server. So the Endpoints of a key give way while its slices are
//! on their way. What becomes of the slices does not matter, and neither controller can hold up the
//! other for longer than a moment.
//!
//! They are planned at once all the same, while all that a plan looks at is still at hand. A plan
//! that is overtaken by another change is dropped: nothing of it has happened yet.

use std::time::Duration;

use endpointd_model::{Controller, Key};

use crate::MonotonicTime;
use crate::engine::Engine;
use crate::queue::{Dequeued, KeyPhase, Priority};
use crate::sync::Planned;

/// No Endpoints wait longer than this for their slices: several times what a write takes, and too
/// short for anybody to record.
pub const ENDPOINTS_DELAY_MAX: Duration = Duration::from_millis(25);

/// A plan that gives way. Its key counts as in flight.
#[derive(Debug)]
pub struct DeferredPlan {
    lane: usize,
    dequeued: Dequeued,
    planned: Planned,
    until: MonotonicTime,
}

impl Engine {
    /// Until when this key should wait for another controller, if it should. A start-up is no time
    /// for manners: there the server has all it can do anyway.
    pub(crate) fn should_defer(
        &self,
        lane: usize,
        dequeued: &Dequeued,
        now: MonotonicTime,
    ) -> Option<MonotonicTime> {
        let is_polite = self.controllers[lane].settings.controller == Controller::Endpoints
            && dequeued.priority != Priority::Background;
        let until = dequeued.since + ENDPOINTS_DELAY_MAX;
        (is_polite && now < until && self.has_slice_sync(&dequeued.key, now)).then_some(until)
    }

    fn has_slice_sync(&self, key: &Key, now: MonotonicTime) -> bool {
        let slices =
            self.controllers.iter().find(|lane| lane.settings.controller == Controller::Slices);
        slices.and_then(|lane| lane.queue.phase(key)).is_some_and(|phase| match phase {
            KeyPhase::Waiting { due, .. } => due <= now,
            KeyPhase::InFlight { .. } => true,
        })
    }

    pub(crate) fn defer(
        &mut self,
        lane: usize,
        dequeued: Dequeued,
        planned: Planned,
        until: MonotonicTime,
    ) {
        self.deferred.push(DeferredPlan { lane, dequeued, planned, until });
    }

    /// A sync is over: whoever gave way to it need not wait any more.
    pub(crate) fn release_deferred(
        &mut self,
        controller: Controller,
        key: &Key,
        now: MonotonicTime,
    ) {
        if controller == Controller::Slices
            && let Some(waiting) = self.deferred.iter_mut().find(|one| one.dequeued.key == *key)
        {
            waiting.until = now;
        }
    }

    /// Goes on with a key that has waited long enough. Says whether there was one.
    pub(crate) fn run_due_deferred(&mut self, now: MonotonicTime) -> bool {
        let Some(at) = self.deferred.iter().position(|one| one.until <= now) else { return false };
        let DeferredPlan { lane, dequeued, planned, .. } = self.deferred.swap_remove(at);
        let queue = &mut self.controllers[lane].queue;
        if queue.changed_in_flight(&dequeued.key) {
            queue.requeue(dequeued, now);
        } else {
            self.carry_out(lane, &dequeued, planned, now);
        }
        true
    }

    /// Nobody plans any more.
    pub(crate) fn drop_deferred(&mut self) {
        for one in self.deferred.drain(..) {
            self.controllers[one.lane].queue.done(&one.dequeued.key);
        }
    }

    /// When the next one has waited long enough.
    pub(crate) fn next_deferred_due(&self) -> Option<MonotonicTime> {
        self.deferred.iter().map(|one| one.until).min()
    }
}
