//! Where the runtime pins what others may read. Posting swaps a pointer; reading clones one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use endpointd_engine::EngineStatus;
use endpointd_model::SharedStr;
use tokio::sync::watch;

/// An engine loop that gives no sign of life for this long is stuck.
pub const HEARTBEAT_AGE_MAX: Duration = Duration::from_secs(60);

/// Clones share one board.
#[derive(Clone)]
pub struct StatusHandle(Arc<Shared>);

struct Shared {
    about: ProcessInfo,
    started: Instant,
    /// Milliseconds from `started` to the last sign of life of the engine loop.
    heartbeat_millis: AtomicU64,
    report: watch::Sender<Option<PublishedStatus>>,
    leadership: watch::Sender<LeadershipStatus>,
    /// Why this process cannot go on, if something says so.
    failed: watch::Sender<Option<SharedStr>>,
}

/// Which process this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    pub version: SharedStr,
    /// As the lease names it.
    pub identity: SharedStr,
}

/// Who may write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeadershipStatus {
    /// There is no election: this process always leads.
    Alone,
    /// This process holds the lease.
    Leading { lease: SharedStr },
    /// Another process holds it, or nobody does yet.
    Standby { lease: SharedStr, holder: Option<SharedStr> },
}

#[derive(Clone)]
struct PublishedStatus {
    report: Arc<EngineStatus>,
    at: Instant,
}

/// The board at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusSnapshot {
    pub about: ProcessInfo,
    pub uptime: Duration,
    pub leadership: LeadershipStatus,
    /// The latest report and its age; there is none before the engine has posted its first.
    pub report: Option<(Arc<EngineStatus>, Duration)>,
    pub heartbeat_age: Duration,
    pub failed: Option<SharedStr>,
}

impl StatusHandle {
    pub fn new(about: ProcessInfo, leadership: LeadershipStatus) -> Self {
        Self(Arc::new(Shared {
            about,
            started: Instant::now(),
            heartbeat_millis: AtomicU64::new(0),
            report: watch::Sender::new(None),
            leadership: watch::Sender::new(leadership),
            failed: watch::Sender::new(None),
        }))
    }

    /// The engine loop turns. One atomic store: call it on every turn, and at least every few
    /// seconds when there is nothing to do.
    pub fn beat(&self) {
        let age = self.0.started.elapsed();
        let millis = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        self.0.heartbeat_millis.fetch_max(millis, Ordering::Relaxed);
    }

    /// Replaces the report; a sign of life, too.
    pub fn post(&self, report: EngineStatus) {
        self.beat();
        let posted = PublishedStatus { report: Arc::new(report), at: Instant::now() };
        self.0.report.send_replace(Some(posted));
    }

    pub fn lead(&self, leadership: LeadershipStatus) {
        self.0.leadership.send_replace(leadership);
    }

    /// Something this process cannot do without is gone: it is not alive any more. The first
    /// reason stays.
    pub fn fail(&self, reason: impl Into<SharedStr>) {
        self.0.failed.send_if_modified(|failed| {
            let is_first = failed.is_none();
            if is_first {
                *failed = Some(reason.into());
            }
            is_first
        });
    }

    /// What the board says now.
    pub fn view(&self) -> StatusSnapshot {
        let Shared { about, started, heartbeat_millis, report, leadership, failed } = &*self.0;
        let uptime = started.elapsed();
        let heartbeat = Duration::from_millis(heartbeat_millis.load(Ordering::Relaxed));
        StatusSnapshot {
            about: about.clone(),
            uptime,
            leadership: leadership.borrow().clone(),
            report: report.borrow().clone().map(|posted| (posted.report, posted.at.elapsed())),
            heartbeat_age: uptime.saturating_sub(heartbeat),
            failed: failed.borrow().clone(),
        }
    }

    /// Resolves when the next report has been posted; for pages that follow along.
    pub async fn next_report(&self) {
        let mut receiver = self.0.report.subscribe();
        // The sender lives as long as this board does.
        let _ = receiver.changed().await;
    }
}

impl LeadershipStatus {
    pub fn is_leading(&self) -> bool {
        match self {
            Self::Alone | Self::Leading { .. } => true,
            Self::Standby { .. } => false,
        }
    }

    /// The lease in question, if there is one.
    pub fn lease(&self) -> Option<&SharedStr> {
        match self {
            Self::Alone => None,
            Self::Leading { lease } | Self::Standby { lease, holder: _ } => Some(lease),
        }
    }
}
