//! How far the news of one kind has come.

use std::collections::BTreeMap;

use endpointd_model::{Key, ResourceEvent, ResourceVersion, SharedStr, WatchedResource};

use endpointd_mutants::{Mutant, is_on};

use crate::cache::Picture;
use crate::{MonotonicTime, WatchStatus};

/// Unreadable objects remembered by name; more are as bad, but not listed.
const UNREADABLE_MAX: usize = 100;

#[derive(Debug)]
pub struct Stream {
    pub kind: WatchedResource,
    pub picture: Picture,
    pub is_listing: bool,
    pub is_synced: bool,
    /// All changes up to here have been told; a watch never goes back within a kind.
    pub passed: ResourceVersion,
    /// Shown by the picture under way, although we were told that they are gone: the picture is
    /// old, or we were told wrong. Its end decides.
    pub doubtful: Vec<ResourceEvent>,
    lost: Option<SharedStr>,
    heard: MonotonicTime,
    unreadable: BTreeMap<Key, SharedStr>,
}

impl Stream {
    pub fn new(kind: WatchedResource) -> Self {
        Self {
            kind,
            picture: 0,
            is_listing: false,
            is_synced: false,
            passed: ResourceVersion::NONE,
            doubtful: Vec::new(),
            lost: None,
            heard: MonotonicTime::START,
            unreadable: BTreeMap::new(),
        }
    }

    pub fn hear(&mut self, now: MonotonicTime) {
        self.heard = now;
        self.lost = None;
    }

    pub fn lose(&mut self, reason: SharedStr) {
        self.lost = (!is_on(Mutant::ReadyWhenLost)).then_some(reason);
    }

    pub fn begin_picture(&mut self) {
        self.picture = self.picture.wrapping_add(1);
        self.is_listing = true;
        self.unreadable.clear();
        self.doubtful.clear();
    }

    /// A change that was told before, as happens when a watch resumes from an older version.
    /// Within a picture everything counts; each object knows by itself how recent it is.
    pub fn is_replay(&mut self, version: ResourceVersion) -> bool {
        if self.is_listing || version == ResourceVersion::NONE {
            return false;
        }
        if version <= self.passed {
            return true;
        }
        self.passed = version;
        false
    }

    pub fn note_unreadable(&mut self, key: Key, reason: SharedStr) {
        if self.unreadable.len() < UNREADABLE_MAX {
            self.unreadable.insert(key, reason);
        }
    }

    pub fn note_readable(&mut self, key: &Key) {
        if !self.unreadable.is_empty() {
            self.unreadable.remove(key);
        }
    }

    pub fn report(&self, n_objects: usize, now: MonotonicTime) -> WatchStatus {
        WatchStatus {
            resource: self.kind,
            n_objects,
            is_synced: self.is_synced,
            disconnected_reason: self.lost.clone(),
            version: self.passed,
            last_event_age: now.since(self.heard),
            decode_errors: self.unreadable.clone(),
        }
    }
}
