//! A key that was dequeued, until its sync is done.

use endpointd_plan::Counts;

use crate::in_flight::Owner;
use crate::queue::{Dequeued, Priority};
use crate::{HintsKind, MonotonicTime, SyncSummary};

/// A dequeued key. It counts as in flight until [`Queue::done`].
#[derive(Clone, Debug)]
pub struct Work {
    pub owner: Owner,
    pub priority: Priority,
    /// When the first change arrived that this sync answers.
    pub since: MonotonicTime,
}

impl Work {
    /// The summary of a sync that is planned now.
    pub fn summary(&self, counts: Counts, hints: HintsKind, now: MonotonicTime) -> SyncSummary {
        SyncSummary {
            counts,
            waited: now.since(self.since),
            is_removal: self.priority == Priority::Removal,
            is_background: self.priority == Priority::Background,
            hints,
            ..SyncSummary::new(self.owner.controller, self.owner.key.clone())
        }
    }
}

impl From<Work> for Dequeued {
    fn from(work: Work) -> Self {
        Self { key: work.owner.key, priority: work.priority, since: work.since }
    }
}
