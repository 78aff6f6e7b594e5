//! Questions about one key, which only the event loop can answer: the published snapshot has rows
//! for keys that wait or failed, at most 200.

use std::time::Duration;

use endpointd_engine::KeyStatus;
use endpointd_model::Key;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Queries that may wait for the event loop; further ones are refused.
const QUERIES_MAX: usize = 16;
/// The event loop answers between two batches of effects; longer means that it is stuck.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// One question: the status of this key in each controller that knows it.
#[derive(Debug)]
pub struct KeyQuery {
    pub key: Key,
    pub reply: oneshot::Sender<Vec<KeyStatus>>,
}

/// The event loop's end of the channel.
#[derive(Debug)]
pub struct KeyQueries(mpsc::Receiver<KeyQuery>);

impl KeyQueries {
    /// The next query. Stays pending once no [`StatusHandle`](crate::StatusHandle) is left.
    pub async fn next(&mut self) -> KeyQuery {
        match self.0.recv().await {
            Some(query) => query,
            None => std::future::pending().await,
        }
    }
}

pub(crate) type QuerySender = mpsc::Sender<KeyQuery>;

pub(crate) fn channel() -> (QuerySender, KeyQueries) {
    let (sender, receiver) = mpsc::channel(QUERIES_MAX);
    (sender, KeyQueries(receiver))
}

/// Asks the event loop; `None` when it does not answer in time or has too many queries waiting.
pub(crate) async fn ask(queries: &QuerySender, key: Key) -> Option<Vec<KeyStatus>> {
    let (reply, answer) = oneshot::channel();
    queries.try_send(KeyQuery { key, reply }).ok()?;
    timeout(ANSWER_MAX, answer).await.ok()?.ok()
}
