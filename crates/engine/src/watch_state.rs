//! How far the news of one kind has come.

use std::collections::BTreeMap;

use endpointd_model::{Key, ResourceEvent, ResourceVersion, SharedStr, WatchedResource};

use endpointd_mutants::{Mutant, is_on};

use crate::cache::ListEpoch;
use crate::{MonotonicTime, WatchStatus};

/// Unreadable objects remembered by name; more are as bad, but not listed.
const DECODE_ERRORS_MAX: usize = 100;

#[derive(Debug)]
pub struct WatchState {
    pub kind: WatchedResource,
    pub epoch: ListEpoch,
    pub is_listing: bool,
    pub is_synced: bool,
    /// All changes up to here have been told; a watch never goes back within a kind.
    pub observed_version: ResourceVersion,
    /// Shown by the picture under way, although we were told that they are gone: the picture is
    /// old, or we were told wrong. Its end decides.
    pub suspect_replays: Vec<ResourceEvent>,
    lost: Option<SharedStr>,
    last_event: MonotonicTime,
    decode_errors: BTreeMap<Key, SharedStr>,
}

impl WatchState {
    pub fn new(kind: WatchedResource) -> Self {
        Self {
            kind,
            epoch: 0,
            is_listing: false,
            is_synced: false,
            observed_version: ResourceVersion::NONE,
            suspect_replays: Vec::new(),
            lost: None,
            last_event: MonotonicTime::START,
            decode_errors: BTreeMap::new(),
        }
    }

    pub fn touch(&mut self, now: MonotonicTime) {
        self.last_event = now;
        self.lost = None;
    }

    pub fn disconnect(&mut self, reason: SharedStr) {
        self.lost = (!is_on(Mutant::ReadyWhenLost)).then_some(reason);
    }

    pub fn begin_list(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.is_listing = true;
        self.decode_errors.clear();
        self.suspect_replays.clear();
    }

    /// A change that was told before, as happens when a watch resumes from an older version.
    /// Within a picture everything counts; each object knows by itself how recent it is.
    pub fn is_replay(&mut self, version: ResourceVersion) -> bool {
        if self.is_listing || version == ResourceVersion::NONE {
            return false;
        }
        if version <= self.observed_version {
            return true;
        }
        self.observed_version = version;
        false
    }

    pub fn record_decode_error(&mut self, key: Key, reason: SharedStr) {
        if self.decode_errors.len() < DECODE_ERRORS_MAX {
            self.decode_errors.insert(key, reason);
        }
    }

    pub fn clear_decode_error(&mut self, key: &Key) {
        if !self.decode_errors.is_empty() {
            self.decode_errors.remove(key);
        }
    }

    pub fn report(&self, n_objects: usize, now: MonotonicTime) -> WatchStatus {
        WatchStatus {
            resource: self.kind,
            n_objects,
            is_synced: self.is_synced,
            disconnected_reason: self.lost.clone(),
            version: self.observed_version,
            last_event_age: now.since(self.last_event),
            decode_errors: self.decode_errors.clone(),
        }
    }
}
