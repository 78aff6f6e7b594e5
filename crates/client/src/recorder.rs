//! Kubernetes Events for people, written as client-go writes them: repeated ones are counted on the
//! same object, many similar ones are combined, and a subject that never stops is cut short.
//!
//! [`Correlator`](correlator::Correlator) decides; a background task writes. Recording never waits
//! and never fails: when too much is waiting, event_records are dropped and counted.

mod correlator;
mod event;
mod recent;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use endpointd_model::{Controller, EventRecord, Key, Uid};
use tokio::sync::mpsc;

use crate::budget::RateLimiter;
use crate::client::Client;
use crate::moment::Now;
use correlator::Correlator;
use event::{Event, Written};

/// As client-go's broadcaster; what comes on top is dropped.
const WAITING_MAX: usize = 1000;
/// Requests for Events never crowd out those that matter.
const PER_SEC: f32 = 5.0;
const BURST: u32 = 50;
const TRIES_MAX: u32 = 3;
const BETWEEN_TRIES: Duration = Duration::from_secs(2);

/// What a record is about, and who says it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EventRequest {
    controller: Controller,
    key: Key,
    uid: Uid,
    record: EventRecord,
}

/// Clones record to the same place; the task ends with the last of them.
#[derive(Clone)]
pub struct Recorder {
    sender: mpsc::Sender<EventRequest>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    n_dropped: AtomicU64,
    n_written: AtomicU64,
    n_failed: AtomicU64,
}

impl Recorder {
    /// Needs a runtime for its task.
    pub fn start(client: Client) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let counts = Arc::<Counts>::default();
        tokio::spawn(write_all(client, receiver, counts.clone()));
        Self { sender, counts }
    }

    pub fn record(&self, controller: Controller, key: Key, uid: Uid, record: EventRecord) {
        if self.sender.try_send(EventRequest { controller, key, uid, record }).is_err() {
            self.counts.n_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Never written, because too many were waiting.
    pub fn n_dropped(&self) -> u64 {
        self.counts.n_dropped.load(Ordering::Relaxed)
    }

    /// Refused, or not answered after a few tries.
    pub fn n_failed(&self) -> u64 {
        self.counts.n_failed.load(Ordering::Relaxed)
    }

    pub fn n_written(&self) -> u64 {
        self.counts.n_written.load(Ordering::Relaxed)
    }
}

async fn write_all(
    client: Client,
    mut receiver: mpsc::Receiver<EventRequest>,
    counts: Arc<Counts>,
) {
    let mut correlator = Correlator::default();
    let budget = RateLimiter::new(PER_SEC, BURST);
    while let Some(remark) = receiver.recv().await {
        let Some(event) = correlator.correlate(remark, Now::now()) else { continue };
        let count =
            if write(&client, &budget, event).await { &counts.n_written } else { &counts.n_failed };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether it was written. Upstream: `recordToSink` in client-go's tools/record.
async fn write(client: &Client, budget: &RateLimiter, mut event: Event) -> bool {
    for n_try in 1..=TRIES_MAX {
        budget.spend().await;
        match event.write(client).await {
            Written::Stored => return true,
            // It was there longer than the API server keeps Events: begin a new one.
            Written::Expired => event.is_new = true,
            Written::Refused(reason) => {
                tracing::debug!(%reason, "Event not written");
                return false;
            }
            Written::Unanswered(reason) => {
                tracing::debug!(%reason, n_try, "Event not written yet");
                if n_try < TRIES_MAX {
                    tokio::time::sleep(BETWEEN_TRIES).await;
                }
            }
        }
    }
    false
}
