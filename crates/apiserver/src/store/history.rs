//! The changes of one table, oldest first, down to the floor.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Limits, Stored};

/// One write: the object as it became, and as it was before.
#[derive(Debug)]
pub(super) struct Change {
    pub object: Arc<Stored>,
    pub previous: Option<Arc<Stored>>,
    pub is_deletion: bool,
}

/// Changes by revision. Complete after the floor; before it, changes may be missing.
#[derive(Default)]
pub(super) struct History {
    changes: VecDeque<Change>,
    changed_bytes: usize,
    floor: u64,
}

impl Change {
    pub(super) fn revision(&self) -> u64 {
        self.object.revision
    }

    fn n_bytes(&self) -> usize {
        self.object.bytes().len()
    }
}

impl History {
    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    pub(super) fn push(&mut self, change: Change, limits: Limits) {
        self.changed_bytes += change.n_bytes();
        self.changes.push_back(change);
        while self.changes.len() > limits.changes_max
            || (self.changed_bytes > limits.changed_bytes_max && self.changes.len() > 1)
        {
            self.drop_oldest();
        }
    }

    pub(super) fn compact(&mut self, revision: u64) {
        while self.changes.front().is_some_and(|change| change.revision() <= revision) {
            self.drop_oldest();
        }
        self.floor = self.floor.max(revision);
    }

    pub(super) fn newest_first(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().rev()
    }

    /// The changes after `revision`, oldest first.
    pub(super) fn after(&self, revision: u64) -> impl Iterator<Item = &Change> {
        let start = self.changes.partition_point(|change| change.revision() <= revision);
        self.changes.range(start..)
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.changes.pop_front() {
            self.changed_bytes -= oldest.n_bytes();
            self.floor = self.floor.max(oldest.revision());
        }
    }
}
