//! Time as an argument: the engine has no clock.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// Monotonic time since the start of the caller's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonotonicTime(Duration);

impl MonotonicTime {
    pub const START: Self = Self(Duration::ZERO);

    pub fn after_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// The time from `earlier` to now; zero if `earlier` is in the future.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for MonotonicTime {
    type Output = Self;

    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait))
    }
}

impl fmt::Display for MonotonicTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}s", self.0.as_secs_f64())
    }
}
