//! Who leads, decided from what was read and written and when. Upstream: `tryAcquireOrRenew` and
//! `renew` in client-go's leaderelection.go.

use std::time::{Duration, Instant};

use endpointd_model::Failure;

use super::lease::{LeaderElectionRecord, Lease, LeaseWriteError};
use super::{ElectionOptions, LeadershipState};
use crate::moment::Now;

/// What to do next. Its answer goes to [`Election::read`] or [`Election::wrote`].
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Read,
    Create(Lease),
    Replace(Lease),
    Wait(Duration),
    /// We do not lead any more.
    Stop,
}

/// One candidate's view.
#[derive(Debug)]
pub struct Election {
    options: ElectionOptions,
    standing: LeadershipState,
    /// What the lease said when it last changed, and when we saw that.
    seen: Option<(LeaderElectionRecord, Instant)>,
    lease: EchoFilter,
    /// When our last successful renewal was *sent*: others count from later than that.
    renewed: Option<Instant>,
    next_try: Option<Instant>,
}

/// What we know of the lease right now.
#[derive(Clone, Debug, PartialEq)]
enum EchoFilter {
    /// Nothing we could write on: it must be read.
    Nothing,
    Absent,
    At(Lease),
}

impl Election {
    pub fn new(options: ElectionOptions) -> Self {
        Self {
            options,
            standing: LeadershipState::Standby { holder: None },
            seen: None,
            lease: EchoFilter::Nothing,
            renewed: None,
            next_try: None,
        }
    }

    pub fn standing(&self) -> &LeadershipState {
        &self.standing
    }

    /// Until when we may act as the leader without another renewal.
    pub fn leading_until(&self) -> Option<Instant> {
        match self.standing {
            LeadershipState::Leading => self.renewed.map(|at| at + self.options.renew_deadline),
            LeadershipState::Standby { .. } | LeadershipState::Lost => None,
        }
    }

    pub fn step(&mut self, now: Now) -> Action {
        let is_late = self.leading_until().is_some_and(|until| until <= now.instant);
        if is_late {
            self.standing = LeadershipState::Lost;
        }
        if self.standing == LeadershipState::Lost {
            return Action::Stop;
        }
        if let Some(wait) = self.wait(now.instant) {
            return Action::Wait(wait);
        }
        match self.lease.clone() {
            EchoFilter::Nothing => Action::Read,
            EchoFilter::Absent => {
                Action::Create(Lease::new(self.options.lease.clone(), self.ours(now)))
            }
            EchoFilter::At(lease) if self.may_take(&lease.record, now.instant) => {
                Action::Replace(lease.with(self.ours(now)))
            }
            EchoFilter::At(_) => {
                // Somebody else holds it: look again later.
                self.lease = EchoFilter::Nothing;
                self.try_at(now.instant + self.options.retry_period);
                Action::Wait(self.options.retry_period)
            }
        }
    }

    /// What reading the lease came to.
    pub fn read(&mut self, answer: Result<Option<Lease>, Failure>, now: Instant) {
        match answer {
            Ok(Some(lease)) => {
                self.observe(&lease.record, now);
                self.lease = EchoFilter::At(lease);
            }
            Ok(None) => self.lease = EchoFilter::Absent,
            Err(_) => self.try_at(now + self.options.retry_period),
        }
    }

    /// What writing the lease came to; `sent` is when the request began.
    pub fn wrote(&mut self, answer: Result<Lease, LeaseWriteError>, sent: Instant, now: Instant) {
        match answer {
            Ok(lease) => {
                self.seen = Some((lease.record.clone(), now));
                self.lease = EchoFilter::At(lease);
                self.renewed = Some(sent);
                if self.standing != LeadershipState::Lost {
                    self.standing = LeadershipState::Leading;
                }
                self.try_at(sent + self.options.retry_period);
            }
            // Whose it is now is the next question.
            Err(LeaseWriteError::Behind) => self.lease = EchoFilter::Nothing,
            Err(LeaseWriteError::Failed(_)) => {
                // It may have been written nevertheless: only reading tells.
                self.lease = EchoFilter::Nothing;
                self.try_at(now + self.options.retry_period);
            }
        }
    }

    /// Leads no more. Whether the lease is still ours to hand back.
    pub fn stop(&mut self, now: Instant) -> bool {
        let is_leading = self.leading_until().is_some_and(|until| until > now);
        self.standing = LeadershipState::Lost;
        is_leading
    }

    /// What hands the lease back, if it is ours. Upstream: `release`.
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
        if self.seen.as_ref().is_none_or(|(seen, _)| seen != record) {
            self.seen = Some((record.clone(), now));
        }
        let is_ours = record.holder == self.options.identity;
        match self.standing {
            // Somebody took it from us: there is no point in waiting for the deadline.
            LeadershipState::Leading if !is_ours => self.standing = LeadershipState::Lost,
            LeadershipState::Leading | LeadershipState::Lost => {}
            LeadershipState::Standby { .. } => {
                let holder = Some(record.holder.clone()).filter(|holder| !holder.is_empty());
                self.standing = LeadershipState::Standby { holder };
            }
        }
    }

    /// Nobody's, ours, or not renewed for its whole duration as far as we have seen.
    fn may_take(&self, record: &LeaderElectionRecord, now: Instant) -> bool {
        if record.holder.is_empty() || record.holder == self.options.identity {
            return true;
        }
        let duration = Duration::from_secs(u64::from(record.duration_secs));
        self.seen.as_ref().is_some_and(|(_, at)| *at + duration <= now)
    }

    /// What the lease says when it is ours.
    fn ours(&self, now: Now) -> LeaderElectionRecord {
        let duration_secs = self.options.whole_lease_duration().as_secs();
        let fresh = LeaderElectionRecord {
            holder: self.options.identity.clone(),
            duration_secs: u32::try_from(duration_secs).unwrap_or(u32::MAX),
            acquired: Some(now.wall),
            renewed: Some(now.wall),
            n_transitions: 0,
        };
        match &self.lease {
            EchoFilter::Nothing | EchoFilter::Absent => fresh,
            EchoFilter::At(Lease { record, .. }) if record.holder == fresh.holder => {
                LeaderElectionRecord {
                    acquired: record.acquired.or(fresh.acquired),
                    n_transitions: record.n_transitions,
                    ..fresh
                }
            }
            EchoFilter::At(Lease { record, .. }) => LeaderElectionRecord {
                n_transitions: record.n_transitions.saturating_add(1),
                ..fresh
            },
        }
    }

    fn try_at(&mut self, when: Instant) {
        self.next_try = Some(when);
    }

    /// How long until the next try, or until we must stop; `None` when it is now.
    fn wait(&mut self, now: Instant) -> Option<Duration> {
        let next_try = self.next_try.filter(|&at| at > now);
        self.next_try = next_try;
        let next_try = next_try?;
        let until = self.leading_until().map_or(next_try, |until| until.min(next_try));
        Some(until.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests;
