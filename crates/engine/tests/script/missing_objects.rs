//! Nothing is deleted only because an object is missing from the cache.

use std::time::Duration;

use endpointd_engine::{Effect, Input, RequestId};
use endpointd_model::{
    Failure, FailureKind, Labels, LiveRead, LiveReadResult, Object, PublishedResource, WatchSignal,
    WatchedResource,
};

use crate::cluster::Cluster;
use crate::objects::{addresses, converged, endpoints, key, node, pod, service};

#[test]
fn deleted_service_has_its_endpoints_deleted_after_a_live_read() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.remove_service(&key("web"));
    cluster.run();
    assert_eq!(cluster.live_reads, [LiveRead::Service(key("web"))]);
    assert_eq!(cluster.sent, ["delete endpoints web"]);
    assert!(addresses(&cluster, "web").is_empty());
}

#[test]
fn service_missing_only_from_the_cache_keeps_its_endpoints() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.list_nothing(WatchedResource::Services);
    cluster.advance(Duration::from_secs(60));
    assert_eq!(cluster.sent, [""; 0]);
    assert_eq!(addresses(&cluster, "web").len(), 2);
    cluster.remove_pod(&key("web-0"));
    cluster.run();
    assert_eq!(addresses(&cluster, "web").len(), 1, "its pods are still tracked");
}

/// Any of the cached objects may be the one whose name cannot be decoded.
#[test]
fn list_with_a_nameless_object_removes_nothing() {
    let mut cluster = converged(&[("web", 2)]);
    let resource = WatchedResource::Pods;
    let nameless = endpointd_model::Key::new("", "");
    cluster.drop_pending_events(resource);
    for signal in [
        WatchSignal::InitStarted,
        WatchSignal::DecodeError { key: nameless, reason: "no name".into() },
        WatchSignal::InitDone(cluster.version()),
    ] {
        cluster.handle(Input::Watch(resource, signal));
    }
    cluster.advance(Duration::from_secs(60));
    assert_eq!((addresses(&cluster, "web").len(), cluster.sent.len()), (2, 0));
    cluster.remove_pod(&key("web-0"));
    cluster.drop_pending_events(resource);
    cluster.list(resource);
    cluster.advance(Duration::from_secs(60));
    assert_eq!(addresses(&cluster, "web").len(), 1, "a complete list decides");
}

#[test]
fn failing_live_reads_prevent_deletes() {
    let mut cluster = converged(&[("web", 1)]);
    cluster.reads_fail = true;
    cluster.remove_service(&key("web"));
    cluster.advance(Duration::from_secs(300));
    assert_eq!(cluster.sent, [""; 0]);
    assert!(cluster.live_reads.len() < 40, "{} reads", cluster.live_reads.len());
    cluster.reads_fail = false;
    cluster.advance(Duration::from_secs(31));
    assert_eq!(cluster.sent, ["delete endpoints web"]);
}

/// `web` is deleted; the live read has found that, and its response is on the way.
fn absence_on_the_way() -> (Cluster, RequestId, LiveRead) {
    let mut cluster = converged(&[("web", 1)]);
    cluster.remove_service(&key("web"));
    let (id, read) = loop {
        match cluster.engine.next(cluster.now) {
            Some(Effect::LiveRead { id, read }) => break (id, read),
            Some(other) => cluster.perform(other),
            None => assert!(cluster.deliver(), "no live read"),
        }
    };
    assert_eq!(cluster.read_now(&read), LiveReadResult::Absent);
    (cluster, id, read)
}

/// The Service is created again, and a faulty list lacks it.
#[test]
fn absence_found_before_the_watch_reported_the_service_does_not_count() {
    let (mut cluster, id, _) = absence_on_the_way();
    cluster.put_service(service("web"));
    while cluster.deliver() {}
    cluster.list_nothing(WatchedResource::Services);
    cluster.handle(Input::LiveReadResult(id, LiveReadResult::Absent));
    cluster.run();
    assert_eq!(cluster.sent, [""; 0]);
}

/// While the process is suspended, the Service may be created again.
#[test]
fn absence_found_before_a_suspension_is_read_again() {
    let (mut cluster, id, read) = absence_on_the_way();
    let found = LiveReadResult::Absent;
    cluster.now = cluster.now + Duration::from_secs(120);
    cluster.clear_log();
    cluster.handle(Input::LiveReadResult(id, found));
    cluster.run();
    assert_eq!(cluster.live_reads, [read], "it is read again");
    assert_eq!(cluster.sent, ["delete endpoints web"]);
}

#[test]
fn leader_election_lock_is_never_deleted() {
    let mut cluster = converged(&[]);
    cluster.put_endpoints("lock");
    let stored = cluster.object(PublishedResource::Endpoints, &key("lock"));
    let Some(Object::Endpoints(mut lock)) = stored else { panic!("Endpoints") };
    lock.meta.annotations = [(endpointd_model::names::LEADER, "{}")].into_iter().collect();
    cluster.put_object(Object::Endpoints(lock));
    cluster.restart();
    assert_eq!(cluster.sent, [""; 0]);
}

#[test]
fn pod_on_an_unknown_node_is_published_when_the_node_appears() {
    let mut cluster = converged(&[("web", 1)]);
    let delayed = endpointd_model::Pod { node_name: Some("late".into()), ..pod("web-5") };
    cluster.put_pod(delayed);
    cluster.advance(Duration::from_secs(60));
    assert_eq!(endpoints(&cluster, "web").len(), 1);
    assert_eq!(cluster.live_reads, [LiveRead::Node("late".into())], "read once");
    let node = endpointd_model::Node { zone: Some("z".into()), ..node("late") };
    cluster.put_node(node);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web").len(), 2);
}

#[test]
fn empty_node_list_removes_no_endpoints() {
    let mut cluster = converged(&[("web", 3)]);
    cluster.list_nothing(WatchedResource::Nodes);
    cluster.advance(Duration::from_secs(60));
    assert_eq!(endpoints(&cluster, "web").len(), 3);
    assert_eq!(cluster.sent, [""; 0]);
}

#[test]
fn deleted_node_removes_its_endpoints() {
    let mut cluster = converged(&[("web", 3)]);
    cluster.remove_node("n");
    cluster.advance(Duration::from_secs(60));
    assert!(endpoints(&cluster, "web").is_empty(), "as upstream does");
}

#[test]
fn zone_added_to_a_node_is_added_to_its_endpoints() {
    let mut cluster = converged(&[("web", 1)]);
    cluster.put_node(endpointd_model::Node { zone: Some("z".into()), ..node("n") });
    cluster.run();
    assert_eq!(cluster.slices()[0].endpoints[0].zone.as_deref(), Some("z"));
}

#[test]
fn pod_missing_from_a_relist_is_removed() {
    let mut cluster = converged(&[("web", 3)]);
    cluster.remove_pod(&key("web-1"));
    cluster.list(WatchedResource::Pods);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready", "10.0.0.3 ready"]);
}

/// A live read that found no Service says nothing about the Service that was created after it.
#[test]
fn service_created_again_while_a_live_read_fails_is_synced() {
    let mut cluster = converged(&[("web", 1)]);
    cluster.remove_service(&key("web"));
    cluster.list(WatchedResource::Services);
    while let Some(effect) = cluster.engine.next(cluster.now) {
        match effect {
            Effect::LiveRead { id, read: LiveRead::Object(..) } => {
                let failure =
                    Failure { kind: FailureKind::ServerError, message: "no response".into() };
                cluster.handle(Input::LiveReadResult(id, LiveReadResult::Failed(failure)));
            }
            other => cluster.perform(other),
        }
    }
    let labels: Labels = [("team", "b")].into_iter().collect();
    cluster.put_service(endpointd_model::Service { labels, ..service("web") });
    cluster.advance(Duration::from_secs(31));
    let Some(object) = cluster.object(PublishedResource::Endpoints, &key("web")) else {
        panic!("the Endpoints are kept");
    };
    assert!(object.meta().labels.has("team", "b"), "{object:?}");
}
