//! What all readers share: the rows of all Services, the messages of the stream, and the collector
//! that fills them while there is a reader.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use endpointd_model::Key;
use endpointd_status::StatusHandle;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::collector;
use crate::messages::{Messages, Position, Read};

/// How long the collector goes on without readers: the time to reload a page.
const IDLE_MAX: Duration = Duration::from_secs(10);
/// A first reader waits for the rows of all Services.
const LOAD_MAX: Duration = Duration::from_secs(20);

/// Clones share one state.
#[derive(Clone)]
pub struct Hub(Arc<Shared>);

struct Shared {
    status: StatusHandle,
    state: Mutex<State>,
    /// Changes with every message, and when the rows are loaded.
    changed: watch::Sender<Progress>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    n_messages: u64,
    is_loaded: bool,
    is_stopped: bool,
}

struct State {
    messages: Messages,
    rows: BTreeMap<Key, Arc<str>>,
    is_collecting: bool,
    n_readers: usize,
    last_used: Instant,
    n_runs: u64,
}

/// Counts as a reader until it is dropped.
pub struct Reader {
    hub: Hub,
    changed: watch::Receiver<Progress>,
}

impl Hub {
    pub fn new(status: StatusHandle) -> Self {
        let state = State {
            messages: Messages::default(),
            rows: BTreeMap::new(),
            is_collecting: false,
            n_readers: 0,
            last_used: Instant::now(),
            n_runs: 0,
        };
        let changed = watch::Sender::new(Progress::default());
        Self(Arc::new(Shared { status, state: Mutex::new(state), changed }))
    }

    pub fn status(&self) -> &StatusHandle {
        &self.0.status
    }

    /// Starts the collector if it does not run.
    pub fn reader(&self) -> Reader {
        let mut state = self.lock();
        state.n_readers += 1;
        state.last_used = Instant::now();
        if !state.is_collecting {
            state.is_collecting = true;
            state.n_runs += 1;
            let run = new_run(state.n_runs);
            state.messages.start_run(run);
            state.rows.clear();
            self.0.changed.send_modify(|progress| progress.is_loaded = false);
            tokio::spawn(collector::run(self.clone()));
        }
        drop(state);
        Reader { hub: self.clone(), changed: self.0.changed.subscribe() }
    }

    pub fn n_readers(&self) -> usize {
        self.lock().n_readers
    }

    /// Whether the collector should end, which it then must.
    pub fn ends_idle(&self) -> bool {
        let mut state = self.lock();
        let is_idle = state.n_readers == 0 && state.last_used.elapsed() > IDLE_MAX;
        if is_idle {
            state.is_collecting = false;
            state.rows = BTreeMap::new();
        }
        is_idle
    }

    /// The process stops: all streams end.
    pub fn stop(&self) {
        self.0.changed.send_modify(|progress| progress.is_stopped = true);
    }

    /// Replaces rows; `None` removes one. Returns the rows that differ, and the keys that are gone.
    pub fn replace(&self, rows: Vec<(Key, Option<String>)>) -> (Vec<Arc<str>>, Vec<Key>) {
        let mut state = self.lock();
        let (mut changed, mut removed) = (Vec::new(), Vec::new());
        for (key, row) in rows {
            match row {
                Some(row) => {
                    let row: Arc<str> = row.into();
                    if state.rows.get(&key) != Some(&row) {
                        changed.push(row.clone());
                        state.rows.insert(key, row);
                    }
                }
                None => {
                    if state.rows.remove(&key).is_some() {
                        removed.push(key);
                    }
                }
            }
        }
        (changed, removed)
    }

    /// The keys of all rows.
    pub fn keys(&self) -> Vec<Key> {
        self.lock().rows.keys().cloned().collect()
    }

    pub fn set_loaded(&self) {
        self.0.changed.send_modify(|progress| progress.is_loaded = true);
    }

    pub fn push(&self, event: &str, data: &str) {
        self.lock().messages.push(event, data);
        self.0.changed.send_modify(|progress| progress.n_messages += 1);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change of the state is complete before anything can panic.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    /// All rows as a JSON list, and the position in the stream from which they are continued.
    /// `None`: the event loop did not answer in time.
    pub async fn rows(&mut self) -> Option<(String, Position)> {
        let loaded = self.changed.wait_for(|progress| progress.is_loaded);
        timeout(LOAD_MAX, loaded).await.ok()?.ok()?;
        let state = self.hub.lock();
        let n_bytes: usize = state.rows.values().map(|row| row.len() + 1).sum();
        let mut text = String::with_capacity(n_bytes + 2);
        text.push('[');
        for (n, row) in state.rows.values().enumerate() {
            if n > 0 {
                text.push(',');
            }
            text.push_str(row);
        }
        text.push(']');
        Some((text, state.messages.position()))
    }

    pub fn position(&self) -> Position {
        self.hub.lock().messages.position()
    }

    /// Waits until there is something to read. `None`: the process stops.
    pub async fn read(&mut self, position: &mut Position, max: usize) -> Option<Read> {
        loop {
            if self.changed.borrow_and_update().is_stopped {
                return None;
            }
            match self.hub.lock().messages.read(position, max) {
                Read::Nothing => {}
                read => return Some(read),
            }
            self.changed.changed().await.ok()?;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.hub.lock();
        state.n_readers -= 1;
        state.last_used = Instant::now();
    }
}

/// Positions of an earlier process must not fit.
fn new_run(n: u64) -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Milliseconds stay exact in every JSON reader.
    u64::try_from(since.as_millis()).unwrap_or_default() + n
}
