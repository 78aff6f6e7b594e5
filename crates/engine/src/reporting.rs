//! The engine as a picture.

use std::time::Duration;

use endpointd_model::{Key, PublishedResource, WatchedResource};

use crate::engine::{ControllerState, Engine};
use crate::key_stats::KeyStats;
use crate::queue::KeyPhase;
use crate::report::KEYS_MAX;
use crate::{ControllerStatus, EngineStatus, KeyState as Placed, KeyStatus, MonotonicTime, Sizes};

impl Engine {
    pub fn report(&self, now: MonotonicTime) -> EngineStatus {
        let watches = self.watches.iter();
        let watches = watches.map(|one| one.report(self.n_objects(one.kind), now)).collect();
        let mut keys: Vec<KeyStatus> =
            self.controllers.iter().flat_map(|lane| lane.notable_keys(now)).collect();
        keys.sort_by(|a, b| rank(a).cmp(&rank(b)));
        let n_keys_not_shown = keys.len().saturating_sub(KEYS_MAX);
        keys.truncate(KEYS_MAX);
        let throttled_for = Some(self.paused_until.since(now)).filter(|wait| !wait.is_zero());
        EngineStatus {
            is_leading: self.is_leading,
            watches,
            controllers: self.controllers.iter().map(|lane| lane.report(now)).collect(),
            keys,
            n_keys_not_shown,
            sizes: self.sizes(),
            deletion_limiter: self
                .deletion_limiter
                .report(self.cache.n_objects(PublishedResource::Endpoints), now),
            throttled_for,
        }
    }

    /// All that is known of one key, troubled or not.
    pub fn report_key(&self, key: &Key, now: MonotonicTime) -> Vec<KeyStatus> {
        self.controllers.iter().filter_map(|lane| lane.report_key(key, now)).collect()
    }

    fn n_objects(&self, kind: WatchedResource) -> usize {
        match kind {
            WatchedResource::Services => self.cache.n_services(),
            WatchedResource::Pods => self.cache.n_pods(),
            WatchedResource::Nodes => self.cache.n_nodes(),
            WatchedResource::Endpoints => self.cache.n_objects(PublishedResource::Endpoints),
            WatchedResource::Slices => self.cache.n_objects(PublishedResource::Slices),
        }
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            n_label_sets: self.cache.n_label_sets(),
            n_interned_strings: self.cache.n_interned_strings(),
            n_tombstones: self.cache.n_tombstones(),
            n_tracked_keys: self.controllers.iter().map(|lane| lane.keys.len()).sum(),
            cache_bytes: self.cache.bytes(),
        }
    }
}

/// Failures first, then what flies, then what waits, the oldest first.
fn rank(report: &KeyStatus) -> (u8, std::cmp::Reverse<Duration>, &Key) {
    let (class, age) = match report.state {
        Placed::BackingOff { remaining } => (0, Duration::MAX - remaining),
        Placed::InFlight { since } => (1, since),
        Placed::Waiting { since } => (2, since),
        Placed::Idle => (3, Duration::ZERO),
    };
    (class, std::cmp::Reverse(age), &report.key)
}

impl ControllerState {
    fn notable_keys(&self, now: MonotonicTime) -> impl Iterator<Item = KeyStatus> {
        let troubled = self.keys.failures().map(|(key, _)| key);
        let idle = troubled.filter(|key| self.queue.phase(key).is_none());
        let keys = self.queue.keys().chain(idle);
        keys.filter_map(move |key| self.report_key(key, now))
    }

    fn report_key(&self, key: &Key, now: MonotonicTime) -> Option<KeyStatus> {
        let (stats, trouble) = (self.keys.stats(key), self.keys.failure_state(key));
        let phase = self.queue.phase(key);
        if stats.is_none() && trouble.is_none() && phase.is_none() {
            return None;
        }
        let n_failures = trouble.map_or(0, |trouble| trouble.n_failures);
        let state_now = match phase {
            Some(KeyPhase::InFlight { since }) => Placed::InFlight { since: now.since(since) },
            Some(KeyPhase::Waiting { due, .. }) if n_failures > 0 && due > now => {
                Placed::BackingOff { remaining: due.since(now) }
            }
            Some(KeyPhase::Waiting { since, .. }) => Placed::Waiting { since: now.since(since) },
            None => Placed::Idle,
        };
        Some(KeyStatus {
            controller: self.settings.controller,
            key: key.clone(),
            state: state_now,
            n_failures,
            last_result: trouble.and_then(|trouble| trouble.last_result),
            last_error: trouble.and_then(|one| Some(one.failure.as_ref()?.message.clone())),
            excluded_pods: stats.map(KeyStats::excluded_pods).unwrap_or_default(),
        })
    }

    fn report(&self, now: MonotonicTime) -> ControllerStatus {
        let (n_due, n_later, oldest_wait) = self.queue.census(now);
        let totals = self.keys.totals().clone();
        ControllerStatus {
            controller: self.settings.controller,
            n_waiting: n_due,
            n_in_flight: self.queue.n_in_flight(),
            n_backing_off: n_later,
            oldest_wait,
            oldest_in_flight: self.queue.oldest_in_flight(now),
            n_adds: self.queue.n_adds(),
            n_retries: self.n_retries,
            n_endpoints_desired: totals.n_desired,
            n_slices: totals.n_slices,
            n_slices_desired: totals.n_slices_desired,
            excluded_pods: totals.excluded_pods,
            n_by_traffic_distribution: totals.n_by_distribution,
        }
    }
}
