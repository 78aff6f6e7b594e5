//! resourceVersions that go backwards, as after etcd was restored from a backup.

use std::time::Duration;

use endpointd_engine::{Effect, Input};
use endpointd_memory_api::MemoryApi;
use endpointd_model::{
    Object, ObjectEvent, PublishedResource, ResourceEvent, WatchSignal, WatchedResource,
};

use crate::cluster::Cluster;
use crate::objects::{converged, endpoints, key, pod, service};

const WEB: [&str; 3] = ["10.0.0.1 ready", "10.0.0.2 ready", "10.0.0.3 ready"];

/// A cluster with three pods, and a backup of it from before one of them was deleted, another
/// Service was created, and a third one was deleted.
fn changed_since_backup() -> (Cluster, MemoryApi) {
    let mut cluster = converged(&[("web", 3), ("old", 1)]);
    let backup = cluster.api.clone();
    cluster.remove_pod(&key("web-1"));
    cluster.remove_service(&key("old"));
    cluster.put_service(service("new"));
    cluster.put_pod(pod("new-0"));
    cluster.advance(Duration::from_secs(60));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready", "10.0.0.3 ready"]);
    cluster.clear_log();
    (cluster, backup)
}

fn assert_as_in_backup(cluster: &Cluster) {
    assert_eq!(endpoints(cluster, "web"), WEB);
    assert_eq!(endpoints(cluster, "old"), ["10.0.0.1 ready"]);
    assert!(!cluster.published().iter().any(|(_, key)| key.name.starts_with("new")));
    let report = cluster.report();
    assert!(report.is_ready(), "{:?}", report.watches);
    assert_eq!(report.keys, []);
}

#[test]
fn restored_cluster_is_listed_again_and_nothing_is_unpublished() {
    let (mut cluster, backup) = changed_since_backup();
    cluster.api = backup;
    // The watches are blind: they continue from versions that do not exist yet.
    cluster.remove_pod(&key("web-2"));
    cluster.advance(Duration::from_secs(60));
    assert_eq!(cluster.sent, [""; 0]);

    cluster.handle(Input::VersionsRolledBack);
    assert!(!cluster.report().is_ready());
    let reason = cluster.report().watches[0].disconnected_reason.clone();
    assert!(reason.is_some_and(|reason| reason.contains("went backwards")));
    cluster.run();
    assert_eq!(cluster.n_relists, 1);
    cluster.put_pod(pod("web-2"));
    cluster.advance(Duration::from_secs(60));
    assert_as_in_backup(&cluster);
    assert!(!cluster.sent.iter().any(|sent| sent.starts_with("delete")), "{:?}", cluster.sent);
}

#[test]
fn nothing_is_sent_before_the_new_lists_are_complete() {
    let (mut cluster, backup) = changed_since_backup();
    cluster.api = backup;
    cluster.cannot_be_listed = Some(WatchedResource::Pods);
    cluster.handle(Input::VersionsRolledBack);
    cluster.advance(Duration::from_secs(600));
    assert_eq!((cluster.n_relists, cluster.sent.len()), (1, 0), "{:?}", cluster.sent);
    assert!(!cluster.report().is_ready());
    cluster.list(WatchedResource::Pods);
    cluster.run();
    assert_as_in_backup(&cluster);
    assert_eq!(cluster.sent, [""; 0], "what the backup has is right");
}

#[test]
fn signals_of_the_old_watches_are_ignored() {
    let (mut cluster, backup) = changed_since_backup();
    let known = cluster.version();
    cluster.api = backup;
    cluster.handle(Input::VersionsRolledBack);
    // They were received before the watches were replaced.
    let late = endpointd_model::Pod { resource_version: known, ..pod("web-9") };
    let late = ResourceEvent::Pod(ObjectEvent::Applied(late));
    for signal in
        [WatchSignal::InitStarted, WatchSignal::Event(Box::new(late)), WatchSignal::InitDone(known)]
    {
        cluster.handle(Input::Watch(WatchedResource::Pods, signal));
    }
    cluster.advance(Duration::from_secs(60));
    assert_eq!(cluster.n_relists, 1);
    assert_as_in_backup(&cluster);
}

/// The versions have passed the old ones before anything was noticed, so that the watches deliver
/// events again; the next write is a conflict, and its live read shows an older object.
#[test]
fn live_read_of_an_older_object_shows_the_rollback() {
    let (mut cluster, backup) = changed_since_backup();
    let known = cluster.version();
    cluster.api = backup;
    cluster.hold_watch(WatchedResource::Slices);
    cluster.hold_watch(WatchedResource::Endpoints);
    while cluster.version() <= known {
        cluster.put_pod(pod("unrelated-0"));
    }
    cluster.put_pod(pod("web-5"));
    cluster.run();
    cluster.release_watches();
    cluster.advance(Duration::from_secs(60));
    assert_eq!(cluster.n_relists, 1);
    assert_eq!(endpoints(&cluster, "web"), [&WEB[..], &["10.0.0.6 ready"]].concat());
}

/// As after `etcdutl snapshot restore --bump-revision`: lists have higher versions, objects lower ones.
#[test]
fn newer_list_with_older_objects_shows_the_rollback() {
    let (mut cluster, mut backup) = changed_since_backup();
    while backup.revision() < cluster.api.revision() + 100 {
        backup.put_pod(pod("unrelated-0"));
    }
    cluster.api = backup;
    cluster.list(WatchedResource::Slices);
    assert_eq!(cluster.n_relists, 0);
    cluster.advance(Duration::from_secs(60));
    assert_eq!(cluster.n_relists, 1);
    assert_as_in_backup(&cluster);
}

#[test]
fn one_older_list_is_asked_for_again_and_two_show_the_rollback() {
    let (mut cluster, backup) = changed_since_backup();
    cluster.api = backup;
    cluster.list(WatchedResource::Pods);
    let effect = cluster.engine.next(cluster.now);
    assert_eq!(effect, Some(Effect::Relist(WatchedResource::Pods)));
    cluster.list(WatchedResource::Pods);
    cluster.advance(Duration::from_secs(60));
    assert_eq!(cluster.n_relists, 1);
    assert_as_in_backup(&cluster);
}

#[test]
fn late_response_does_not_put_a_lost_object_into_the_cache() {
    let mut cluster = converged(&[("web", 1)]);
    let backup = cluster.api.clone();
    cluster.responses_last = true;
    cluster.put_service(service("new"));
    cluster.put_pod(pod("new-0"));
    cluster.step_until(|cluster| cluster.sent.len() >= 2);
    // The slice is stored, and then everything is as before; the response comes last.
    cluster.api = backup;
    cluster.clear_log();
    cluster.handle(Input::VersionsRolledBack);
    cluster.advance(Duration::from_secs(60));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready"]);
    assert_eq!((cluster.sent.len(), cluster.report().keys.len()), (0, 0), "{:?}", cluster.sent);
    cluster.clear_log();
    cluster.put_service(service("new"));
    cluster.put_pod(pod("new-0"));
    cluster.advance(Duration::from_secs(60));
    assert!(!cluster.results.contains(&"conflict_retry"), "planned from what does not exist");
    assert_eq!(endpoints(&cluster, "new"), ["10.0.0.1 ready"]);
    let published = cluster.object(PublishedResource::Endpoints, &key("new"));
    assert!(matches!(published, Some(Object::Endpoints(_))), "{published:?}");
}
