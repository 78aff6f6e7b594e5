//! StatusState lines: one when a state changes, none when nothing does.

use std::collections::BTreeMap;

use endpointd_engine::{EngineStatus, SyncResult, SyncSummary};
use endpointd_model::{Controller, Key, SharedStr, WatchedResource};

/// Failing keys remembered for the log; beyond that only their number is told.
const FAILING_MAX: usize = 1000;

#[derive(Default)]
pub struct StateChangeLogger {
    failing: BTreeMap<(Controller, Key), SharedStr>,
    is_ready: bool,
    is_braked: bool,
    unreadable: BTreeMap<(WatchedResource, Key), SharedStr>,
}

impl StateChangeLogger {
    /// A sync: the first failure of a key, each new reason, and its end are worth a line.
    pub fn synced(&mut self, synced: &SyncSummary) {
        let SyncSummary { controller, key, result, n_creates, n_updates, n_deletes, .. } = synced;
        let at = (*controller, key.clone());
        let controller = controller.name();
        match result {
            SyncResult::Failed(failure) => {
                let is_known = self.failing.get(&at) == Some(&failure.message);
                if !is_known && self.failing.len() < FAILING_MAX {
                    let reason = failure.kind.as_str();
                    tracing::warn!(controller, %key, reason, "sync failed, will retry: {failure}");
                    self.failing.insert(at, failure.message.clone());
                }
            }
            SyncResult::Unchanged | SyncResult::Written | SyncResult::NamespaceTerminating => {
                if self.failing.remove(&at).is_some() {
                    tracing::info!(controller, %key, "sync works again");
                }
            }
            SyncResult::ConflictRetry | SyncResult::Throttled | SyncResult::LeadershipLost => {}
        }
        if *result != SyncResult::Unchanged {
            let (waited, took) = (synced.waited, synced.took);
            let result = result.as_str();
            tracing::debug!(
                controller, %key, result, n_creates, n_updates, n_deletes, ?waited, ?took, "synced"
            );
        }
    }

    /// The state of the whole.
    pub fn reported(&mut self, report: &EngineStatus) {
        for kind in &report.watches {
            for (key, reason) in &kind.decode_errors {
                let at = (kind.resource, key.clone());
                if self.unreadable.get(&at) != Some(reason) {
                    tracing::warn!(kind = kind.resource.as_str(), %key, %reason, "object left as it was");
                    self.unreadable.insert(at, reason.clone());
                }
            }
        }
        let known = |at: &(WatchedResource, Key)| {
            report
                .watches
                .iter()
                .any(|kind| kind.resource == at.0 && kind.decode_errors.contains_key(&at.1))
        };
        self.unreadable.retain(|at, _| known(at));
        let is_ready = report.is_ready();
        if is_ready != self.is_ready {
            self.is_ready = is_ready;
            match is_ready {
                true => tracing::info!("ready"),
                false => tracing::warn!("not ready: a watch is lost"),
            }
        }
        self.note_brake(report);
    }

    fn note_brake(&mut self, report: &EngineStatus) {
        let deletion_limiter = report.deletion_limiter;
        if deletion_limiter.is_active == self.is_braked {
            return;
        }
        self.is_braked = deletion_limiter.is_active;
        if deletion_limiter.is_active {
            tracing::error!(
                n_deletions_last_minute = deletion_limiter.n_deletions_last_minute,
                deletions_per_minute_max = deletion_limiter.deletions_per_minute_max,
                "deletion_limiter on: unusually many Services are gone, their Endpoints are deleted slowly"
            );
        } else {
            tracing::info!("deletion_limiter off");
        }
    }
}
