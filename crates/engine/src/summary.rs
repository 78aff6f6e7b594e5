//! How a sync ended, for metrics and logs.

use std::time::Duration;

use endpointd_model::{Controller, Failure, Key, TopologyMode, TrafficDistribution, Write};
use endpointd_plan::Counts;

/// One finished sync of one key.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncSummary {
    pub controller: Controller,
    pub key: Key,
    pub result: SyncResult,
    pub counts: Counts,
    pub n_creates: usize,
    pub n_updates: usize,
    pub n_deletes: usize,
    /// From the first change that this sync answers to its plan.
    pub waited: Duration,
    /// From the plan to the last response.
    pub took: Duration,
    /// It removed an endpoint that was ready.
    pub is_removal: bool,
    /// No change caused it: an initial sync or, in a dry run, a later look at a difference.
    pub is_background: bool,
    /// In a dry run: its plan has had writes for 5 s, and no change has come meanwhile.
    pub has_lasted: bool,
    pub hints: HintsKind,
}

/// How a sync ended, from best to worst.
#[derive(Clone, Debug, PartialEq)]
pub enum SyncResult {
    /// There was nothing to write.
    Unchanged,
    /// All writes were stored.
    Written,
    /// Creates were rejected because the namespace is being deleted. Not a failure.
    NamespaceTerminating,
    /// The cache was outdated: a live read has corrected it, and the key is planned again.
    ConflictRetry,
    /// The API server answered 429.
    Throttled,
    /// At least one request failed; the first failure.
    Failed(Failure),
    /// Leadership was lost before all writes were sent.
    LeadershipLost,
}

/// The rules for the topology hints of a Service; labels of upstream's metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintsKind {
    pub topology: TopologyMode,
    pub traffic_distribution: Option<TrafficDistribution>,
}

impl SyncSummary {
    /// Of a sync without writes.
    pub fn new(controller: Controller, key: Key) -> Self {
        Self {
            controller,
            key,
            result: SyncResult::Unchanged,
            counts: Counts::default(),
            n_creates: 0,
            n_updates: 0,
            n_deletes: 0,
            waited: Duration::ZERO,
            took: Duration::ZERO,
            is_removal: false,
            is_background: false,
            has_lasted: false,
            hints: HintsKind::default(),
        }
    }

    pub(crate) fn with_writes<'a>(mut self, writes: impl Iterator<Item = &'a Write>) -> Self {
        for write in writes {
            match write {
                Write::Create(_) => self.n_creates += 1,
                Write::Update(_) => self.n_updates += 1,
                Write::Delete(_) => self.n_deletes += 1,
            }
        }
        self
    }

    pub(crate) fn ended(mut self, result: SyncResult, took: Duration) -> Self {
        let is_empty = result == SyncResult::Written && !self.has_writes();
        self.result = if is_empty { SyncResult::Unchanged } else { result };
        self.took = took;
        self
    }

    pub fn has_writes(&self) -> bool {
        self.n_creates + self.n_updates + self.n_deletes > 0
    }
}

impl SyncResult {
    /// Label value for metrics, JSON, and logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Written => "written",
            Self::NamespaceTerminating => "namespace_terminating",
            Self::ConflictRetry => "conflict_retry",
            Self::Throttled => "throttled",
            Self::Failed(_) => "failed",
            Self::LeadershipLost => "leadership_lost",
        }
    }

    /// Of several results of one sync, the one with the highest severity counts.
    pub(crate) fn severity(&self) -> u8 {
        match self {
            Self::Unchanged => 0,
            Self::Written => 1,
            Self::NamespaceTerminating => 2,
            Self::ConflictRetry => 3,
            Self::Throttled => 4,
            Self::Failed(_) => 5,
            Self::LeadershipLost => 6,
        }
    }
}
