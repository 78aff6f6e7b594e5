//! How many requests may go: a token bucket. Upstream: client-go's `flowcontrol`.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tokens come at a steady rate; one that is taken before it has come must be waited for.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    per_token: Duration,
    n_tokens_max: u32,
    /// When the bucket would be empty had nothing been taken since; earlier means more tokens.
    spent_until: Instant,
}

impl TokenBucket {
    /// A full bucket. A rate of nothing or less counts as the least there is.
    pub(crate) fn full(per_sec: f32, n_tokens_max: u32, now: Instant) -> Self {
        let per_sec = if per_sec > PER_SEC_MIN { per_sec } else { PER_SEC_MIN };
        let per_token = Duration::from_secs_f32(1.0 / per_sec);
        let mut bucket = Self { per_token, n_tokens_max: n_tokens_max.max(1), spent_until: now };
        bucket.spent_until = bucket.when_full(now);
        bucket
    }

    /// Takes a token; the answer says how long to wait for it.
    pub(crate) fn take(&mut self, now: Instant) -> Duration {
        self.spent_until = self.spent_until.max(self.when_full(now)) + self.per_token;
        self.spent_until.saturating_duration_since(now)
    }

    /// Takes a token if there is one.
    pub(crate) fn try_take(&mut self, now: Instant) -> bool {
        let has_one = self.spent_until.max(self.when_full(now)) + self.per_token <= now;
        if has_one {
            self.take(now);
        }
        has_one
    }

    fn when_full(&self, now: Instant) -> Instant {
        // Only a machine that has just started cannot look back this far.
        now.checked_sub(self.per_token * self.n_tokens_max).unwrap_or(now)
    }
}

const PER_SEC_MIN: f32 = 0.001;

/// A bucket that many share.
#[derive(Debug)]
pub(crate) struct RateLimiter(Mutex<TokenBucket>);

impl RateLimiter {
    pub(crate) fn new(per_sec: f32, burst: u32) -> Self {
        Self(Mutex::new(TokenBucket::full(per_sec, burst, Instant::now())))
    }

    pub(crate) async fn spend(&self) {
        let wait = {
            let mut bucket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            bucket.take(Instant::now())
        };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_then_the_rate_counts() {
        let start = Instant::now() + Duration::from_secs(3600);
        let mut bucket = TokenBucket::full(10.0, 3, start);
        let waits: Vec<u128> = (0..5).map(|_| bucket.take(start).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
    }

    #[test]
    fn tokens_come_back_but_never_more_than_fit() {
        let start = Instant::now() + Duration::from_secs(3600);
        let mut bucket = TokenBucket::full(1.0, 2, start);
        assert!(bucket.try_take(start) && bucket.try_take(start) && !bucket.try_take(start));
        assert!(bucket.try_take(start + Duration::from_secs(1)));
        let later = start + Duration::from_secs(1000);
        assert!(bucket.try_take(later) && bucket.try_take(later) && !bucket.try_take(later));
    }

    #[test]
    fn a_senseless_rate_does_not_panic() {
        let now = Instant::now() + Duration::from_secs(3600);
        for rate in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert!(TokenBucket::full(rate, 0, now).try_take(now), "{rate}");
        }
    }
}
