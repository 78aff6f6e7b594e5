//! The versioned store: a table of objects for each resource, one revision counter for all tables,
//! and for each table a bounded history. It has no clock, no randomness, and never waits; watchers
//! pull from the history.

mod cursor;
mod history;
mod key;
mod object;

pub use cursor::{Cursor, Gone, WatchEvent, WatchEventType};
pub use key::Key;
pub use object::{OwnerRef, Stored};

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

use history::{Change, History};

/// Limits of the history of each table. Older changes are compacted: a watch or a list page that
/// needs them gets 410.
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
    /// By resource name.
    tables: BTreeMap<&'static str, ResourceTable>,
    /// Objects by the uids in their `ownerReferences`.
    dependents: BTreeMap<String, BTreeSet<ObjectRef>>,
}

/// The table and key of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    pub storage: &'static str,
    pub key: Key,
}

#[derive(Default)]
struct ResourceTable {
    objects: BTreeMap<Key, Arc<Stored>>,
    history: History,
}

/// The objects of a table at one revision.
pub struct Snapshot {
    pub revision: u64,
    pub objects: Vec<Arc<Stored>>,
}

impl Store {
    pub fn new(limits: Limits) -> Self {
        Self { revision: 0, limits, tables: BTreeMap::new(), dependents: BTreeMap::new() }
    }

    /// The revision of the last write, to any table.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn get(&self, storage: &str, key: &Key) -> Option<&Arc<Stored>> {
        self.tables.get(storage)?.objects.get(key)
    }

    pub fn n_objects(&self, storage: &str) -> usize {
        self.tables.get(storage).map_or(0, |table| table.objects.len())
    }

    /// Creates or replaces. The object gets the next revision as its `resourceVersion`.
    pub fn put(&mut self, storage: &'static str, key: Key, object: Value) -> Arc<Stored> {
        self.revision += 1;
        let stored = Arc::new(Stored::new(key.clone(), self.revision, object));
        let object_ref = ObjectRef { storage, key };
        let previous = self.table(storage).objects.insert(object_ref.key.clone(), stored.clone());
        if let Some(previous) = &previous {
            self.unindex_owners(&object_ref, previous);
        }
        for owner in &stored.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(object_ref.clone());
        }
        self.record(storage, Change { object: stored.clone(), previous, is_deletion: false });
        stored
    }

    /// Removes an object; watchers see its last state at the revision of the removal.
    pub fn remove(&mut self, storage: &'static str, key: &Key) -> Option<Arc<Stored>> {
        let previous = self.table(storage).objects.remove(key)?;
        self.revision += 1;
        self.unindex_owners(&ObjectRef { storage, key: key.clone() }, &previous);
        let object = Arc::new(Stored::new(key.clone(), self.revision, previous.value()));
        let change = Change { object: object.clone(), previous: Some(previous), is_deletion: true };
        self.record(storage, change);
        Some(object)
    }

    /// The objects that have `uid` in their `ownerReferences`.
    pub fn dependents(&self, uid: &str) -> Vec<ObjectRef> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// The uids that occur in `ownerReferences`.
    pub fn owner_uids(&self) -> impl Iterator<Item = &str> {
        self.dependents.keys().map(String::as_str)
    }

    /// The current objects of a namespace, or of all namespaces, in key order.
    pub fn list(&self, storage: &str, namespace: Option<&str>) -> Snapshot {
        let objects = self.tables.get(storage).into_iter().flat_map(|table| {
            let from = Bound::Included(Key::first_in(namespace.unwrap_or_default()));
            let within = move |key: &Key| namespace.is_none_or(|wanted| key.namespace() == wanted);
            let range = table.objects.range((from, Bound::Unbounded));
            range.take_while(move |(key, _)| within(key)).map(|(_, object)| object.clone())
        });
        Snapshot { revision: self.revision, objects: objects.collect() }
    }

    /// The objects at an earlier revision: undoes the changes since then.
    pub fn list_at(
        &self,
        storage: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<Snapshot, Gone> {
        let now = self.list(storage, namespace);
        let Some(past) = self.tables.get(storage).map(|table| &table.history) else {
            return Ok(Snapshot { revision, objects: now.objects });
        };
        if revision < past.floor() {
            return Err(Gone { requested: revision, floor: past.floor() });
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

    /// Drops the history up to `revision`; cursors that need it get [`Gone`].
    pub fn compact(&mut self, revision: u64) {
        let revision = revision.min(self.revision);
        for table in self.tables.values_mut() {
            table.history.compact(revision);
        }
    }

    /// The oldest revision from which a watch of this table can start.
    pub fn floor(&self, storage: &str) -> u64 {
        self.tables.get(storage).map_or(0, |table| table.history.floor())
    }

    fn table(&mut self, storage: &'static str) -> &mut ResourceTable {
        self.tables.entry(storage).or_default()
    }

    fn record(&mut self, storage: &'static str, change: Change) {
        let limits = self.limits;
        self.table(storage).history.push(change, limits);
    }

    fn unindex_owners(&mut self, object_ref: &ObjectRef, object: &Stored) {
        for owner in &object.owners {
            let Some(dependents) = self.dependents.get_mut(&owner.uid) else { continue };
            dependents.remove(object_ref);
            if dependents.is_empty() {
                self.dependents.remove(&owner.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests;
