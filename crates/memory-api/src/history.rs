//! All objects of one resource and all their versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use endpointd_model::{
    EndpointSlice, Endpoints, Key, Node, ObjectEvent, Pod, ReferenceGrant, ResourceEvent,
    ResourceVersion, Service, WatchSignal,
};

use crate::time::Time;

/// An object of a watched resource.
pub trait StoredObject: Clone {
    /// Nodes have an empty namespace.
    fn key(&self) -> Key;
    fn set_version(&mut self, version: ResourceVersion);
    fn change(event: ObjectEvent<Self>) -> ResourceEvent;
}

#[derive(Clone, Debug)]
pub struct History<T> {
    live: BTreeMap<Key, Arc<T>>,
    log: Vec<Entry<T>>,
    /// Indexes into `log`.
    by_key: BTreeMap<Key, Vec<usize>>,
    /// Watches from earlier revisions get a 410.
    floor: u64,
}

/// One version of one object.
#[derive(Clone, Debug)]
pub struct Entry<T> {
    pub revision: u64,
    pub at: Time,
    pub key: Key,
    pub object: Arc<T>,
    pub is_deleted: bool,
    /// Clients cannot decode this version.
    pub is_corrupt: bool,
}

impl<T> Default for History<T> {
    fn default() -> Self {
        Self { live: BTreeMap::new(), log: Vec::new(), by_key: BTreeMap::new(), floor: 0 }
    }
}

impl<T: StoredObject> History<T> {
    pub fn get(&self, key: &Key) -> Option<&Arc<T>> {
        self.live.get(key)
    }

    pub fn contains(&self, key: &Key) -> bool {
        self.live.contains_key(key)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<T>)> {
        self.live.iter()
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.live.values().map(AsRef::as_ref)
    }

    pub fn keys(&self) -> Vec<Key> {
        self.live.keys().cloned().collect()
    }

    /// Those of objects that are gone, too.
    pub fn known_keys(&self) -> impl Iterator<Item = &Key> {
        self.by_key.keys()
    }

    pub fn put(&mut self, object: T, revision: u64, at: Time) -> Arc<T> {
        self.put_version(object, revision, at, false)
    }

    fn put_version(&mut self, mut object: T, revision: u64, at: Time, is_corrupt: bool) -> Arc<T> {
        object.set_version(revision.into());
        let (key, object) = (object.key(), Arc::new(object));
        self.live.insert(key.clone(), object.clone());
        let is_deleted = false;
        self.record(Entry { revision, at, key, object: object.clone(), is_deleted, is_corrupt });
        object
    }

    pub fn remove(&mut self, key: &Key, revision: u64, at: Time) -> bool {
        let Some(object) = self.live.remove(key) else { return false };
        let mut object = T::clone(&object);
        object.set_version(revision.into());
        self.record(Entry {
            revision,
            at,
            key: key.clone(),
            object: Arc::new(object),
            is_deleted: true,
            is_corrupt: false,
        });
        true
    }

    pub fn is_corrupt(&self, key: &Key) -> bool {
        let last = self.by_key.get(key).and_then(|all| all.last());
        last.is_some_and(|at| self.log[*at].is_corrupt)
    }

    /// Index of the first entry after a revision.
    fn after(&self, revision: u64) -> usize {
        self.log.partition_point(|entry| entry.revision <= revision)
    }

    /// Every version, absence included, that a cache may hold that received all events up to
    /// `since`. For an undecodable version the cache keeps an earlier one, or has none.
    pub fn window(&self, key: &Key, since: u64) -> Vec<Option<&T>> {
        let indexes = self.by_key.get(key).map_or(&[][..], Vec::as_slice);
        let split = indexes.partition_point(|at| self.log[*at].revision <= since);
        let state = |at: &usize| {
            let entry = &self.log[*at];
            (!entry.is_deleted && !entry.is_corrupt).then(|| entry.object.as_ref())
        };
        // While a version is undecodable, the cache may hold any earlier one.
        let is_corrupt = split > 0 && self.log[indexes[split - 1]].is_corrupt;
        let first = if is_corrupt { 0 } else { split.saturating_sub(1) };
        let before = (split == 0).then_some(None);
        before.into_iter().chain(indexes[first..].iter().map(state)).collect()
    }

    /// What a watch of the objects that satisfy a predicate sends for the change at a revision. One
    /// that does not satisfy it any more is reported as deleted, as it was before.
    pub fn selected_signal(
        &self,
        at: u64,
        is_selected: impl Fn(&T) -> bool,
    ) -> Option<WatchSignal> {
        let index = self.after(at).checked_sub(1)?;
        let entry = self.log.get(index).filter(|entry| entry.revision == at)?;
        let earlier = self.by_key.get(&entry.key)?.iter().rev().find(|one| **one < index);
        let before = earlier.map(|one| &self.log[*one]).filter(|before| !before.is_deleted);
        let before = before.map(|before| &before.object).filter(|before| is_selected(before));
        if !entry.is_deleted && is_selected(&entry.object) {
            return Some(entry.signal());
        }
        let mut left = T::clone(before?);
        left.set_version(at.into());
        Some(WatchSignal::Event(Box::new(T::change(ObjectEvent::Deleted(left)))))
    }

    /// Whether any version of any object satisfies a predicate.
    pub fn ever(&self, is_like: impl Fn(&T) -> bool) -> bool {
        self.log.iter().rev().any(|entry| is_like(&entry.object))
    }

    /// Versions stored after a revision.
    pub fn since(&self, revision: u64) -> impl Iterator<Item = &T> {
        self.log[self.after(revision)..].iter().map(|entry| entry.object.as_ref())
    }

    /// The objects as of a revision.
    pub fn list_at(&self, revision: u64) -> Vec<&Entry<T>> {
        let mut live: BTreeMap<&Key, &Entry<T>> = BTreeMap::new();
        for entry in self.log.iter().take_while(|entry| entry.revision <= revision) {
            if entry.is_deleted {
                live.remove(&entry.key);
            } else {
                live.insert(&entry.key, entry);
            }
        }
        live.into_values().collect()
    }

    fn record(&mut self, entry: Entry<T>) {
        self.by_key.entry(entry.key.clone()).or_default().push(self.log.len());
        self.log.push(entry);
    }
}

/// What a watch needs of a history, whatever its type of object.
pub(crate) trait WatchLog {
    fn keys(&self) -> Vec<Key>;
    fn corrupt_keys(&self) -> Vec<Key>;
    /// Stores the same object as a new version that clients cannot decode.
    fn corrupt(&mut self, key: &Key, revision: u64, at: Time);
    /// Stores the same object as a new version that clients can decode.
    fn repair(&mut self, key: &Key, revision: u64, at: Time);
    fn next_signal(&self, after: u64) -> Option<(u64, Time, WatchSignal)>;
    fn next_change(&self, after: u64) -> Option<Time>;
    fn signals_at(&self, revision: u64) -> Vec<WatchSignal>;
    fn floor(&self) -> u64;
    fn compact(&mut self, floor: u64);
}

impl<T: StoredObject> WatchLog for History<T> {
    fn keys(&self) -> Vec<Key> {
        History::keys(self)
    }

    fn corrupt_keys(&self) -> Vec<Key> {
        self.live.keys().filter(|key| self.is_corrupt(key)).cloned().collect()
    }

    fn corrupt(&mut self, key: &Key, revision: u64, at: Time) {
        if let Some(object) = self.live.get(key) {
            self.put_version(T::clone(object), revision, at, true);
        }
    }

    fn repair(&mut self, key: &Key, revision: u64, at: Time) {
        if let Some(object) = self.live.get(key) {
            self.put_version(T::clone(object), revision, at, false);
        }
    }

    fn next_signal(&self, after: u64) -> Option<(u64, Time, WatchSignal)> {
        let entry = self.log.get(self.after(after))?;
        Some((entry.revision, entry.at, entry.signal()))
    }

    fn next_change(&self, after: u64) -> Option<Time> {
        self.log.get(self.after(after)).map(|entry| entry.at)
    }

    fn signals_at(&self, revision: u64) -> Vec<WatchSignal> {
        self.list_at(revision).into_iter().map(Entry::signal).collect()
    }

    fn floor(&self) -> u64 {
        self.floor
    }

    fn compact(&mut self, floor: u64) {
        self.floor = floor;
    }
}

impl<T: StoredObject> Entry<T> {
    pub fn signal(&self) -> WatchSignal {
        if self.is_corrupt {
            return WatchSignal::DecodeError {
                key: self.key.clone(),
                reason: "undecodable".into(),
            };
        }
        let object = T::clone(&self.object);
        let event = if self.is_deleted {
            ObjectEvent::Deleted(object)
        } else {
            ObjectEvent::Applied(object)
        };
        WatchSignal::Event(Box::new(T::change(event)))
    }
}

impl StoredObject for Service {
    fn key(&self) -> Key {
        Service::key(self)
    }

    fn set_version(&mut self, version: ResourceVersion) {
        self.resource_version = version;
    }

    fn change(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Service(event)
    }
}

impl StoredObject for Pod {
    fn key(&self) -> Key {
        Pod::key(self)
    }

    fn set_version(&mut self, version: ResourceVersion) {
        self.resource_version = version;
    }

    fn change(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Pod(event)
    }
}

impl StoredObject for Node {
    fn key(&self) -> Key {
        Key::new("", self.name.clone())
    }

    fn set_version(&mut self, version: ResourceVersion) {
        self.resource_version = version;
    }

    fn change(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Node(event)
    }
}

impl StoredObject for Endpoints {
    fn key(&self) -> Key {
        self.meta.key()
    }

    fn set_version(&mut self, version: ResourceVersion) {
        self.meta.resource_version = version;
    }

    fn change(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Endpoints(event)
    }
}

impl StoredObject for EndpointSlice {
    fn key(&self) -> Key {
        self.meta.key()
    }

    fn set_version(&mut self, version: ResourceVersion) {
        self.meta.resource_version = version;
    }

    fn change(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Slice(event)
    }
}

impl StoredObject for ReferenceGrant {
    fn key(&self) -> Key {
        ReferenceGrant::key(self)
    }

    fn set_version(&mut self, version: ResourceVersion) {
        self.resource_version = version;
    }

    fn change(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::ReferenceGrant(event)
    }
}
