//! The minimum delay between two syncs of one key, so that bursts of changes are batched.
//!
//! A rollout changes hundreds of pods of one Service within a second. A write after each change
//! would make every node of the cluster read the same slice again and again, and a plan after each
//! would occupy the CPU. So a key is synced again only after a delay in proportion to the duration
//! of its last writes and to its number of pods: none for a Service whose pods change now and then,
//! longer for a large Service or a busy API server, and shortest for removals.

use std::time::Duration;

use crate::MonotonicTime;
use crate::queue::Priority;

/// The longest cooldown.
const COOLDOWN_MAX: Duration = Duration::from_millis(250);
/// About forty times what planning takes per pod, so that a large Service that changes all the time
/// uses a small part of one CPU.
const COOLDOWN_PER_POD: Duration = Duration::from_micros(20);
/// Services of up to this many pods have no cooldown after a plan.
const SMALL_SERVICE_PODS: usize = 100;

/// When a key may be synced again: after a removal, and after any other change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cooldown {
    removals: MonotonicTime,
    others: MonotonicTime,
}

impl Cooldown {
    pub fn after_plan(planned: MonotonicTime, n_pods: usize, addition_delay: Duration) -> Self {
        let n_pods = u32::try_from(n_pods.saturating_sub(SMALL_SERVICE_PODS)).unwrap_or(u32::MAX);
        let cooldown = Self::new(planned, COOLDOWN_PER_POD.saturating_mul(n_pods));
        Self { others: cooldown.others.max(planned + addition_delay), ..cooldown }
    }

    /// Until when additions wait that a removal has found: for the cooldown, but no longer than
    /// they would after a plan.
    pub fn additions_after(self, now: MonotonicTime, addition_delay: Duration) -> MonotonicTime {
        self.others.min(now + addition_delay)
    }

    /// Removals wait as long as other changes.
    pub fn for_all_priorities(self) -> Self {
        Self { removals: self.others, ..self }
    }

    pub fn after_writes(planned: MonotonicTime, finished: MonotonicTime) -> Self {
        Self::new(finished, finished.since(planned))
    }

    fn new(from: MonotonicTime, delay: Duration) -> Self {
        Self {
            removals: from + delay.min(COOLDOWN_MAX),
            others: from + delay.saturating_mul(4).min(COOLDOWN_MAX),
        }
    }

    /// Other changes than removals are not due before this time, and no later.
    pub fn with_others_at(self, others: MonotonicTime) -> Self {
        Self { others, ..self }
    }

    /// The later of both times.
    pub fn and(self, other: Self) -> Self {
        Self { removals: self.removals.max(other.removals), others: self.others.max(other.others) }
    }

    /// Changes of this priority are not due before.
    pub fn until(self, priority: Priority) -> MonotonicTime {
        match priority {
            Priority::Removal => self.removals,
            Priority::Live | Priority::Repair | Priority::Background => self.others,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AdditionDelay;

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
        assert_eq!(
            Cooldown::after_plan(at(1000), 100, Duration::ZERO).until(Priority::Live),
            at(1000)
        );
        let large = Cooldown::after_plan(at(1000), 1100, Duration::ZERO);
        assert_eq!(large.until(Priority::Removal), at(1020));
        assert_eq!(large.until(Priority::Live), at(1080));
        let huge = Cooldown::after_plan(at(1000), usize::MAX, Duration::ZERO);
        assert_eq!(huge.until(Priority::Removal), at(1250));
    }

    #[test]
    fn additions_wait_longer_than_removals_if_many_endpoints_are_ready() {
        let delay = AdditionDelay::default();
        assert_eq!(delay.of(100), Duration::ZERO);
        assert_eq!(delay.of(500), Duration::from_millis(100));
        assert_eq!(delay.of(1_000_000), Duration::from_secs(1));
        let cooldown = Cooldown::after_plan(at(1000), 100, delay.of(500));
        assert_eq!(cooldown.until(Priority::Removal), at(1000));
        assert_eq!(cooldown.until(Priority::Live), at(1100));
        assert_eq!(cooldown.for_all_priorities().until(Priority::Removal), at(1100));
    }

    #[test]
    fn additions_that_a_removal_finds_wait_no_longer_than_before() {
        let cooldown = Cooldown::after_plan(at(1000), 100, Duration::from_millis(500));
        assert_eq!(cooldown.additions_after(at(1200), Duration::from_millis(500)), at(1500));
        let urgent = cooldown.additions_after(at(1200), Duration::ZERO);
        assert_eq!(urgent, at(1200), "few endpoints are left");
    }

    #[test]
    fn the_longer_of_two_cooldowns_counts() {
        let (plan, writes) = (
            Cooldown::after_plan(at(0), 1100, Duration::ZERO),
            Cooldown::after_writes(at(0), at(15)),
        );
        let both = plan.and(writes);
        assert_eq!(both.until(Priority::Removal), at(30));
        assert_eq!(both.until(Priority::Live), at(80));
    }
}
