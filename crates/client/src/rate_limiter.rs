//! Limits the rate of requests: a token bucket. Upstream: client-go's `flowcontrol`.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tokens arrive at a constant rate; the bucket may be overdrawn, and the caller waits.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    per_token: Duration,
    n_tokens_max: u32,
    /// The bucket is empty at this time if no more tokens are taken; earlier means more tokens.
    empty_at: Instant,
}

impl TokenBucket {
    /// A full bucket. Rates that are not positive count as the lowest rate.
    pub(crate) fn full(per_sec: f32, n_tokens_max: u32, now: Instant) -> Self {
        let per_sec = if per_sec > PER_SEC_MIN { per_sec } else { PER_SEC_MIN };
        let per_token = Duration::from_secs_f32(1.0 / per_sec);
        let mut bucket = Self { per_token, n_tokens_max: n_tokens_max.max(1), empty_at: now };
        bucket.empty_at = bucket.empty_at_when_full(now);
        bucket
    }

    /// Takes a token; returns how long to wait for it.
    pub(crate) fn take(&mut self, now: Instant) -> Duration {
        self.empty_at = self.empty_at.max(self.empty_at_when_full(now)) + self.per_token;
        self.empty_at.saturating_duration_since(now)
    }

    /// Takes a token if the bucket has one.
    pub(crate) fn try_take(&mut self, now: Instant) -> bool {
        let has_one = self.empty_at.max(self.empty_at_when_full(now)) + self.per_token <= now;
        if has_one {
            self.take(now);
        }
        has_one
    }

    fn empty_at_when_full(&self, now: Instant) -> Instant {
        // The subtraction fails only on a machine that has just started.
        now.checked_sub(self.per_token * self.n_tokens_max).unwrap_or(now)
    }
}

const PER_SEC_MIN: f32 = 0.001;

/// A bucket shared by many requests.
#[derive(Debug)]
pub(crate) struct RateLimiter(Mutex<TokenBucket>);

impl RateLimiter {
    pub(crate) fn new(per_sec: f32, burst: u32) -> Self {
        Self(Mutex::new(TokenBucket::full(per_sec, burst, Instant::now())))
    }

    pub(crate) async fn acquire(&self) {
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
    fn burst_is_immediate_and_then_the_rate_applies() {
        let start = Instant::now() + Duration::from_secs(3600);
        let mut bucket = TokenBucket::full(10.0, 3, start);
        let waits: Vec<u128> = (0..5).map(|_| bucket.take(start).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
    }

    #[test]
    fn tokens_accumulate_up_to_the_bucket_size() {
        let start = Instant::now() + Duration::from_secs(3600);
        let mut bucket = TokenBucket::full(1.0, 2, start);
        assert!(bucket.try_take(start) && bucket.try_take(start) && !bucket.try_take(start));
        assert!(bucket.try_take(start + Duration::from_secs(1)));
        let later = start + Duration::from_secs(1000);
        assert!(bucket.try_take(later) && bucket.try_take(later) && !bucket.try_take(later));
    }

    #[test]
    fn invalid_rate_does_not_panic() {
        let now = Instant::now() + Duration::from_secs(3600);
        for rate in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert!(TokenBucket::full(rate, 0, now).try_take(now), "{rate}");
        }
    }
}
