//! Pauses of all requests: while the API server is unreachable, and while it throttles many keys.

use std::time::Duration;

use endpointd_model::{FailureKind, WriteResult};

use crate::{MonotonicTime, backoff};

/// This many failures in a row, of any keys, are an outage; fewer may be chance.
const OUTAGE_AFTER_FAILURES: u32 = 3;

#[derive(Debug, Default)]
pub struct Outage {
    paused_until: MonotonicTime,
    n_failures_in_a_row: u32,
}

impl Outage {
    /// Nothing is sent before.
    pub fn paused_until(&self) -> MonotonicTime {
        self.paused_until
    }

    /// The rest of the pause, if there is one.
    pub fn remaining(&self, now: MonotonicTime) -> Option<Duration> {
        Some(self.paused_until.since(now)).filter(|remaining| !remaining.is_zero())
    }

    /// Returns whether this response ends an outage.
    pub fn on_write_result(&mut self, result: &WriteResult, now: MonotonicTime) -> bool {
        match result {
            WriteResult::Stored(_) | WriteResult::Deleted => return self.record_success(),
            WriteResult::NoResponse(failure) | WriteResult::Failed(failure) => {
                self.record_failure(failure.kind, now);
            }
            WriteResult::Conflict(_)
            | WriteResult::NamespaceTerminating(_)
            | WriteResult::Throttled { .. }
            | WriteResult::NotLeader => {}
        }
        false
    }

    /// The API server throttles many keys.
    pub fn pause_until(&mut self, until: MonotonicTime) {
        self.paused_until = self.paused_until.max(until);
    }

    /// An unreachable API server is tried only now and then. A server error (5xx) may concern one
    /// object only, so it counts as a failure but pauses nothing.
    pub fn record_failure(&mut self, kind: FailureKind, now: MonotonicTime) {
        if !kind.is_outage() {
            return;
        }
        self.n_failures_in_a_row += 1;
        if kind == FailureKind::Unreachable && now >= self.paused_until {
            self.paused_until = now + backoff::outage_pause(self.n_failures_in_a_row);
        }
    }

    /// The API server has responded. Returns whether that ends an outage.
    pub fn record_success(&mut self) -> bool {
        std::mem::take(&mut self.n_failures_in_a_row) >= OUTAGE_AFTER_FAILURES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> MonotonicTime {
        MonotonicTime::after_start(Duration::from_millis(millis))
    }

    #[test]
    fn unreachable_server_pauses_all_requests_longer_each_time() {
        let mut outage = Outage::default();
        outage.record_failure(FailureKind::Unreachable, at(0));
        assert_eq!(outage.paused_until(), at(200));
        outage.record_failure(FailureKind::Unreachable, at(100));
        assert_eq!(outage.paused_until(), at(200), "requests sent before the pause extend it not");
        outage.record_failure(FailureKind::Unreachable, at(200));
        assert_eq!(outage.paused_until(), at(1000));
    }

    #[test]
    fn third_failure_in_a_row_makes_an_outage() {
        let mut outage = Outage::default();
        for n_failures in [0, 1, 2, 3] {
            for _ in 0..n_failures {
                outage.record_failure(FailureKind::ServerError, at(0));
            }
            assert_eq!(outage.record_success(), n_failures == 3);
        }
        assert_eq!(outage.paused_until(), at(0), "server errors pause nothing");
    }

    #[test]
    fn pause_is_never_shortened() {
        let mut outage = Outage::default();
        outage.pause_until(at(30_000));
        outage.pause_until(at(1000));
        assert_eq!(outage.paused_until(), at(30_000));
    }
}
