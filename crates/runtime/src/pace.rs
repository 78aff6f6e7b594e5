//! How soon the thread that runs everything looks at its sockets again.
//!
//! What comes in many pieces is cheaper to read in larger ones: a picture arrives object by object,
//! and so do the answers to many writes, each of which would wake the thread by itself. So as long
//! as there are many, the thread naps before it waits. What comes alone is never kept waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use endpointd_engine::Engine;

/// Less than an answer takes, and not enough to fill a socket.
const NAP: Duration = Duration::from_millis(1);
/// With fewer writes under way, a change that comes alone may be next.
const WRITES_MANY: usize = 8;

/// Shared between the loop, which knows what is awaited, and the thread, which waits.
#[derive(Clone, Debug, Default)]
pub struct PollBatcher {
    is_crowded: Arc<AtomicBool>,
}

impl PollBatcher {
    /// To be called before the thread waits: see `tokio::runtime::Builder::on_thread_park`.
    pub fn nap(&self) {
        if self.is_crowded.load(Ordering::Relaxed) {
            std::thread::sleep(NAP);
        }
    }

    pub(crate) fn follow(&self, engine: &Engine) {
        let is_crowded = engine.is_listing() || engine.n_writes() >= WRITES_MANY;
        self.is_crowded.store(is_crowded, Ordering::Relaxed);
    }
}
