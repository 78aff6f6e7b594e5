//! Watches that break, stall, expire, or tell nonsense.

use std::time::Duration;

use endpointd_model::{ObjectEvent, ResourceEvent, WatchSignal, WatchedResource};
use serde_json::json;
use tokio::sync::mpsc;

use crate::server::{
    End, Reply, Request, Server, bookmark, end_of_picture, line, service, status, status_object,
    watch, whole,
};

const ECHO_WAIT_MAX: Duration = Duration::from_secs(20);

/// A feed of Services, and what it tells, one line a piece of news.
struct Listener {
    receiver: mpsc::Receiver<(WatchedResource, WatchSignal)>,
    server: Server,
}

impl Listener {
    async fn start(script: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static) -> Self {
        let server = Server::start(script).await;
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(server.client().await.feed(WatchedResource::Services, sender));
        Self { receiver, server }
    }

    async fn next(&mut self) -> String {
        let (kind, news) = tokio::time::timeout(ECHO_WAIT_MAX, self.receiver.recv())
            .await
            .unwrap_or_else(|_| panic!("no more news; asked: {:#?}", self.server.requests()))
            .expect("a feed never ends by itself");
        assert_eq!(kind, WatchedResource::Services);
        words(&news)
    }

    async fn hear(&mut self, expected: &[&str]) {
        for expected in expected {
            assert_eq!(self.next().await, *expected);
        }
    }

    fn paths(&self) -> Vec<String> {
        self.server.requests().into_iter().map(|request| request.path).collect()
    }
}

fn words(news: &WatchSignal) -> String {
    match news {
        WatchSignal::InitStarted => "listing".to_owned(),
        WatchSignal::Event(change) => match &**change {
            ResourceEvent::Service(ObjectEvent::Applied(one)) => {
                format!("seen {}@{}", one.name, one.resource_version)
            }
            ResourceEvent::Service(ObjectEvent::Deleted(one)) => {
                format!("gone {}@{}", one.name, one.resource_version)
            }
            other => panic!("{other:?}"),
        },
        WatchSignal::DecodeError { key, .. } => format!("unreadable {key}"),
        WatchSignal::InitDone(version) => format!("listed {version}"),
        WatchSignal::Bookmark(version) => format!("passed {version}"),
        WatchSignal::Disconnected(reason) => format!("lost: {reason}"),
        WatchSignal::Reconnected => "resumed".to_owned(),
    }
}

/// The picture most tests begin with: `web` at 3, complete at 5.
fn picture(more: Vec<String>, end: End) -> Reply {
    let mut pieces = vec![line("ADDED", &service("web", 3)), end_of_picture(5)];
    pieces.extend(more);
    watch(pieces, end)
}

fn holds(pieces: Vec<String>) -> Reply {
    watch(pieces, End::Hold)
}

fn asks_from(version: u32) -> String {
    format!("&resourceVersion={version}")
}

#[tokio::test]
async fn a_watch_that_ends_goes_on_from_its_last_version_without_a_word() {
    let mut listener = Listener::start(|number, _| match number {
        0 => picture(vec![line("MODIFIED", &service("web", 7))], End::Close),
        1 => watch(vec![bookmark(9)], End::Close),
        _ => holds(vec![line("DELETED", &service("web", 11))]),
    })
    .await;
    listener.hear(&["listing", "seen web@3", "listed 5", "seen web@7"]).await;
    listener.hear(&["passed 9", "gone web@11"]).await;
    let paths = listener.paths();
    assert!(paths[0].contains("sendInitialEvents=true"), "{paths:?}");
    assert!(!paths[0].contains("resourceVersion="), "{paths:?}");
    assert!(paths[1].ends_with(&asks_from(7)), "{paths:?}");
    assert!(paths[2].ends_with(&asks_from(9)), "{paths:?}");
}

#[tokio::test]
async fn a_watch_cut_within_an_object_tells_it_again_and_whole() {
    let mut listener = Listener::start(|number, _| {
        let whole_line = line("MODIFIED", &service("web", 7));
        match number {
            0 => picture(vec![whole_line[..40].to_owned()], End::StreamEnd),
            _ => holds(vec![whole_line[..40].to_owned(), whole_line[40..].to_owned()]),
        }
    })
    .await;
    listener.hear(&["listing", "seen web@3", "listed 5", "seen web@7"]).await;
    assert!(listener.paths()[1].ends_with(&asks_from(5)));
}

#[tokio::test]
async fn a_picture_that_is_cut_begins_anew() {
    let mut listener = Listener::start(|number, _| match number {
        0 => watch(vec![line("ADDED", &service("web", 3))], End::StreamEnd),
        _ => picture(vec![], End::Hold),
    })
    .await;
    listener.hear(&["listing", "seen web@3", "listing", "seen web@3", "listed 5"]).await;
}

#[tokio::test]
async fn a_version_too_old_asks_for_a_new_picture() {
    for as_event in [true, false] {
        let mut listener = Listener::start(move |number, _| match number {
            0 => picture(vec![], End::Close),
            1 if as_event => {
                let expired = status_object(410, "Expired", "too old resource version");
                watch(vec![line("ERROR", &expired)], End::Close)
            }
            1 => status(410, "Expired", "too old resource version"),
            _ => watch(vec![end_of_picture(20)], End::Hold),
        })
        .await;
        listener.hear(&["listing", "seen web@3", "listed 5", "listing", "listed 20"]).await;
    }
}

#[tokio::test]
async fn an_error_that_passes_is_told_and_the_watch_resumed() {
    let mut listener = Listener::start(|number, _| match number {
        0 => {
            let error = status_object(500, "InternalError", "etcd is slow");
            picture(vec![line("ERROR", &error)], End::Close)
        }
        1 => status(503, "ServiceUnavailable", "not yet"),
        _ => holds(vec![bookmark(9)]),
    })
    .await;
    listener.hear(&["listing", "seen web@3", "listed 5"]).await;
    listener.hear(&["lost: watch services: etcd is slow", "resumed", "passed 9"]).await;
    assert!(listener.paths()[2].ends_with(&asks_from(5)));
}

#[tokio::test]
async fn a_missing_permission_is_named_and_asked_for_again() {
    let mut listener = Listener::start(|number, _| match number {
        0..3 => status(403, "Forbidden", "user \"a\" cannot watch resource \"services\""),
        _ => picture(vec![], End::Hold),
    })
    .await;
    let lost = "lost: watch services: user \"a\" cannot watch resource \"services\"";
    listener.hear(&[lost, "listing", "seen web@3", "listed 5"]).await;
}

#[tokio::test]
async fn a_server_that_does_not_stream_lists_is_asked_for_pages() {
    for code in [400, 405, 422] {
        let mut listener = Listener::start(move |_, request| page_or_refuse(code, request)).await;
        listener.hear(&["listing", "seen a@1", "seen b@2", "listed 30", "passed 31"]).await;
        let paths = listener.paths();
        assert_eq!(paths[1], "/api/v1/services?limit=500");
        assert_eq!(paths[2], "/api/v1/services?limit=500&continue=next%2F1");
        assert!(paths[3].ends_with(&asks_from(30)), "{paths:?}");
    }
}

fn page_or_refuse(code: u16, request: &Request) -> Reply {
    let path = &request.path;
    if path.contains("sendInitialEvents") {
        return status(code, "Invalid", "sendInitialEvents is forbidden");
    }
    if path.contains("watch=1") {
        return holds(vec![bookmark(31)]);
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
async fn a_page_that_expires_begins_the_picture_anew() {
    let mut listener = Listener::start(|number, request| match number {
        2 => status(410, "Expired", "the continue token is too old"),
        _ => page_or_refuse(422, request),
    })
    .await;
    listener.hear(&["listing", "seen a@1"]).await;
    listener.hear(&["listing", "seen a@1", "seen b@2", "listed 30"]).await;
}

#[tokio::test]
async fn a_server_that_ignores_the_question_is_found_out() {
    let mut listener = Listener::start(|number, request| match number {
        0 => holds(vec![line("ADDED", &service("old", 1)), bookmark(4)]),
        _ => page_or_refuse(422, request),
    })
    .await;
    listener.hear(&["listing", "seen old@1"]).await;
    listener.hear(&["listing", "seen a@1", "seen b@2", "listed 30"]).await;
}

#[tokio::test]
async fn an_object_that_cannot_be_read_stops_nothing() {
    let mut listener = Listener::start(|number, _| {
        let mut bad = service("bad", 4);
        bad["spec"] = json!({"ports": "none"});
        match number {
            0 => watch(
                vec![
                    line("ADDED", &bad),
                    line("ADDED", &service("web", 3)),
                    end_of_picture(5),
                    line("MODIFIED", &bad),
                    line("MODIFIED", &service("web", 7)),
                    line("DELETED", &bad),
                ],
                End::Hold,
            ),
            _ => watch(vec![end_of_picture(20)], End::Hold),
        }
    })
    .await;
    listener.hear(&["listing", "unreadable shop/bad", "seen web@3", "listed 5"]).await;
    listener.hear(&["unreadable shop/bad", "seen web@7"]).await;
    // That it is gone can be told only by a picture without it.
    listener.hear(&["unreadable shop/bad", "listing", "listed 20"]).await;
}

#[tokio::test]
async fn a_silent_watch_is_opened_anew() {
    let mut listener = Listener::start(|number, _| match number {
        0 => picture(vec![], End::Hold),
        _ => holds(vec![bookmark(9)]),
    })
    .await;
    listener.hear(&["listing", "seen web@3", "listed 5"]).await;
    // Nothing runs but the watch: the clock goes on by itself as soon as all wait.
    tokio::time::pause();
    let before = tokio::time::Instant::now();
    while listener.paths().len() == 1 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let waited = before.elapsed();
    assert!(waited >= Duration::from_secs(89) && waited < Duration::from_secs(95), "{waited:?}");
    tokio::time::resume();
    // A kind at rest is no trouble.
    listener.hear(&["resumed", "passed 9"]).await;
    assert!(listener.paths()[1].ends_with(&asks_from(5)));
}

#[tokio::test]
async fn a_silent_watch_that_cannot_be_opened_anew_is_lost() {
    let mut listener = Listener::start(|number, _| match number {
        0 => picture(vec![], End::Hold),
        1 => status(500, "InternalError", "etcd is away"),
        _ => holds(vec![bookmark(9)]),
    })
    .await;
    listener.hear(&["listing", "seen web@3", "listed 5"]).await;
    tokio::time::pause();
    let lost = listener.receiver.recv().await.map(|(_, news)| words(&news));
    assert!(lost.as_deref().is_some_and(|lost| lost.starts_with("lost: ")), "{lost:?}");
    tokio::time::resume();
    listener.hear(&["resumed", "passed 9"]).await;
}

#[tokio::test]
async fn a_watch_that_ends_as_soon_as_it_begins_is_an_outage() {
    let mut listener = Listener::start(|number, _| match number {
        0 => picture(vec![], End::Close),
        _ => watch(vec![], End::Close),
    })
    .await;
    listener.hear(&["listing", "seen web@3", "listed 5"]).await;
    listener.hear(&["lost: watch services: ends as soon as it begins: closed"]).await;
}

#[tokio::test]
async fn a_feed_ends_with_its_receiver() {
    let server = Server::start(|_, _| picture(vec![], End::Hold)).await;
    let (sender, mut receiver) = mpsc::channel(100);
    let feed = tokio::spawn(server.client().await.feed(WatchedResource::Services, sender));
    while !matches!(receiver.recv().await, Some((_, WatchSignal::InitDone(_)))) {}
    drop(receiver);
    tokio::time::timeout(ECHO_WAIT_MAX, feed).await.expect("it ends").expect("without a panic");
}

#[tokio::test]
async fn a_server_that_is_not_there_yet_is_waited_for() {
    // A port that is ours and closed.
    let holder = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = holder.local_addr().unwrap();
    drop(holder);
    let options = endpointd_client::ConnectOptions {
        kubeconfig: Some("/dev/null".into()),
        server: Some(format!("http://{address}")),
        user_agent: "test".to_owned(),
        ..Default::default()
    };
    let client = endpointd_client::Client::connect(options).await.unwrap();
    let (sender, mut receiver) = mpsc::channel(100);
    tokio::spawn(client.feed(WatchedResource::Services, sender));
    let (_, news) = receiver.recv().await.unwrap();
    assert!(words(&news).contains("refused"), "{}", words(&news));
}
