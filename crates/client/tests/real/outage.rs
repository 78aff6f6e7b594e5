//! An API server that stops and starts again, in a cluster of its own.

use std::time::{Duration, Instant};

use endpointd_client::election::{LeadershipState, WritePermit};
use endpointd_control_plane::{Binaries, Cluster, Options, Program, Stop};
use endpointd_model::{
    Endpoints, FailureKind, LiveRead, LiveReadResult, Meta, Object, ResourceEvent, WatchSignal,
    WatchedResource, Write, WriteResult,
};
use serde_json::json;

use crate::connect;
use crate::elections::{join, options, wait_for};
use crate::watches::Listener;

fn own_cluster() -> Option<Cluster> {
    let binaries = Binaries::for_test()?;
    Some(Cluster::start(&binaries, Options::default()).expect("a cluster starts"))
}

#[tokio::test(flavor = "multi_thread")]
async fn restart_disconnects_the_watch_and_no_event_is_missed() {
    let Some(cluster) = own_cluster() else { return };
    let client = connect(cluster.kubeconfig()).await;
    let path = "/api/v1/namespaces/default/services";
    let service =
        |name: &str| json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 1}]}});
    let mut listener = Listener::start(&client, WatchedResource::Services);
    listener.initial_list().await;
    // A graceful stop would take a minute: it waits for watches to end.
    cluster.stop(Program::ApiServer, Stop::Kill).unwrap();
    while !matches!(listener.next().await, WatchSignal::Disconnected(_)) {}
    let read = client.live_read(&LiveRead::Node("a".into())).await;
    let LiveReadResult::Failed(failure) = read else { panic!("{read:?}") };
    assert_eq!(failure.kind, FailureKind::Unreachable);

    cluster.start_apiserver().unwrap();
    let restarted = Instant::now();
    cluster.api().create(path, &service("after")).unwrap();
    // As an event of the resumed watch, or in a new list.
    loop {
        if let WatchSignal::Event(event) = listener.next().await
            && is_service(&event, "after")
        {
            break;
        }
    }
    let late = restarted.elapsed();
    assert!(late < Duration::from_secs(15), "received after {late:?}");
}

fn is_service(event: &ResourceEvent, name: &str) -> bool {
    matches!(event, ResourceEvent::Service(event) if &*event.object().name == name)
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_server_costs_the_lease_and_leaves_writes_without_response() {
    let Some(cluster) = own_cluster() else { return };
    let client = connect(cluster.kubeconfig()).await;
    let candidate = join(&client, options("default", "a"));
    let mut state = candidate.state();
    wait_for(&mut state, &LeadershipState::Leading).await;

    cluster.pause(Program::ApiServer).unwrap();
    let paused = Instant::now();
    let meta = Meta { namespace: "default".into(), name: "web".into(), ..Default::default() };
    let object = Object::Endpoints(Endpoints { meta, subsets: Vec::new() });
    let writer = client.clone();
    let write =
        tokio::spawn(
            async move { writer.send(&Write::Create(object), &WritePermit::Always).await },
        );
    wait_for(&mut state, &LeadershipState::Lost).await;
    let lasted = paused.elapsed();
    assert!(lasted < Duration::from_millis(3500), "still leading after {lasted:?}");
    assert!(!candidate.guard().may_write());
    let result = write.await.unwrap();
    assert_eq!(result.as_str(), "no_response", "{result:?}");
    assert!(
        matches!(result, WriteResult::NoResponse(failure) if failure.message.contains("in time"))
    );
    cluster.resume(Program::ApiServer).unwrap();
}
