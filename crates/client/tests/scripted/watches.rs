//! Watches that end, stall, expire, or send malformed data.

use std::time::Duration;

use endpointd_model::{ObjectEvent, ResourceEvent, WatchSignal, WatchedResource};
use serde_json::json;
use tokio::sync::mpsc;

use crate::server::{
    End, Reply, Request, Server, bookmark, line, list_end, service, status, status_object, watch,
    whole,
};

const WAIT_MAX: Duration = Duration::from_secs(20);

/// A watch of Services, and its signals in text form.
struct Listener {
    receiver: mpsc::Receiver<(WatchedResource, WatchSignal)>,
    server: Server,
}

impl Listener {
    async fn start(script: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static) -> Self {
        let server = Server::start(script).await;
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(server.client().await.watch(WatchedResource::Services, sender));
        Self { receiver, server }
    }

    async fn next(&mut self) -> String {
        let (resource, signal) = tokio::time::timeout(WAIT_MAX, self.receiver.recv())
            .await
            .unwrap_or_else(|_| panic!("no more signals; requests: {:#?}", self.server.requests()))
            .expect("a watch ends only with its receiver");
        assert_eq!(resource, WatchedResource::Services);
        describe(&signal)
    }

    async fn expect(&mut self, expected: &[&str]) {
        for expected in expected {
            assert_eq!(self.next().await, *expected);
        }
    }

    fn paths(&self) -> Vec<String> {
        self.server.requests().into_iter().map(|request| request.path).collect()
    }
}

fn describe(signal: &WatchSignal) -> String {
    match signal {
        WatchSignal::InitStarted => "init".to_owned(),
        WatchSignal::Event(change) => match &**change {
            ResourceEvent::Service(ObjectEvent::Applied(one)) => {
                format!("applied {}@{}", one.name, one.resource_version)
            }
            ResourceEvent::Service(ObjectEvent::Deleted(one)) => {
                format!("deleted {}@{}", one.name, one.resource_version)
            }
            other => panic!("{other:?}"),
        },
        WatchSignal::DecodeError { key, .. } => format!("decode error {key}"),
        WatchSignal::InitDone(version) => format!("init done {version}"),
        WatchSignal::Bookmark(version) => format!("bookmark {version}"),
        WatchSignal::Disconnected(reason) => format!("disconnected: {reason}"),
        WatchSignal::Reconnected => "reconnected".to_owned(),
    }
}

/// The list that most tests begin with: `web` at version 3, complete at 5.
fn list_of_web(more: Vec<String>, end: End) -> Reply {
    let mut chunks = vec![line("ADDED", &service("web", 3)), list_end(5)];
    chunks.extend(more);
    watch(chunks, end)
}

fn open_watch(chunks: Vec<String>) -> Reply {
    watch(chunks, End::Hold)
}

fn starts_after(version: u32) -> String {
    format!("&resourceVersion={version}")
}

#[tokio::test]
async fn closed_watch_continues_from_its_last_version() {
    let mut listener = Listener::start(|number, _| match number {
        0 => list_of_web(vec![line("MODIFIED", &service("web", 7))], End::Close),
        1 => watch(vec![bookmark(9)], End::Close),
        _ => open_watch(vec![line("DELETED", &service("web", 11))]),
    })
    .await;
    listener.expect(&["init", "applied web@3", "init done 5", "applied web@7"]).await;
    listener.expect(&["bookmark 9", "deleted web@11"]).await;
    let paths = listener.paths();
    assert!(paths[0].contains("sendInitialEvents=true"), "{paths:?}");
    assert!(!paths[0].contains("resourceVersion="), "{paths:?}");
    assert!(paths[1].ends_with(&starts_after(7)), "{paths:?}");
    assert!(paths[2].ends_with(&starts_after(9)), "{paths:?}");
}

#[tokio::test]
async fn watch_aborted_within_an_object_receives_it_again() {
    let mut listener = Listener::start(|number, _| {
        let whole_line = line("MODIFIED", &service("web", 7));
        match number {
            0 => list_of_web(vec![whole_line[..40].to_owned()], End::Abort),
            _ => open_watch(vec![whole_line[..40].to_owned(), whole_line[40..].to_owned()]),
        }
    })
    .await;
    listener.expect(&["init", "applied web@3", "init done 5", "applied web@7"]).await;
    assert!(listener.paths()[1].ends_with(&starts_after(5)));
}

#[tokio::test]
async fn aborted_list_starts_again() {
    let mut listener = Listener::start(|number, _| match number {
        0 => watch(vec![line("ADDED", &service("web", 3))], End::Abort),
        _ => list_of_web(vec![], End::Hold),
    })
    .await;
    listener.expect(&["init", "applied web@3", "init", "applied web@3", "init done 5"]).await;
}

#[tokio::test]
async fn expired_version_causes_a_relist() {
    for as_event in [true, false] {
        let mut listener = Listener::start(move |number, _| match number {
            0 => list_of_web(vec![], End::Close),
            1 if as_event => {
                let expired = status_object(410, "Expired", "too old resource version");
                watch(vec![line("ERROR", &expired)], End::Close)
            }
            1 => status(410, "Expired", "too old resource version"),
            _ => watch(vec![list_end(20)], End::Hold),
        })
        .await;
        listener.expect(&["init", "applied web@3", "init done 5", "init", "init done 20"]).await;
    }
}

#[tokio::test]
async fn temporary_error_disconnects_and_reconnects() {
    let mut listener = Listener::start(|number, _| match number {
        0 => {
            let error = status_object(500, "InternalError", "etcd is slow");
            list_of_web(vec![line("ERROR", &error)], End::Close)
        }
        1 => status(503, "ServiceUnavailable", "not yet"),
        _ => open_watch(vec![bookmark(9)]),
    })
    .await;
    listener.expect(&["init", "applied web@3", "init done 5"]).await;
    listener
        .expect(&["disconnected: watch services: etcd is slow", "reconnected", "bookmark 9"])
        .await;
    assert!(listener.paths()[2].ends_with(&starts_after(5)));
}

/// An accepted watch does not say yet that it goes on: the position may be too old.
#[tokio::test]
async fn watch_that_expires_when_it_is_accepted_has_not_reconnected() {
    let mut listener = Listener::start(|number, _| match number {
        0 => {
            let error = status_object(500, "InternalError", "etcd is slow");
            list_of_web(vec![line("ERROR", &error)], End::Close)
        }
        1 => {
            let expired = status_object(410, "Expired", "too old resource version");
            watch(vec![line("ERROR", &expired)], End::Close)
        }
        _ => watch(vec![list_end(20)], End::Hold),
    })
    .await;
    listener.expect(&["init", "applied web@3", "init done 5"]).await;
    listener.expect(&["disconnected: watch services: etcd is slow", "init", "init done 20"]).await;
}

#[tokio::test]
async fn watch_without_news_reconnects() {
    let mut listener = Listener::start(|number, _| match number {
        0 => {
            let error = status_object(500, "InternalError", "etcd is slow");
            list_of_web(vec![line("ERROR", &error)], End::Close)
        }
        _ => open_watch(vec![]),
    })
    .await;
    listener.expect(&["init", "applied web@3", "init done 5"]).await;
    listener.expect(&["disconnected: watch services: etcd is slow", "reconnected"]).await;
}

#[tokio::test]
async fn missing_permission_is_reported_and_retried() {
    let mut listener = Listener::start(|number, _| match number {
        0..3 => status(403, "Forbidden", "user \"a\" cannot watch resource \"services\""),
        _ => list_of_web(vec![], End::Hold),
    })
    .await;
    let disconnected =
        "disconnected: watch services: user \"a\" cannot watch resource \"services\"";
    listener.expect(&[disconnected, "init", "applied web@3", "init done 5"]).await;
}

#[tokio::test]
async fn server_without_streaming_lists_is_listed_in_pages() {
    for code in [400, 405, 422] {
        let mut listener = Listener::start(move |_, request| page_or_error(code, request)).await;
        listener
            .expect(&["init", "applied a@1", "applied b@2", "init done 30", "bookmark 31"])
            .await;
        let paths = listener.paths();
        assert_eq!(paths[1], "/api/v1/services?limit=500");
        assert_eq!(paths[2], "/api/v1/services?limit=500&continue=next%2F1");
        assert!(paths[3].ends_with(&starts_after(30)), "{paths:?}");
    }
}

fn page_or_error(code: u16, request: &Request) -> Reply {
    let path = &request.path;
    if path.contains("sendInitialEvents") {
        return status(code, "Invalid", "sendInitialEvents is forbidden");
    }
    if path.contains("watch=1") {
        return open_watch(vec![bookmark(31)]);
    }
    if path.contains("continue=") {
        let metadata = json!({"resourceVersion": "30"});
        return whole(200, &list(&metadata, "b", 2));
    }
    let metadata = json!({"resourceVersion": "30", "continue": "next/1"});
    whole(200, &list(&metadata, "a", 1))
}

fn list(metadata: &serde_json::Value, name: &str, version: u32) -> serde_json::Value {
    let items = [service(name, version)];
    json!({"kind": "ServiceList", "apiVersion": "v1", "metadata": metadata, "items": items})
}

#[tokio::test]
async fn expired_page_starts_the_list_again() {
    let mut listener = Listener::start(|number, request| match number {
        2 => status(410, "Expired", "the continue token is too old"),
        _ => page_or_error(422, request),
    })
    .await;
    listener.expect(&["init", "applied a@1"]).await;
    listener.expect(&["init", "applied a@1", "applied b@2", "init done 30"]).await;
}

#[tokio::test]
async fn server_that_ignores_send_initial_events_is_listed_in_pages() {
    let mut listener = Listener::start(|number, request| match number {
        0 => open_watch(vec![line("ADDED", &service("old", 1)), bookmark(4)]),
        _ => page_or_error(422, request),
    })
    .await;
    listener.expect(&["init", "applied old@1"]).await;
    listener.expect(&["init", "applied a@1", "applied b@2", "init done 30"]).await;
}

#[tokio::test]
async fn malformed_object_does_not_stop_the_watch() {
    let mut listener = Listener::start(|number, _| {
        let mut bad = service("bad", 4);
        bad["spec"] = json!({"ports": "none"});
        match number {
            0 => watch(
                vec![
                    line("ADDED", &bad),
                    line("ADDED", &service("web", 3)),
                    list_end(5),
                    line("MODIFIED", &bad),
                    line("MODIFIED", &service("web", 7)),
                    line("DELETED", &bad),
                ],
                End::Hold,
            ),
            _ => panic!("a list is not needed"),
        }
    })
    .await;
    listener.expect(&["init", "decode error shop/bad", "applied web@3", "init done 5"]).await;
    listener.expect(&["decode error shop/bad", "applied web@7"]).await;
    listener.expect(&["decode error shop/bad", "deleted bad@4"]).await;
}

#[tokio::test]
async fn deletion_without_a_name_needs_a_list_after_a_pause() {
    let mut listener = Listener::start(|number, _| match number {
        0 => list_of_web(vec![line("DELETED", &json!({"metadata": {"name": 7}}))], End::Hold),
        _ => open_watch(vec![list_end(20)]),
    })
    .await;
    listener.expect(&["init", "applied web@3", "init done 5"]).await;
    tokio::time::pause();
    let before = tokio::time::Instant::now();
    assert_eq!(listener.next().await, "init");
    assert!(before.elapsed() >= Duration::from_secs(10), "{:?}", before.elapsed());
}

#[tokio::test]
async fn object_without_a_name_in_a_list_is_reported() {
    let nameless = json!({"metadata": {"name": 7}});
    let mut listener = Listener::start(move |_, _| {
        watch(
            vec![line("ADDED", &nameless), line("ADDED", &service("web", 3)), list_end(5)],
            End::Hold,
        )
    })
    .await;
    listener.expect(&["init", "decode error /", "applied web@3", "init done 5"]).await;
}

#[tokio::test]
async fn page_that_is_too_long_is_requested_with_fewer_objects() {
    let mut listener = Listener::start(|_, request| {
        if request.path.ends_with("?limit=500") {
            // The body need not be sent: its declared length is too much.
            return Reply::Declared { n_bytes: 200 << 20 };
        }
        page_or_error(422, request)
    })
    .await;
    let first = listener.next().await;
    assert!(first.starts_with("disconnected: list services: a response of more"), "{first}");
    listener.expect(&["init", "applied a@1", "applied b@2", "init done 30"]).await;
    assert!(listener.paths().iter().any(|path| path.ends_with("?limit=100")));
}

#[tokio::test]
async fn streaming_lists_are_tried_again_later() {
    let mut listener = Listener::start(|number, request| match number {
        0 => status(422, "Invalid", "sendInitialEvents is forbidden"),
        _ if request.path.contains("sendInitialEvents") => open_watch(vec![list_end(40)]),
        _ => match request.path.contains("watch=1") {
            true => status(410, "Expired", "too old"),
            false => page_or_error(422, request),
        },
    })
    .await;
    listener.expect(&["init", "applied a@1", "applied b@2", "init done 30"]).await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(601)).await;
    tokio::time::resume();
    while listener.next().await != "init done 40" {}
}

#[tokio::test]
async fn idle_watch_reconnects() {
    let mut listener = Listener::start(|number, _| match number {
        0 => list_of_web(vec![], End::Hold),
        _ => open_watch(vec![bookmark(9)]),
    })
    .await;
    listener.expect(&["init", "applied web@3", "init done 5"]).await;
    // Only the watch runs: the paused clock advances whenever all tasks wait.
    tokio::time::pause();
    let before = tokio::time::Instant::now();
    while listener.paths().len() == 1 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let waited = before.elapsed();
    assert!(waited >= Duration::from_secs(89) && waited < Duration::from_secs(95), "{waited:?}");
    tokio::time::resume();
    // A resource without changes is no failure.
    listener.expect(&["reconnected", "bookmark 9"]).await;
    assert!(listener.paths()[1].ends_with(&starts_after(5)));
}

#[tokio::test]
async fn idle_watch_that_cannot_reconnect_is_disconnected() {
    let mut listener = Listener::start(|number, _| match number {
        0 => list_of_web(vec![], End::Hold),
        1 => status(500, "InternalError", "etcd is away"),
        _ => open_watch(vec![bookmark(9)]),
    })
    .await;
    listener.expect(&["init", "applied web@3", "init done 5"]).await;
    tokio::time::pause();
    let signal = listener.receiver.recv().await.map(|(_, signal)| describe(&signal));
    assert!(signal.as_deref().is_some_and(|text| text.starts_with("disconnected: ")), "{signal:?}");
    tokio::time::resume();
    listener.expect(&["reconnected", "bookmark 9"]).await;
}

#[tokio::test]
async fn watch_that_closes_repeatedly_is_disconnected() {
    let mut listener = Listener::start(|number, _| match number {
        0 => list_of_web(vec![], End::Close),
        _ => watch(vec![], End::Close),
    })
    .await;
    listener.expect(&["init", "applied web@3", "init done 5"]).await;
    listener.expect(&["disconnected: watch services: closed repeatedly: closed"]).await;
}

#[tokio::test]
async fn watch_ends_with_its_receiver() {
    let server = Server::start(|_, _| list_of_web(vec![], End::Hold)).await;
    let (sender, mut receiver) = mpsc::channel(100);
    let watching = tokio::spawn(server.client().await.watch(WatchedResource::Services, sender));
    while !matches!(receiver.recv().await, Some((_, WatchSignal::InitDone(_)))) {}
    drop(receiver);
    tokio::time::timeout(WAIT_MAX, watching).await.expect("it ends").expect("without a panic");
}

#[tokio::test]
async fn refused_connection_is_disconnected() {
    // A port that nobody listens on.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let options = endpointd_client::ConnectOptions {
        kubeconfig: Some("/dev/null".into()),
        server: Some(format!("http://{address}")),
        user_agent: "test".to_owned(),
        ..Default::default()
    };
    let client = endpointd_client::Client::connect(options).await.unwrap();
    let (sender, mut receiver) = mpsc::channel(100);
    tokio::spawn(client.watch(WatchedResource::Services, sender));
    let (_, signal) = receiver.recv().await.unwrap();
    assert!(describe(&signal).contains("refused"), "{}", describe(&signal));
}
