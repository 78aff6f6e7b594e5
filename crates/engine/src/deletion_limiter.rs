//! Limits deletions that were planned because an object is missing (B12). If there are many at once,
//! the cache is more likely wrong than the cluster.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use endpointd_model::Key;

use crate::{DeletionLimiterStatus, MonotonicTime};

const WINDOW: Duration = Duration::from_secs(60);
const DELETIONS_PER_MINUTE_MIN: usize = 20;

#[derive(Debug, Default)]
pub struct DeletionLimiter {
    recent: VecDeque<MonotonicTime>,
    /// Keys admitted by [`Self::try_acquire_for`].
    admitted: BTreeMap<Key, MonotonicTime>,
    /// When it last delayed a key.
    last_delay: Option<MonotonicTime>,
    n_delayed_keys: usize,
}

impl DeletionLimiter {
    /// Admits one deletion, of `n_all` objects of the resource, or returns when to try again.
    pub fn try_acquire(&mut self, n_all: usize, now: MonotonicTime) -> Result<(), MonotonicTime> {
        self.expire(now);
        if self.recent.len() < deletions_per_minute_max(n_all) {
            self.recent.push_back(now);
            return Ok(());
        }
        if self.last_delay.is_none() {
            self.n_delayed_keys = 0;
        }
        self.last_delay = Some(now);
        self.n_delayed_keys += 1;
        Err(*self.recent.front().expect("the limit is not zero") + WINDOW)
    }

    /// Admits one key; for the controllers that publish the same pods it counts once.
    pub fn try_acquire_for(
        &mut self,
        key: &Key,
        n_all: usize,
        now: MonotonicTime,
    ) -> Result<(), MonotonicTime> {
        self.expire(now);
        if self.admitted.contains_key(key) {
            return Ok(());
        }
        self.try_acquire(n_all, now)?;
        self.admitted.insert(key.clone(), now);
        Ok(())
    }

    pub fn status(&self, n_all: usize, now: MonotonicTime) -> DeletionLimiterStatus {
        let is_active = self.last_delay.is_some_and(|at| now.since(at) < WINDOW);
        DeletionLimiterStatus {
            is_active,
            n_deletions_last_minute: self
                .recent
                .iter()
                .filter(|one| now.since(**one) < WINDOW)
                .count(),
            n_delayed_keys: if is_active { self.n_delayed_keys } else { 0 },
            deletions_per_minute_max: deletions_per_minute_max(n_all),
        }
    }

    fn expire(&mut self, now: MonotonicTime) {
        while self.recent.front().is_some_and(|first| now.since(*first) >= WINDOW) {
            self.recent.pop_front();
        }
        self.admitted.retain(|_, at| now.since(*at) < WINDOW);
        self.last_delay = self.last_delay.filter(|at| now.since(*at) < WINDOW);
    }
}

fn deletions_per_minute_max(n_all: usize) -> usize {
    DELETIONS_PER_MINUTE_MIN.max(n_all / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> MonotonicTime {
        MonotonicTime::after_start(Duration::from_secs(secs))
    }

    #[test]
    fn limit_is_twenty_or_a_tenth_of_all_per_minute() {
        for (n_all, n_pass) in [(0, 20), (100, 20), (1000, 100)] {
            let mut limiter = DeletionLimiter::default();
            let n = (0..n_all + 200).filter(|_| limiter.try_acquire(n_all, at(1)).is_ok()).count();
            assert_eq!(n, n_pass, "of {n_all}");
            assert_eq!(limiter.try_acquire(n_all, at(2)), Err(at(61)));
            assert!(limiter.status(n_all, at(3)).is_active);
            assert_eq!(limiter.try_acquire(n_all, at(61)), Ok(()));
            assert!(!limiter.status(n_all, at(130)).is_active);
        }
    }

    #[test]
    fn key_of_two_controllers_counts_once_in_a_minute() {
        let mut limiter = DeletionLimiter::default();
        for n in 0..20 {
            let key = Key::new("shop", format!("s{n}"));
            assert_eq!(limiter.try_acquire_for(&key, 0, at(1)), Ok(()));
            assert_eq!(limiter.try_acquire_for(&key, 0, at(2)), Ok(()));
        }
        assert_eq!(limiter.try_acquire_for(&Key::new("shop", "more"), 0, at(3)), Err(at(61)));
    }
}
