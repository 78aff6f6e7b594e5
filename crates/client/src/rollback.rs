//! Reports that resourceVersions went backwards, as after etcd was restored from a backup. Watches
//! do not show that: they continue after a version that does not exist yet, and receive nothing.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// One restore shows itself at the Lease and at every watch: reported once. Servers with different
/// histories behind one address cause no more than this.
const INTERVAL_MIN: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct RollbackReporter {
    n_reports: watch::Sender<u64>,
    last: Mutex<Option<Instant>>,
}

impl Default for RollbackReporter {
    fn default() -> Self {
        Self { n_reports: watch::Sender::new(0), last: Mutex::new(None) }
    }
}

impl RollbackReporter {
    pub(crate) fn report(&self, evidence: &str) {
        tracing::warn!(evidence, "resourceVersions went backwards");
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= INTERVAL_MIN) {
            *last = Some(Instant::now());
            self.n_reports.send_modify(|n| *n += 1);
        }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.n_reports.subscribe()
    }
}
