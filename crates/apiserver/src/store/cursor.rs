//! A watch that pulls: a cursor holds its position in the shared history. The store buffers nothing
//! per watcher, so a slow watcher costs no memory. A cursor whose history was compacted gets
//! [`Gone`].

use std::sync::Arc;

use super::history::Change;
use super::{Store, Stored};

/// The position of one watcher. `matches` is its selector.
pub struct Cursor {
    pub(crate) storage: &'static str,
    pub(crate) namespace: Option<String>,
    pub(crate) matches: Box<dyn Fn(&Stored) -> bool + Send + Sync>,
    /// All changes up to this revision have been read.
    pub(crate) revision: u64,
}

/// The requested history was compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {requested} ({floor})")]
pub struct Gone {
    pub requested: u64,
    pub floor: u64,
}

/// One event of a watch.
#[derive(Clone, Debug)]
pub struct WatchEvent {
    pub kind: WatchEventType,
    pub object: Arc<Stored>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEventType {
    Added,
    Modified,
    Deleted,
}

impl WatchEventType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl Cursor {
    /// The revision up to which everything has been read.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn storage(&self) -> &'static str {
        self.storage
    }

    /// The event for this watcher, if any. An object that leaves the selection is sent as deleted,
    /// with its last matching state at the revision of the change. Upstream: `watchCacheEvent` in
    /// cacher/cache_watcher.go.
    fn event_for(&self, change: &Change) -> Option<WatchEvent> {
        let in_namespace = |object: &Stored| {
            self.namespace.as_ref().is_none_or(|wanted| object.key.namespace() == wanted)
        };
        if !in_namespace(&change.object) {
            return None;
        }
        let matched = change.previous.as_ref().is_some_and(|object| (self.matches)(object));
        let matches = !change.is_deletion && (self.matches)(&change.object);
        let kind = match (matched, matches) {
            (false, false) => return None,
            (false, true) => WatchEventType::Added,
            (true, true) => WatchEventType::Modified,
            (true, false) => WatchEventType::Deleted,
        };
        let left_selection = kind == WatchEventType::Deleted && !change.is_deletion;
        let object = match &change.previous {
            Some(previous) if left_selection => {
                Arc::new(Stored::new(previous.key.clone(), change.revision(), previous.value()))
            }
            _ => change.object.clone(),
        };
        Some(WatchEvent { kind, object })
    }
}

impl Store {
    /// Reads up to `max` events and advances the cursor.
    pub fn read(&self, cursor: &mut Cursor, max: usize) -> Result<Vec<WatchEvent>, Gone> {
        let floor = self.floor(cursor.storage);
        if cursor.revision < floor {
            return Err(Gone { requested: cursor.revision, floor });
        }
        let mut events = Vec::new();
        let history = self.tables.get(cursor.storage).map(|table| &table.history);
        let from = cursor.revision;
        for change in history.into_iter().flat_map(|history| history.after(from)) {
            if events.len() == max {
                return Ok(events);
            }
            events.extend(cursor.event_for(change));
            cursor.revision = change.revision();
        }
        cursor.revision = self.revision;
        Ok(events)
    }
}
