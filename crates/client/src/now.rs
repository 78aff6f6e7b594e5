//! The current time, by both clocks.

use std::time::Instant;

use endpointd_model::Timestamp;

/// Durations are measured by the monotonic clock; the wall clock is only written into objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    pub monotonic: Instant,
    pub wall: Timestamp,
}

impl Now {
    pub fn from_system_clocks() -> Self {
        Self { monotonic: Instant::now(), wall: Timestamp::now() }
    }
}
