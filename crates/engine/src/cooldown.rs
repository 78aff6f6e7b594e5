//! How long a key rests after it was planned and written, so that changes which come in a stream are
//! collected.
//!
//! A rollout tells of hundreds of pods within a second. Whoever writes after each of them makes
//! every node of the cluster read the same slice again and again, and whoever only plans after each
//! of them does nothing else. So a key rests in proportion to what its last writes took and to how
//! many pods were looked at: not at all for a Service whose pods change now and then, and longer
//! the larger it is and the busier the API server. What takes traffic away rests least.

use std::time::Duration;

use crate::MonotonicTime;
use crate::queue::Priority;

/// No change waits longer for being collected.
const COOLDOWN_MAX: Duration = Duration::from_millis(250);
/// About forty times what planning takes for each pod, so that the plans of a large Service that
/// changes all the time take a small part of one processor.
const COOLDOWN_PER_POD: Duration = Duration::from_micros(20);
/// Plans for so few pods take no time worth saving.
const SMALL_SERVICE_PODS: usize = 100;

/// Until when a key rests: from what takes traffic away, and from everything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cooldown {
    removals: MonotonicTime,
    others: MonotonicTime,
}

impl Cooldown {
    pub fn after_plan(planned: MonotonicTime, n_pods: usize) -> Self {
        let n_pods = u32::try_from(n_pods.saturating_sub(SMALL_SERVICE_PODS)).unwrap_or(u32::MAX);
        Self::new(planned, COOLDOWN_PER_POD.saturating_mul(n_pods))
    }

    pub fn after_writes(planned: MonotonicTime, landed: MonotonicTime) -> Self {
        Self::new(landed, landed.since(planned))
    }

    fn new(from: MonotonicTime, least: Duration) -> Self {
        Self {
            removals: from + least.min(COOLDOWN_MAX),
            others: from + least.saturating_mul(4).min(COOLDOWN_MAX),
        }
    }

    /// Both reasons to rest count.
    pub fn and(self, other: Self) -> Self {
        Self { removals: self.removals.max(other.removals), others: self.others.max(other.others) }
    }

    /// Nothing of this priority is due before.
    pub fn until(self, priority: Priority) -> MonotonicTime {
        match priority {
            Priority::Removal => self.removals,
            Priority::Live | Priority::Background => self.others,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> MonotonicTime {
        MonotonicTime::after_start(Duration::from_millis(millis))
    }

    #[test]
    fn key_without_a_sync_has_no_cooldown() {
        assert_eq!(Cooldown::default().until(Priority::Live), MonotonicTime::START);
    }

    #[test]
    fn cooldown_is_shortest_for_removals_and_capped() {
        let cooldown = Cooldown::after_writes(at(1000), at(1010));
        assert_eq!(cooldown.until(Priority::Removal), at(1020));
        assert_eq!(cooldown.until(Priority::Live), at(1050));
        let slow = Cooldown::after_writes(at(1000), at(9000));
        assert_eq!(slow.until(Priority::Removal), at(9250));
        assert_eq!(slow.until(Priority::Live), at(9250));
    }

    #[test]
    fn cooldown_after_a_plan_grows_with_the_number_of_pods() {
        assert_eq!(Cooldown::after_plan(at(1000), 100).until(Priority::Live), at(1000));
        let large = Cooldown::after_plan(at(1000), 1100);
        assert_eq!(large.until(Priority::Removal), at(1020));
        assert_eq!(large.until(Priority::Live), at(1080));
        let huge = Cooldown::after_plan(at(1000), usize::MAX);
        assert_eq!(huge.until(Priority::Removal), at(1250));
    }

    #[test]
    fn the_longer_of_two_cooldowns_counts() {
        let (plan, writes) =
            (Cooldown::after_plan(at(0), 1100), Cooldown::after_writes(at(0), at(15)));
        let both = plan.and(writes);
        assert_eq!(both.until(Priority::Removal), at(30));
        assert_eq!(both.until(Priority::Live), at(80));
    }
}
