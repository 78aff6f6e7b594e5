//! Deletions that are planned because an object is missing from the cache (B12), or left behind: what
//! live reads must confirm first, and which of them the deletion limiter counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use endpointd_model::{Key, LiveRead, LiveReadResult, Write};

use crate::MonotonicTime;
use crate::backoff::BACKOFF_MAX;
use crate::cache::{DeletionEvidence, ObjectChange};

/// What a plan that deletes something takes for granted, and live reads must confirm.
#[derive(Debug, Default)]
pub struct Assumptions {
    /// Objects whose absence from the cache makes the plan delete something.
    pub absent: Vec<LiveRead>,
    /// Objects that must exist, if the deletion limiter counts the plan: those to delete, because
    /// what is gone already does not count, and a Service that says that they are left behind.
    pub present: Vec<LiveRead>,
}

/// What a live read has found counts for so long after it was sent: another read of the same plan may
/// fail, or the process may be suspended. It is twice the longest back-off: reads that fail in turn are still complete at some time.
const CONFIRMED_MAX: Duration = BACKOFF_MAX.saturating_mul(2);

/// What live reads have found, and when they were sent, for the next plan only.
#[derive(Debug, Default, PartialEq)]
pub struct ConfirmedFacts {
    absent: BTreeMap<LiveRead, MonotonicTime>,
    present: BTreeMap<LiveRead, MonotonicTime>,
}

/// Deletions that the watch has reported as events since the last plan that did not rest on an
/// absence. A list without the object is weaker: it may be incomplete.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReportedDeletions {
    service: bool,
    endpoints: bool,
}

impl Assumptions {
    pub fn new(writes: &[Write], absent: Vec<LiveRead>, reported: ReportedDeletions) -> Self {
        let is_limited = !absent.is_empty() && !absent.iter().any(|read| reported.contains(read));
        let deletes = writes.iter().filter(|write| matches!(write, Write::Delete(_)));
        let read = |write: &Write| LiveRead::Object(write.resource(), write.key());
        let present = if is_limited { deletes.map(read).collect() } else { Vec::new() };
        Self { absent, present }
    }

    /// The plan deletes what is left of a Service that had a selector before: the Service and each
    /// object are read.
    pub fn of_left_behind(writes: &[Write], key: &Key) -> Self {
        let objects = writes.iter().map(|write| LiveRead::Object(write.resource(), write.key()));
        let present = objects.chain([LiveRead::Service(key.clone())]).collect();
        Self { absent: Vec::new(), present }
    }

    pub fn rest_on_absence(&self) -> bool {
        !self.absent.is_empty()
    }

    /// Whether the deletion limiter counts the plan.
    pub fn are_limited(&self) -> bool {
        !self.present.is_empty()
    }

    /// The live reads that are still to do.
    pub fn unconfirmed(&self, confirmed: &ConfirmedFacts) -> BTreeSet<LiveRead> {
        let absent = self.absent.iter().filter(|read| !confirmed.is_absent(read));
        let present = self.present.iter().filter(|read| !confirmed.present.contains_key(read));
        absent.chain(present).cloned().collect()
    }
}

impl ConfirmedFacts {
    pub fn is_absent(&self, read: &LiveRead) -> bool {
        self.absent.contains_key(read)
    }

    /// Returns whether the absence was confirmed.
    pub fn forget_absent(&mut self, read: &LiveRead) -> bool {
        self.absent.remove(read).is_some()
    }

    /// Much may have changed since: what was found long ago must be read again.
    pub fn forget_old(&mut self, now: MonotonicTime) {
        let is_recent = |at: MonotonicTime| now.since(at) <= CONFIRMED_MAX;
        self.absent.retain(|_, at| is_recent(*at));
        self.present.retain(|_, at| is_recent(*at));
    }

    pub fn record(&mut self, read: &LiveRead, result: &LiveReadResult, sent_at: MonotonicTime) {
        match result {
            LiveReadResult::Absent => drop(self.absent.insert(read.clone(), sent_at)),
            LiveReadResult::Object(_) | LiveReadResult::Service(_) => {
                self.present.insert(read.clone(), sent_at);
            }
            LiveReadResult::Node(_)
            | LiveReadResult::FieldManager(_)
            | LiveReadResult::Pods(_)
            | LiveReadResult::Failed(_) => {}
        }
    }
}

impl ReportedDeletions {
    pub fn record(&mut self, change: &ObjectChange) {
        match change {
            ObjectChange::ServiceDeleted(_, DeletionEvidence::Event) => self.service = true,
            ObjectChange::EndpointsDeleted(_, DeletionEvidence::Event) => self.endpoints = true,
            ObjectChange::ServiceDeleted(_, DeletionEvidence::List)
            | ObjectChange::EndpointsDeleted(_, DeletionEvidence::List)
            | ObjectChange::ServiceApplied { .. }
            | ObjectChange::NodeObserved(_)
            | ObjectChange::NamespaceChanged(_)
            | ObjectChange::Published { .. } => {}
        }
    }

    fn contains(self, read: &LiveRead) -> bool {
        match read {
            LiveRead::Service(_) => self.service,
            LiveRead::Object(_, _) => self.endpoints,
            LiveRead::Node(_)
            | LiveRead::FieldManager(..)
            | LiveRead::Pods(_)
            | LiveRead::Source(..) => false,
        }
    }
}
