//! What a dry run finds: the engine plans, nothing is written, and a plan with writes is a difference
//! from what another controller publishes. That controller needs some time, so a key counts as
//! different only if its plan still has writes after 5 s without a change.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use endpointd_engine::{SyncResult, SyncSummary};
use endpointd_model::{Controller, Key};
use endpointd_status::{ShadowDifference, ShadowStatus};

/// The keys whose last plan has writes.
pub struct Shadow {
    started: Instant,
    differing: BTreeMap<(Controller, Key), Difference>,
    /// When a key last counted as different.
    last_difference: Option<Instant>,
}

struct Difference {
    /// `None`: it may not last.
    counted_since: Option<Instant>,
    n_creates: usize,
    n_updates: usize,
    n_deletes: usize,
}

impl Default for Shadow {
    fn default() -> Self {
        Self { started: Instant::now(), differing: BTreeMap::new(), last_difference: None }
    }
}

impl Shadow {
    /// Takes in a finished sync. A sync that failed, or that only read, has compared nothing.
    pub fn on_sync(&mut self, sync: &SyncSummary, now: Instant) {
        match &sync.result {
            SyncResult::Unchanged => self.agrees(sync, now),
            SyncResult::Written => self.differs(sync, now),
            SyncResult::Failed(failure) => {
                let (controller, key) = (sync.controller.name(), &sync.key);
                tracing::warn!(controller, %key, "cannot compare: {failure}");
            }
            SyncResult::NamespaceTerminating
            | SyncResult::ConflictRetry
            | SyncResult::Throttled
            | SyncResult::LeadershipLost => {}
        }
    }

    fn agrees(&mut self, sync: &SyncSummary, now: Instant) {
        let difference = self.differing.remove(&(sync.controller, sync.key.clone()));
        let Some(since) = difference.and_then(|one| one.counted_since) else { return };
        self.last_difference = Some(now);
        let (controller, key) = (sync.controller.name(), &sync.key);
        let lasted = now.saturating_duration_since(since);
        tracing::info!(controller, %key, ?lasted, "agrees again with what is published");
    }

    fn differs(&mut self, sync: &SyncSummary, now: Instant) {
        let &SyncSummary { controller, n_creates, n_updates, n_deletes, has_lasted, .. } = sync;
        let entry = (controller, sync.key.clone());
        let known = self.differing.get(&entry);
        let counted_since = known.and_then(|one| one.counted_since);
        let is_new = counted_since.is_none() && has_lasted;
        if is_new {
            let (controller, key) = (controller.name(), &sync.key);
            tracing::warn!(
                controller, %key, n_creates, n_updates, n_deletes,
                "differs from what is published: `endpointd diff` shows how"
            );
        }
        let counted_since = counted_since.or(is_new.then_some(now));
        self.differing.insert(entry, Difference { counted_since, n_creates, n_updates, n_deletes });
    }

    /// `n_keys` are known to the engine.
    pub fn status(&self, n_keys: usize, now: Instant) -> ShadowStatus {
        let counted = self.differing.iter().filter_map(|((controller, key), one)| {
            Some(ShadowDifference {
                controller: *controller,
                key: key.clone(),
                lasted: now.saturating_duration_since(one.counted_since?),
                n_creates: one.n_creates,
                n_updates: one.n_updates,
                n_deletes: one.n_deletes,
            })
        });
        let differences: Vec<ShadowDifference> = counted.collect();
        let agreed_for = match differences.is_empty() {
            true => now.saturating_duration_since(self.last_difference.unwrap_or(self.started)),
            false => Duration::ZERO,
        };
        ShadowStatus {
            n_agreeing: n_keys.saturating_sub(self.differing.len()),
            n_unsettled: self.differing.len() - differences.len(),
            differences,
            agreed_for,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sync(n_updates: usize, has_lasted: bool) -> SyncSummary {
        let summary = SyncSummary::new(Controller::Slices, Key::new("shop", "web"));
        let result = if n_updates > 0 { SyncResult::Written } else { SyncResult::Unchanged };
        SyncSummary { result, n_updates, has_lasted, ..summary }
    }

    fn counts(shadow: &Shadow, now: Instant) -> (usize, usize, usize) {
        let status = shadow.status(3, now);
        (status.n_agreeing, status.n_unsettled, status.differences.len())
    }

    #[test]
    fn a_difference_counts_only_if_it_lasts() {
        let (mut shadow, start) = (Shadow::default(), Instant::now());
        let at = |secs| start + Duration::from_secs(secs);
        shadow.on_sync(&sync(1, false), at(4));
        assert_eq!(counts(&shadow, at(4)), (2, 1, 0));
        shadow.on_sync(&sync(1, true), at(9));
        assert_eq!(counts(&shadow, at(9)), (2, 0, 1));
        shadow.on_sync(&sync(2, false), at(10));
        assert_eq!(counts(&shadow, at(11)), (2, 0, 1), "it has not agreed in between");
        assert_eq!(shadow.status(3, at(12)).differences[0].lasted, Duration::from_secs(3));
        assert_eq!(shadow.status(3, at(12)).agreed_for, Duration::ZERO);
        shadow.on_sync(&sync(0, false), at(20));
        assert_eq!(counts(&shadow, at(20)), (3, 0, 0));
        assert_eq!(shadow.status(3, at(50)).agreed_for, Duration::from_secs(30));
    }

    #[test]
    fn a_difference_that_the_other_controller_removes_never_counts() {
        let (mut shadow, start) = (Shadow::default(), Instant::now());
        shadow.on_sync(&sync(1, false), start);
        shadow.on_sync(&sync(0, false), start + Duration::from_secs(1));
        let status = shadow.status(3, start + Duration::from_secs(60));
        assert!(status.agreed_for >= Duration::from_secs(59), "{:?}", status.agreed_for);
        assert_eq!(counts(&shadow, start), (3, 0, 0));
    }
}
