//! How long to wait before the next try: longer each time, never the same for everyone.

use std::time::Duration;

const PAUSE_MIN: Duration = Duration::from_millis(100);
/// An API server that is back is found within this.
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(10);
const DOUBLINGS_MAX: u32 = 7;
const _: () = assert!(PAUSE_MIN.as_millis() << DOUBLINGS_MAX >= PAUSE_MAX.as_millis());

#[derive(Debug, Default)]
pub(super) struct Backoff {
    n_failures: u32,
}

impl Backoff {
    pub(super) fn next(&mut self) -> Duration {
        let longest = (PAUSE_MIN * (1 << self.n_failures.min(DOUBLINGS_MAX))).min(PAUSE_MAX);
        self.n_failures += 1;
        longest.mul_f32(0.5 + fastrand::f32() / 2.0)
    }

    pub(super) fn n_failures(&self) -> u32 {
        self.n_failures
    }

    pub(super) fn reset(&mut self) {
        self.n_failures = 0;
    }

    /// Next to nothing, so that the watches of many processes do not come back in one instant.
    pub(super) fn jitter(&self) -> Duration {
        PAUSE_MIN.mul_f32(fastrand::f32() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_begin_anew_after_success() {
        let mut pause = Backoff::default();
        assert!(pause.next() <= PAUSE_MIN);
        for _ in 0..100 {
            assert!(pause.next() <= PAUSE_MAX);
        }
        assert!(pause.next() >= PAUSE_MAX / 2);
        pause.reset();
        assert!(pause.next() <= PAUSE_MIN);
    }
}
