//! Follows the store of the API server in the same process, as a watch would over HTTP.

use std::sync::Arc;

use endpointd_apiserver::store::{Cursor, Key, SeenKind, Stored};
use endpointd_apiserver::{Kind, Server, Target, WatchOptions};

/// Changes taken at once of each kind.
const CHANGES_MAX: usize = 1024;

/// One object that changed.
pub struct News {
    pub shelf: &'static str,
    pub key: Key,
    /// As it is now; `None`: it is gone.
    pub object: Option<Arc<Stored>>,
}

/// The reader was too slow: what it knows must be forgotten, and read anew.
#[derive(Debug)]
pub struct Lost;

pub struct Reader {
    cursors: Vec<Cursor>,
}

impl Reader {
    /// Begins with all that is there.
    pub fn start(server: &Server, kinds: &[&'static Kind]) -> (Self, Vec<News>) {
        let mut cursors = Vec::new();
        let mut news = Vec::new();
        for kind in kinds {
            let target = Target::collection(kind, "");
            let start = server.watch(&target, &WatchOptions::default());
            let start = start.expect("a watch from now on is always possible");
            let shelf = kind.shelf;
            news.extend(start.initial.into_iter().map(|stored| News {
                shelf,
                key: stored.key.clone(),
                object: Some(stored),
            }));
            cursors.push(start.cursor);
        }
        (Self { cursors }, news)
    }

    /// What changed since; empty: nothing.
    pub fn read(&mut self, server: &Server) -> Result<Vec<News>, Lost> {
        let mut news = Vec::new();
        for cursor in &mut self.cursors {
            let shelf = cursor.shelf();
            let seen = server.store().read(cursor, CHANGES_MAX).map_err(|_| Lost)?;
            news.extend(seen.into_iter().map(|seen| News {
                shelf,
                key: seen.object.key.clone(),
                object: (seen.kind != SeenKind::Deleted).then_some(seen.object),
            }));
        }
        Ok(news)
    }
}
