//! ReferenceGrants: installed, installed in an older version only, and removed.

use std::time::Duration;

use endpointd_model::{ObjectEvent, ReferenceGrant, ResourceEvent, WatchSignal, WatchedResource};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::server::{End, Reply, Request, Server, line, list_end, status, watch, whole};

const WAIT_MAX: Duration = Duration::from_secs(20);

/// The first signals of a watch of ReferenceGrants, and the paths that were requested for them.
async fn signals(
    n: usize,
    script: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static,
) -> (Vec<String>, Vec<String>) {
    let server = Server::start(script).await;
    let (sender, mut receiver) = mpsc::channel(1);
    tokio::spawn(server.client().await.watch(WatchedResource::ReferenceGrants, sender));
    let mut signals = Vec::new();
    while signals.len() < n {
        let next = tokio::time::timeout(WAIT_MAX, receiver.recv()).await;
        let (_, signal) = next.expect("there are more signals").expect("the watch goes on");
        signals.push(describe(&signal));
    }
    let path = |request: Request| request.path.split('?').next().unwrap_or_default().to_owned();
    (signals, server.requests().into_iter().map(path).collect())
}

fn describe(signal: &WatchSignal) -> String {
    match signal {
        WatchSignal::InitStarted => "init".to_owned(),
        WatchSignal::Event(change) => match &**change {
            ResourceEvent::ReferenceGrant(ObjectEvent::Applied(one)) => describe_grant(one),
            other => panic!("{other:?}"),
        },
        WatchSignal::InitDone(version) => format!("init done {version}"),
        WatchSignal::Disconnected(reason) => format!("disconnected: {reason}"),
        WatchSignal::DecodeError { .. } | WatchSignal::Bookmark(_) | WatchSignal::Reconnected => {
            panic!("{signal:?}")
        }
    }
}

fn describe_grant(grant: &ReferenceGrant) -> String {
    let permits = |name: &str| grant.permits_service("shop", name);
    format!("{} {} {}", grant.key(), permits("postgres"), permits("other"))
}

fn resources(names: &[&str]) -> Reply {
    let resources: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
    whole(200, &json!({"kind": "APIResourceList", "resources": resources}))
}

fn grant() -> Value {
    json!({
        "kind": "ReferenceGrant", "apiVersion": "gateway.networking.k8s.io/v1beta1",
        "metadata": {"namespace": "data", "name": "g", "resourceVersion": "3"},
        "spec": {
            "from": [{"group": "", "kind": "Service", "namespace": "shop"}],
            "to": [{"group": "", "kind": "Service", "name": "postgres"}],
        },
    })
}

fn not_found() -> Reply {
    status(404, "NotFound", "the server could not find the requested resource")
}

#[tokio::test]
async fn cluster_without_the_resource_has_no_objects() {
    let (signals, paths) = signals(2, |_, _| not_found()).await;
    assert_eq!(signals, ["init", "init done "]);
    let v1 = "/apis/gateway.networking.k8s.io/v1";
    assert_eq!(paths, [v1.to_owned(), format!("{v1}beta1")]);
}

#[tokio::test]
async fn older_version_is_watched_if_only_it_is_served() {
    let (signals, paths) = signals(3, |number, _| match number {
        // The group has other resources in v1.
        0 => resources(&["gateways", "httproutes"]),
        1 => resources(&["referencegrants", "gateways"]),
        _ => watch(vec![line("ADDED", &grant()), list_end(5)], End::Hold),
    })
    .await;
    assert_eq!(signals, ["init", "data/g true false", "init done 5"]);
    assert_eq!(paths[2], "/apis/gateway.networking.k8s.io/v1beta1/referencegrants");
}

#[tokio::test]
async fn removed_resource_has_no_objects_any_more() {
    let (signals, _) = signals(5, |number, _| match number {
        0 => resources(&["referencegrants"]),
        1 => watch(vec![line("ADDED", &grant()), list_end(5)], End::Close),
        _ => not_found(),
    })
    .await;
    assert_eq!(signals, ["init", "data/g true false", "init done 5", "init", "init done "]);
}

#[tokio::test]
async fn failed_discovery_says_nothing_about_the_objects() {
    let (signals, _) = signals(3, |number, _| match number {
        0 => status(503, "ServiceUnavailable", "starting"),
        _ => not_found(),
    })
    .await;
    assert_eq!(signals[0], "disconnected: discover referencegrants: starting");
    assert_eq!(signals[1..], ["init", "init done "]);
}
