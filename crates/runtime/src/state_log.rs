//! Log lines about state changes: one when a state changes, none while it lasts. Every sync is
//! logged at debug level, in a span of its own.

use std::collections::BTreeMap;

use endpointd_engine::{DeletionLimiterStatus, EngineStatus, SyncResult, SyncSummary};
use endpointd_model::{Controller, Failure, Key, SharedStr, WatchedResource};

/// Failing keys that are remembered; beyond that new failures are not logged.
const FAILING_KEYS_MAX: usize = 1000;

#[derive(Default)]
pub struct StateChangeLogger {
    failing: BTreeMap<(Controller, Key), SharedStr>,
    decode_errors: BTreeMap<(WatchedResource, Key), SharedStr>,
    contested: BTreeMap<(Controller, Key), SharedStr>,
    is_ready: bool,
    is_limiter_active: bool,
}

impl StateChangeLogger {
    /// Logs a finished sync: its first failure, each new reason, and its recovery as state changes.
    pub fn on_sync(&mut self, sync: &SyncSummary) {
        let SyncSummary { controller, key, result, took, waited, .. } = sync;
        let writes = sync.n_creates + sync.n_updates + sync.n_deletes;
        let span = tracing::debug_span!(
            "sync",
            controller = controller.name(),
            %key,
            writes,
            elapsed = ?took,
        );
        let _entered = span.enter();
        match result {
            SyncResult::Failed(failure) => self.log_failure(*controller, key, failure),
            SyncResult::Unchanged | SyncResult::Written | SyncResult::NamespaceTerminating => {
                self.log_recovery(*controller, key);
            }
            SyncResult::ConflictRetry | SyncResult::Throttled | SyncResult::LeadershipLost => {}
        }
        if *result != SyncResult::Unchanged {
            tracing::debug!(result = result.as_str(), ?waited, "sync finished");
        }
    }

    fn log_failure(&mut self, controller: Controller, key: &Key, failure: &Failure) {
        let entry = (controller, key.clone());
        let is_known = self.failing.get(&entry) == Some(&failure.message);
        if is_known || self.failing.len() >= FAILING_KEYS_MAX {
            return;
        }
        let (controller, reason) = (controller.name(), failure.kind.as_str());
        tracing::warn!(controller, %key, reason, "sync failed, will retry: {failure}");
        self.failing.insert(entry, failure.message.clone());
    }

    fn log_recovery(&mut self, controller: Controller, key: &Key) {
        if self.failing.is_empty() {
            return;
        }
        if self.failing.remove(&(controller, key.clone())).is_some() {
            tracing::info!(controller = controller.name(), %key, "sync recovered");
        }
    }

    /// Logs what changed since the last status.
    pub fn on_status(&mut self, status: &EngineStatus) {
        self.log_decode_errors(status);
        self.log_contested_keys(status);
        self.log_readiness(status.is_ready());
        self.log_deletion_limiter(&status.deletion_limiter);
    }

    fn log_decode_errors(&mut self, status: &EngineStatus) {
        let mut current = BTreeMap::new();
        for watch in &status.watches {
            for (key, reason) in &watch.decode_errors {
                let entry = (watch.resource, key.clone());
                if self.decode_errors.get(&entry) != Some(reason) {
                    let resource = watch.resource.as_str();
                    tracing::warn!(
                        resource, %key, %reason,
                        "failed to decode object, keeping last known version"
                    );
                }
                current.insert(entry, reason.clone());
            }
        }
        self.decode_errors = current;
    }

    fn log_contested_keys(&mut self, status: &EngineStatus) {
        let mut current = BTreeMap::new();
        for row in status.keys.iter().filter(|row| row.is_contested) {
            let (key, entry) = (&row.key, (row.controller, row.key.clone()));
            let message = row.last_error.clone().unwrap_or_default();
            if self.contested.get(&entry) != Some(&message) {
                let controller = row.controller.name();
                tracing::warn!(controller, %key, "{message}");
            }
            current.insert(entry, message);
        }
        for (controller, key) in self.contested.keys() {
            if !current.contains_key(&(*controller, key.clone())) {
                let controller = controller.name();
                tracing::info!(controller, %key, "no other client changes what is published");
            }
        }
        self.contested = current;
    }

    fn log_readiness(&mut self, is_ready: bool) {
        if is_ready == self.is_ready {
            return;
        }
        self.is_ready = is_ready;
        match is_ready {
            true => tracing::info!("ready"),
            false => tracing::warn!("not ready: a watch is disconnected"),
        }
    }

    fn log_deletion_limiter(&mut self, limiter: &DeletionLimiterStatus) {
        if limiter.is_active == self.is_limiter_active {
            return;
        }
        self.is_limiter_active = limiter.is_active;
        if limiter.is_active {
            tracing::error!(
                n_deletions_last_minute = limiter.n_deletions_last_minute,
                deletions_per_minute_max = limiter.deletions_per_minute_max,
                "mass deletion detected: rate-limiting deletions"
            );
        } else {
            tracing::info!("deletion rate limit lifted");
        }
    }
}

#[cfg(test)]
mod tests;
