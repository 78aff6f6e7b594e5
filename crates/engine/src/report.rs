//! A read-only picture of the engine, for the page, the metrics, and people. Finished when it is
//! handed out: reading it never touches the engine.

use std::collections::BTreeMap;
use std::time::Duration;

use endpointd_model::{Controller, Key, Kind, Text, TrafficDistribution, Version};
use endpointd_plan::Reason;

/// Rows of keys in one report; the rest are counted.
pub const KEYS_MAX: usize = 200;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    pub is_leading: bool,
    /// In the order of [`Kind::ALL`], only those that are watched.
    pub kinds: Vec<KindReport>,
    /// In the order of [`Controller::ALL`], only those that run.
    pub controllers: Vec<ControllerReport>,
    /// Keys that wait, fly, or failed: worst first, at most [`KEYS_MAX`].
    pub keys: Vec<KeyReport>,
    /// Keys that would have had a row.
    pub n_keys_not_shown: usize,
    pub sizes: Sizes,
    pub brake: BrakeReport,
    /// Writes are held back until then, as the API server asked.
    pub throttled_for: Option<Duration>,
}

impl Report {
    /// All pictures are complete and all watches alive.
    pub fn is_ready(&self) -> bool {
        self.kinds.iter().all(|kind| kind.is_listed && kind.lost.is_none())
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct KindReport {
    pub kind: Kind,
    pub n_objects: usize,
    /// There was a complete picture.
    pub is_listed: bool,
    /// Why the watch is not alive, if it is not.
    pub lost: Option<Text>,
    pub version: Version,
    /// Since anything was heard, bookmarks included.
    pub age: Duration,
    /// Objects that could not be read, with the reason; a bounded number of them.
    pub unreadable: BTreeMap<Key, Text>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ControllerReport {
    pub controller: Controller,
    pub n_waiting: usize,
    pub n_in_flight: usize,
    pub n_backing_off: usize,
    /// How long the oldest waiting key has waited.
    pub oldest_wait: Duration,
    /// How long the oldest sync in flight has been flying.
    pub oldest_flight: Duration,
    pub n_adds: u64,
    pub n_retries: u64,
    /// Sums over all keys of the last counts.
    pub n_endpoints_desired: usize,
    pub n_slices: usize,
    pub n_slices_desired: usize,
    /// Matching pods that are not published, by reason.
    pub left_out: BTreeMap<Reason, usize>,
    /// Services that follow each distribution.
    pub n_by_traffic_distribution: BTreeMap<Option<&'static str>, usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct KeyReport {
    pub controller: Controller,
    pub key: Key,
    pub state: KeyState,
    pub n_failures: u32,
    pub last_end: Option<&'static str>,
    pub last_error: Option<Text>,
    pub left_out: BTreeMap<Reason, usize>,
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
    pub n_texts: usize,
    /// Acknowledged deletions that the watch has not shown yet.
    pub n_tombstones: usize,
    pub n_remembered_keys: usize,
    /// Counted from records and what they hold, without the allocator's own share.
    pub cache_bytes: usize,
}

/// Deletions decided on because something is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BrakeReport {
    pub is_on: bool,
    pub n_last_minute: usize,
    pub n_held: usize,
    pub max_a_minute: usize,
}

/// How a distribution is called in upstream's metric.
pub fn distribution_label(distribution: Option<TrafficDistribution>) -> Option<&'static str> {
    distribution.map(TrafficDistribution::as_str)
}
