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
use crate::queue::{Place, Priority, Taken};
use crate::sync::Planned;

/// No Endpoints wait longer than this for their slices: several times what a write takes, and too
/// short for anybody to record.
pub const COURTESY_MAX: Duration = Duration::from_millis(25);

/// A plan that gives way. Its key counts as in flight.
#[derive(Debug)]
pub struct Polite {
    lane: usize,
    taken: Taken,
    planned: Planned,
    until: MonotonicTime,
}

impl Engine {
    /// Until when this key should wait for another controller, if it should. A start-up is no time
    /// for manners: there the server has all it can do anyway.
    pub(crate) fn gives_way(
        &self,
        lane: usize,
        taken: &Taken,
        now: MonotonicTime,
    ) -> Option<MonotonicTime> {
        let is_polite = self.lanes[lane].settings.controller == Controller::Endpoints
            && taken.priority != Priority::Background;
        let until = taken.since + COURTESY_MAX;
        (is_polite && now < until && self.has_slices_under_way(&taken.key, now)).then_some(until)
    }

    fn has_slices_under_way(&self, key: &Key, now: MonotonicTime) -> bool {
        let slices = self.lanes.iter().find(|lane| lane.settings.controller == Controller::Slices);
        slices.and_then(|lane| lane.queue.place(key)).is_some_and(|place| match place {
            Place::Waiting { due, .. } => due <= now,
            Place::Flying { .. } => true,
        })
    }

    pub(crate) fn give_way(
        &mut self,
        lane: usize,
        taken: Taken,
        planned: Planned,
        until: MonotonicTime,
    ) {
        self.polite.push(Polite { lane, taken, planned, until });
    }

    /// A sync is over: whoever gave way to it need not wait any more.
    pub(crate) fn thank(&mut self, controller: Controller, key: &Key, now: MonotonicTime) {
        if controller == Controller::Slices
            && let Some(waiting) = self.polite.iter_mut().find(|one| one.taken.key == *key)
        {
            waiting.until = now;
        }
    }

    /// Goes on with a key that has waited long enough. Says whether there was one.
    pub(crate) fn end_courtesy(&mut self, now: MonotonicTime) -> bool {
        let Some(at) = self.polite.iter().position(|one| one.until <= now) else { return false };
        let Polite { lane, taken, planned, .. } = self.polite.swap_remove(at);
        let queue = &mut self.lanes[lane].queue;
        if queue.is_outdated(&taken.key) {
            queue.step_back(taken, now);
        } else {
            self.carry_out(lane, &taken, planned, now);
        }
        true
    }

    /// Nobody plans any more.
    pub(crate) fn drop_polite(&mut self) {
        for one in self.polite.drain(..) {
            self.lanes[one.lane].queue.land(&one.taken.key);
        }
    }

    /// When the next one has waited long enough.
    pub(crate) fn courtesy_ends(&self) -> Option<MonotonicTime> {
        self.polite.iter().map(|one| one.until).min()
    }
}
