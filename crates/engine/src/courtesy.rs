//! Slices go before Endpoints.
//!
//! Nearly everybody routes by slices, and two writes at the same moment make each other late: they
//! share the processors of the API server. So the Endpoints of a key give way while its slices are
//! on their way. What becomes of the slices does not matter, and neither controller can hold up the
//! other for longer than a moment.

use std::time::Duration;

use endpointd_model::{Controller, Key};

use crate::Moment;
use crate::engine::Engine;
use crate::queue::{Place, Priority, Taken};

/// No Endpoints wait longer than this for their slices: several times what a write takes, and too
/// short for anybody to notice.
pub const COURTESY_MAX: Duration = Duration::from_millis(25);

impl Engine {
    /// Until when this key of this controller should wait for another controller, if it should.
    /// A start-up is no time for manners: there the server has all it can do anyway.
    pub(crate) fn gives_way(&self, lane: usize, taken: &Taken, now: Moment) -> Option<Moment> {
        let is_polite = self.lanes[lane].settings.controller == Controller::Endpoints
            && taken.priority != Priority::Background;
        let until = taken.since + COURTESY_MAX;
        (is_polite && now < until && self.has_slices_under_way(&taken.key, now)).then_some(until)
    }

    fn has_slices_under_way(&self, key: &Key, now: Moment) -> bool {
        let slices = self.lanes.iter().find(|lane| lane.settings.controller == Controller::Slices);
        slices.and_then(|lane| lane.queue.place(key)).is_some_and(|place| match place {
            Place::Waiting { due, .. } => due <= now,
            Place::Flying { .. } => true,
        })
    }

    /// A sync is over: whoever gave way to it need not wait any more.
    pub(crate) fn thank(&mut self, controller: Controller, key: &Key, now: Moment) {
        if controller == Controller::Slices
            && let Some(endpoints) = self.lane_mut(Controller::Endpoints)
        {
            endpoints.queue.step_forward(key, now);
        }
    }
}
