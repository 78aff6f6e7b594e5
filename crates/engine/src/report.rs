//! A read-only picture of the engine, for the page, the metrics, and people. Finished when it is
//! handed out: reading it never touches the engine.

use std::collections::BTreeMap;
use std::time::Duration;

use endpointd_model::{
    Controller, Key, ResourceVersion, SharedStr, TrafficDistribution, WatchedResource,
};
use endpointd_plan::ExclusionReason;

/// Rows of keys in one report; the rest are counted.
pub const KEYS_MAX: usize = 200;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineStatus {
    pub is_leading: bool,
    /// In the order of [`WatchedResource::ALL`], only those that are watched.
    pub watches: Vec<WatchStatus>,
    /// In the order of [`Controller::ALL`], only those that run.
    pub controllers: Vec<ControllerStatus>,
    /// Keys that wait, fly, or failed: worst first, at most [`KEYS_MAX`].
    pub keys: Vec<KeyStatus>,
    /// Keys that would have had a row.
    pub n_keys_not_shown: usize,
    pub sizes: Sizes,
    pub deletion_limiter: DeletionLimiterStatus,
    /// Writes are held back until then, as the API server asked.
    pub throttled_for: Option<Duration>,
}

impl EngineStatus {
    /// All pictures are complete and all watches alive.
    pub fn is_ready(&self) -> bool {
        self.watches.iter().all(|kind| kind.is_synced && kind.disconnected_reason.is_none())
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct WatchStatus {
    pub resource: WatchedResource,
    pub n_objects: usize,
    /// There was a complete picture.
    pub is_synced: bool,
    /// Why the watch is not alive, if it is not.
    pub disconnected_reason: Option<SharedStr>,
    pub version: ResourceVersion,
    /// Since anything was heard, bookmarks included.
    pub last_event_age: Duration,
    /// Objects that could not be read, with the reason; a bounded number of them.
    pub decode_errors: BTreeMap<Key, SharedStr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ControllerStatus {
    pub controller: Controller,
    pub n_waiting: usize,
    pub n_in_flight: usize,
    pub n_backing_off: usize,
    /// How long the oldest waiting key has waited.
    pub oldest_wait: Duration,
    /// How long the oldest sync in flight has been flying.
    pub oldest_in_flight: Duration,
    pub n_adds: u64,
    pub n_retries: u64,
    /// Sums over all keys of the last counts.
    pub n_endpoints_desired: usize,
    pub n_slices: usize,
    pub n_slices_desired: usize,
    /// Matching pods that are not published, by reason.
    pub excluded_pods: BTreeMap<ExclusionReason, usize>,
    /// Services that follow each distribution.
    pub n_by_traffic_distribution: BTreeMap<Option<&'static str>, usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct KeyStatus {
    pub controller: Controller,
    pub key: Key,
    pub state: KeyState,
    pub n_failures: u32,
    pub last_result: Option<&'static str>,
    pub last_error: Option<SharedStr>,
    pub excluded_pods: BTreeMap<ExclusionReason, usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyState {
    /// Writes are under way, or a live read is.
    InFlight {
        since: Duration,
    },
    /// Due now or soon.
    Waiting {
        since: Duration,
    },
    /// Failed; tried again after this time.
    BackingOff {
        remaining: Duration,
    },
    Idle,
}

/// What the cache holds; for sizing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    pub n_label_sets: usize,
    pub n_interned_strings: usize,
    /// Acknowledged deletions that the watch has not shown yet.
    pub n_tombstones: usize,
    pub n_tracked_keys: usize,
    /// Counted from records and what they hold, without the allocator's own share.
    pub cache_bytes: usize,
}

/// Deletions decided on because something is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletionLimiterStatus {
    pub is_active: bool,
    pub n_deletions_last_minute: usize,
    pub n_delayed_keys: usize,
    pub deletions_per_minute_max: usize,
}

/// How a distribution is called in upstream's metric.
pub fn distribution_label(distribution: Option<TrafficDistribution>) -> Option<&'static str> {
    distribution.map(TrafficDistribution::as_str)
}
