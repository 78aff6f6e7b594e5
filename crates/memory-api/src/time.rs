//! Virtual time, in microseconds since the start of a run.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::time::Duration;

use endpointd_model::Timestamp;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    pub const START: Self = Self(0);

    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// The wall clock, which may jump; written into objects.
    pub fn timestamp(self, skew_secs: i64) -> Timestamp {
        const EPOCH_SECS: i64 = 1_760_000_000;
        let secs = EPOCH_SECS + skew_secs + (self.0 / 1_000_000) as i64;
        Timestamp::new(secs, 0).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, wait: Duration) {
        *self = *self + wait;
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10.3}s", self.0 as f64 / 1e6)
    }
}
