//! Exponential back-off with jitter, for the connections of one watch.

use std::time::Duration;

const DELAY_MIN: Duration = Duration::from_millis(100);
/// A server that is back is noticed within this time.
pub(super) const DELAY_MAX: Duration = Duration::from_secs(10);
const DOUBLINGS_MAX: u32 = 7;
const _: () = assert!(DELAY_MIN.as_millis() << DOUBLINGS_MAX >= DELAY_MAX.as_millis());

#[derive(Debug, Default)]
pub(super) struct Backoff {
    n_failures: u32,
}

impl Backoff {
    /// The delay after one more failure: between half and all of the current maximum.
    pub(super) fn next(&mut self) -> Duration {
        let longest = (DELAY_MIN * (1 << self.n_failures.min(DOUBLINGS_MAX))).min(DELAY_MAX);
        self.n_failures += 1;
        longest.mul_f32(0.5 + fastrand::f32() / 2.0)
    }

    pub(super) fn n_failures(&self) -> u32 {
        self.n_failures
    }

    pub(super) fn reset(&mut self) {
        self.n_failures = 0;
    }

    /// A short delay without a failure, so that not all watches of all processes reconnect at once.
    pub(super) fn jitter(&self) -> Duration {
        DELAY_MIN.mul_f32(fastrand::f32() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_grows_to_its_maximum_and_is_reset_by_success() {
        let mut backoff = Backoff::default();
        assert!(backoff.next() <= DELAY_MIN);
        for _ in 0..100 {
            assert!(backoff.next() <= DELAY_MAX);
        }
        assert!(backoff.next() >= DELAY_MAX / 2);
        backoff.reset();
        assert!(backoff.next() <= DELAY_MIN);
    }
}
