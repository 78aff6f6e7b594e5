//! Whether this process may write: always, or while it holds the lease.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;

use tokio::sync::watch;

/// Whether this process leads at this instant. Unlike the published state it is correct even
/// immediately after the whole process was suspended.
#[derive(Clone)]
pub struct LeaderGuard(watch::Receiver<Option<Instant>>);

impl LeaderGuard {
    /// `leading_until` is the end of leadership without another renewal; `None` while not leading.
    pub fn new(leading_until: watch::Receiver<Option<Instant>>) -> Self {
        Self(leading_until)
    }

    pub fn may_write(&self) -> bool {
        self.0.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// Completes when this process does not lead any more.
    async fn ended(&self) {
        let mut changes = self.0.clone();
        loop {
            let until = *changes.borrow_and_update();
            let Some(until) = until.filter(|until| Instant::now() < *until) else { return };
            tokio::select! {
                // Without an election there are no renewals, and the term ends.
                Ok(()) = changes.changed() => {}
                () = tokio::time::sleep_until(until.into()) => {}
            }
        }
    }
}

/// Permission to send writes.
#[derive(Clone)]
pub enum WritePermit {
    Always,
    WhileLeader(LeaderGuard),
    /// A dry run.
    Never,
}

impl WritePermit {
    pub fn may_write(&self) -> bool {
        match self {
            Self::Always => true,
            Self::WhileLeader(guard) => guard.may_write(),
            Self::Never => false,
        }
    }

    /// Drives a request as long as this process may write, and drops it when it may not: `None`.
    /// The permit is checked before every step, thus after each wait for a rate limit, credentials,
    /// or a connection, and before a rejected request is sent again.
    pub(crate) async fn while_valid<T>(&self, request: impl Future<Output = T>) -> Option<T> {
        let guard = match self {
            Self::Always => return Some(request.await),
            Self::WhileLeader(guard) => guard,
            Self::Never => return None,
        };
        let (mut request, mut ended) = (pin!(request), pin!(guard.ended()));
        poll_fn(|context| {
            // The timer of `ended` can be late, when the process was suspended for example.
            if !guard.may_write() || ended.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            request.as_mut().poll(context).map(Some)
        })
        .await
    }
}
