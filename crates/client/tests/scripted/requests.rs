//! Writes and live reads with late, missing, or unusual responses.

use std::time::Duration;

use endpointd_client::election::WritePermit;
use endpointd_client::{Client, ConnectOptions};
use endpointd_model::{
    DeleteTarget, Endpoints, FailureKind, Key, LiveRead, LiveReadResult, Meta, Object,
    PublishedResource, Uid, Write, WriteResult,
};
use endpointd_wire::{Encoding, encode, to_json_value};
use serde_json::json;

use crate::server::{End, Reply, Server, status, watch, whole};

fn endpoints() -> Object {
    let meta = Meta {
        namespace: "shop".into(),
        name: "web".into(),
        uid: Uid::from("u"),
        resource_version: 7.into(),
        ..Default::default()
    };
    Object::Endpoints(Endpoints { meta, subsets: Vec::new() })
}

fn delete() -> Write {
    Write::Delete(DeleteTarget {
        resource: PublishedResource::Endpoints,
        key: Key::new("shop", "web"),
        uid: Uid::from("u"),
        resource_version: 7.into(),
    })
}

fn stored() -> Reply {
    whole(201, &to_json_value(&endpoints()))
}

#[tokio::test]
async fn write_without_response_is_sent_once() {
    let server = Server::start(|_, _| Reply::HangUp).await;
    let client = server.client().await;
    for write in [Write::Create(endpoints()), Write::Update(endpoints())] {
        let result = client.send(&write, &WritePermit::Always).await;
        let WriteResult::NoResponse(failure) = result else { panic!("{result:?}") };
        assert_eq!(failure.kind, FailureKind::Unreachable);
    }
    assert_eq!(server.requests().len(), 2, "one request per write");
}

#[tokio::test]
async fn truncated_response_is_no_response() {
    let body = String::from_utf8(encode(Encoding::Json, &endpoints())).unwrap();
    let server = Server::start(move |_, _| watch(vec![body[..20].to_owned()], End::Abort)).await;
    let result =
        server.client().await.send(&Write::Create(endpoints()), &WritePermit::Always).await;
    let WriteResult::NoResponse(failure) = result else { panic!("{result:?}") };
    assert_eq!(failure.kind, FailureKind::Unreachable);
    assert!(failure.message.contains("broke off"), "{failure}");
}

#[tokio::test]
async fn refused_connection_is_a_failure() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let options = ConnectOptions {
        kubeconfig: Some("/dev/null".into()),
        server: Some(server),
        user_agent: "test".to_owned(),
        ..Default::default()
    };
    let client = Client::connect(options).await.unwrap();
    let result = client.send(&Write::Create(endpoints()), &WritePermit::Always).await;
    let WriteResult::Failed(failure) = result else { panic!("{result:?}") };
    assert_eq!(failure.kind, FailureKind::Unreachable);
    assert!(failure.message.starts_with("create endpoints shop/web: "), "{failure}");
    let found = client
        .live_read(&LiveRead::Object(PublishedResource::Endpoints, Key::new("shop", "web")))
        .await;
    assert!(matches!(found, LiveReadResult::Failed(_)), "{found:?}");
}

#[tokio::test]
async fn server_that_rejects_protobuf_gets_json() {
    let server = Server::start(|_, request| {
        if request.content_type == "application/json" {
            stored()
        } else {
            status(415, "UnsupportedMediaType", "no protobuf here")
        }
    })
    .await;
    let client = server.client().await;
    for _ in 0..2 {
        let result = client.send(&Write::Create(endpoints()), &WritePermit::Always).await;
        assert_eq!(result, WriteResult::Stored(Box::new(endpoints())));
    }
    let types: Vec<String> = server.requests().into_iter().map(|one| one.content_type).collect();
    let protobuf = "application/vnd.kubernetes.protobuf";
    assert_eq!(types, [protobuf, "application/json", "application/json"]);
}

#[tokio::test]
async fn timed_out_write_is_no_response() {
    let server =
        Server::start(|_, _| crate::server::watch(vec!["{".to_owned()], crate::server::End::Hold))
            .await;
    let client = server.client().await;
    let send = tokio::spawn(async move { client.send(&delete(), &WritePermit::Always).await });
    while server.requests().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    tokio::time::pause();
    let result = send.await.unwrap();
    let WriteResult::NoResponse(failure) = result else { panic!("{result:?}") };
    assert!(failure.message.contains("in time"), "{failure}");
}

#[tokio::test]
async fn rate_limit_delays_writes() {
    let server = Server::start(|_, _| stored()).await;
    let options = ConnectOptions {
        kubeconfig: Some("/dev/null".into()),
        server: Some(server.url.clone()),
        qps: Some(20.0),
        burst: Some(2),
        user_agent: "test".to_owned(),
        ..Default::default()
    };
    let client = Client::connect(options).await.unwrap();
    let started = std::time::Instant::now();
    for _ in 0..6 {
        client.send(&Write::Create(endpoints()), &WritePermit::Always).await;
    }
    assert!(started.elapsed() >= std::time::Duration::from_millis(190), "{:?}", started.elapsed());
}

#[tokio::test]
async fn plain_http_requests_have_no_credentials() {
    let server = Server::start(|_, _| stored()).await;
    server.client().await.send(&Write::Create(endpoints()), &WritePermit::Always).await;
    assert_eq!(server.requests()[0].authorization, "");
    assert_eq!(server.requests()[0].method, "POST");
}

#[tokio::test]
async fn many_writes_in_flight_leave_connections_for_the_lease() {
    let server = Server::start(|_, request| match request.path.contains("/leases/") {
        true => whole(200, &json!({"metadata": {"namespace": "a", "name": "b"}, "spec": {}})),
        false => watch(vec![], End::Hold),
    })
    .await;
    let client = server.client().await;
    let mut writes = tokio::task::JoinSet::new();
    for _ in 0..300 {
        let client = client.clone();
        writes.spawn(async move { client.send(&delete(), &WritePermit::Always).await });
    }
    while server.requests().len() < 128 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(client.read_lease(&Key::new("a", "b")).await.unwrap().is_some());
    // The server is idle: no further write is sent before one of these is answered.
    let more = tokio::time::sleep(Duration::from_millis(100));
    more.await;
    assert_eq!(server.requests().len(), 128 + 1, "the lease, and a bounded number of writes");
}

#[tokio::test]
async fn live_list_of_pods_has_all_pages_or_fails() {
    let page = |name: &str, token: &str| {
        let items = json!([{"metadata": {"name": name, "uid": format!("uid-{name}")}}]);
        let metadata = json!({"continue": token});
        let kind = "PartialObjectMetadataList";
        whole(200, &json!({"kind": kind, "metadata": metadata, "items": items}))
    };
    let server = Server::start(move |number, _| match number {
        0 => page("a", "more"),
        1 => page("b", ""),
        2 => page("a", "more"),
        _ => status(410, "Expired", "too old"),
    })
    .await;
    let client = server.client().await;
    let read = LiveRead::Pods("shop".into());
    let both = [("a".into(), Uid::from("uid-a")), ("b".into(), Uid::from("uid-b"))];
    assert_eq!(client.live_read(&read).await, LiveReadResult::Pods(both.into()));
    let paths: Vec<String> = server.requests().into_iter().map(|one| one.path).collect();
    assert_eq!(paths[0], "/api/v1/namespaces/shop/pods?limit=500");
    assert_eq!(paths[1], "/api/v1/namespaces/shop/pods?limit=500&continue=more");
    let failed = client.live_read(&read).await;
    assert!(matches!(failed, LiveReadResult::Failed(_)), "{failed:?}");
}

#[tokio::test]
async fn field_manager_other_than_ours_is_read() {
    let managers = json!([
        {"manager": "endpointd", "time": "2026-01-01T00:00:09Z"},
        {"manager": "kubectl-label", "time": "2026-01-01T00:00:01Z"},
    ]);
    let slice = json!({"metadata": {"name": "web-1", "managedFields": managers}});
    let server = Server::start(move |_, _| whole(200, &slice)).await;
    let read = LiveRead::FieldManager(PublishedResource::Slices, Key::new("shop", "web-1"));
    let found = server.client().await.live_read(&read).await;
    assert_eq!(found, LiveReadResult::FieldManager(Some("kubectl-label".into())));
}
