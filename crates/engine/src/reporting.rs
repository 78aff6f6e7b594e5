//! The engine as a picture.

use std::time::Duration;

use endpointd_model::{Key, Kind, Resource};

use crate::engine::{Engine, Lane};
use crate::queue::Place;
use crate::report::KEYS_MAX;
use crate::tally::Tally;
use crate::{ControllerReport, KeyReport, KeyState as Placed, Moment, Report, Sizes};

impl Engine {
    pub fn report(&self, now: Moment) -> Report {
        let kinds = self.streams.iter();
        let kinds = kinds.map(|stream| stream.report(self.n_objects(stream.kind), now)).collect();
        let mut keys: Vec<KeyReport> =
            self.lanes.iter().flat_map(|lane| lane.notable_keys(now)).collect();
        keys.sort_by(|a, b| rank(a).cmp(&rank(b)));
        let n_keys_not_shown = keys.len().saturating_sub(KEYS_MAX);
        keys.truncate(KEYS_MAX);
        let throttled_for = Some(self.paused_until.since(now)).filter(|wait| !wait.is_zero());
        Report {
            is_leading: self.is_leading,
            kinds,
            controllers: self.lanes.iter().map(|lane| lane.report(now)).collect(),
            keys,
            n_keys_not_shown,
            sizes: self.sizes(),
            brake: self.brake.report(self.cache.n_objects(Resource::Endpoints), now),
            throttled_for,
        }
    }

    /// All that is known of one key, troubled or not.
    pub fn report_key(&self, key: &Key, now: Moment) -> Vec<KeyReport> {
        self.lanes.iter().filter_map(|lane| lane.report_key(key, now)).collect()
    }

    fn n_objects(&self, kind: Kind) -> usize {
        match kind {
            Kind::Services => self.cache.n_services(),
            Kind::Pods => self.cache.n_pods(),
            Kind::Nodes => self.cache.n_nodes(),
            Kind::Endpoints => self.cache.n_objects(Resource::Endpoints),
            Kind::Slices => self.cache.n_objects(Resource::Slices),
        }
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            n_label_sets: self.cache.n_label_sets(),
            n_texts: self.cache.n_texts(),
            n_tombstones: self.cache.n_tombstones(),
            n_remembered_keys: self.lanes.iter().map(|lane| lane.keys.len()).sum(),
            cache_bytes: self.cache.bytes(),
        }
    }
}

/// Failures first, then what flies, then what waits, the oldest first.
fn rank(report: &KeyReport) -> (u8, std::cmp::Reverse<Duration>, &Key) {
    let (class, age) = match report.state {
        Placed::BackingOff { remaining } => (0, Duration::MAX - remaining),
        Placed::InFlight { since } => (1, since),
        Placed::Waiting { since } => (2, since),
        Placed::Idle => (3, Duration::ZERO),
    };
    (class, std::cmp::Reverse(age), &report.key)
}

impl Lane {
    fn notable_keys(&self, now: Moment) -> impl Iterator<Item = KeyReport> {
        let troubled = self.keys.troubles().map(|(key, _)| key);
        let idle = troubled.filter(|key| self.queue.place(key).is_none());
        let keys = self.queue.keys().chain(idle);
        keys.filter_map(move |key| self.report_key(key, now))
    }

    fn report_key(&self, key: &Key, now: Moment) -> Option<KeyReport> {
        let (tally, trouble) = (self.keys.tally(key), self.keys.trouble(key));
        let place = self.queue.place(key);
        if tally.is_none() && trouble.is_none() && place.is_none() {
            return None;
        }
        let n_failures = trouble.map_or(0, |trouble| trouble.n_failures);
        let state_now = match place {
            Some(Place::Flying { since }) => Placed::InFlight { since: now.since(since) },
            Some(Place::Waiting { due, .. }) if n_failures > 0 && due > now => {
                Placed::BackingOff { remaining: due.since(now) }
            }
            Some(Place::Waiting { since, .. }) => Placed::Waiting { since: now.since(since) },
            None => Placed::Idle,
        };
        Some(KeyReport {
            controller: self.settings.controller,
            key: key.clone(),
            state: state_now,
            n_failures,
            last_end: trouble.and_then(|trouble| trouble.last_end),
            last_error: trouble.and_then(|one| Some(one.failure.as_ref()?.message.clone())),
            left_out: tally.map(Tally::left_out).unwrap_or_default(),
        })
    }

    fn report(&self, now: Moment) -> ControllerReport {
        let (n_due, n_later, oldest_wait) = self.queue.census(now);
        let sums = self.keys.sums().clone();
        ControllerReport {
            controller: self.settings.controller,
            n_waiting: n_due,
            n_in_flight: self.queue.n_flying(),
            n_backing_off: n_later,
            oldest_wait,
            oldest_flight: self.queue.oldest_flight(now),
            n_adds: self.queue.n_marks(),
            n_retries: self.n_retries,
            n_endpoints_desired: sums.n_desired,
            n_slices: sums.n_slices,
            n_slices_desired: sums.n_slices_desired,
            left_out: sums.left_out,
            n_by_traffic_distribution: sums.n_by_distribution,
        }
    }
}
