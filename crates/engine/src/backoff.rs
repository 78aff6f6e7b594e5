//! Delays after failures: exponential, with a maximum, and with jitter where keys fail together.

use std::time::Duration;

use endpointd_model::FailureKind;
use endpointd_rng::SplitMix64;

/// The longest delay of one key, however often it failed.
pub const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// While the API server is unreachable, all keys together try it at least this often.
pub const OUTAGE_PAUSE_MAX: Duration = Duration::from_secs(5);
const OUTAGE_BACKOFF_MIN: Duration = Duration::from_millis(200);
/// A rejected write stays rejected until a person acts, so its key starts with a longer delay.
const REJECTED_BACKOFF_MIN: Duration = Duration::from_secs(1);
/// Conflicts in a row that are retried at once: the live read before each retry is delay enough.
const FREE_CONFLICTS_MAX: u32 = 3;
const _: () = assert!(OUTAGE_BACKOFF_MIN.as_millis() < BACKOFF_MAX.as_millis());

/// After the `n`-th failure in a row (from 1). Jitter takes off up to 20 %, so that keys that
/// failed together are not retried together.
pub fn after_failure(kind: FailureKind, n: u32, jitter: &mut SplitMix64) -> Duration {
    let min = if kind.is_outage() { OUTAGE_BACKOFF_MIN } else { REJECTED_BACKOFF_MIN };
    let full = doubled(min, n).min(BACKOFF_MAX);
    full - jitter.up_to(full / 5)
}

/// After the `n`-th conflict in a row. A conflict is no failure: the plan was made from an
/// outdated cache, which a live read has corrected since.
pub fn after_conflict(n: u32) -> Duration {
    match n.checked_sub(FREE_CONFLICTS_MAX) {
        None | Some(0) => Duration::ZERO,
        Some(n) => doubled(OUTAGE_BACKOFF_MIN, n).min(BACKOFF_MAX),
    }
}

/// The pause of all keys after the `n`-th unanswered request in a row.
pub fn outage_pause(n: u32) -> Duration {
    doubled(OUTAGE_BACKOFF_MIN, n).min(OUTAGE_PAUSE_MAX)
}

fn doubled(min: Duration, n: u32) -> Duration {
    const DOUBLINGS_MAX: u32 = 16;
    min * 2u32.pow(n.saturating_sub(1).min(DOUBLINGS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_the_maximum() {
        let mut jitter = SplitMix64::new(7);
        let delays: Vec<Duration> =
            (1..40).map(|n| after_failure(FailureKind::Unreachable, n, &mut jitter)).collect();
        assert!(delays[0] <= OUTAGE_BACKOFF_MIN && delays[0] >= OUTAGE_BACKOFF_MIN * 4 / 5);
        assert!(delays.iter().all(|delay| *delay <= BACKOFF_MAX));
        assert!(delays[38] >= BACKOFF_MAX * 4 / 5);
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
