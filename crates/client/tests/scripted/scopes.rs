//! Watches of a scope: what the server is asked to filter, and what is dropped here.

use endpointd_client::{Client, ConnectOptions};
use endpointd_model::{
    LiveRead, LiveReadResult, ObjectEvent, ResourceEvent, Scope, WatchSignal, WatchedResource,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::server::{End, Server, bookmark, line, list_end, service, watch, whole};

fn in_namespace(namespace: &str, name: &str, version: u32) -> Value {
    let mut service = service(name, version);
    service["metadata"]["namespace"] = namespace.into();
    service
}

async fn client(server: &Server, scope: &str) -> Client {
    let scope = Scope::parse(scope).expect("a scope");
    let options = ConnectOptions { scope, ..server.options() };
    Client::connect(options).await.expect("a URL is enough")
}

/// The applied Services and the ends of a watch, until the last version.
async fn watched(client: Client, last: &str) -> Vec<String> {
    let (sender, mut receiver) = mpsc::channel(10);
    tokio::spawn(client.watch(WatchedResource::Services, sender));
    let mut seen = Vec::new();
    while let Some((_, signal)) = receiver.recv().await {
        let text = match signal {
            WatchSignal::Event(event) => match *event {
                ResourceEvent::Service(ObjectEvent::Applied(one)) => {
                    format!("{}/{}", one.namespace, one.name)
                }
                other => panic!("{other:?}"),
            },
            WatchSignal::InitDone(version) => format!("init done {version}"),
            WatchSignal::Bookmark(version) => format!("bookmark {version}"),
            WatchSignal::InitStarted => continue,
            WatchSignal::DecodeError { key, .. } => format!("decode error {key}"),
            WatchSignal::Disconnected(reason) => panic!("{reason}"),
            WatchSignal::Reconnected => continue,
        };
        let is_last = text == last;
        seen.push(text);
        if is_last {
            break;
        }
    }
    seen
}

#[tokio::test]
async fn objects_of_other_namespaces_are_dropped_if_the_server_sends_them() {
    let server = Server::start(|_, _| {
        let mut malformed = in_namespace("test", "bad", 4);
        malformed["spec"]["ports"] = json!("no list");
        let chunks = vec![
            line("ADDED", &in_namespace("shop", "web", 2)),
            line("ADDED", &in_namespace("test", "web", 3)),
            line("ADDED", &malformed),
            list_end(5),
            line("ADDED", &in_namespace("test", "late", 6)),
            line("ADDED", &in_namespace("shop", "late", 7)),
            bookmark(8),
        ];
        watch(chunks, End::Hold)
    })
    .await;
    let client = client(&server, "namespaces:shop,other").await;
    let seen = watched(client, "bookmark 8").await;
    assert_eq!(seen, ["shop/web", "init done 5", "shop/late", "bookmark 8"]);
    let path = &server.requests()[0].path;
    assert!(path.starts_with("/api/v1/services?watch=1"), "{path}");
    assert_eq!(path.matches("shardRange").count(), 2, "{path}");
}

#[tokio::test]
async fn one_namespace_and_a_label_selector_are_in_the_request() {
    let server = Server::start(|_, _| watch(vec![list_end(5)], End::Hold)).await;
    let client = client(&server, "namespaces:shop;services:team=a").await;
    assert_eq!(watched(client, "init done 5").await, ["init done 5"]);
    let path = &server.requests()[0].path;
    assert!(path.starts_with("/api/v1/namespaces/shop/services?watch=1"), "{path}");
    assert!(path.ends_with("&labelSelector=team%3Da"), "{path}");
    assert!(!path.contains("shard"), "{path}");
}

#[tokio::test]
async fn a_service_with_other_labels_is_absent_for_a_live_read() {
    let server = Server::start(|_, _| whole(200, &service("web", 3))).await;
    let read = LiveRead::Service(endpointd_model::Key::new("shop", "web"));
    let found = client(&server, "services:!team").await.live_read(&read).await;
    assert!(matches!(found, LiveReadResult::Service(_)), "{found:?}");
    let found = client(&server, "services:team=a").await.live_read(&read).await;
    assert_eq!(found, LiveReadResult::Absent);
}
