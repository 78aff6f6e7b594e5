//! When a key is synced again: after its own sync, and after a change that arrived meanwhile.
//! Pure functions of how the sync ended, the failures so far, and the time.

use std::time::Duration;

use endpointd_rng::SplitMix64;

use crate::queue::Priority;
use crate::{MonotonicTime, SyncResult, backoff};

/// Delay between a change of a key that failed before and its next sync: long enough not to add
/// load to an API server in trouble, short enough that a fix takes effect within seconds.
pub const FAILED_KEY_RETRY: Duration = Duration::from_secs(2);

/// Delay before a node whose live read failed is read again.
pub const NODE_RETRY: Duration = Duration::from_secs(5);

/// What the retry of a key depends on besides the result of its sync.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetryInputs {
    /// Consecutive failed syncs of this key, this one included.
    pub n_failures: u32,
    /// Consecutive conflicts of this key, this one included.
    pub n_conflicts: u32,
    /// Another client wrote to an object while our write to it was in flight.
    pub has_concurrent_write: bool,
    /// The delay after a change of a published object.
    pub batch_period: Duration,
}

/// The time, and the random numbers that spread the retries of keys that failed together.
#[derive(Debug)]
pub struct RetryContext<'a> {
    pub now: MonotonicTime,
    pub jitter: &'a mut SplitMix64,
}

/// When a key is synced again although nothing changed; `None` if it need not be.
pub fn after_sync(
    result: &SyncResult,
    inputs: &RetryInputs,
    now: MonotonicTime,
    jitter: &mut SplitMix64,
) -> Option<MonotonicTime> {
    match result {
        SyncResult::Failed(failure) => {
            Some(now + backoff::after_failure(failure.kind, inputs.n_failures, jitter))
        }
        // The key table says for how long the API server wants to get no write of this key.
        SyncResult::Throttled => Some(now),
        SyncResult::ConflictRetry => Some(now + backoff::after_conflict(inputs.n_conflicts)),
        // Leadership was lost and acquired again during the sync: no initial sync will repeat it.
        SyncResult::LeadershipLost => Some(now),
        SyncResult::Unchanged | SyncResult::Written | SyncResult::NamespaceTerminating => {
            inputs.has_concurrent_write.then_some(now + inputs.batch_period)
        }
    }
}

/// When a change of a key is acted upon. `earliest` is the end of its batch period and cooldown.
pub fn after_change(
    priority: Priority,
    is_failing: bool,
    earliest: MonotonicTime,
    now: MonotonicTime,
) -> MonotonicTime {
    match (is_failing, priority) {
        (false, _) => earliest,
        (true, Priority::Removal) => now,
        (true, Priority::Live | Priority::Background) => now + FAILED_KEY_RETRY,
        (true, Priority::Repair) => earliest.max(now + FAILED_KEY_RETRY),
    }
}

#[cfg(test)]
mod tests {
    use endpointd_model::{Failure, FailureKind};

    use super::*;

    const NOW: u64 = 100;

    fn at(secs: u64) -> MonotonicTime {
        MonotonicTime::after_start(Duration::from_secs(secs))
    }

    fn due(result: &SyncResult, inputs: &RetryInputs) -> Option<MonotonicTime> {
        after_sync(result, inputs, at(NOW), &mut SplitMix64::new(7))
    }

    fn failed(kind: FailureKind) -> SyncResult {
        SyncResult::Failed(Failure { kind, message: "rejected".into() })
    }

    #[test]
    fn successful_sync_is_repeated_only_after_a_concurrent_write() {
        let batch_period = Duration::from_secs(1);
        let none = RetryInputs { batch_period, ..RetryInputs::default() };
        let concurrent = RetryInputs { has_concurrent_write: true, ..none };
        for result in [SyncResult::Unchanged, SyncResult::Written, SyncResult::NamespaceTerminating]
        {
            assert_eq!(due(&result, &none), None);
            assert_eq!(due(&result, &concurrent), Some(at(NOW + 1)));
        }
    }

    #[test]
    fn conflicts_are_retried_at_once_until_they_repeat() {
        let inputs = |n_conflicts| RetryInputs { n_conflicts, ..RetryInputs::default() };
        for n_conflicts in 0..=3 {
            assert_eq!(due(&SyncResult::ConflictRetry, &inputs(n_conflicts)), Some(at(NOW)));
        }
        assert!(due(&SyncResult::ConflictRetry, &inputs(4)) > Some(at(NOW)));
        assert_eq!(due(&SyncResult::ConflictRetry, &inputs(100)), Some(at(NOW + 30)));
    }

    #[test]
    fn failed_sync_backs_off_by_kind_and_number_of_failures() {
        let after = |kind, n_failures| {
            let inputs = RetryInputs { n_failures, ..RetryInputs::default() };
            due(&failed(kind), &inputs).expect("a failed sync is retried").since(at(NOW))
        };
        let (rejected, unreachable) = (FailureKind::Forbidden, FailureKind::Unreachable);
        assert!(after(rejected, 1) > after(unreachable, 1));
        assert!(after(rejected, 2) > after(rejected, 1));
        assert!(after(rejected, 1000) <= backoff::BACKOFF_MAX);
    }

    #[test]
    fn sync_stopped_by_lost_leadership_is_due_at_once() {
        assert_eq!(due(&SyncResult::LeadershipLost, &RetryInputs::default()), Some(at(NOW)));
    }

    #[test]
    fn change_of_a_failing_key_waits_unless_it_removes_an_endpoint() {
        let table = [
            (Priority::Removal, false, at(NOW + 1)),
            (Priority::Live, false, at(NOW + 1)),
            (Priority::Removal, true, at(NOW)),
            (Priority::Live, true, at(NOW + 2)),
            (Priority::Background, true, at(NOW + 2)),
        ];
        for (priority, is_failing, want) in table {
            let got = after_change(priority, is_failing, at(NOW + 1), at(NOW));
            assert_eq!(got, want, "{priority:?}, failing: {is_failing}");
        }
    }
}
