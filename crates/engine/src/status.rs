//! A read-only snapshot of the engine for `/report`, metrics, and health checks. It is complete when
//! it is handed out: reading it never touches the engine.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use endpointd_model::{
    Controller, Key, ResourceVersion, SharedStr, SourceReason, TrafficDistribution, WatchedResource,
};
use endpointd_plan::{ConflictKind, ExclusionReason};

use crate::MonotonicTime;
use crate::controllers::{ControllerState, Controllers};
use crate::key_stats::KeyStats;
use crate::observed::Observed;
use crate::queue::{KeyPhase, QueueCounts};
use crate::sources::SourceStatus;

/// Keys listed in one snapshot; the others are counted.
pub const KEYS_MAX: usize = 200;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineStatus {
    pub is_leading: bool,
    /// In the order of [`WatchedResource::ALL`], only those that are watched.
    pub watches: Vec<WatchStatus>,
    /// The other clusters of the set, sorted.
    pub sources: Vec<SourceStatus>,
    /// How many imports have a conflict of each kind.
    pub import_conflicts: Vec<(ConflictKind, usize)>,
    /// In the order of [`Controller::ALL`], only those that run.
    pub controllers: Vec<ControllerStatus>,
    /// Keys that are queued, in flight, failed, or contested: failed first, at most [`KEYS_MAX`].
    pub keys: Vec<KeyStatus>,
    /// Keys left out because of [`KEYS_MAX`].
    pub n_keys_not_shown: usize,
    /// Services that ask for endpoints of others, by the reason of their condition; only while the
    /// import controller runs.
    pub n_consumers: BTreeMap<SourceReason, usize>,
    pub sizes: Sizes,
    pub deletion_limiter: DeletionLimiterStatus,
    /// For how long no write is sent: the API server has answered 429, or cannot be reached.
    pub throttled_for: Option<Duration>,
}

impl EngineStatus {
    /// All resources are listed, and all watches are connected.
    pub fn is_ready(&self) -> bool {
        self.watches.iter().all(|watch| watch.is_synced && watch.disconnected_reason.is_none())
    }
}

/// The watch of one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchStatus {
    pub resource: WatchedResource,
    pub n_objects: usize,
    /// A list has been completed.
    pub is_synced: bool,
    /// Set while the watch is disconnected.
    pub disconnected_reason: Option<SharedStr>,
    pub version: ResourceVersion,
    /// Since the last message, bookmarks included.
    pub last_event_age: Duration,
    /// Objects that could not be decoded, with the reason; a bounded number of them.
    pub decode_errors: BTreeMap<Key, SharedStr>,
}

/// One controller; the same numbers as the metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerStatus {
    pub controller: Controller,
    /// Resources that must be listed before this controller plans anything.
    pub waits_for: Vec<WatchedResource>,
    /// Keys that are due and not in flight.
    pub n_waiting: usize,
    pub n_in_flight: usize,
    /// Keys that failed and wait for their retry.
    pub n_backing_off: usize,
    /// Keys that another client changes again and again; they are repaired only now and then.
    pub n_contested: usize,
    /// The longest wait of a key that is due.
    pub oldest_wait: Duration,
    /// The age of the oldest sync in flight.
    pub oldest_in_flight: Duration,
    /// Keys enqueued since the start of the process.
    pub n_adds: u64,
    /// Failed syncs since the start of the process.
    pub n_retries: u64,
    /// This and the following: totals over all keys of their last plans.
    pub n_endpoints_desired: usize,
    pub n_slices: usize,
    pub n_slices_desired: usize,
    /// Selected pods that are not published, by reason.
    pub excluded_pods: BTreeMap<ExclusionReason, usize>,
    /// Services by traffic distribution.
    pub n_by_traffic_distribution: BTreeMap<Option<&'static str>, usize>,
}

/// One key in one controller.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyStatus {
    pub controller: Controller,
    pub key: Key,
    pub state: KeyState,
    /// Failed syncs in a row; zero after a success.
    pub n_failures: u32,
    /// Set while the key is failing: the label of its last result.
    pub last_result: Option<&'static str>,
    /// Set while the key is failing, throttled, or contested: the message for people.
    pub last_error: Option<SharedStr>,
    /// Another client changes again and again what this key publishes.
    pub is_contested: bool,
    /// Selected pods that are not published, by reason.
    pub excluded_pods: BTreeMap<ExclusionReason, usize>,
}

/// What a key is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyState {
    /// Requests are in flight.
    InFlight {
        since: Duration,
    },
    /// Due now, or after a batch period or cooldown.
    Waiting {
        since: Duration,
    },
    /// Failed, throttled, or contested; retried after this time.
    BackingOff {
        remaining: Duration,
    },
    Idle,
}

/// Sizes of the cache and tables, for capacity planning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    pub n_label_sets: usize,
    pub n_interned_strings: usize,
    /// Confirmed deletions that the watch has not reported yet.
    pub n_tombstones: usize,
    pub n_tracked_keys: usize,
    /// Size of all records and what they hold, without the allocator's overhead.
    pub cache_bytes: usize,
}

/// Deletions that were planned because an object is missing (B12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletionLimiterStatus {
    /// It has delayed a key within the last minute.
    pub is_active: bool,
    pub n_deletions_last_minute: usize,
    /// Keys delayed since it became active.
    pub n_delayed_keys: usize,
    pub deletions_per_minute_max: usize,
}

/// The label value of a traffic distribution in upstream's metric.
pub fn distribution_label(distribution: Option<TrafficDistribution>) -> Option<&'static str> {
    distribution.map(TrafficDistribution::as_str)
}

/// The part of the snapshot that is about keys and sizes.
pub(crate) fn of_keys(
    controllers: &Controllers,
    observed: &Observed,
    now: MonotonicTime,
) -> EngineStatus {
    let cache = observed.cache();
    let mut keys: Vec<KeyStatus> =
        controllers.iter().flat_map(|controller| controller.notable_keys(now)).collect();
    keys.sort_by(|a, b| rank(a).cmp(&rank(b)));
    let n_keys_not_shown = keys.len().saturating_sub(KEYS_MAX);
    keys.truncate(KEYS_MAX);
    let sizes = Sizes {
        n_label_sets: cache.n_label_sets(),
        n_interned_strings: cache.n_interned_strings(),
        n_tombstones: cache.n_tombstones(),
        n_tracked_keys: controllers.iter().map(|controller| controller.keys.len()).sum(),
        cache_bytes: cache.bytes(),
    };
    EngineStatus {
        controllers: controllers
            .iter()
            .map(|controller| controller.status(observed, now))
            .collect(),
        keys,
        n_keys_not_shown,
        n_consumers: cache.n_consumers_by_reason(),
        sizes,
        ..EngineStatus::default()
    }
}

/// Failed keys first, then those in flight, then those that wait; the oldest first.
fn rank(status: &KeyStatus) -> (u8, Reverse<Duration>, &Key) {
    let (class, age) = match status.state {
        KeyState::BackingOff { remaining } => (0, Duration::MAX - remaining),
        KeyState::InFlight { since } => (1, since),
        KeyState::Waiting { since } => (2, since),
        KeyState::Idle => (3, Duration::ZERO),
    };
    (class, Reverse(age), &status.key)
}

impl ControllerState {
    fn notable_keys(&self, now: MonotonicTime) -> impl Iterator<Item = KeyStatus> {
        let failed = self.keys.failures().filter(move |(_, failure)| !failure.is_over(now));
        let failed = failed.map(|(key, _)| key);
        let is_failed =
            move |key: &&Key| self.keys.failure_state(key).is_some_and(|one| !one.is_over(now));
        let contested = self.keys.repairs.contested(now).filter(move |key| !is_failed(key));
        let idle = failed.chain(contested).filter(|key| self.queue.phase(key).is_none());
        self.queue.keys().chain(idle).filter_map(move |key| self.key_status(key, now))
    }

    /// None if the controller has no state for this key.
    pub(crate) fn key_status(&self, key: &Key, now: MonotonicTime) -> Option<KeyStatus> {
        let (stats, failures) = (self.keys.stats(key), self.keys.failure_state(key));
        let phase = self.queue.phase(key);
        if stats.is_none() && failures.is_none() && phase.is_none() {
            return None;
        }
        let n_failures = failures.map_or(0, |failures| failures.n_failures);
        let is_throttled = self.keys.throttled_until(key) > now;
        let is_contested = self.keys.repairs.is_contested(key, now);
        let state = match phase {
            Some(KeyPhase::InFlight { since }) => KeyState::InFlight { since: now.since(since) },
            Some(KeyPhase::Waiting { due, .. })
                if (n_failures > 0 || is_throttled || is_contested) && due > now =>
            {
                KeyState::BackingOff { remaining: due.since(now) }
            }
            Some(KeyPhase::Waiting { since, .. }) => KeyState::Waiting { since: now.since(since) },
            None => KeyState::Idle,
        };
        Some(KeyStatus {
            controller: self.settings.controller,
            key: key.clone(),
            state,
            n_failures,
            last_result: failures.and_then(|failures| failures.last_result),
            last_error: failures
                .and_then(|one| one.message(now))
                .or_else(|| self.keys.repairs.message(key, now)),
            is_contested,
            excluded_pods: stats.map(KeyStats::excluded_pods).unwrap_or_default(),
        })
    }

    fn status(&self, observed: &Observed, now: MonotonicTime) -> ControllerStatus {
        let QueueCounts { n_due, oldest_wait, n_in_flight, oldest_in_flight, n_adds } =
            self.queue.counts(now);
        let totals = self.keys.totals().clone();
        ControllerStatus {
            controller: self.settings.controller,
            waits_for: self.waits_for(observed),
            n_waiting: n_due,
            n_in_flight,
            n_backing_off: self.n_backing_off(now),
            n_contested: self.keys.repairs.contested(now).count(),
            oldest_wait,
            oldest_in_flight,
            n_adds,
            n_retries: self.n_retries,
            n_endpoints_desired: totals.n_desired,
            n_slices: totals.n_slices,
            n_slices_desired: totals.n_slices_desired,
            excluded_pods: totals.excluded_pods,
            n_by_traffic_distribution: totals.n_by_distribution,
        }
    }

    /// Keys that failed, not those that wait for a batch period, a cooldown, or the deletion
    /// limiter.
    fn n_backing_off(&self, now: MonotonicTime) -> usize {
        let failed = self.keys.failures().filter(|(_, failures)| failures.n_failures > 0);
        let is_waiting = |key: &Key| match self.queue.phase(key) {
            Some(KeyPhase::Waiting { due, .. }) => due > now,
            Some(KeyPhase::InFlight { .. }) | None => false,
        };
        failed.filter(|(key, _)| is_waiting(key)).count()
    }
}
