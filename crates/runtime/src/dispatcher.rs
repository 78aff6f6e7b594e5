//! Sends writes and live reads to the API server, each in a task of its own. The engine bounds how
//! many are in flight.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use endpointd_client::Client;
use endpointd_client::election::WritePermit;
use endpointd_engine::{Input, RequestId};
use endpointd_model::{Controller, Failure, FailureKind, LiveRead, LiveReadResult, Write};
use endpointd_status::{CompletedWrite, Metrics};
use tokio::task::{JoinError, JoinSet};

use crate::supervisor::TaskEnd;

pub struct RequestDispatcher {
    client: Client,
    permit: WritePermit,
    metrics: Metrics,
    /// Each request ends with the input that reports its result.
    requests: JoinSet<Input>,
}

/// Results received at once.
const RESULTS_MAX: usize = 256;

impl RequestDispatcher {
    pub fn new(client: Client, permit: WritePermit, metrics: Metrics) -> Self {
        Self { client, permit, metrics, requests: JoinSet::new() }
    }

    pub fn send(&mut self, id: RequestId, controller: Controller, write: Arc<Write>) {
        let (client, permit) = (self.client.clone(), self.permit.clone());
        let metrics = self.metrics.clone();
        self.spawn(async move {
            let started = Instant::now();
            let result = client.send(&write, &permit).await;
            metrics.record_write(&CompletedWrite {
                controller,
                verb: write.verb(),
                resource: write.resource(),
                result: result.as_str(),
                took: started.elapsed(),
            });
            Input::WriteResult(id, result)
        });
    }

    pub fn live_read(&mut self, id: RequestId, read: LiveRead) {
        let client = self.client.clone();
        self.spawn(async move { Input::LiveReadResult(id, client.live_read(&read).await) });
    }

    /// Of another cluster. Without a client it is not known whether that is the right one.
    pub fn live_read_elsewhere(&mut self, id: RequestId, read: LiveRead, client: Option<Client>) {
        self.spawn(async move {
            let result = match client {
                Some(client) => client.live_read(&read).await,
                None => {
                    let message = "the cluster is not connected".into();
                    LiveReadResult::Failed(Failure { kind: FailureKind::Unreachable, message })
                }
            };
            Input::LiveReadResult(id, result)
        });
    }

    /// Waits for a result, then adds it and all others that are there to `results`. Stays pending
    /// while nothing is in flight. Cancel safe. Fails when a request panicked: its result is lost,
    /// and the engine would wait for it forever.
    pub async fn receive(&mut self, results: &mut Vec<Input>) -> Result<(), TaskEnd> {
        let Some(first) = self.requests.join_next().await else {
            return std::future::pending().await;
        };
        results.push(first.map_err(lost_result)?);
        while results.len() < RESULTS_MAX
            && let Some(next) = self.requests.try_join_next()
        {
            results.push(next.map_err(lost_result)?);
        }
        Ok(())
    }

    /// `request` returns the input with its result.
    pub(crate) fn spawn(&mut self, request: impl Future<Output = Input> + Send + 'static) {
        self.requests.spawn(request);
    }
}

fn lost_result(error: JoinError) -> TaskEnd {
    TaskEnd::panicked("request", error)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use endpointd_client::ConnectOptions;
    use endpointd_client::election::LeaderGuard;
    use endpointd_model::{DeleteTarget, Key, PublishedResource, Uid, WriteResult};
    use tokio::sync::watch;
    use tokio::time::timeout;

    use super::*;

    /// A dispatcher whose server refuses all connections.
    async fn dispatcher(permit: WritePermit) -> RequestDispatcher {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let options = ConnectOptions {
            kubeconfig: Some("/dev/null".into()),
            server: Some(format!("http://{}", listener.local_addr().unwrap())),
            user_agent: "endpointd-test".to_owned(),
            ..Default::default()
        };
        let client = Client::connect(options).await.unwrap();
        RequestDispatcher::new(client, permit, Metrics::new())
    }

    fn delete() -> Arc<Write> {
        Arc::new(Write::Delete(DeleteTarget {
            resource: PublishedResource::Slices,
            key: Key::new("shop", "web-1"),
            uid: Uid::from("u"),
            resource_version: 7.into(),
        }))
    }

    async fn receive_all(dispatcher: &mut RequestDispatcher, n: usize) -> Vec<Input> {
        let mut all = Vec::new();
        while all.len() < n {
            let mut results = Vec::new();
            dispatcher.receive(&mut results).await.unwrap();
            assert!(!results.is_empty());
            all.append(&mut results);
        }
        all
    }

    #[tokio::test]
    async fn every_request_gets_exactly_one_result() {
        let mut dispatcher = dispatcher(WritePermit::Always).await;
        for id in 0..300 {
            dispatcher.send(RequestId(id), Controller::Slices, delete());
            dispatcher.live_read(RequestId(1000 + id), LiveRead::Node("a".into()));
        }
        let ids: BTreeSet<RequestId> = receive_all(&mut dispatcher, 600)
            .await
            .into_iter()
            .map(|input| match input {
                Input::WriteResult(id, WriteResult::Failed(_)) => id,
                Input::LiveReadResult(id, LiveReadResult::Failed(_)) => id,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(ids.len(), 600, "each id once");
        let mut more = Vec::new();
        let received = timeout(Duration::from_millis(50), dispatcher.receive(&mut more)).await;
        assert!(received.is_err() && more.is_empty(), "{more:?}");
    }

    #[tokio::test]
    async fn write_without_the_lease_is_not_sent() {
        let (leading_until, receiver) =
            watch::channel(Some(Instant::now() + Duration::from_secs(60)));
        let permit = WritePermit::WhileLeader(LeaderGuard::new(receiver));
        let mut dispatcher = dispatcher(permit).await;
        dispatcher.send(RequestId(1), Controller::Slices, delete());
        let sent = receive_all(&mut dispatcher, 1).await;
        assert!(
            matches!(sent[0], Input::WriteResult(RequestId(1), WriteResult::Failed(_))),
            "{sent:?}"
        );

        // The engine has decided to write; then the lease expires.
        dispatcher.send(RequestId(2), Controller::Slices, delete());
        leading_until.send_replace(None);
        let unsent = receive_all(&mut dispatcher, 1).await;
        assert!(
            matches!(unsent[0], Input::WriteResult(RequestId(2), WriteResult::NotLeader)),
            "{unsent:?}"
        );
    }

    #[tokio::test]
    async fn panicking_request_is_reported() {
        let mut dispatcher = dispatcher(WritePermit::Always).await;
        dispatcher.spawn(async { panic!("no such verb") });
        let end = dispatcher.receive(&mut Vec::new()).await.unwrap_err();
        assert_eq!(end.to_string(), "task `request` panicked: no such verb");
    }
}
