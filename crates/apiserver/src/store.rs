//! The versioned store: objects by key, one revision for all of them, and per shelf a history that
//! reaches back to a floor. No clock, no chance, no waiting: reading the history is a pull.

mod cursor;
mod history;
mod key;
mod object;

pub use cursor::{Cursor, Gone, Seen, SeenKind};
pub use key::Key;
pub use object::{OwnerRef, Stored};

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

use history::{Change, History};

/// How much of the past is kept per shelf. What is older than both allow is compacted: a watch or a
/// page that still needs it gets 410.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub changes_max: usize,
    pub changed_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { changes_max: 100_000, changed_bytes_max: 256 << 20 }
    }
}

/// All objects of the server, of every kind.
pub struct Store {
    revision: u64,
    limits: Limits,
    /// By the name of the resource that stores them.
    shelves: BTreeMap<&'static str, Shelf>,
    /// Who names an object as its owner, by the owner's uid.
    dependents: BTreeMap<String, BTreeSet<Place>>,
}

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub shelf: &'static str,
    pub key: Key,
}

#[derive(Default)]
struct Shelf {
    objects: BTreeMap<Key, Arc<Stored>>,
    history: History,
}

/// The objects of a shelf as they were at one revision.
pub struct Snapshot {
    pub revision: u64,
    pub objects: Vec<Arc<Stored>>,
}

impl Store {
    pub fn new(limits: Limits) -> Self {
        Self { revision: 0, limits, shelves: BTreeMap::new(), dependents: BTreeMap::new() }
    }

    /// The revision of the last write, to any shelf.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn get(&self, shelf: &str, key: &Key) -> Option<&Arc<Stored>> {
        self.shelves.get(shelf)?.objects.get(key)
    }

    pub fn n_objects(&self, shelf: &str) -> usize {
        self.shelves.get(shelf).map_or(0, |shelf| shelf.objects.len())
    }

    /// Creates or replaces. The object gets the next revision as its `resourceVersion`.
    pub fn put(&mut self, shelf: &'static str, key: Key, object: Value) -> Arc<Stored> {
        self.revision += 1;
        let stored = Arc::new(Stored::new(key.clone(), self.revision, object));
        let place = Place { shelf, key };
        let previous = self.shelf(shelf).objects.insert(place.key.clone(), stored.clone());
        if let Some(previous) = &previous {
            self.forget_owners(&place, previous);
        }
        for owner in &stored.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(place.clone());
        }
        self.record(shelf, Change { object: stored.clone(), previous, is_deletion: false });
        stored
    }

    /// Removes an object; watchers see its last state at the revision of the removal.
    pub fn remove(&mut self, shelf: &'static str, key: &Key) -> Option<Arc<Stored>> {
        let previous = self.shelf(shelf).objects.remove(key)?;
        self.revision += 1;
        self.forget_owners(&Place { shelf, key: key.clone() }, &previous);
        let object = Arc::new(Stored::new(key.clone(), self.revision, previous.value()));
        let change = Change { object: object.clone(), previous: Some(previous), is_deletion: true };
        self.record(shelf, change);
        Some(object)
    }

    /// Places of the objects that name `uid` as an owner.
    pub fn dependents(&self, uid: &str) -> Vec<Place> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Uids that are named as owners by somebody.
    pub fn owner_uids(&self) -> impl Iterator<Item = &str> {
        self.dependents.keys().map(String::as_str)
    }

    /// The objects of a namespace, or of all, as they are now, in key order.
    pub fn list(&self, shelf: &str, namespace: Option<&str>) -> Snapshot {
        let objects = self.shelves.get(shelf).into_iter().flat_map(|shelf| {
            let from = Bound::Included(Key::first_in(namespace.unwrap_or_default()));
            let within = move |key: &Key| namespace.is_none_or(|wanted| key.namespace() == wanted);
            let range = shelf.objects.range((from, Bound::Unbounded));
            range.take_while(move |(key, _)| within(key)).map(|(_, object)| object.clone())
        });
        Snapshot { revision: self.revision, objects: objects.collect() }
    }

    /// The same at an earlier revision, by undoing what happened since.
    pub fn list_at(
        &self,
        shelf: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<Snapshot, Gone> {
        let now = self.list(shelf, namespace);
        let Some(past) = self.shelves.get(shelf).map(|shelf| &shelf.history) else {
            return Ok(Snapshot { revision, objects: now.objects });
        };
        if revision < past.floor() {
            return Err(Gone { asked: revision, floor: past.floor() });
        }
        let mut objects: BTreeMap<Key, Arc<Stored>> =
            now.objects.into_iter().map(|object| (object.key.clone(), object)).collect();
        for change in past.newest_first().take_while(|change| change.revision() > revision) {
            let key = &change.object.key;
            if namespace.is_some_and(|wanted| key.namespace() != wanted) {
                continue;
            }
            match &change.previous {
                Some(previous) => objects.insert(key.clone(), previous.clone()),
                None => objects.remove(key),
            };
        }
        Ok(Snapshot { revision, objects: objects.into_values().collect() })
    }

    /// Forgets the history up to `revision`: who needs it gets 410.
    pub fn compact(&mut self, revision: u64) {
        let revision = revision.min(self.revision);
        for shelf in self.shelves.values_mut() {
            shelf.history.compact(revision);
        }
    }

    /// The oldest revision a watch of this shelf can start from.
    pub fn floor(&self, shelf: &str) -> u64 {
        self.shelves.get(shelf).map_or(0, |shelf| shelf.history.floor())
    }

    fn shelf(&mut self, shelf: &'static str) -> &mut Shelf {
        self.shelves.entry(shelf).or_default()
    }

    fn record(&mut self, shelf: &'static str, change: Change) {
        let limits = self.limits;
        self.shelf(shelf).history.push(change, limits);
    }

    fn forget_owners(&mut self, place: &Place, object: &Stored) {
        for owner in &object.owners {
            let Some(dependents) = self.dependents.get_mut(&owner.uid) else { continue };
            dependents.remove(place);
            if dependents.is_empty() {
                self.dependents.remove(&owner.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests;
