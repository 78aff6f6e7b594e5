//! What the engine is told, and what it asks for in return.

use std::time::Duration;

use endpointd_model::{
    Controller, EventRecord, Key, LiveRead, LiveReadResult, TopologyMode, TrafficDistribution, Uid,
    WatchSignal, WatchedResource, Write, WriteResult,
};
use endpointd_plan::Counts;

/// Everything that can happen to an engine.
#[derive(Clone, Debug)]
pub enum Input {
    Watch(WatchedResource, WatchSignal),
    /// The answer to an [`Effect::Send`].
    WriteResult(RequestId, WriteResult),
    /// The answer to an [`Effect::LiveRead`].
    LiveReadResult(RequestId, LiveReadResult),
    /// We hold the lease (or need none): start writing.
    LeadershipAcquired,
    /// We do not hold it any more: plan nothing, send nothing.
    LeadershipLost,
}

/// Everything an engine can ask for. Each `Send` and `Look` must be answered exactly once.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Send {
        id: RequestId,
        controller: Controller,
        write: Box<Write>,
    },
    LiveRead {
        id: RequestId,
        read: LiveRead,
    },
    /// Take a new picture of this kind: the last one was older than what was known before it.
    Relist(WatchedResource),
    /// Tell people, by an Event on the object of this key.
    RecordEvent {
        controller: Controller,
        key: Key,
        uid: Uid,
        record: EventRecord,
    },
    /// For metrics and logs.
    SyncFinished(Box<SyncSummary>),
}

/// Ties an answer to what it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// One finished pass over one key.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncSummary {
    pub controller: Controller,
    pub key: Key,
    pub result: SyncResult,
    pub counts: Counts,
    pub n_creates: usize,
    pub n_updates: usize,
    pub n_deletes: usize,
    /// From the first change that asked for this sync to its plan.
    pub waited: Duration,
    /// From the plan to the last answer.
    pub took: Duration,
    /// It took an endpoint out that was ready.
    pub is_removal: bool,
    pub hints: HintsKind,
}

impl SyncSummary {
    pub fn has_writes(&self) -> bool {
        self.n_creates + self.n_updates + self.n_deletes > 0
    }
}

/// How a sync ended.
#[derive(Clone, Debug, PartialEq)]
pub enum SyncResult {
    /// There was nothing to write.
    Unchanged,
    /// All writes arrived.
    Written,
    /// The namespace is going: what could not be created need not be.
    NamespaceTerminating,
    /// What we know is behind: read again and plan again, which is no failure.
    ConflictRetry,
    /// The API server asked us to wait.
    Throttled,
    /// At least one write failed; the first reason.
    Failed(endpointd_model::Failure),
    /// We stopped leading in the middle.
    LeadershipLost,
}

impl SyncResult {
    /// One word for metrics, JSON, and logs.
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
}

/// Which rule the hints of a Service follow; labels of upstream's metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintsKind {
    pub topology: TopologyMode,
    pub traffic_distribution: Option<TrafficDistribution>,
}
