//! Performs the actions of an [`Election`]: reads and writes the Lease, and publishes the state.

use std::future::Future;
use std::time::{Duration, Instant};

use endpointd_model::{Failure, FailureKind, ResourceVersion};
use tokio::sync::{oneshot, watch};

use super::lease::{Lease, LeaseWriteError};
use super::machine::{Action, Election};
use super::write_permit::LeaderGuard;
use super::{ElectionOptions, InvalidElectionConfig, JITTER_MAX, LeadershipState};
use crate::client::Client;
use crate::now::Now;

/// Attempts to release the lease; more than one is needed only when a response is lost.
const RELEASES_MAX: u32 = 3;
/// After a loss, the process joins again after this time, so that the new holder has settled.
const REJOIN_DELAY: Duration = Duration::from_secs(1);

/// A handle to the election task. Dropping it ends the task without releasing the lease, which then
/// expires.
pub struct LeaderElector {
    state: watch::Receiver<LeadershipState>,
    leading_until: watch::Receiver<Option<Instant>>,
    release: oneshot::Sender<()>,
}

impl LeaderElector {
    /// The elector, and its task, which the caller runs. The task does not end on its own.
    pub fn new(
        client: Client,
        options: ElectionOptions,
    ) -> Result<(Self, impl Future<Output = ()> + Send + 'static), InvalidElectionConfig> {
        options.check()?;
        let election = Election::new(options.clone());
        let (state_sender, state) = watch::channel(election.state().clone());
        let (until_sender, leading_until) = watch::channel(None);
        let (release, released) = oneshot::channel();
        let task = ElectorTask {
            client,
            options,
            election,
            n_rejoins: 0,
            state_sender,
            until_sender,
            version: ResourceVersion::NONE,
            trouble: None,
        };
        Ok((Self { state, leading_until, release }, task.run(released)))
    }

    /// Publishes the end of leadership before any other process can lead.
    pub fn state(&self) -> watch::Receiver<LeadershipState> {
        self.state.clone()
    }

    pub fn guard(&self) -> LeaderGuard {
        LeaderGuard::new(self.leading_until.clone())
    }

    /// Ends the task, and releases the lease if the options say so. Writes in flight end first: their
    /// permit ends.
    pub async fn release(mut self) {
        // Fails only when the task has ended already.
        let _ = self.release.send(());
        while self.state.changed().await.is_ok() {}
    }
}

struct ElectorTask {
    client: Client,
    options: ElectionOptions,
    election: Election,
    n_rejoins: u32,
    state_sender: watch::Sender<LeadershipState>,
    until_sender: watch::Sender<Option<Instant>>,
    /// The newest version of the Lease that was received.
    version: ResourceVersion,
    /// The kind of the last failure that was logged and has not ended.
    trouble: Option<FailureKind>,
}

impl ElectorTask {
    async fn run(mut self, mut released: oneshot::Receiver<()>) {
        loop {
            let action = self.election.next_action(Now::from_system_clocks());
            self.publish();
            let limit = self.limit_of(&action);
            tokio::select! {
                released = &mut released => {
                    if released.is_ok() {
                        self.release().await;
                    }
                    return;
                }
                () = self.perform(action, limit) => {}
            }
        }
    }

    async fn perform(&mut self, action: Action, limit: Duration) {
        let sent = Instant::now();
        match action {
            Action::Rejoin => {
                tokio::time::sleep(REJOIN_DELAY).await;
                self.rejoin();
            }
            Action::Wait(_) => tokio::time::sleep(limit).await,
            Action::Read => {
                let read = in_time(limit, self.client.read_lease(&self.options.lease)).await;
                let is_silent = read.is_err();
                let read = read.unwrap_or_else(Err);
                if let Ok(Some(lease)) = &read {
                    self.note_version(lease);
                }
                self.log_trouble(read.as_ref().err());
                self.election.on_read(read, Instant::now());
                if is_silent {
                    self.on_silence().await;
                }
            }
            Action::Create(lease) => {
                let written = in_time(limit, self.client.create_lease(&lease)).await;
                self.on_written(written, sent);
            }
            Action::Replace(lease) => {
                let written = in_time(limit, self.client.replace_lease(&lease)).await;
                let is_silent = written.is_err();
                self.on_written(written, sent);
                if is_silent {
                    self.on_silence().await;
                }
            }
        }
    }

    /// A request for the Lease was not answered in time. It is small, so that the connection may be
    /// dead: the next attempt is made at once, on another one.
    async fn on_silence(&mut self) {
        if self.client.transport.suspect_connections().await {
            self.election.attempt_at_once();
        }
    }

    fn on_written(
        &mut self,
        written: Result<Result<Lease, LeaseWriteError>, Failure>,
        sent: Instant,
    ) {
        let written = written.unwrap_or_else(|failure| Err(LeaseWriteError::Failed(failure)));
        match &written {
            Err(LeaseWriteError::Failed(failure)) => self.log_trouble(Some(failure)),
            Err(LeaseWriteError::Conflict) => self.log_trouble(None),
            Ok(lease) => {
                self.note_version(lease);
                self.log_trouble(None);
            }
        }
        self.election.on_written(written, sent, Instant::now());
    }

    /// Each request is sent after the response to the one before: versions can only grow.
    fn note_version(&mut self, lease: &Lease) {
        let Ok(version) = ResourceVersion::parse(&lease.resource_version) else { return };
        let known = std::mem::replace(&mut self.version, version);
        if version < known {
            let evidence = format!("lease {} is at {version}, and was at {known}", lease.key);
            self.client.report_rollback(&evidence);
        }
    }

    /// Joins the election again, with a new identity: a renewal of the earlier term that is stored
    /// late must not look like ours.
    fn rejoin(&mut self) {
        self.n_rejoins += 1;
        let identity = format!("{}_{}", self.options.identity, self.n_rejoins);
        self.election = Election::new(ElectionOptions { identity, ..self.options.clone() });
    }

    /// Logs a failure once for each kind, not for each attempt.
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

    /// How long to wait, or how long a request may take: never beyond the end of leadership.
    fn limit_of(&self, action: &Action) -> Duration {
        let until = self.election.leading_until();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let longest = match action {
            Action::Wait(wait) if left.is_none() => {
                *wait + self.options.retry_period.mul_f32(fastrand::f32() * JITTER_MAX)
            }
            Action::Wait(wait) => *wait,
            Action::Read | Action::Create(_) | Action::Replace(_) | Action::Rejoin => {
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

    /// Reads the lease first: a renewal that was in flight may or may not have been stored.
    async fn release_lease(&self) -> Result<(), LeaseWriteError> {
        let mut error = LeaseWriteError::Conflict;
        for _ in 0..RELEASES_MAX {
            let read = self.client.read_lease(&self.options.lease).await;
            let Some(lease) = read.map_err(LeaseWriteError::Failed)? else { return Ok(()) };
            let Some(released) = self.election.released(&lease, Now::from_system_clocks()) else {
                return Ok(());
            };
            match self.client.replace_lease(&released).await {
                Ok(_) => return Ok(()),
                Err(LeaseWriteError::Conflict) => error = LeaseWriteError::Conflict,
                Err(failed) => return Err(failed),
            }
        }
        Err(error)
    }

    fn publish(&self) {
        // Guards must see the end of leadership before anything reacts to the state.
        let until = self.election.leading_until();
        self.until_sender.send_if_modified(|old| std::mem::replace(old, until) != until);
        let new = self.election.state();
        let is_changed = self.state_sender.send_if_modified(|old| {
            let is_changed = old != new;
            old.clone_from(new);
            is_changed
        });
        if is_changed {
            log_state(&self.options, new);
        }
    }
}

async fn in_time<T>(limit: Duration, request: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::time::timeout(limit, request).await.map_err(|_| Failure {
        kind: FailureKind::Unreachable,
        message: format!("the lease: no response within {limit:?}").into(),
    })
}

fn log_state(options: &ElectionOptions, state: &LeadershipState) {
    let ElectionOptions { lease, identity, .. } = options;
    match state {
        LeadershipState::Standby { holder } => {
            tracing::info!(%lease, identity, ?holder, "waiting for lease");
        }
        LeadershipState::Leading => tracing::info!(%lease, identity, "leading"),
        LeadershipState::Lost => tracing::info!(%lease, identity, "lost leadership"),
    }
}
