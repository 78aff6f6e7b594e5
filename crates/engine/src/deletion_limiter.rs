//! Limits deletions that were planned because an object is missing (B12). If there are many at once,
//! the cache is more likely wrong than the cluster.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use endpointd_model::Key;

use crate::{DeletionLimiterStatus, MonotonicTime};

const WINDOW: Duration = Duration::from_secs(60);
const DELETIONS_PER_MINUTE_MIN: usize = 20;

#[derive(Debug, Default)]
pub struct DeletionLimiter {
    /// The keys of the last minute, in the order of their admission.
    recent: VecDeque<(MonotonicTime, Key)>,
    /// The same keys.
    admitted: BTreeSet<Key>,
    /// When it last delayed a key.
    last_delay: Option<MonotonicTime>,
    n_delayed_keys: usize,
}

impl DeletionLimiter {
    /// Admits the deletions of one key, or returns when to try again; `n_all` is the number of all
    /// objects of the resource. A key counts once a minute: for the controllers that publish the same
    /// pods, and if a deletion fails and is sent again.
    pub fn try_acquire(
        &mut self,
        key: &Key,
        n_all: usize,
        now: MonotonicTime,
    ) -> Result<(), MonotonicTime> {
        self.expire(now);
        if self.admitted.contains(key) {
            return Ok(());
        }
        if self.recent.len() < deletions_per_minute_max(n_all) {
            self.recent.push_back((now, key.clone()));
            self.admitted.insert(key.clone());
            return Ok(());
        }
        if self.last_delay.is_none() {
            self.n_delayed_keys = 0;
        }
        self.last_delay = Some(now);
        self.n_delayed_keys += 1;
        let (first, _) = self.recent.front().expect("the limit is not zero");
        Err(*first + WINDOW)
    }

    pub fn status(&self, n_all: usize, now: MonotonicTime) -> DeletionLimiterStatus {
        let is_active = self.last_delay.is_some_and(|at| now.since(at) < WINDOW);
        DeletionLimiterStatus {
            is_active,
            n_deletions_last_minute: self
                .recent
                .iter()
                .filter(|(at, _)| now.since(*at) < WINDOW)
                .count(),
            n_delayed_keys: if is_active { self.n_delayed_keys } else { 0 },
            deletions_per_minute_max: deletions_per_minute_max(n_all),
        }
    }

    fn expire(&mut self, now: MonotonicTime) {
        while let Some((_, key)) =
            self.recent.pop_front_if(|(first, _)| now.since(*first) >= WINDOW)
        {
            self.admitted.remove(&key);
        }
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

    fn key(n: usize) -> Key {
        Key::new("shop", format!("s{n}"))
    }

    #[test]
    fn limit_is_twenty_or_a_tenth_of_all_per_minute() {
        for (n_all, n_pass) in [(0, 20), (100, 20), (1000, 100)] {
            let mut limiter = DeletionLimiter::default();
            let n_keys = n_all + 200;
            let is_admitted = |n: &usize| limiter.try_acquire(&key(*n), n_all, at(1)).is_ok();
            assert_eq!((0..n_keys).filter(is_admitted).count(), n_pass, "of {n_all}");
            assert_eq!(limiter.try_acquire(&key(n_keys), n_all, at(2)), Err(at(61)));
            assert!(limiter.status(n_all, at(3)).is_active);
            assert_eq!(limiter.try_acquire(&key(n_keys), n_all, at(61)), Ok(()));
            assert!(!limiter.status(n_all, at(130)).is_active);
        }
    }

    #[test]
    fn key_counts_once_in_a_minute() {
        let mut limiter = DeletionLimiter::default();
        for n in 0..20 {
            assert_eq!(limiter.try_acquire(&key(n), 0, at(1)), Ok(()));
            assert_eq!(limiter.try_acquire(&key(n), 0, at(2)), Ok(()));
        }
        assert_eq!(limiter.try_acquire(&key(20), 0, at(3)), Err(at(61)));
        assert_eq!(limiter.try_acquire(&key(0), 0, at(61)), Ok(()));
        assert_eq!(limiter.status(0, at(61)).n_deletions_last_minute, 1, "counted again");
    }
}
