//! Runs an election: reads and writes the lease as [`Election`] says, and tells where we stand.

use std::future::Future;
use std::time::{Duration, Instant};

use endpointd_model::{Failure, FailureKind};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::lease::{Lease, LeaseWriteError};
use super::machine::{Action, Election};
use super::{ElectionOptions, InvalidElectionConfig, JITTER_MAX, LeadershipState};
use crate::client::Client;
use crate::moment::Now;

/// Only an answer that was lost can make a second try to hand it back necessary.
const RELEASES_MAX: u32 = 3;

/// Tries to lead until it has lost or is told to stop. Dropping it stops without a word: the lease
/// then runs out by itself.
pub struct LeaderElector {
    standing: watch::Receiver<LeadershipState>,
    leading_until: watch::Receiver<Option<Instant>>,
    stop: oneshot::Sender<()>,
    task: AbortOnDrop,
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl LeaderElector {
    /// Begins to try at once; needs a runtime.
    pub fn start(client: Client, options: ElectionOptions) -> Result<Self, InvalidElectionConfig> {
        options.check()?;
        let election = Election::new(options.clone());
        let (standing_sender, standing) = watch::channel(election.standing().clone());
        let (until_sender, leading_until) = watch::channel(None);
        let (stop, stopped) = oneshot::channel();
        let campaign =
            ElectorTask { client, options, election, standing_sender, until_sender, trouble: None };
        let task = AbortOnDrop(tokio::spawn(campaign.run(stopped)));
        Ok(Self { standing, leading_until, stop, task })
    }

    /// Says [`LeadershipState::Lost`] before anybody else can lead.
    pub fn standing(&self) -> watch::Receiver<LeadershipState> {
        self.standing.clone()
    }

    /// Whether a write may leave now. Unlike [`LeaderElector::standing`] this is right even in the
    /// instant after the whole process was held still.
    pub fn may_write(&self) -> bool {
        self.leading_until.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// The same check for those who do not own the candidate.
    pub fn term(&self) -> LeaderGuard {
        LeaderGuard(self.leading_until.clone())
    }

    /// Stops, and hands the lease back if the options say so. No write may be under way any more.
    pub async fn release(mut self) {
        // Fails only when the campaign is over already.
        let _ = self.stop.send(());
        let _ = (&mut self.task.0).await;
    }
}

/// Whether we lead at this instant.
#[derive(Clone)]
pub struct LeaderGuard(watch::Receiver<Option<Instant>>);

impl LeaderGuard {
    pub fn may_write(&self) -> bool {
        self.0.borrow().is_some_and(|until| Instant::now() < until)
    }
}

struct ElectorTask {
    client: Client,
    options: ElectionOptions,
    election: Election,
    standing_sender: watch::Sender<LeadershipState>,
    until_sender: watch::Sender<Option<Instant>>,
    /// What keeps us from the lease, as last logged.
    trouble: Option<FailureKind>,
}

impl ElectorTask {
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        loop {
            let now = Now::now();
            let step = self.election.step(now);
            self.publish();
            if step == Action::Stop {
                return;
            }
            let limit = self.limit_of(&step);
            tokio::select! {
                // A candidate that is dropped ends the task instead.
                _ = &mut stopped => {
                    self.release().await;
                    return;
                }
                () = self.perform(step, limit) => {}
            }
        }
    }

    async fn perform(&mut self, step: Action, limit: Duration) {
        let sent = Instant::now();
        match step {
            Action::Stop => {}
            Action::Wait(_) => tokio::time::sleep(limit).await,
            Action::Read => {
                let read = in_time(limit, self.client.read_lease(&self.options.lease)).await;
                let read = read.unwrap_or_else(Err);
                self.log_trouble(read.as_ref().err());
                self.election.read(read, Instant::now());
            }
            Action::Create(lease) => {
                let answer = in_time(limit, self.client.create_lease(&lease)).await;
                self.wrote(answer, sent);
            }
            Action::Replace(lease) => {
                let answer = in_time(limit, self.client.replace_lease(&lease)).await;
                self.wrote(answer, sent);
            }
        }
    }

    fn wrote(&mut self, answer: Result<Result<Lease, LeaseWriteError>, Failure>, sent: Instant) {
        let answer = answer.unwrap_or_else(|failure| Err(LeaseWriteError::Failed(failure)));
        match &answer {
            Err(LeaseWriteError::Failed(failure)) => self.log_trouble(Some(failure)),
            Ok(_) | Err(LeaseWriteError::Behind) => self.log_trouble(None),
        }
        self.election.wrote(answer, sent, Instant::now());
    }

    /// Once for each kind of trouble, not once for each try.
    fn log_trouble(&mut self, failure: Option<&Failure>) {
        let kind = failure.map(|failure| failure.kind);
        if std::mem::replace(&mut self.trouble, kind) == kind {
            return;
        }
        let lease = &self.options.lease;
        match failure {
            Some(failure) => tracing::warn!(%lease, reason = %failure, "cannot use the lease"),
            None => tracing::info!(%lease, "the lease can be used again"),
        }
    }

    /// How long a wait lasts, or a request may take: never beyond the moment we must stop.
    fn limit_of(&self, step: &Action) -> Duration {
        let until = self.election.leading_until();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let longest = match step {
            Action::Wait(wait) if left.is_none() => {
                *wait + self.options.retry_period.mul_f32(fastrand::f32() * JITTER_MAX)
            }
            Action::Wait(wait) => *wait,
            Action::Read | Action::Create(_) | Action::Replace(_) | Action::Stop => {
                self.options.retry_period.max(self.options.renew_deadline / 2)
            }
        };
        left.map_or(longest, |left| left.min(longest))
    }

    async fn release(&mut self) {
        let is_ours = self.election.stop(Instant::now());
        self.publish();
        if !is_ours || !self.options.release_on_exit {
            return;
        }
        match in_time(self.options.renew_deadline, self.release_lease()).await {
            Ok(Ok(())) => tracing::info!(lease = %self.options.lease, "lease released"),
            Ok(Err(reason)) => tracing::warn!(?reason, "lease not released"),
            Err(reason) => tracing::warn!(%reason, "lease not released"),
        }
    }

    /// Reads the lease first: a renewal that was under way may have been stored or not.
    async fn release_lease(&self) -> Result<(), LeaseWriteError> {
        let mut refused = LeaseWriteError::Behind;
        for _ in 0..RELEASES_MAX {
            let read = self.client.read_lease(&self.options.lease).await;
            let Some(lease) = read.map_err(LeaseWriteError::Failed)? else { return Ok(()) };
            let Some(back) = self.election.released(&lease, Now::now()) else { return Ok(()) };
            match self.client.replace_lease(&back).await {
                Ok(_) => return Ok(()),
                Err(LeaseWriteError::Behind) => refused = LeaseWriteError::Behind,
                Err(failed) => return Err(failed),
            }
        }
        Err(refused)
    }

    fn publish(&self) {
        // Whoever asks whether it may write must hear of the end first.
        let until = self.election.leading_until();
        self.until_sender.send_if_modified(|old| std::mem::replace(old, until) != until);
        let new = self.election.standing();
        let is_news = self.standing_sender.send_if_modified(|old| {
            let is_news = old != new;
            old.clone_from(new);
            is_news
        });
        if is_news {
            log_standing(&self.options, new);
        }
    }
}

async fn in_time<T>(limit: Duration, request: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::time::timeout(limit, request).await.map_err(|_| Failure {
        kind: FailureKind::Unreachable,
        message: format!("the lease: no answer within {limit:?}").into(),
    })
}

fn log_standing(options: &ElectionOptions, standing: &LeadershipState) {
    let ElectionOptions { lease, identity, .. } = options;
    match standing {
        LeadershipState::Standby { holder } => {
            tracing::info!(%lease, identity, ?holder, "standing by");
        }
        LeadershipState::Leading => tracing::info!(%lease, identity, "leading"),
        LeadershipState::Lost => tracing::info!(%lease, identity, "not leading any more"),
    }
}
