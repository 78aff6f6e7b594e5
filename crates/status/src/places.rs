//! How many connections of each kind a server keeps. Probes, pages, and streams have places of their
//! own, so that none of them can use up the places of another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::{HeaderMap, HeaderValue, header};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Connections without a complete request header. One more closes the oldest of them, so that a new
/// connection is always accepted and idle ones cannot keep others out.
const WAITING_MAX: usize = 256;
/// Health checks in progress. Further ones are answered with status 503.
const PROBES_MAX: usize = 64;
/// Other pages in progress. Further ones are answered with status 503.
const PAGES_MAX: usize = 128;
/// Open event streams. Further ones are answered with status 503.
const STREAMS_MAX: usize = 128;

/// The first segment of the paths that kubelets request.
const PROBES: [&str; 3] = ["healthz", "livez", "readyz"];

/// Shared by all connections of one listener.
pub(crate) struct Places {
    /// By the order of acceptance; dropping a sender closes the connection.
    waiting: Mutex<BTreeMap<u64, oneshot::Sender<()>>>,
    probes: Arc<Semaphore>,
    pages: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            probes: Arc::new(Semaphore::new(PROBES_MAX)),
            pages: Arc::new(Semaphore::new(PAGES_MAX)),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        }
    }
}

impl Places {
    /// Enters a connection that has sent no request yet; ids grow. The receiver completes when the
    /// connection has to make room for a newer one.
    pub(crate) fn wait(&self, id: u64) -> oneshot::Receiver<()> {
        let (evict, evicted) = oneshot::channel();
        let mut waiting = self.lock();
        waiting.insert(id, evict);
        if waiting.len() > WAITING_MAX {
            waiting.pop_first();
        }
        evicted
    }

    /// The connection has a complete request header, or has ended.
    pub(crate) fn leave(&self, id: u64) {
        self.lock().remove(&id);
    }

    /// A place for a request of this path; `None` if all of its kind are taken.
    pub(crate) fn enter(&self, path: &str) -> Option<OwnedSemaphorePermit> {
        let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        let kind = if PROBES.contains(&first) { &self.probes } else { &self.pages };
        kind.clone().try_acquire_owned().ok()
    }

    /// A place for a response that stays open.
    pub(crate) fn enter_stream(&self) -> Option<OwnedSemaphorePermit> {
        self.streams.clone().try_acquire_owned().ok()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, oneshot::Sender<()>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a response is a stream of server-sent events.
pub(crate) fn is_stream(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    media_type.is_some_and(|value| value.starts_with(b"text/event-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_connection_closes_the_oldest_waiting_one() {
        let places = Places::default();
        let n = u64::try_from(WAITING_MAX).expect("it is small");
        let mut evicted: Vec<_> = (0..n).map(|id| places.wait(id)).collect();
        places.leave(0);
        let _another = places.wait(n);
        assert_eq!(evicted[1].try_recv(), Err(oneshot::error::TryRecvError::Empty));
        let _one_more = places.wait(n + 1);
        assert_eq!(evicted[1].try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(evicted[2].try_recv(), Err(oneshot::error::TryRecvError::Empty));
    }

    #[test]
    fn pages_and_streams_leave_places_to_probes() {
        let places = Places::default();
        let pages: Vec<_> = std::iter::from_fn(|| places.enter("/metrics")).collect();
        let streams: Vec<_> = std::iter::from_fn(|| places.enter_stream()).collect();
        assert_eq!((pages.len(), streams.len()), (PAGES_MAX, STREAMS_MAX));
        let probes: Vec<_> = std::iter::from_fn(|| places.enter("/readyz/pods")).collect();
        assert_eq!(probes.len(), PROBES_MAX);
        drop(pages);
        assert!(places.enter("/report").is_some() && places.enter("/livez").is_none());
    }
}
