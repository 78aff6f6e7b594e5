//! The end of a sync in a dry run.

use std::time::Duration;

use super::Engine;
use crate::controllers::{Controllers, Work};
use crate::queue::Priority;
use crate::refused_writes::Permitted;
use crate::{MonotonicTime, SyncSummary};

/// In a dry run, a key that differs is planned again after this time: another controller needs some
/// time for its writes.
const DIFFERENCE_RECHECK: Duration = Duration::from_secs(5);

impl Engine {
    /// Ends a sync whose writes are not sent.
    pub(super) fn finish_dry_run(
        &mut self,
        work: &Work,
        mut summary: SyncSummary,
        now: MonotonicTime,
    ) {
        let mut recheck = None;
        if summary.has_writes() {
            let changed_at = self.controllers.note_difference(work, now);
            summary.has_lasted = now.since(changed_at) >= DIFFERENCE_RECHECK;
            let compared_at = if summary.has_lasted { now } else { changed_at };
            recheck = Some(compared_at + DIFFERENCE_RECHECK);
        } else {
            self.controllers.of_mut(&work.owner).keys.differing.remove(&work.owner.key);
        }
        self.syncs.start_writing(work, summary, Permitted::default(), now);
        self.advance(&work.owner, now);
        if let Some(due) = recheck {
            self.controllers.enqueue_background(&work.owner, due, now);
        }
    }
}

impl Controllers {
    /// The plan of a key has writes. Returns when a change last caused a plan of it.
    fn note_difference(&mut self, work: &Work, now: MonotonicTime) -> MonotonicTime {
        let differing = &mut self.of_mut(&work.owner).keys.differing;
        let changed_at = differing.entry_ref(&work.owner.key).or_insert(now);
        match work.priority {
            // A live read that the key waited for may cause such a plan at any time.
            Priority::Background => {}
            Priority::Removal | Priority::Live | Priority::Repair => *changed_at = now,
        }
        *changed_at
    }
}

#[cfg(test)]
mod tests {
    use endpointd_model::{Controller, Key};

    use super::*;
    use crate::Settings;
    use crate::in_flight::Owner;

    #[test]
    fn only_a_change_gives_a_difference_time_again() {
        let mut controllers = Controllers::new(Settings::default().controllers);
        let owner = Owner { controller: Controller::Slices, key: Key::new("shop", "web") };
        let at = |secs| MonotonicTime::after_start(Duration::from_secs(secs));
        let mut note = |priority, secs| {
            let work = Work { owner: owner.clone(), priority, since: at(secs) };
            controllers.note_difference(&work, at(secs))
        };
        assert_eq!(note(Priority::Background, 1), at(1), "the initial plan");
        assert_eq!(note(Priority::Live, 2), at(2));
        assert_eq!(note(Priority::Background, 3), at(2), "released by a live read");
        assert_eq!(note(Priority::Removal, 4), at(4));
        assert_eq!(note(Priority::Background, 9), at(4));
    }
}
