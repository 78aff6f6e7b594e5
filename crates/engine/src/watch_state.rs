//! The state of the watch of each resource: how far it has come, and whether it is connected.

use std::collections::BTreeMap;

use endpointd_model::{Key, ResourceEvent, ResourceVersion, SharedStr, WatchedResource};

use crate::cache::ListEpoch;
use crate::{MonotonicTime, WatchStatus};

/// Consecutive lists that are older than what the watch has reported. One can come from a server
/// that is behind; after two, versions have gone backwards.
const OLDER_LISTS_MAX: u32 = 2;

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
    /// The name of an object in the list that is complete or running cannot be decoded.
    pub has_nameless_object: bool,
    /// All events up to here have been received: within one resource, a watch never goes back.
    pub observed_version: ResourceVersion,
    /// Objects of the running list that the watch has reported as deleted before. Either the list
    /// is outdated or the watch was wrong; the version at the end of the list decides.
    pub suspect_replays: Vec<ResourceEvent>,
    /// Objects of the running list whose version is lower than that in the cache, with the latter.
    contradictions: BTreeMap<Key, ResourceVersion>,
    n_older_lists: u32,
    /// Why everything is listed again; until that list is complete.
    relist_reason: Option<&'static str>,
    disconnected: Option<SharedStr>,
    last_event: MonotonicTime,
    decode_errors: BTreeMap<Key, SharedStr>,
}

/// How a list ended.
#[derive(Debug)]
pub enum ListEnd {
    /// With these suspect replays.
    Complete(Vec<ResourceEvent>),
    /// It is older than what the watch has reported.
    Older,
    /// Versions have gone backwards since.
    RolledBack,
}

impl WatchState {
    pub fn new(resource: WatchedResource) -> Self {
        Self {
            resource,
            epoch: ListEpoch::default(),
            is_listing: false,
            is_synced: false,
            has_nameless_object: false,
            observed_version: ResourceVersion::NONE,
            suspect_replays: Vec::new(),
            contradictions: BTreeMap::new(),
            n_older_lists: 0,
            relist_reason: None,
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

    pub fn is_disconnected(&self) -> bool {
        self.disconnected.is_some()
    }

    pub fn begin_list(&mut self) {
        self.epoch = self.epoch.next();
        self.is_listing = true;
        self.has_nameless_object = false;
        self.decode_errors.clear();
        self.suspect_replays.clear();
        self.contradictions.clear();
    }

    /// As after the start, with an empty cache.
    pub fn reset(&mut self, reason: &'static str) {
        let last_event = self.last_event;
        *self = Self { relist_reason: Some(reason), last_event, ..Self::new(self.resource) };
    }

    /// Ends the running list.
    pub fn finish_list(&mut self, version: ResourceVersion) -> ListEnd {
        if version != ResourceVersion::NONE && version < self.observed_version {
            self.n_older_lists += 1;
            let is_rollback = self.n_older_lists >= OLDER_LISTS_MAX;
            return if is_rollback { ListEnd::RolledBack } else { ListEnd::Older };
        }
        self.n_older_lists = 0;
        if self.contradictions.values().any(|cached| *cached <= version) {
            return ListEnd::RolledBack;
        }
        self.observed_version = version;
        self.is_listing = false;
        self.is_synced = true;
        self.relist_reason = None;
        ListEnd::Complete(std::mem::take(&mut self.suspect_replays))
    }

    /// An event of the running list about an object that is cached at another version. A consistent
    /// list that is newer than the cached object cannot have an older version of it.
    pub fn compare(&mut self, key: &Key, version: ResourceVersion, cached: ResourceVersion) {
        let is_known = version != ResourceVersion::NONE && cached != ResourceVersion::NONE;
        if is_known && version < cached {
            self.contradictions.insert(key.clone(), cached);
        } else if !self.contradictions.is_empty() {
            // A list can end with events that are newer than its beginning.
            self.contradictions.remove(key);
        }
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

    /// The object may exist and be missing from the cache only because it cannot be decoded.
    pub fn may_be_undecodable(&self, key: &Key) -> bool {
        self.has_nameless_object
            || self.decode_errors.len() >= DECODE_ERRORS_MAX
            || self.decode_errors.contains_key(key)
    }

    pub fn status(&self, n_objects: usize, now: MonotonicTime) -> WatchStatus {
        WatchStatus {
            resource: self.resource,
            n_objects,
            is_synced: self.is_synced,
            disconnected_reason: self.disconnected.clone().or(self.relist_reason.map(Into::into)),
            version: self.observed_version,
            last_event_age: now.since(self.last_event),
            decode_errors: self.decode_errors.clone(),
        }
    }
}
