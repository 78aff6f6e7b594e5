//! The state of the watch of each resource: how far it has come, and whether it is connected.

use std::collections::BTreeMap;

use endpointd_model::{Key, ResourceEvent, ResourceVersion, SharedStr, WatchedResource};

use crate::cache::ListEpoch;
use crate::{MonotonicTime, WatchStatus};

/// Decode errors stored by key; further ones are not stored.
const DECODE_ERRORS_MAX: usize = 100;

#[derive(Debug)]
pub struct WatchState {
    pub resource: WatchedResource,
    /// The list that is complete or running.
    pub epoch: ListEpoch,
    pub is_listing: bool,
    /// A list has been completed.
    pub is_synced: bool,
    /// All events up to here have been received: within one resource, a watch never goes back.
    pub observed_version: ResourceVersion,
    /// Objects of the running list that the watch has reported as deleted before. Either the list
    /// is outdated or the watch was wrong; the version at the end of the list decides.
    pub suspect_replays: Vec<ResourceEvent>,
    disconnected: Option<SharedStr>,
    last_event: MonotonicTime,
    decode_errors: BTreeMap<Key, SharedStr>,
}

impl WatchState {
    pub fn new(resource: WatchedResource) -> Self {
        Self {
            resource,
            epoch: ListEpoch::default(),
            is_listing: false,
            is_synced: false,
            observed_version: ResourceVersion::NONE,
            suspect_replays: Vec::new(),
            disconnected: None,
            last_event: MonotonicTime::START,
            decode_errors: BTreeMap::new(),
        }
    }

    /// Something was received, so the watch is connected.
    pub fn touch(&mut self, now: MonotonicTime) {
        self.last_event = now;
        self.disconnected = None;
    }

    pub fn disconnect(&mut self, reason: SharedStr) {
        self.disconnected = Some(reason);
    }

    pub fn begin_list(&mut self) {
        self.epoch = self.epoch.next();
        self.is_listing = true;
        self.decode_errors.clear();
        self.suspect_replays.clear();
    }

    /// Ends the running list and returns the suspect replays, or `None` if the list is older than
    /// what the watch has reported.
    pub fn finish_list(&mut self, version: ResourceVersion) -> Option<Vec<ResourceEvent>> {
        if version != ResourceVersion::NONE && version < self.observed_version {
            return None;
        }
        self.observed_version = version;
        self.is_listing = false;
        self.is_synced = true;
        Some(std::mem::take(&mut self.suspect_replays))
    }

    /// The epoch of a response or live read. During a list it counts for the list before: if the
    /// running list does not contain the object, it has been deleted.
    pub fn epoch_for_reads(&self) -> ListEpoch {
        if self.is_listing { self.epoch.previous() } else { self.epoch }
    }

    /// An event that was received before, as happens when a watch resumes from an older version.
    /// During a list, the cached objects decide one by one.
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

    pub fn status(&self, n_objects: usize, now: MonotonicTime) -> WatchStatus {
        WatchStatus {
            resource: self.resource,
            n_objects,
            is_synced: self.is_synced,
            disconnected_reason: self.disconnected.clone(),
            version: self.observed_version,
            last_event_age: now.since(self.last_event),
            decode_errors: self.decode_errors.clone(),
        }
    }
}
