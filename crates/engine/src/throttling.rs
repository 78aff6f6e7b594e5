//! Waits that the API server asks for: status 429, or 503 with `Retry-After`.
//!
//! A webhook or a policy of one namespace can be the cause as well as an overloaded API server. So
//! only the key waits whose write was rejected, and every key only while keys of several namespaces
//! have to wait.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use endpointd_model::{Key, SharedStr};

use crate::MonotonicTime;

/// The shortest wait, whatever `Retry-After` says: an immediate retry would only add to the load
/// that the API server has just rejected.
const THROTTLE_MIN: Duration = Duration::from_millis(250);
/// The longest wait, whatever `Retry-After` says.
const THROTTLE_MAX: Duration = Duration::from_secs(30);
/// While so many keys of so many namespaces have to wait, the API server is overloaded.
const OVERLOADED_KEYS: usize = 3;
const OVERLOADED_NAMESPACES: usize = 2;

#[derive(Debug, Default)]
pub struct Throttling {
    until_by_key: BTreeMap<Key, MonotonicTime>,
}

/// What has to wait after a write was throttled.
#[derive(Debug, PartialEq)]
pub struct Waits {
    pub key_until: MonotonicTime,
    /// Set if every key has to wait: until the first of the throttled keys may try again.
    pub all_until: Option<MonotonicTime>,
}

impl Throttling {
    /// A write of this key was answered with this `Retry-After`.
    pub fn record(&mut self, key: &Key, after: Duration, now: MonotonicTime) -> Waits {
        self.until_by_key.retain(|_, until| *until > now);
        let until = now + after.clamp(THROTTLE_MIN, THROTTLE_MAX);
        let entry = self.until_by_key.entry(key.clone()).or_insert(until);
        *entry = until.max(*entry);
        let key_until = *entry;
        let all_until = self.is_overloaded().then(|| self.until_by_key.values().min()).flatten();
        Waits { key_until, all_until: all_until.copied() }
    }

    fn is_overloaded(&self) -> bool {
        let namespaces: BTreeSet<&SharedStr> =
            self.until_by_key.keys().map(|key| &key.namespace).collect();
        self.until_by_key.len() >= OVERLOADED_KEYS && namespaces.len() >= OVERLOADED_NAMESPACES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> MonotonicTime {
        MonotonicTime::after_start(Duration::from_millis(millis))
    }

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn wait_of_a_key_is_bounded_and_never_shortened() {
        let (mut throttling, key) = (Throttling::default(), Key::new("shop", "web"));
        let mut until = |after, now| throttling.record(&key, after, now).key_until;
        assert_eq!(until(Duration::ZERO, at(0)), at(250));
        assert_eq!(until(secs(600), at(0)), at(30_000));
        assert_eq!(until(secs(1), at(0)), at(30_000));
        assert_eq!(until(secs(1), at(40_000)), at(41_000));
    }

    #[test]
    fn all_keys_wait_only_while_keys_of_several_namespaces_do() {
        let mut throttling = Throttling::default();
        for n in 0..50 {
            let waits = throttling.record(&Key::new("shop", format!("s{n}")), secs(9), at(0));
            assert_eq!(waits.all_until, None, "one namespace");
        }
        let waits = throttling.record(&Key::new("bank", "web"), secs(1), at(0));
        assert_eq!(waits, Waits { key_until: at(1000), all_until: Some(at(1000)) });
        let waits = throttling.record(&Key::new("bank", "web"), secs(1), at(9000));
        assert_eq!(waits.all_until, None, "the others have waited long enough");
    }
}
