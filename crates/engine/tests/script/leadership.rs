//! Only the leader writes.

use std::time::Duration;

use endpointd_engine::{Effect, Input, Settings};
use endpointd_model::WriteResult;

use crate::cluster::Cluster;
use crate::objects::{converged, endpoints, key, node, pod, service, unready};

#[test]
fn standby_is_ready_and_writes_nothing() {
    let mut cluster = Cluster::new(Settings::default());
    cluster.put_node(node("n"));
    cluster.put_service(service("web"));
    cluster.put_pod(pod("web-0"));
    for kind in cluster.engine.watched_resources() {
        cluster.list(kind);
    }
    cluster.advance(Duration::from_secs(60));
    assert!(cluster.sent.is_empty());
    assert!(cluster.report().is_ready() && !cluster.report().is_leading);
    cluster.handle(Input::LeadershipAcquired);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready"]);
}

#[test]
fn lost_leadership_stops_writes_until_it_is_acquired_again() {
    let mut cluster = converged(&[("web", 1)]);
    cluster.change_pod(&key("web-0"), unready);
    let pod = cluster.pod(&key("web-0"));
    let change = endpointd_model::ResourceEvent::Pod(endpointd_model::ObjectEvent::Applied(pod));
    let signal = endpointd_model::WatchSignal::Event(Box::new(change));
    cluster.handle(Input::Watch(endpointd_model::WatchedResource::Pods, signal));
    let sent = cluster.engine.next(cluster.now);
    let Some(Effect::Send { id, .. }) = sent else { panic!("no write was sent: {sent:?}") };
    cluster.handle(Input::LeadershipLost);
    cluster.advance(Duration::from_secs(60));
    assert!(cluster.sent.is_empty(), "{:?}", cluster.sent);
    cluster.handle(Input::WriteResult(id, WriteResult::NotLeader));
    cluster.run();
    assert!(cluster.engine.is_idle());
    cluster.handle(Input::LeadershipAcquired);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 unready"]);
}
