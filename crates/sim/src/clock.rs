//! Virtual time as the engine measures it, and short names for durations.

use std::time::Duration;

use endpointd_engine::MonotonicTime;
pub use endpointd_memory_api::Time;

pub fn monotonic(time: Time) -> MonotonicTime {
    MonotonicTime::after_start(time.since(Time::START))
}

/// The first time that is not before the engine's.
pub fn time_of(monotonic: MonotonicTime) -> Time {
    let nanos = monotonic.since(MonotonicTime::START).as_nanos().div_ceil(1000);
    Time::from_micros(u64::try_from(nanos).unwrap_or(u64::MAX))
}

pub fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}
