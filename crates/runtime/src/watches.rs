//! One task per watched resource, and one channel for the signals of all of them.

use std::time::{Duration, Instant};

use endpointd_client::Client;
use endpointd_model::{WatchSignal, WatchedResource};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::supervisor::Supervisor;

/// Signals that wait for the engine. A full channel slows the watches down; it never grows memory.
const SIGNALS_MAX: usize = 4096;
/// A relist so long after the one before starts at once.
const RELIST_CALM: Duration = Duration::from_secs(60);
const RELIST_DELAY_MIN: Duration = Duration::from_secs(1);
const RELIST_DELAY_MAX: Duration = Duration::from_secs(30);

pub struct WatchTasks {
    client: Client,
    sender: mpsc::Sender<(WatchedResource, WatchSignal)>,
    receiver: mpsc::Receiver<(WatchedResource, WatchSignal)>,
    tasks: Vec<WatchTask>,
}

struct WatchTask {
    resource: WatchedResource,
    handle: AbortHandle,
    relists: RelistBackoff,
}

/// Delays relists that follow one another: the server may be behind for a while.
#[derive(Clone, Copy, Debug, Default)]
struct RelistBackoff {
    last: Option<Instant>,
    n_in_a_row: u32,
}

impl RelistBackoff {
    fn next_delay(&mut self, now: Instant) -> Duration {
        let is_calm = self.last.is_none_or(|last| now.duration_since(last) >= RELIST_CALM);
        self.n_in_a_row = if is_calm { 0 } else { self.n_in_a_row + 1 };
        let delay = match self.n_in_a_row {
            0 => Duration::ZERO,
            n => (RELIST_DELAY_MIN * 2u32.saturating_pow(n - 1)).min(RELIST_DELAY_MAX),
        };
        self.last = Some(now + delay);
        delay
    }
}

impl WatchTasks {
    pub fn start(
        client: &Client,
        resources: &[WatchedResource],
        supervisor: &mut Supervisor,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(SIGNALS_MAX);
        let mut watches = Self { client: client.clone(), sender, receiver, tasks: Vec::new() };
        for resource in resources {
            let handle = watches.spawn(*resource, Duration::ZERO, supervisor);
            let relists = RelistBackoff::default();
            watches.tasks.push(WatchTask { resource: *resource, handle, relists });
        }
        watches
    }

    /// Waits for a signal, then adds it and all others that are there to `signals`. Cancel safe.
    pub async fn receive(&mut self, signals: &mut Vec<(WatchedResource, WatchSignal)>) {
        self.receiver.recv_many(signals, SIGNALS_MAX).await;
    }

    /// Replaces the watch of a resource by one that begins with a list.
    pub fn relist(&mut self, resource: WatchedResource, supervisor: &mut Supervisor) {
        let Some(at) = self.tasks.iter().position(|task| task.resource == resource) else { return };
        self.tasks[at].handle.abort();
        let delay = self.tasks[at].relists.next_delay(Instant::now());
        self.tasks[at].handle = self.spawn(resource, delay, supervisor);
    }

    /// Replaces all watches. Signals of the old ones that were not received yet are lost.
    pub fn relist_all(&mut self, supervisor: &mut Supervisor) {
        self.stop();
        (self.sender, self.receiver) = mpsc::channel(SIGNALS_MAX);
        let resources: Vec<_> = self.tasks.iter().map(|task| task.resource).collect();
        for resource in resources {
            self.relist(resource, supervisor);
        }
    }

    pub fn stop(&self) {
        for task in &self.tasks {
            task.handle.abort();
        }
    }

    fn spawn(
        &self,
        resource: WatchedResource,
        delay: Duration,
        supervisor: &mut Supervisor,
    ) -> AbortHandle {
        let (client, sender) = (self.client.clone(), self.sender.clone());
        supervisor.spawn(format!("watch {}", resource.as_str()), async move {
            tokio::time::sleep(delay).await;
            client.watch(resource, sender).await;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relists_in_a_row_are_delayed_and_a_later_one_is_not() {
        let (mut backoff, mut now) = (RelistBackoff::default(), Instant::now());
        let mut delays = Vec::new();
        for _ in 0..8 {
            let delay = backoff.next_delay(now);
            delays.push(delay.as_secs());
            // Each list takes a second.
            now = now + delay + Duration::from_secs(1);
        }
        assert_eq!(delays, [0, 1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(backoff.next_delay(now + RELIST_CALM), Duration::ZERO);
    }
}
