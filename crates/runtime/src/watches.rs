//! One task per watched resource, and one channel for the signals of all of them.

use endpointd_client::Client;
use endpointd_model::{WatchSignal, WatchedResource};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::supervisor::Supervisor;

/// Signals that wait for the engine. A full channel slows the watches down; it never grows memory.
const SIGNALS_MAX: usize = 4096;

pub struct WatchTasks {
    client: Client,
    sender: mpsc::Sender<(WatchedResource, WatchSignal)>,
    receiver: mpsc::Receiver<(WatchedResource, WatchSignal)>,
    tasks: Vec<(WatchedResource, AbortHandle)>,
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
            watches.spawn(*resource, supervisor);
        }
        watches
    }

    /// Waits for a signal, then adds it and all others that are there to `signals`. Cancel safe.
    pub async fn receive(&mut self, signals: &mut Vec<(WatchedResource, WatchSignal)>) {
        self.receiver.recv_many(signals, SIGNALS_MAX).await;
    }

    /// Replaces the watch of a resource by one that begins with a list.
    pub fn relist(&mut self, resource: WatchedResource, supervisor: &mut Supervisor) {
        if let Some(at) = self.tasks.iter().position(|(of, _)| *of == resource) {
            self.tasks.swap_remove(at).1.abort();
        }
        self.spawn(resource, supervisor);
    }

    pub fn stop(&self) {
        for (_, task) in &self.tasks {
            task.abort();
        }
    }

    fn spawn(&mut self, resource: WatchedResource, supervisor: &mut Supervisor) {
        let name = format!("watch {}", resource.as_str());
        let watch = self.client.clone().watch(resource, self.sender.clone());
        self.tasks.push((resource, supervisor.spawn(name, watch)));
    }
}
