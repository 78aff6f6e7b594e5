//! Leader election on a `coordination.k8s.io/v1` Lease, as client-go does it: whoever holds the
//! lease renews it, and others take it only after they have not seen it change for its whole
//! duration, by their own monotonic clock. Wall clocks are written down and never believed.
//!
//! [`Election`] decides and does nothing; [`LeaderElector`] does what it says.

mod candidate;
mod lease;
mod machine;

use std::time::Duration;

use endpointd_model::Key;

pub use candidate::{LeaderElector, LeaderGuard};
pub use lease::{LeaderElectionRecord, Lease, LeaseWriteError};
pub use machine::{Action, Election};

/// As `--leader-elect-*` of kube-controller-manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionOptions {
    pub lease: Key,
    /// Different for every process.
    pub identity: String,
    /// How long others wait after the last renewal they saw.
    pub lease_duration: Duration,
    /// How long we go on after our last renewal.
    pub renew_deadline: Duration,
    /// Between two tries.
    pub retry_period: Duration,
    /// Whether to hand the lease back at the end, so that nobody has to wait for it.
    pub release_on_exit: bool,
}

/// Where we stand. `Lost` is final: start again as someone new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeadershipState {
    Standby { holder: Option<String> },
    Leading,
    Lost,
}

/// Times that would let two lead at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidElectionConfig {
    #[error("the lease must last a second at least: `--leader-elect-lease-duration`")]
    NoDuration,
    #[error(
        "the lease must last longer than the deadline to renew it: \
         `--leader-elect-lease-duration` over `--leader-elect-renew-deadline`"
    )]
    DeadlineTooLate,
    #[error(
        "there must be time for more than one try to renew: \
         `--leader-elect-renew-deadline` over 1.2 times `--leader-elect-retry-period`"
    )]
    TriesTooRare,
    #[error("the retry period must be positive: `--leader-elect-retry-period`")]
    NoPeriod,
    #[error("an identity is needed to hold a lease")]
    NoIdentity,
}

/// Standbys wait up to this many periods, so that they do not all try at once.
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
        if self.whole_lease_duration().is_zero() {
            return Err(InvalidElectionConfig::NoDuration);
        }
        if self.whole_lease_duration() <= self.renew_deadline {
            return Err(InvalidElectionConfig::DeadlineTooLate);
        }
        if self.renew_deadline <= self.retry_period.mul_f32(JITTER_MAX) {
            return Err(InvalidElectionConfig::TriesTooRare);
        }
        Ok(())
    }

    /// What others are told: a lease says whole seconds.
    fn whole_lease_duration(&self) -> Duration {
        Duration::from_secs(self.lease_duration.as_secs())
    }
}
