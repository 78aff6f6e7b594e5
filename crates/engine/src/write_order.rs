//! Endpoints are written after the EndpointSlices of the same Service.
//!
//! Nearly all consumers route by slices, and two writes at the same time slow each other down in
//! the API server. So a plan for Endpoints is deferred while the slices of its key are queued or in
//! flight, until their sync ends, well or not, and for at most [`ENDPOINTS_DELAY_MAX`].
//!
//! Endpoints are planned before they are deferred, while the CPU caches still hold what both plans
//! read. If the key changes meanwhile, the deferred plan is dropped: nothing of it has been sent.

use std::time::Duration;

use endpointd_model::{Controller, Key};

use crate::MonotonicTime;
use crate::controllers::{Controllers, Work};
use crate::planning::Planned;
use crate::queue::{KeyPhase, Priority};

/// Several times what a write takes, and short compared with the propagation of Endpoints.
pub const ENDPOINTS_DELAY_MAX: Duration = Duration::from_millis(25);

/// Plans for Endpoints that wait for slices. Their keys count as in flight.
#[derive(Debug, Default)]
pub struct DeferredPlans {
    plans: Vec<DeferredPlan>,
}

#[derive(Debug)]
struct DeferredPlan {
    work: Work,
    planned: Planned,
    until: MonotonicTime,
}

impl DeferredPlans {
    pub fn push(&mut self, work: Work, planned: Planned, until: MonotonicTime) {
        self.plans.push(DeferredPlan { work, planned, until });
    }

    /// A sync has ended: if it was one of slices, the Endpoints of its key are due now.
    pub fn release(&mut self, controller: Controller, key: &Key, now: MonotonicTime) {
        if controller == Controller::Slices
            && let Some(plan) = self.plans.iter_mut().find(|plan| plan.work.owner.key == *key)
        {
            plan.until = now;
        }
    }

    /// Takes out one plan that has waited long enough.
    pub fn pop_due(&mut self, now: MonotonicTime) -> Option<(Work, Planned)> {
        let at = self.plans.iter().position(|plan| plan.until <= now)?;
        let DeferredPlan { work, planned, .. } = self.plans.swap_remove(at);
        Some((work, planned))
    }

    pub fn next_due(&self) -> Option<MonotonicTime> {
        self.plans.iter().map(|plan| plan.until).min()
    }

    /// Drops all plans; their keys are no longer in flight.
    pub fn clear(&mut self, controllers: &mut Controllers) {
        for DeferredPlan { work, .. } in self.plans.drain(..) {
            controllers.of_mut(&work.owner).queue.done(&work.owner.key);
        }
    }
}

/// Until when the plan of this key is deferred; `None` if it is carried out at once. The initial
/// sync is not ordered: the API server is saturated then anyway.
pub fn deferred_until(
    work: &Work,
    controllers: &Controllers,
    now: MonotonicTime,
) -> Option<MonotonicTime> {
    if work.owner.controller != Controller::Endpoints || work.priority == Priority::Background {
        return None;
    }
    let until = work.since + ENDPOINTS_DELAY_MAX;
    let is_slice_sync_due = || {
        let slices = controllers.get(Controller::Slices);
        match slices.and_then(|slices| slices.queue.phase(&work.owner.key)) {
            Some(KeyPhase::Waiting { due, .. }) => due <= now,
            Some(KeyPhase::InFlight { .. }) => true,
            None => false,
        }
    };
    (now < until && is_slice_sync_due()).then_some(until)
}
