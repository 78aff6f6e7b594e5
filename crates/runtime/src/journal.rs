//! Log lines: one when a state changes, none when nothing does.

use std::collections::BTreeMap;

use endpointd_engine::{Report, SyncEnd, Synced};
use endpointd_model::{Controller, Key, Kind, Text};

/// Failing keys remembered for the log; beyond that only their number is told.
const FAILING_MAX: usize = 1000;

#[derive(Default)]
pub struct Journal {
    failing: BTreeMap<(Controller, Key), Text>,
    is_ready: bool,
    is_braked: bool,
    unreadable: BTreeMap<(Kind, Key), Text>,
}

impl Journal {
    /// A sync: the first failure of a key, each new reason, and its end are worth a line.
    pub fn synced(&mut self, synced: &Synced) {
        let Synced { controller, key, end, n_creates, n_updates, n_deletes, .. } = synced;
        let at = (*controller, key.clone());
        let controller = controller.name();
        match end {
            SyncEnd::Failed(failure) => {
                let is_known = self.failing.get(&at) == Some(&failure.message);
                if !is_known && self.failing.len() < FAILING_MAX {
                    let reason = failure.kind.as_str();
                    tracing::warn!(controller, %key, reason, "sync failed, will retry: {failure}");
                    self.failing.insert(at, failure.message.clone());
                }
            }
            SyncEnd::Unchanged | SyncEnd::Written | SyncEnd::Pointless => {
                if self.failing.remove(&at).is_some() {
                    tracing::info!(controller, %key, "sync works again");
                }
            }
            SyncEnd::Stale | SyncEnd::Throttled | SyncEnd::Abandoned => {}
        }
        if *end != SyncEnd::Unchanged {
            let (waited, took) = (synced.waited, synced.took);
            let end = end.as_str();
            tracing::debug!(
                controller, %key, end, n_creates, n_updates, n_deletes, ?waited, ?took, "synced"
            );
        }
    }

    /// The state of the whole.
    pub fn reported(&mut self, report: &Report) {
        for kind in &report.kinds {
            for (key, reason) in &kind.unreadable {
                let at = (kind.kind, key.clone());
                if self.unreadable.get(&at) != Some(reason) {
                    tracing::warn!(kind = kind.kind.as_str(), %key, %reason, "object left as it was");
                    self.unreadable.insert(at, reason.clone());
                }
            }
        }
        let known = |at: &(Kind, Key)| {
            report.kinds.iter().any(|kind| kind.kind == at.0 && kind.unreadable.contains_key(&at.1))
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

    fn note_brake(&mut self, report: &Report) {
        let brake = report.brake;
        if brake.is_on == self.is_braked {
            return;
        }
        self.is_braked = brake.is_on;
        if brake.is_on {
            tracing::error!(
                n_last_minute = brake.n_last_minute,
                max_a_minute = brake.max_a_minute,
                "brake on: unusually many Services are gone, their Endpoints are deleted slowly"
            );
        } else {
            tracing::info!("brake off");
        }
    }
}
