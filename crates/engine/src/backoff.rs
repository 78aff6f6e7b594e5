//! How long to wait after a failure.

use std::time::Duration;

use endpointd_model::FailureKind;
use endpointd_mutants::{Mutant, is_on};
use endpointd_rng::SplitMix64;

/// No key ever waits longer, however often it failed.
pub const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// An API server that is down is not asked more often than this by all keys together.
pub const OUTAGE_PAUSE_MAX: Duration = Duration::from_secs(5);
const OUTAGE_MIN: Duration = Duration::from_millis(200);
/// What is refused stays refused until someone acts: at most a handful of tries a minute.
const REFUSAL_MIN: Duration = Duration::from_secs(1);
const _: () = assert!(OUTAGE_MIN.as_millis() < BACKOFF_MAX.as_millis());

/// After the `n`-th failure in a row (from 1), with up to a fifth taken off by chance, so that keys
/// that failed together do not come back together.
pub fn after_failure(kind: FailureKind, n: u32, jitter: &mut SplitMix64) -> Duration {
    if is_on(Mutant::RetryAtOnce) {
        return Duration::ZERO;
    }
    let least = if kind.is_outage() { OUTAGE_MIN } else { REFUSAL_MIN };
    let full = doubled(least, n).min(BACKOFF_MAX);
    full - jitter.up_to(full / 5)
}

/// After reading again, which is no failure; only who is behind over and over waits.
pub fn after_stale(n: u32) -> Duration {
    const FREE: u32 = 3;
    if n <= FREE { Duration::ZERO } else { doubled(OUTAGE_MIN, n - FREE).min(BACKOFF_MAX) }
}

/// For everyone, while the API server does not answer.
pub fn outage_pause(n: u32) -> Duration {
    doubled(OUTAGE_MIN, n).min(OUTAGE_PAUSE_MAX)
}

fn doubled(least: Duration, n: u32) -> Duration {
    const DOUBLINGS_MAX: u32 = 16;
    least * 2u32.pow(n.saturating_sub(1).min(DOUBLINGS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_the_maximum() {
        let mut jitter = SplitMix64::new(7);
        let waits: Vec<Duration> =
            (1..40).map(|n| after_failure(FailureKind::Unreachable, n, &mut jitter)).collect();
        assert!(waits[0] <= OUTAGE_MIN && waits[0] >= OUTAGE_MIN * 4 / 5);
        assert!(waits.iter().all(|wait| *wait <= BACKOFF_MAX));
        assert!(waits[38] >= BACKOFF_MAX * 4 / 5);
    }

    #[test]
    fn rejected_key_is_tried_at_most_ten_times_in_its_first_minute() {
        let mut jitter = SplitMix64::new(7);
        let mut elapsed = Duration::ZERO;
        let mut n_tries = 1;
        while elapsed < Duration::from_secs(60) {
            elapsed += after_failure(FailureKind::Forbidden, n_tries, &mut jitter);
            n_tries += 1;
        }
        assert!(n_tries <= 10, "{n_tries}");
    }
}
