//! Detects a watch without data. It keeps one timer per watch: resetting a timer for every chunk
//! of data takes longer than decoding many of them.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

pub(super) struct IdleTimer {
    since: Instant,
    /// Never later than the end of the longest idle time, often earlier; then it is set again.
    timer: Pin<Box<Sleep>>,
}

impl IdleTimer {
    pub(super) fn start() -> Self {
        let since = Instant::now();
        Self { since, timer: Box::pin(sleep_until(since)) }
    }

    /// Data has arrived.
    pub(super) fn reset(&mut self) {
        self.since = Instant::now();
    }

    /// Waits until no data has arrived for `idle_max`. Cancel safe. `idle_max` must not decrease
    /// from call to call.
    pub(super) async fn elapsed(&mut self, idle_max: Duration) {
        loop {
            self.timer.as_mut().await;
            let end = self.since + idle_max;
            if end <= Instant::now() {
                return;
            }
            self.timer.as_mut().reset(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE_MAX: Duration = Duration::from_secs(90);

    #[tokio::test(start_paused = true)]
    async fn idle_time_starts_again_with_each_reset() {
        let started = Instant::now();
        let mut idle = IdleTimer::start();
        for _ in 0..3 {
            let waited = tokio::time::timeout(IDLE_MAX * 2 / 3, idle.elapsed(IDLE_MAX)).await;
            assert!(waited.is_err(), "not yet");
            idle.reset();
        }
        idle.elapsed(IDLE_MAX).await;
        assert_eq!(started.elapsed(), IDLE_MAX * 3);
    }

    #[tokio::test(start_paused = true)]
    async fn longest_idle_time_may_grow() {
        let started = Instant::now();
        let mut idle = IdleTimer::start();
        assert!(tokio::time::timeout(IDLE_MAX / 4, idle.elapsed(IDLE_MAX / 3)).await.is_err());
        idle.elapsed(IDLE_MAX).await;
        assert_eq!(started.elapsed(), IDLE_MAX);
    }
}
