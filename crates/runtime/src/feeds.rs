//! One task per kind that lists and watches, and one channel for what they tell.

use endpointd_client::Client;
use endpointd_model::{WatchSignal, WatchedResource};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// WatchSignal that may wait for the engine. A full channel slows the watches; it never grows memory.
const WATCH_CHANNEL_MAX: usize = 4096;

pub struct WatchTasks {
    client: Client,
    sender: mpsc::Sender<(WatchedResource, WatchSignal)>,
    receiver: mpsc::Receiver<(WatchedResource, WatchSignal)>,
    tasks: Vec<(WatchedResource, AbortHandle)>,
}

impl WatchTasks {
    pub fn start(client: &Client, kinds: &[WatchedResource]) -> Self {
        let (sender, receiver) = mpsc::channel(WATCH_CHANNEL_MAX);
        let mut feeds = Self { client: client.clone(), sender, receiver, tasks: Vec::new() };
        for kind in kinds {
            feeds.begin(*kind);
        }
        feeds
    }

    /// Adds what has arrived to `news`, at least one; waits for it if need be.
    pub async fn receive(&mut self, news: &mut Vec<(WatchedResource, WatchSignal)>) {
        self.receiver.recv_many(news, WATCH_CHANNEL_MAX).await;
    }

    /// Takes a new picture of a kind.
    pub fn relist(&mut self, kind: WatchedResource) {
        if let Some(at) = self.tasks.iter().position(|(of, _)| *of == kind) {
            self.tasks.swap_remove(at).1.abort();
        }
        self.begin(kind);
    }

    fn begin(&mut self, kind: WatchedResource) {
        let task = tokio::spawn(self.client.clone().feed(kind, self.sender.clone()));
        self.tasks.push((kind, task.abort_handle()));
    }
}

impl Drop for WatchTasks {
    fn drop(&mut self) {
        for (_, task) in &self.tasks {
            task.abort();
        }
    }
}
