//! For how long nothing has come. One alarm for a whole watch: setting one for every piece of it
//! takes longer than many a piece is worth.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

pub(super) struct IdleTimer {
    since: Instant,
    /// Never later than the end of the longest quiet, and often too early: then it is put off.
    alarm: Pin<Box<Sleep>>,
}

impl IdleTimer {
    pub(super) fn begin() -> Self {
        let since = Instant::now();
        Self { since, alarm: Box::pin(sleep_until(since)) }
    }

    /// Something has come.
    pub(super) fn begin_again(&mut self) {
        self.since = Instant::now();
    }

    /// Waits until nothing has come for so long; never shorter than the last time it was asked.
    pub(super) async fn lasts(&mut self, longest: Duration) {
        loop {
            self.alarm.as_mut().await;
            let end = self.since + longest;
            if end <= Instant::now() {
                return;
            }
            self.alarm.as_mut().reset(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(90);

    #[tokio::test(start_paused = true)]
    async fn it_lasts_from_the_last_that_came() {
        let began = Instant::now();
        let mut quiet = IdleTimer::begin();
        for _ in 0..3 {
            let heard = tokio::time::timeout(LONGEST * 2 / 3, quiet.lasts(LONGEST)).await;
            assert!(heard.is_err(), "not yet");
            quiet.begin_again();
        }
        quiet.lasts(LONGEST).await;
        assert_eq!(began.elapsed(), LONGEST * 3);
    }

    #[tokio::test(start_paused = true)]
    async fn it_may_be_allowed_to_last_longer_than_before() {
        let began = Instant::now();
        let mut quiet = IdleTimer::begin();
        assert!(tokio::time::timeout(LONGEST / 4, quiet.lasts(LONGEST / 3)).await.is_err());
        quiet.lasts(LONGEST).await;
        assert_eq!(began.elapsed(), LONGEST);
    }
}
