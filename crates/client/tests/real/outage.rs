//! An API server that goes away and comes back, in a cluster of its own.

use std::time::{Duration, Instant};

use endpointd_client::election::{LeaderElector, LeadershipState};
use endpointd_control_plane::{Binaries, Cluster, Options, Program, Stop};
use endpointd_model::{
    Endpoints, FailureKind, LiveRead, LiveReadResult, Meta, Object, ResourceEvent, WatchSignal,
    WatchedResource, Write, WriteResult,
};
use serde_json::json;

use crate::connect;
use crate::elections::{options, until};
use crate::feeds::Listener;

fn own_cluster() -> Option<Cluster> {
    let binaries = Binaries::for_test()?;
    Some(Cluster::start(&binaries, Options::default()).expect("a cluster starts"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_is_told_and_nothing_that_happens_around_it_is_missed() {
    let Some(cluster) = own_cluster() else { return };
    let client = connect(cluster.kubeconfig()).await;
    let path = "/api/v1/namespaces/default/services";
    let service =
        |name: &str| json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 1}]}});
    let mut listener = Listener::start(&client, WatchedResource::Services);
    listener.picture().await;
    // Gracefully it would take a minute: it waits for watches to end.
    cluster.stop(Program::ApiServer, Stop::Kill).unwrap();
    while !matches!(listener.next().await, WatchSignal::Disconnected(_)) {}
    let looked = client.look(&LiveRead::Node("a".into())).await;
    let LiveReadResult::Failed(failure) = looked else { panic!("{looked:?}") };
    assert_eq!(failure.kind, FailureKind::Unreachable);

    cluster.start_apiserver().unwrap();
    let restarted = Instant::now();
    cluster.api().create(path, &service("after")).unwrap();
    // From where it was or as a new picture: either way it is told.
    let is_told = |news: &WatchSignal| matches!(news, WatchSignal::Event(change) if is_service(change, "after"));
    while !is_told(&listener.next().await) {}
    let late = restarted.elapsed();
    assert!(late < Duration::from_secs(15), "told after {late:?}");
}

fn is_service(change: &ResourceEvent, name: &str) -> bool {
    matches!(change, ResourceEvent::Service(sight) if &*sight.object().name == name)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_costs_the_lease_and_leaves_writes_unknown() {
    let Some(cluster) = own_cluster() else { return };
    let client = connect(cluster.kubeconfig()).await;
    let candidate = LeaderElector::start(client.clone(), options("default", "a")).unwrap();
    let mut standing = candidate.standing();
    until(&mut standing, &LeadershipState::Leading).await;

    cluster.pause(Program::ApiServer).unwrap();
    let paused = Instant::now();
    let meta = Meta { namespace: "default".into(), name: "web".into(), ..Default::default() };
    let object = Object::Endpoints(Endpoints { meta, subsets: Vec::new() });
    let writer = client.clone();
    let write = tokio::spawn(async move { writer.send(&Write::Create(object)).await });
    until(&mut standing, &LeadershipState::Lost).await;
    let lasted = paused.elapsed();
    assert!(lasted < Duration::from_millis(3500), "led on for {lasted:?}");
    assert!(!candidate.may_write());
    let outcome = write.await.unwrap();
    assert_eq!(outcome.as_str(), "unknown", "{outcome:?}");
    assert!(
        matches!(outcome, WriteResult::NoResponse(failure) if failure.message.contains("in time"))
    );
    cluster.resume(Program::ApiServer).unwrap();
}
