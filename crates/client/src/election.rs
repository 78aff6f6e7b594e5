//! Leader election on a `coordination.k8s.io/v1` Lease, as in client-go: the holder renews the
//! lease, and others acquire it only after they have not seen it change for its whole duration, by
//! their own monotonic clock. Wall clocks are written but never compared.
//!
//! [`Election`] decides and does no I/O; [`LeaderElector`] performs its actions.

mod elector;
mod lease;
mod machine;
mod write_permit;

use std::time::Duration;

use endpointd_model::Key;

pub use elector::LeaderElector;
pub use lease::{LeaderElectionRecord, Lease, LeaseWriteError};
pub use machine::{Action, Election};
pub use write_permit::{LeaderGuard, WritePermit};

/// As `--leader-elect-*` of kube-controller-manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionOptions {
    pub lease: Key,
    /// Unique for every process.
    pub identity: String,
    /// How long others wait after the last renewal they saw.
    pub lease_duration: Duration,
    /// How long the leader goes on after its last renewal.
    pub renew_deadline: Duration,
    /// Time between two attempts.
    pub retry_period: Duration,
    /// Whether to release the lease at shutdown, so that others need not wait for its expiry.
    pub release_on_exit: bool,
}

/// The state of this process in the election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeadershipState {
    Standby {
        holder: Option<String>,
    },
    Leading,
    /// Leadership was lost; after a second the process joins the election again.
    Lost,
}

/// Options with which two processes could lead at the same time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidElectionConfig {
    #[error("the lease must last at least one second: `--leader-elect-lease-duration`")]
    NoDuration,
    #[error(
        "the lease must last longer than the deadline to renew it: \
         `--leader-elect-lease-duration` over `--leader-elect-renew-deadline`"
    )]
    DeadlineTooLate,
    #[error(
        "there must be time for more than one attempt to renew: \
         `--leader-elect-renew-deadline` over 1.2 times `--leader-elect-retry-period`"
    )]
    TriesTooRare,
    #[error("the retry period must be positive: `--leader-elect-retry-period`")]
    NoPeriod,
    #[error("an identity is needed to hold a lease")]
    NoIdentity,
}

/// A standby adds up to this many retry periods to each wait, so that not all try at once.
const JITTER_MAX: f32 = 1.2;

impl ElectionOptions {
    /// Upstream: `NewLeaderElector` in client-go.
    pub fn check(&self) -> Result<(), InvalidElectionConfig> {
        if self.identity.is_empty() {
            return Err(InvalidElectionConfig::NoIdentity);
        }
        if self.retry_period.is_zero() {
            return Err(InvalidElectionConfig::NoPeriod);
        }
        if self.lease_duration_in_lease().is_zero() {
            return Err(InvalidElectionConfig::NoDuration);
        }
        if self.lease_duration_in_lease() <= self.renew_deadline {
            return Err(InvalidElectionConfig::DeadlineTooLate);
        }
        if self.renew_deadline <= self.retry_period.mul_f32(JITTER_MAX) {
            return Err(InvalidElectionConfig::TriesTooRare);
        }
        Ok(())
    }

    /// The duration that others read: a Lease has whole seconds.
    fn lease_duration_in_lease(&self) -> Duration {
        Duration::from_secs(self.lease_duration.as_secs())
    }
}
