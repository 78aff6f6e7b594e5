//! Reads the changes of the API server's store in the same process, as a watch does over HTTP.

use std::sync::Arc;

use endpointd_apiserver::store::{Cursor, Key, Stored, WatchEventType};
use endpointd_apiserver::{Kind, Server, Target, WatchOptions};

/// Changes of each kind read at once.
const CHANGES_MAX: usize = 1024;

/// One changed object.
pub struct StoreChange {
    pub resource: &'static str,
    pub key: Key,
    /// The current object; `None`: it is deleted.
    pub object: Option<Arc<Stored>>,
}

/// The reader was too slow for the history and must list again.
#[derive(Debug)]
pub struct HistoryExpired;

pub struct StoreReader {
    cursors: Vec<Cursor>,
}

impl StoreReader {
    /// Starts with the current objects.
    pub fn start(server: &Server, kinds: &[&'static Kind]) -> (Self, Vec<StoreChange>) {
        let mut cursors = Vec::new();
        let mut changes = Vec::new();
        for kind in kinds {
            let target = Target::collection(kind, "");
            let start = server.watch(&target, &WatchOptions::default());
            let start = start.expect("a watch from now on is always possible");
            let resource = kind.storage;
            changes.extend(start.initial.into_iter().map(|stored| StoreChange {
                resource,
                key: stored.key.clone(),
                object: Some(stored),
            }));
            cursors.push(start.cursor);
        }
        (Self { cursors }, changes)
    }

    /// The changes since the last call.
    pub fn read(&mut self, server: &Server) -> Result<Vec<StoreChange>, HistoryExpired> {
        let mut changes = Vec::new();
        for cursor in &mut self.cursors {
            let resource = cursor.storage();
            let events = server.store().read(cursor, CHANGES_MAX).map_err(|_| HistoryExpired)?;
            changes.extend(events.into_iter().map(|event| StoreChange {
                resource,
                key: event.object.key.clone(),
                object: (event.kind != WatchEventType::Deleted).then_some(event.object),
            }));
        }
        Ok(changes)
    }
}
