//! The end of a sync in a dry run.

use std::time::Duration;

use super::Engine;
use crate::controllers::Work;
use crate::refused_writes::Permitted;
use crate::{MonotonicTime, SyncSummary};

/// In a dry run, a key that differs is planned again after this time: another controller needs some
/// time for its writes.
const DIFFERENCE_RECHECK: Duration = Duration::from_secs(5);

impl Engine {
    /// Ends a sync whose writes are not sent.
    pub(super) fn finish_dry_run(&mut self, work: &Work, summary: SyncSummary, now: MonotonicTime) {
        let is_different = summary.has_writes();
        self.syncs.start_writing(work, summary, Permitted::default(), now);
        self.advance(&work.owner, now);
        if is_different {
            self.controllers.enqueue_background(&work.owner, now + DIFFERENCE_RECHECK, now);
        }
    }
}
