//! A removal leaves additions of its Service for later.

use endpointd_model::Controller;
use endpointd_plan::Plan;

use super::Engine;
use crate::additions::take_additions;
use crate::controllers::Work;
use crate::queue::Priority;
use crate::{MonotonicTime, WriteMode};

impl Engine {
    /// Takes out of the plan of a removal what may wait, and returns until when.
    pub(super) fn take_additions(
        &self,
        work: &Work,
        plan: &mut Plan,
        now: MonotonicTime,
    ) -> Option<MonotonicTime> {
        let is_sent_slice =
            self.write_mode == WriteMode::Send && work.owner.controller == Controller::Slices;
        let state = self.controllers.of(&work.owner);
        let entry = state.keys.get(&work.owner.key)?;
        let delay = state.settings.addition_delay.of(plan.counts.n_ready);
        let due = entry.cooldown.additions_after(now, delay);
        if work.priority != Priority::Removal || due <= now || !is_sent_slice {
            return None;
        }
        let cache = self.observed.cache();
        let additions = take_additions(&mut plan.writes, |key| cache.slice(key));
        if additions.is_empty() {
            return None;
        }
        // The next plan writes them, with the time of the change that they answer.
        plan.carried.trigger = entry.carried.trigger.clone();
        Some(due)
    }
}
