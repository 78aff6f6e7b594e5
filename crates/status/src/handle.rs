//! The state that the runtime publishes and the pages read. Publishing swaps a pointer; reading
//! clones one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use endpointd_engine::{EngineStatus, KeyStatus};
use endpointd_model::{Key, SharedStr};
use tokio::sync::{broadcast, watch};

use crate::changes::{ChangeLog, Notice, NoticeSource};
use crate::key_query::{self, KeyQueries, LoopState, QuerySender};
use crate::shadow_status::ShadowStatus;

/// An event loop without a heartbeat for this long is stuck.
pub const HEARTBEAT_AGE_MAX: Duration = Duration::from_secs(60);

/// Clones share one state.
#[derive(Clone)]
pub struct StatusHandle(Arc<Shared>);

struct Shared {
    process: ProcessInfo,
    started: Instant,
    /// Milliseconds from `started` to the last heartbeat of the event loop.
    heartbeat_millis: AtomicU64,
    engine: watch::Sender<Option<PublishedStatus>>,
    leadership: watch::Sender<LeadershipStatus>,
    /// What a dry run has found.
    shadow: watch::Sender<Option<Arc<ShadowStatus>>>,
    /// Why this process cannot go on, once something it needs has ended.
    failure: watch::Sender<Option<SharedStr>>,
    key_queries: QuerySender,
    notices: NoticeSource,
}

/// Which process this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    pub version: SharedStr,
    /// The holder identity in the lease.
    pub identity: SharedStr,
}

/// Whether this process may write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeadershipStatus {
    /// Leader election is off: this process always writes.
    NoElection,
    /// This process never writes.
    DryRun,
    /// This process holds the lease.
    Leading { lease: SharedStr },
    /// Another process holds it, or nobody does yet.
    Standby { lease: SharedStr, holder: Option<SharedStr> },
}

#[derive(Clone)]
struct PublishedStatus {
    status: Arc<EngineStatus>,
    at: Instant,
}

/// Everything a page may show, at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusSnapshot {
    pub process: ProcessInfo,
    pub uptime: Duration,
    pub leadership: LeadershipStatus,
    /// The last published status and its age; `None` before the first one.
    pub engine: Option<(Arc<EngineStatus>, Duration)>,
    /// `None`: this is no dry run, or it has just started.
    pub shadow: Option<Arc<ShadowStatus>>,
    pub heartbeat_age: Duration,
    pub failure: Option<SharedStr>,
}

impl StatusHandle {
    /// The handle, and the queries that the event loop has to answer.
    pub fn new(process: ProcessInfo, leadership: LeadershipStatus) -> (Self, KeyQueries) {
        let (key_queries, receiver) = key_query::channel();
        let shared = Shared {
            process,
            started: Instant::now(),
            heartbeat_millis: AtomicU64::new(0),
            engine: watch::Sender::new(None),
            leadership: watch::Sender::new(leadership),
            shadow: watch::Sender::new(None),
            failure: watch::Sender::new(None),
            key_queries,
            notices: NoticeSource::default(),
        };
        (Self(Arc::new(shared)), receiver)
    }

    /// Records that the event loop runs. Costs one atomic store; called on every turn, and at least
    /// every ten seconds when idle.
    pub fn heartbeat(&self) {
        let age = self.0.started.elapsed();
        let millis = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        self.0.heartbeat_millis.fetch_max(millis, Ordering::Relaxed);
    }

    /// Replaces the status of the engine; counts as a heartbeat.
    pub fn publish(&self, status: EngineStatus) {
        self.heartbeat();
        let published = PublishedStatus { status: Arc::new(status), at: Instant::now() };
        self.0.engine.send_replace(Some(published));
    }

    /// Replaces the result of a dry run.
    pub fn set_shadow(&self, shadow: ShadowStatus) {
        self.0.shadow.send_replace(Some(Arc::new(shadow)));
    }

    pub fn set_leadership(&self, leadership: LeadershipStatus) {
        self.0.leadership.send_replace(leadership);
    }

    /// Marks the process as not alive, because a task it needs has ended. The first reason stays.
    pub fn fail(&self, reason: impl Into<SharedStr>) {
        self.0.failure.send_if_modified(|failure| {
            let is_first = failure.is_none();
            if is_first {
                *failure = Some(reason.into());
            }
            is_first
        });
    }

    pub fn snapshot(&self) -> StatusSnapshot {
        let Shared {
            process, started, heartbeat_millis, engine, leadership, shadow, failure, ..
        } = &*self.0;
        let uptime = started.elapsed();
        let heartbeat = Duration::from_millis(heartbeat_millis.load(Ordering::Relaxed));
        let published = engine.borrow().clone();
        StatusSnapshot {
            process: process.clone(),
            uptime,
            leadership: leadership.borrow().clone(),
            engine: published.map(|published| (published.status, published.at.elapsed())),
            shadow: shadow.borrow().clone(),
            heartbeat_age: uptime.saturating_sub(heartbeat),
            failure: failure.borrow().clone(),
        }
    }

    /// Asks the event loop about one key. `None`: it did not answer.
    pub(crate) async fn key_status(&self, key: Key) -> Option<Vec<KeyStatus>> {
        key_query::ask(&self.0.key_queries, key).await
    }

    /// Asks the event loop, which answers between two batches of effects. The question runs on its
    /// thread and must take a few milliseconds at most. `None`: it did not answer.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&LoopState<'_>) -> T + Send + 'static,
    ) -> Option<T> {
        key_query::ask_state(&self.0.key_queries, question).await
    }

    /// The log that the event loop keeps; [`Self::watch_changes`] reads its notices.
    pub fn change_log(&self) -> ChangeLog {
        ChangeLog::new(&self.0.notices)
    }

    /// What happens from now on. While there is a receiver, the event loop records details.
    pub fn watch_changes(&self) -> broadcast::Receiver<Notice> {
        self.0.notices.subscribe()
    }
}

impl LeadershipStatus {
    pub fn is_leading(&self) -> bool {
        match self {
            Self::NoElection | Self::Leading { .. } => true,
            Self::DryRun | Self::Standby { .. } => false,
        }
    }

    /// The name of the lease, if there is an election.
    pub fn lease(&self) -> Option<&SharedStr> {
        match self {
            Self::NoElection | Self::DryRun => None,
            Self::Leading { lease } | Self::Standby { lease, holder: _ } => Some(lease),
        }
    }
}
