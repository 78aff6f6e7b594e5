//! A watch as a pull: a cursor remembers how far it has read in the shared history. Nothing is
//! buffered for it, so a slow watcher costs nothing; when the history it still needs is compacted,
//! it is told [`Gone`].

use std::sync::Arc;

use super::history::Change;
use super::{Store, Stored};

/// One watcher's position. `matches` decides which objects it sees.
pub struct Cursor {
    pub(crate) shelf: &'static str,
    pub(crate) namespace: Option<String>,
    pub(crate) matches: Box<dyn Fn(&Stored) -> bool + Send + Sync>,
    /// Everything up to here has been seen.
    pub(crate) revision: u64,
}

/// The history needed was compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({floor})")]
pub struct Gone {
    pub asked: u64,
    pub floor: u64,
}

/// What a watcher is shown of one change.
#[derive(Clone, Debug)]
pub struct Seen {
    pub kind: SeenKind,
    pub object: Arc<Stored>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenKind {
    Added,
    Modified,
    Deleted,
}

impl SeenKind {
    pub fn word(self) -> &'static str {
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

    pub fn shelf(&self) -> &'static str {
        self.shelf
    }

    /// What an object that left the selection looks like to this watcher: its last matching state
    /// at the revision of the change. Upstream: `watchCacheEvent` in cacher/cache_watcher.go.
    fn show(&self, change: &Change) -> Option<Seen> {
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
            (false, true) => SeenKind::Added,
            (true, true) => SeenKind::Modified,
            (true, false) => SeenKind::Deleted,
        };
        let left_selection = kind == SeenKind::Deleted && !change.is_deletion;
        let object = match &change.previous {
            Some(previous) if left_selection => {
                Arc::new(Stored::new(previous.key.clone(), change.revision(), previous.value()))
            }
            _ => change.object.clone(),
        };
        Some(Seen { kind, object })
    }
}

impl Store {
    /// Up to `max` changes the cursor has not seen, and moves it past them.
    pub fn read(&self, cursor: &mut Cursor, max: usize) -> Result<Vec<Seen>, Gone> {
        let floor = self.floor(cursor.shelf);
        if cursor.revision < floor {
            return Err(Gone { asked: cursor.revision, floor });
        }
        let mut seen = Vec::new();
        let history = self.shelves.get(cursor.shelf).map(|shelf| &shelf.history);
        let from = cursor.revision;
        for change in history.into_iter().flat_map(|history| history.after(from)) {
            if seen.len() == max {
                return Ok(seen);
            }
            seen.extend(cursor.show(change));
            cursor.revision = change.revision();
        }
        cursor.revision = self.revision;
        Ok(seen)
    }
}
