//! Decides who leads, from the results of reads and writes of the Lease and their times.
//! Upstream: `tryAcquireOrRenew` and `renew` in client-go's leaderelection.go.

use std::time::{Duration, Instant};

use endpointd_model::Failure;

use super::lease::{LeaderElectionRecord, Lease, LeaseWriteError};
use super::{ElectionOptions, LeadershipState};
use crate::now::Now;

/// What to do next. The result goes to [`Election::on_read`] or [`Election::on_written`].
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Read,
    Create(Lease),
    Replace(Lease),
    Wait(Duration),
    /// Leadership was lost for good: only a new [`Election`] can lead again.
    Rejoin,
}

/// The state of one candidate.
#[derive(Debug)]
pub struct Election {
    options: ElectionOptions,
    state: LeadershipState,
    /// The record when it last changed, and when we saw that.
    observed: Option<(LeaderElectionRecord, Instant)>,
    lease: KnownLease,
    /// When our last successful renewal was *sent*: others start counting later than that.
    renewed: Option<Instant>,
    next_attempt: Option<Instant>,
}

/// The Lease as far as we know it.
#[derive(Clone, Debug, PartialEq)]
enum KnownLease {
    /// It must be read before it can be written.
    Unknown,
    Absent,
    Present(Lease),
}

impl Election {
    pub fn new(options: ElectionOptions) -> Self {
        Self {
            options,
            state: LeadershipState::Standby { holder: None },
            observed: None,
            lease: KnownLease::Unknown,
            renewed: None,
            next_attempt: None,
        }
    }

    pub fn state(&self) -> &LeadershipState {
        &self.state
    }

    /// The end of leadership without another renewal; `None` while not leading.
    pub fn leading_until(&self) -> Option<Instant> {
        match self.state {
            LeadershipState::Leading => self.renewed.map(|at| at + self.options.renew_deadline),
            LeadershipState::Standby { .. } | LeadershipState::Lost => None,
        }
    }

    pub fn next_action(&mut self, now: Now) -> Action {
        let is_late = self.leading_until().is_some_and(|until| until <= now.monotonic);
        if is_late {
            self.state = LeadershipState::Lost;
        }
        if self.state == LeadershipState::Lost {
            return Action::Rejoin;
        }
        if let Some(wait) = self.wait(now.monotonic) {
            return Action::Wait(wait);
        }
        match self.lease.clone() {
            KnownLease::Unknown => Action::Read,
            KnownLease::Absent => {
                Action::Create(Lease::new(self.options.lease.clone(), self.own_record(now)))
            }
            KnownLease::Present(lease) if self.may_acquire(&lease.record, now.monotonic) => {
                Action::Replace(lease.with(self.own_record(now)))
            }
            KnownLease::Present(_) => {
                // Another process holds it: read it again later.
                self.lease = KnownLease::Unknown;
                self.schedule(now.monotonic + self.options.retry_period);
                Action::Wait(self.options.retry_period)
            }
        }
    }

    /// The result of reading the Lease.
    pub fn on_read(&mut self, read: Result<Option<Lease>, Failure>, now: Instant) {
        match read {
            Ok(Some(lease)) => {
                self.observe(&lease.record, now);
                self.lease = KnownLease::Present(lease);
            }
            Ok(None) => self.lease = KnownLease::Absent,
            Err(_) => self.schedule(now + self.options.retry_period),
        }
    }

    /// The result of writing the Lease; `sent` is when the request was sent.
    pub fn on_written(
        &mut self,
        written: Result<Lease, LeaseWriteError>,
        sent: Instant,
        now: Instant,
    ) {
        match written {
            Ok(lease) => {
                self.observed = Some((lease.record.clone(), now));
                self.lease = KnownLease::Present(lease);
                self.renewed = Some(sent);
                if self.state != LeadershipState::Lost {
                    self.state = LeadershipState::Leading;
                }
                self.schedule(sent + self.options.retry_period);
            }
            // The next read shows who holds it.
            Err(LeaseWriteError::Conflict) => self.lease = KnownLease::Unknown,
            Err(LeaseWriteError::Failed(_)) => {
                // It may have been stored nevertheless: the next read shows that.
                self.lease = KnownLease::Unknown;
                self.schedule(now + self.options.retry_period);
            }
        }
    }

    /// The next attempt need not wait.
    pub fn attempt_at_once(&mut self) {
        self.next_attempt = None;
    }

    /// Ends leadership. Returns whether the lease is still ours and can be released.
    pub fn stop(&mut self, now: Instant) -> bool {
        let is_leading = self.leading_until().is_some_and(|until| until > now);
        self.state = LeadershipState::Lost;
        is_leading
    }

    /// The Lease without a holder, if we hold it. Upstream: `release`.
    pub fn released(&self, lease: &Lease, now: Now) -> Option<Lease> {
        if lease.record.holder != self.options.identity {
            return None;
        }
        let record = LeaderElectionRecord {
            holder: String::new(),
            duration_secs: 1,
            acquired: Some(now.wall),
            renewed: Some(now.wall),
            n_transitions: lease.record.n_transitions,
        };
        Some(lease.with(record))
    }

    fn observe(&mut self, record: &LeaderElectionRecord, now: Instant) {
        if self.observed.as_ref().is_none_or(|(observed, _)| observed != record) {
            self.observed = Some((record.clone(), now));
        }
        let is_ours = record.holder == self.options.identity;
        match self.state {
            // Another process has acquired it: do not wait for the deadline.
            LeadershipState::Leading if !is_ours => self.state = LeadershipState::Lost,
            LeadershipState::Leading | LeadershipState::Lost => {}
            LeadershipState::Standby { .. } => {
                let holder = Some(record.holder.clone()).filter(|holder| !holder.is_empty());
                self.state = LeadershipState::Standby { holder };
            }
        }
    }

    /// It has no holder, is ours, or was not renewed for its whole duration as far as we saw.
    fn may_acquire(&self, record: &LeaderElectionRecord, now: Instant) -> bool {
        if record.holder.is_empty() || record.holder == self.options.identity {
            return true;
        }
        let duration = Duration::from_secs(u64::from(record.duration_secs));
        self.observed.as_ref().is_some_and(|(_, at)| *at + duration <= now)
    }

    /// The record with us as the holder.
    fn own_record(&self, now: Now) -> LeaderElectionRecord {
        let duration_secs = self.options.lease_duration_in_lease().as_secs();
        let new = LeaderElectionRecord {
            holder: self.options.identity.clone(),
            duration_secs: u32::try_from(duration_secs).unwrap_or(u32::MAX),
            acquired: Some(now.wall),
            renewed: Some(now.wall),
            n_transitions: 0,
        };
        match &self.lease {
            KnownLease::Unknown | KnownLease::Absent => new,
            KnownLease::Present(Lease { record, .. }) if record.holder == new.holder => {
                LeaderElectionRecord {
                    acquired: record.acquired.or(new.acquired),
                    n_transitions: record.n_transitions,
                    ..new
                }
            }
            KnownLease::Present(Lease { record, .. }) => LeaderElectionRecord {
                n_transitions: record.n_transitions.saturating_add(1),
                ..new
            },
        }
    }

    fn schedule(&mut self, when: Instant) {
        self.next_attempt = Some(when);
    }

    /// Time until the next attempt or the end of leadership; `None` when the attempt is due.
    fn wait(&mut self, now: Instant) -> Option<Duration> {
        let next_attempt = self.next_attempt.filter(|&at| at > now);
        self.next_attempt = next_attempt;
        let next_attempt = next_attempt?;
        let until = self.leading_until().map_or(next_attempt, |until| until.min(next_attempt));
        Some(until.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests;
