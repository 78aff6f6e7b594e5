//! Follows the event loop while there is a reader: keeps the rows of all Services current, and
//! writes the messages of the stream, at least [`FLUSH`] apart and once for all readers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use endpointd_engine::ServiceOverview;
use endpointd_model::Key;
use endpointd_status::{Change, Notice};
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;
use tokio::time::{Instant, sleep};

use crate::hub::Hub;
use crate::rates::Rates;
use crate::{change_json, overview_json, status_json};

/// Changes within this time are one message.
const FLUSH: Duration = Duration::from_millis(200);
/// With many readers messages are further apart: all of them together get at most a hundred a second.
const PER_READER: Duration = Duration::from_millis(10);
/// How often the header and what waits are sent.
const STATUS: Duration = Duration::from_secs(1);
/// Services that the event loop is asked about at once: well below a millisecond for small ones.
const KEYS_PER_QUESTION: usize = 32;
/// Rows refreshed between two messages: a mass change is shown over several of them.
const KEYS_PER_FLUSH: usize = 512;
/// Changes in one message; of more, the latest are sent and the others are counted.
const CHANGES_PER_FLUSH: usize = 100;
/// Changes that a new reader of the stream sees at first.
const RECENT_MAX: usize = 1000;

struct Collector {
    hub: Hub,
    rates: Rates,
    changes: Vec<Arc<Change>>,
    n_changes_lost: u64,
    dirty: BTreeSet<Key>,
    /// All Services have to be asked about.
    is_all_dirty: bool,
    /// When the last change of a Service was written.
    changed_at: BTreeMap<Key, SystemTime>,
    status_due: Instant,
}

enum Next {
    GoOn,
    Stop,
}

/// Until there has been no reader for some time, or the process stops.
pub async fn run(hub: Hub) {
    let mut notices = hub.status().watch_changes();
    let mut collector = Collector {
        hub,
        rates: Rates::default(),
        changes: Vec::new(),
        n_changes_lost: 0,
        dirty: BTreeSet::new(),
        is_all_dirty: true,
        changed_at: BTreeMap::new(),
        status_due: Instant::now(),
    };
    collector.start().await;
    loop {
        match collector.receive(&mut notices) {
            Next::GoOn => {}
            Next::Stop => return collector.hub.stop(),
        }
        collector.flush().await;
        if collector.hub.ends_idle() {
            return;
        }
        sleep(pause(collector.hub.n_readers())).await;
    }
}

/// Between two messages.
fn pause(n_readers: usize) -> Duration {
    let n_readers = u32::try_from(n_readers).unwrap_or(u32::MAX);
    FLUSH.max(PER_READER.saturating_mul(n_readers))
}

impl Collector {
    /// Reads what was recorded before anybody looked.
    async fn start(&mut self) {
        let recent = self.hub.status().ask(|state| {
            state.changes.recent().rev().take(RECENT_MAX).cloned().collect::<Vec<_>>()
        });
        for change in recent.await.unwrap_or_default().iter().rev() {
            self.note(change);
        }
    }

    fn note(&mut self, change: &Arc<Change>) {
        self.rates.add(change);
        self.changed_at.insert(change.sync.key.clone(), change.at);
    }

    fn receive(&mut self, notices: &mut Receiver<Notice>) -> Next {
        loop {
            match notices.try_recv() {
                Ok(Notice::Change(change)) => {
                    // Here, not on the thread of the event loop.
                    change.compare();
                    self.note(&change);
                    self.dirty.insert(change.sync.key.clone());
                    self.changes.push(change);
                }
                Ok(Notice::Observed(key)) => {
                    self.dirty.insert(key);
                }
                Ok(Notice::Listed) => self.is_all_dirty = true,
                Ok(Notice::Stopping) | Err(TryRecvError::Closed) => return Next::Stop,
                Err(TryRecvError::Lagged(n)) => {
                    self.n_changes_lost += n;
                    self.is_all_dirty = true;
                }
                Err(TryRecvError::Empty) => return Next::GoOn,
            }
        }
    }

    async fn flush(&mut self) {
        if self.is_all_dirty {
            let Some(keys) = self.hub.status().ask(|state| state.engine.service_keys()).await
            else {
                return;
            };
            self.is_all_dirty = false;
            // Services that are gone are asked about, too.
            self.dirty.extend(self.hub.keys());
            self.dirty.extend(keys);
            self.load().await;
        }
        let (rows, removed) = self.refresh(KEYS_PER_FLUSH).await;
        let is_status_due = self.status_due <= Instant::now();
        if rows.is_empty() && removed.is_empty() && self.changes.is_empty() && !is_status_due {
            return;
        }
        let data = self.message(&rows, &removed, is_status_due);
        self.hub.push("update", &data);
    }

    /// The first time, readers wait for all rows instead of getting them as messages.
    async fn load(&mut self) {
        if self.hub.keys().is_empty() {
            self.refresh(usize::MAX).await;
            self.hub.set_loaded();
        }
    }

    /// Asks about Services that may have changed, at most `max`.
    async fn refresh(&mut self, max: usize) -> (Vec<Arc<str>>, Vec<Key>) {
        let (mut rows, mut removed, mut n_asked) = (Vec::new(), Vec::new(), 0);
        while n_asked < max && !self.dirty.is_empty() {
            let mut keys = Vec::with_capacity(KEYS_PER_QUESTION);
            while keys.len() < KEYS_PER_QUESTION
                && let Some(key) = self.dirty.pop_first()
            {
                keys.push(key);
            }
            n_asked += keys.len();
            let Some(overviews) = self.ask(keys.clone()).await else {
                self.dirty.extend(keys);
                break;
            };
            let new = overviews.into_iter().map(|(key, overview)| self.row(key, overview));
            let (changed, gone) = self.hub.replace(new.collect());
            rows.extend(changed);
            removed.extend(gone);
        }
        (rows, removed)
    }

    async fn ask(&self, keys: Vec<Key>) -> Option<Vec<(Key, Option<ServiceOverview>)>> {
        let question = self.hub.status().ask(move |state| {
            let overview = |key: Key| {
                let overview = state.engine.service_overview(&key);
                (key, overview)
            };
            keys.into_iter().map(overview).collect()
        });
        question.await
    }

    fn row(&self, key: Key, overview: Option<ServiceOverview>) -> (Key, Option<String>) {
        let changed_at = self.changed_at.get(&key).copied();
        let row = overview.map(|one| overview_json::row(&key, &one, changed_at).to_string());
        (key, row)
    }

    /// Written by hand around rows that are JSON already.
    fn message(&mut self, rows: &[Arc<str>], removed: &[Key], has_status: bool) -> String {
        let n_skipped = self.changes.len().saturating_sub(CHANGES_PER_FLUSH);
        let changes = self.changes.split_off(n_skipped);
        self.changes.clear();
        let n_lost = std::mem::take(&mut self.n_changes_lost) + n_skipped as u64;
        let changes: Vec<_> = changes.iter().map(|one| change_json::change(one)).collect();
        let removed: Vec<_> = removed
            .iter()
            .map(|key| json!({"namespace": &*key.namespace, "name": &*key.name}))
            .collect();
        let mut fields = vec![
            format!("\"rows\":[{}]", rows.join(",")),
            format!("\"removed\":{}", json!(removed)),
            format!("\"changes\":{}", json!(changes)),
            format!("\"changesLost\":{n_lost}"),
        ];
        if has_status {
            self.status_due = Instant::now() + STATUS;
            fields.push(format!("\"status\":{}", self.status()));
        }
        format!("{{{}}}", fields.join(","))
    }

    fn status(&mut self) -> serde_json::Value {
        let rates = self.rates.current(SystemTime::now());
        status_json::status(&self.hub.status().snapshot(), rates, self.hub.n_readers())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_readers_get_messages_less_often() {
        let millis = [0, 1, 20, 50, 100, 128].map(|n| pause(n).as_millis());
        assert_eq!(millis, [200, 200, 200, 500, 1000, 1280]);
    }
}
