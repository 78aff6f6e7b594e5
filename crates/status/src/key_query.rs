//! Questions that only the event loop can answer: the published snapshot has rows for keys that
//! wait or failed, at most 200, and nothing about settled Services.

use std::fmt;
use std::time::Duration;

use endpointd_engine::{Engine, KeyStatus, MonotonicTime};
use endpointd_model::Key;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::changes::ChangeLog;

/// Queries that may wait for the event loop; further ones are refused.
const QUERIES_MAX: usize = 16;
/// The event loop answers between two batches of effects; longer means that it is stuck.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// What the event loop is asked.
#[derive(Debug)]
pub enum LoopQuery {
    Key(KeyQuery),
    Question(Question),
}

/// One question: the status of this key in each controller that knows it.
#[derive(Debug)]
pub struct KeyQuery {
    pub key: Key,
    pub reply: oneshot::Sender<Vec<KeyStatus>>,
}

/// Any question about the state of the event loop, with its reply inside. It runs on the thread of
/// the event loop, so it must take a few milliseconds at most.
pub struct Question(Box<dyn FnOnce(&LoopState<'_>) + Send>);

/// What a [`Question`] may read.
#[derive(Clone, Copy)]
pub struct LoopState<'a> {
    pub engine: &'a Engine,
    pub changes: &'a ChangeLog,
    pub now: MonotonicTime,
}

impl Question {
    pub fn answer(self, state: &LoopState<'_>) {
        (self.0)(state);
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Question")
    }
}

/// The event loop's end of the channel.
#[derive(Debug)]
pub struct KeyQueries(mpsc::Receiver<LoopQuery>);

impl KeyQueries {
    /// The next query. Stays pending once no [`StatusHandle`](crate::StatusHandle) is left.
    pub async fn next(&mut self) -> LoopQuery {
        match self.0.recv().await {
            Some(query) => query,
            None => std::future::pending().await,
        }
    }
}

pub(crate) type QuerySender = mpsc::Sender<LoopQuery>;

pub(crate) fn channel() -> (QuerySender, KeyQueries) {
    let (sender, receiver) = mpsc::channel(QUERIES_MAX);
    (sender, KeyQueries(receiver))
}

/// Asks the event loop; `None` when it does not answer in time or has too many queries waiting.
pub(crate) async fn ask(queries: &QuerySender, key: Key) -> Option<Vec<KeyStatus>> {
    let (reply, answer) = oneshot::channel();
    queries.try_send(LoopQuery::Key(KeyQuery { key, reply })).ok()?;
    timeout(ANSWER_MAX, answer).await.ok()?.ok()
}

/// Like [`ask`], for any question.
pub(crate) async fn ask_state<T: Send + 'static>(
    queries: &QuerySender,
    question: impl FnOnce(&LoopState<'_>) -> T + Send + 'static,
) -> Option<T> {
    let (reply, answer) = oneshot::channel();
    let question = move |state: &LoopState<'_>| {
        // The page may have stopped waiting.
        let _ = reply.send(question(state));
    };
    queries.try_send(LoopQuery::Question(Question(Box::new(question)))).ok()?;
    timeout(ANSWER_MAX, answer).await.ok()?.ok()
}
