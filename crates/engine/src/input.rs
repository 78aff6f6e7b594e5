//! What the engine is told, and what it asks for in return.

use std::time::Duration;

use endpointd_model::{
    Controller, Found, Key, Kind, Lookup, News, Notice, Outcome, TopologyMode, TrafficDistribution,
    Uid, Write,
};
use endpointd_plan::Counts;

/// Everything that can happen to an engine.
#[derive(Clone, Debug)]
pub enum Input {
    News(Kind, News),
    /// The answer to an [`Effect::Send`].
    Outcome(Ticket, Outcome),
    /// The answer to an [`Effect::Look`].
    Found(Ticket, Found),
    /// We hold the lease (or need none): start writing.
    Lead,
    /// We do not hold it any more: plan nothing, send nothing.
    Follow,
}

/// Everything an engine can ask for. Each `Send` and `Look` must be answered exactly once.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Send {
        ticket: Ticket,
        controller: Controller,
        write: Box<Write>,
    },
    Look {
        ticket: Ticket,
        lookup: Lookup,
    },
    /// Take a new picture of this kind: the last one was older than what was known before it.
    Relist(Kind),
    /// Tell people, by an Event on the object of this key.
    Notify {
        controller: Controller,
        key: Key,
        uid: Uid,
        notice: Notice,
    },
    /// For metrics and logs.
    Synced(Box<Synced>),
}

/// Ties an answer to what it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// One finished pass over one key.
#[derive(Clone, Debug, PartialEq)]
pub struct Synced {
    pub controller: Controller,
    pub key: Key,
    pub end: SyncEnd,
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

impl Synced {
    pub fn has_writes(&self) -> bool {
        self.n_creates + self.n_updates + self.n_deletes > 0
    }
}

/// How a sync ended.
#[derive(Clone, Debug, PartialEq)]
pub enum SyncEnd {
    /// There was nothing to write.
    Unchanged,
    /// All writes arrived.
    Written,
    /// The namespace is going: what could not be created need not be.
    Pointless,
    /// What we know is behind: read again and plan again, which is no failure.
    Stale,
    /// The API server asked us to wait.
    Throttled,
    /// At least one write failed; the first reason.
    Failed(endpointd_model::Failure),
    /// We stopped leading in the middle.
    Abandoned,
}

impl SyncEnd {
    /// One word for metrics, JSON, and logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Written => "written",
            Self::Pointless => "pointless",
            Self::Stale => "stale",
            Self::Throttled => "throttled",
            Self::Failed(_) => "failed",
            Self::Abandoned => "abandoned",
        }
    }
}

/// Which rule the hints of a Service follow; labels of upstream's metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintsKind {
    pub topology: TopologyMode,
    pub traffic_distribution: Option<TrafficDistribution>,
}
