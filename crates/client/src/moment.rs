//! Now, by both clocks.

use std::time::Instant;

use endpointd_model::Timestamp;

/// The monotonic clock judges how long something took; the wall clock is only written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    pub instant: Instant,
    pub wall: Timestamp,
}

impl Now {
    pub fn now() -> Self {
        Self { instant: Instant::now(), wall: Timestamp::now() }
    }
}
