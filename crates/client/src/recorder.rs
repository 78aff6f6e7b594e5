//! Writes Kubernetes Events as client-go does: repeated ones increase the count of one Event
//! object, many similar ones are aggregated, and the rate per involved object is limited.
//!
//! [`Correlator`](correlator::Correlator) decides; a task writes. Recording never waits and never
//! fails: when too many records are waiting, further ones are dropped and counted.

mod correlator;
mod event;
mod lru_map;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use endpointd_model::{Controller, EventRecord, Key, Uid};
use tokio::sync::mpsc;

use crate::client::Client;
use crate::now::Now;
use crate::rate_limiter::RateLimiter;
use correlator::Correlator;
use event::{Event, EventWrite};

/// As in client-go's broadcaster; further ones are dropped.
const WAITING_MAX: usize = 1000;
/// Writes of Events are limited, so that they do not compete with other requests.
const PER_SEC: f32 = 5.0;
const BURST: u32 = 50;
const ATTEMPTS_MAX: u32 = 3;
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// An event record with its involved object and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EventRequest {
    controller: Controller,
    key: Key,
    uid: Uid,
    record: EventRecord,
}

/// Clones share one queue; the task ends when the last of them is dropped.
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
    /// The recorder, and its task, which the caller runs.
    pub fn new(client: Client) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let counts = Arc::<Counts>::default();
        let task = write_all(client, receiver, counts.clone());
        (Self { sender, counts }, task)
    }

    pub fn record(&self, controller: Controller, key: Key, uid: Uid, record: EventRecord) {
        if self.sender.try_send(EventRequest { controller, key, uid, record }).is_err() {
            self.counts.n_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Dropped, because too many were waiting.
    pub fn n_dropped(&self) -> u64 {
        self.counts.n_dropped.load(Ordering::Relaxed)
    }

    /// Rejected, or without a response after all attempts.
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
    let rate_limiter = RateLimiter::new(PER_SEC, BURST);
    while let Some(request) = receiver.recv().await {
        let Some(event) = correlator.correlate(request, Now::from_system_clocks()) else {
            continue;
        };
        let is_written = write(&client, &rate_limiter, event).await;
        let count = if is_written { &counts.n_written } else { &counts.n_failed };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether it was written. Upstream: `recordToSink` in client-go's tools/record.
async fn write(client: &Client, rate_limiter: &RateLimiter, mut event: Event) -> bool {
    for attempt in 1..=ATTEMPTS_MAX {
        rate_limiter.acquire().await;
        match event.write(client).await {
            EventWrite::Stored => return true,
            // The API server has removed it, because it was too old: create a new one.
            EventWrite::Expired => event.is_new = true,
            EventWrite::Rejected(reason) => {
                tracing::debug!(%reason, "Event not written");
                return false;
            }
            EventWrite::Failed(reason) => {
                tracing::debug!(%reason, attempt, "Event not written yet");
                if attempt < ATTEMPTS_MAX {
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }
    false
}
