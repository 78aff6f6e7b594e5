//! How often a key may do what did not help before: a few times in a row, then now and then.

use std::time::Duration;

use crate::MonotonicTime;
use crate::backoff::BACKOFF_MAX;

/// So many tries in a row, as often as back-off does at first, and then one per interval: at most ten
/// in any minute. However many tries were spent at once, one is available after the interval.
pub const TRIES_IN_A_ROW: u32 = 8;
const TRY_INTERVAL: Duration = BACKOFF_MAX;

#[derive(Clone, Copy, Debug, Default)]
pub struct TryBudget {
    /// When all tries are available again.
    full_at: MonotonicTime,
}

impl TryBudget {
    /// Spends a try, if there is one left.
    pub fn spend(&mut self, now: MonotonicTime) {
        let longest = now + TRY_INTERVAL * TRIES_IN_A_ROW;
        self.full_at = (self.full_at.max(now) + TRY_INTERVAL).min(longest);
    }

    /// Gives a try back.
    pub fn refund(&mut self, now: MonotonicTime) {
        self.full_at = now + self.full_at.since(now).saturating_sub(TRY_INTERVAL);
    }

    /// No try is spent.
    pub fn is_full(&self, now: MonotonicTime) -> bool {
        self.full_at <= now
    }

    pub fn n_left(&self, now: MonotonicTime) -> u32 {
        let wait = self.full_at.since(now).as_millis();
        let n_spent = wait.div_ceil(TRY_INTERVAL.as_millis());
        TRIES_IN_A_ROW.saturating_sub(u32::try_from(n_spent).unwrap_or(u32::MAX))
    }

    /// When there is a try; now, if one is left.
    pub fn next_try(&self, now: MonotonicTime) -> MonotonicTime {
        let wait = self.full_at.since(now).saturating_sub(TRY_INTERVAL * (TRIES_IN_A_ROW - 1));
        now + wait
    }
}
