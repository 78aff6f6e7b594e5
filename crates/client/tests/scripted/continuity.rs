//! Quiet watches are checked: etcd may have been restored from a backup, and then they are blind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use endpointd_model::{WatchSignal, WatchedResource};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch as watch_channel};
use tokio::time::timeout;

use crate::server::{End, Reply, Server, line, list_end, service, status, watch, whole};

const WAIT_MAX: Duration = Duration::from_secs(200);

/// A watch of Services; its list has `web` at version 3 and ends at version 5.
struct Watching {
    server: Server,
    signals: mpsc::Receiver<(WatchedResource, WatchSignal)>,
    rollbacks: watch_channel::Receiver<u64>,
    n_checks: Arc<AtomicUsize>,
}

impl Watching {
    async fn start(
        then: impl Fn(usize) -> Reply + Send + Sync + 'static,
        check: impl Fn() -> Value + Send + Sync + 'static,
    ) -> Self {
        let n_checks = Arc::new(AtomicUsize::new(0));
        let counter = n_checks.clone();
        let server = Server::start_with_checks(
            move |number, _| then(number),
            move |request| {
                counter.fetch_add(1, Ordering::Relaxed);
                let named = "/api/v1/namespaces/shop/services?fieldSelector=metadata.name%3Dweb";
                assert_eq!(request.path, named);
                whole(200, &check())
            },
        )
        .await;
        let client = server.client().await;
        let rollbacks = client.rollbacks();
        let (sender, signals) = mpsc::channel(100);
        tokio::spawn(client.watch(WatchedResource::Services, sender));
        let mut watching = Self { server, signals, rollbacks, n_checks };
        watching.list_is_complete().await;
        watching
    }

    async fn list_is_complete(&mut self) {
        let complete = async {
            while !matches!(self.signals.recv().await, Some((_, WatchSignal::InitDone(_)))) {}
        };
        timeout(WAIT_MAX, complete).await.expect("in time");
    }

    /// With the clock paused, waiting for a check takes no time.
    async fn checks(&self, n: usize) {
        tokio::time::pause();
        while self.n_checks.load(Ordering::Relaxed) < n {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tokio::time::resume();
    }
}

fn list_of_web(end: End) -> Reply {
    watch(vec![line("ADDED", &service("web", 3)), list_end(5)], end)
}

fn quiet(_: usize) -> Reply {
    list_of_web(End::Hold)
}

/// The response to a check: the version of the list, and that of `web`.
fn found(list: u32, web: Option<u32>) -> Value {
    let items: Vec<Value> = web.map(|version| service("web", version)).into_iter().collect();
    let metadata = json!({"resourceVersion": list.to_string()});
    json!({"kind": "ServiceList", "apiVersion": "v1", "metadata": metadata, "items": items})
}

#[tokio::test]
async fn quiet_watch_of_a_restored_server_is_listed_again() {
    // The whole resource is older, or it has been written since and the object is older.
    for (list, web) in [(4, Some(3)), (4, None), (900, Some(2))] {
        let mut watching = Watching::start(quiet, move || found(list, web)).await;
        watching.checks(1).await;
        timeout(WAIT_MAX, watching.rollbacks.changed()).await.expect("in time").expect("a client");
        watching.list_is_complete().await;
        assert_eq!(watching.server.requests().len(), 2, "one more list");
    }
}

#[tokio::test]
async fn quiet_watch_of_an_unchanged_server_goes_on() {
    let watching = Watching::start(quiet, || found(700, Some(3))).await;
    watching.checks(2).await;
    assert_eq!(watching.server.requests().len(), 1);
    assert!(!watching.rollbacks.has_changed().expect("a client"));
}

#[tokio::test]
async fn watch_that_misses_a_change_for_two_checks_is_listed_again() {
    for web in [None, Some(6)] {
        let mut watching = Watching::start(quiet, move || found(700, web)).await;
        watching.checks(1).await;
        assert_eq!(watching.server.requests().len(), 1, "the event may be on its way");
        watching.checks(2).await;
        watching.list_is_complete().await;
        assert!(!watching.rollbacks.has_changed().expect("a client"));
    }
}

#[tokio::test]
async fn watch_is_checked_before_it_continues_after_an_outage() {
    let then = |number| match number {
        0 => list_of_web(End::Close),
        1 => status(503, "ServiceUnavailable", "starting"),
        _ => list_of_web(End::Hold),
    };
    let mut watching = Watching::start(then, || found(4, Some(3))).await;
    timeout(WAIT_MAX, watching.rollbacks.changed()).await.expect("in time").expect("a client");
    watching.list_is_complete().await;
    let paths: Vec<String> = watching.server.requests().into_iter().map(|one| one.path).collect();
    assert_eq!(paths.len(), 3);
    assert!(paths[2].contains("sendInitialEvents"), "a list: {paths:?}");
}
