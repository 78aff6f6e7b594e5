//! Lists of pods that are empty or short, although the version is current, and lists after a gap that
//! rightly do not contain deleted pods.

use std::time::Duration;

use endpointd_engine::{Effect, Engine, Input, Settings};
use endpointd_memory_api::NamespaceState;
use endpointd_model::{
    EndpointSlice, Key, LiveRead, Object, Pod, PublishedResource, Service, WatchSignal,
    WatchedResource,
};

use crate::cluster::Cluster;
use crate::objects::{addresses, converged, endpoints, key, labels, pod, service, unready};

const PODS: WatchedResource = WatchedResource::Pods;
const N_SERVICES: usize = 60;

fn pods_of(namespace: &str) -> LiveRead {
    LiveRead::Pods(namespace.into())
}

/// The watch misses what happens, and lists everything again.
fn relist_pods(cluster: &mut Cluster) {
    cluster.drop_pending_events(PODS);
    cluster.list(PODS);
    cluster.run();
}

#[test]
fn empty_list_unpublishes_nothing() {
    let mut cluster = converged(&[("web", 3), ("api", 2)]);
    cluster.list_nothing(PODS);
    cluster.run();
    assert_eq!(cluster.sent, [""; 0]);
    assert_eq!(cluster.live_reads, [pods_of("ns")], "one for the namespace");
    assert_eq!(endpoints(&cluster, "web").len(), 3);
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web")[0], "10.0.0.1 unready", "its pods are still tracked");
    cluster.remove_pod(&key("web-1"));
    cluster.run();
    assert_eq!(endpoints(&cluster, "web").len(), 2);
}

/// The list is repeated, because it may lack other changes, too.
#[test]
fn short_list_is_asked_for_again() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.drop_pending_events(PODS);
    cluster.change_pod(&key("web-0"), unready);
    cluster.list_nothing(PODS);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 unready", "10.0.0.2 ready"]);
    let pods = cluster.report().watches.into_iter().find(|watch| watch.resource == PODS);
    assert_eq!(pods.expect("it is watched").n_objects, 2);
}

#[test]
fn pods_deleted_during_a_gap_are_removed_after_one_read_of_each_namespace() {
    let mut cluster = converged(&[("web", 3), ("api", 2)]);
    cluster.api.namespaces.insert("other".into(), NamespaceState::Active);
    cluster.put_service(Service { namespace: "other".into(), ..service("far") });
    cluster.put_pod(Pod { namespace: "other".into(), ..pod("far-0") });
    cluster.put_pod(Pod { namespace: "other".into(), ..pod("far-1") });
    cluster.run();
    cluster.clear_log();
    for gone in [key("web-0"), key("web-2"), key("api-1"), Key::new("other", "far-0")] {
        cluster.remove_pod(&gone);
    }
    relist_pods(&mut cluster);
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.2 ready"], "at once");
    assert_eq!(endpoints(&cluster, "api"), ["10.0.0.1 ready"]);
    assert_eq!(endpoints(&cluster, "far"), ["10.0.0.2 ready"]);
    assert_eq!(addresses(&cluster, "web"), ["10.0.0.2"]);
    cluster.live_reads.sort();
    assert_eq!(cluster.live_reads, [pods_of("ns"), pods_of("other")]);
}

/// A Service may select them later.
#[test]
fn pods_that_no_service_selects_are_kept_too() {
    let mut cluster = converged(&[]);
    cluster.put_pod(pod("job-0"));
    cluster.put_pod(pod("job-1"));
    cluster.run();
    cluster.remove_pod(&key("job-0"));
    cluster.drop_pending_events(PODS);
    cluster.list_nothing(PODS);
    cluster.put_service(service("job"));
    cluster.run();
    assert_eq!(endpoints(&cluster, "job"), ["10.0.0.2 ready"]);
    assert_eq!(cluster.live_reads, [pods_of("ns")]);
}

#[test]
fn unconfirmed_pods_are_published_nowhere_else() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.reads_fail = true;
    cluster.remove_pod(&key("web-0"));
    relist_pods(&mut cluster);
    cluster.put_service(Service { selector: labels("web"), ..service("other") });
    cluster.put_pod(pod("web-2"));
    cluster.run();
    assert_eq!(endpoints(&cluster, "other"), ["10.0.0.2 ready", "10.0.0.3 ready"]);
    assert_eq!(addresses(&cluster, "other"), ["10.0.0.2", "10.0.0.3"]);
    assert_eq!(endpoints(&cluster, "web").len(), 3);
    assert_eq!(addresses(&cluster, "web").len(), 3);
    cluster.reads_fail = false;
    cluster.advance(Duration::from_secs(6));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.2 ready", "10.0.0.3 ready"]);
}

/// Seed 36306.
#[test]
fn unlisted_pod_that_cannot_be_decoded_exists() {
    let mut cluster = converged(&[]);
    cluster.reads_fail = true;
    cluster.put_pod(pod("web-0"));
    cluster.run();
    cluster.list_nothing(PODS);
    cluster.put_service(service("web"));
    cluster.run();
    assert_eq!(endpoints(&cluster, "web"), [""; 0], "it may be gone");
    cluster.api.corrupt(PODS, &key("web-0"));
    cluster.list(PODS);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready"], "as it was before");
}

#[test]
fn failing_reads_unpublish_nothing() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.reads_fail = true;
    cluster.remove_pod(&key("web-0"));
    relist_pods(&mut cluster);
    cluster.advance(Duration::from_secs(60));
    assert_eq!(cluster.sent, [""; 0]);
    // Two controllers ask, every 5 s.
    assert!((2..=30).contains(&cluster.live_reads.len()), "{:?}", cluster.live_reads);
    cluster.reads_fail = false;
    cluster.advance(Duration::from_secs(6));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.2 ready"]);
}

/// Their Service may come back with the next list.
#[test]
fn pods_are_kept_if_their_service_is_missing_and_the_read_fails() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.reads_fail = true;
    cluster.list_nothing(WatchedResource::Services);
    cluster.list_nothing(PODS);
    cluster.run();
    cluster.list(WatchedResource::Services);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready", "10.0.0.2 ready"]);
    assert_eq!(cluster.sent, [""; 0]);
}

#[test]
fn pod_recreated_under_its_name_replaces_the_missing_one() {
    let mut cluster = converged(&[("web", 1)]);
    cluster.drop_pending_events(PODS);
    cluster.remove_pod(&key("web-0"));
    relist_pods(&mut cluster);
    cluster.put_pod(Pod { uid: "again".into(), ..pod("web-0") });
    cluster.run();
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready"]);
    assert_eq!(cluster.report().keys, []);
}

/// The pod is deleted after the first list, and the second one does not contain it either.
#[test]
fn read_from_before_a_newer_list_does_not_count() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.drop_pending_events(PODS);
    cluster.handle(Input::Watch(PODS, WatchSignal::InitStarted));
    cluster.handle(Input::Watch(PODS, WatchSignal::InitDone(cluster.version())));
    let read = loop {
        match cluster.engine.next(cluster.now).expect("the namespace is read") {
            Effect::LiveRead { id, read } => break (id, cluster.read_now(&read)),
            other => cluster.perform(other),
        }
    };
    cluster.remove_pod(&key("web-0"));
    cluster.drop_pending_events(PODS);
    cluster.list(PODS);
    cluster.handle(Input::LiveReadResult(read.0, read.1));
    cluster.run();
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.2 ready"]);
}

/// A list of everything shows that the pod exists, before the live list does.
#[test]
fn pod_that_is_listed_again_is_published_everywhere() {
    for reads_fail in [false, true] {
        let mut cluster = converged(&[("web", 1)]);
        cluster.reads_fail = reads_fail;
        cluster.list_nothing(PODS);
        cluster.put_service(Service { selector: labels("web"), ..service("other") });
        cluster.run();
        cluster.list(PODS);
        cluster.run();
        assert_eq!(endpoints(&cluster, "other"), ["10.0.0.1 ready"]);
        assert_eq!(addresses(&cluster, "other"), ["10.0.0.1"]);
    }
}

/// A new process whose first list of pods ends with these signals, and contains no pod.
fn restart_without_pods(cluster: &mut Cluster, signals: Vec<WatchSignal>) {
    cluster.engine = Engine::new(Settings::default());
    cluster.clear_log();
    for resource in WatchedResource::DEFAULT {
        if resource == PODS {
            cluster.drop_pending_events(PODS);
            cluster.handle(Input::Watch(PODS, WatchSignal::InitStarted));
            signals.iter().for_each(|one| cluster.handle(Input::Watch(PODS, one.clone())));
            cluster.handle(Input::Watch(PODS, WatchSignal::InitDone(cluster.version())));
        } else {
            cluster.list(resource);
        }
    }
    cluster.handle(Input::LeadershipAcquired);
    cluster.run();
}

#[test]
fn first_list_that_is_empty_unpublishes_nothing() {
    let mut cluster = converged(&[("web", 3), ("api", 2)]);
    cluster.change_pod(&key("web-0"), unready);
    restart_without_pods(&mut cluster, Vec::new());
    assert_eq!(cluster.live_reads, [pods_of("ns")], "one for the namespace");
    assert_eq!(
        endpoints(&cluster, "web"),
        ["10.0.0.1 unready", "10.0.0.2 ready", "10.0.0.3 ready"]
    );
    assert_eq!(endpoints(&cluster, "api").len(), 2);
    assert_eq!(addresses(&cluster, "web").len(), 3);
    assert_eq!(cluster.sent.len(), 2, "a slice and Endpoints, for the pod: {:?}", cluster.sent);
    assert_eq!(cluster.report().keys, []);
}

#[test]
fn first_list_that_is_empty_unpublishes_nothing_while_reads_fail() {
    let mut cluster = converged(&[("web", 2), ("api", 1)]);
    cluster.remove_pod(&key("web-0"));
    cluster.reads_fail = true;
    restart_without_pods(&mut cluster, Vec::new());
    cluster.advance(Duration::from_secs(60));
    assert_eq!(cluster.sent, [""; 0]);
    // Two controllers ask, every 5 s.
    assert!((2..=30).contains(&cluster.live_reads.len()), "{:?}", cluster.live_reads);
    cluster.reads_fail = false;
    cluster.advance(Duration::from_secs(6));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.2 ready"]);
    assert_eq!(endpoints(&cluster, "api"), ["10.0.0.1 ready"]);
}

#[test]
fn pods_deleted_while_no_process_ran_are_removed_after_one_read_of_their_namespace() {
    let mut cluster = converged(&[("web", 3), ("api", 2), ("db", 1)]);
    for gone in ["web-0", "web-2", "api-1"] {
        cluster.remove_pod(&key(gone));
    }
    cluster.restart();
    assert_eq!(cluster.live_reads, [pods_of("ns")]);
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.2 ready"]);
    assert_eq!(addresses(&cluster, "api"), ["10.0.0.1"]);
    cluster.clear_log();
    cluster.remove_pod(&key("db-0"));
    cluster.run();
    assert_eq!((cluster.live_reads.len(), cluster.sent.len()), (0, 2), "an event needs no read");
}

/// Their Service must not wait for them.
#[test]
fn pods_that_cannot_be_decoded_at_the_start_are_unpublished() {
    let mut cluster = converged(&[("web", 1)]);
    let broken =
        WatchSignal::DecodeError { key: key("web-0"), reason: "the phase is no string".into() };
    restart_without_pods(&mut cluster, vec![broken]);
    assert_eq!(endpoints(&cluster, "web"), [""; 0]);
    assert_eq!(cluster.live_reads, []);
}

fn many_services() -> Cluster {
    let names: Vec<String> = (0..N_SERVICES).map(|n| format!("s{n:02}")).collect();
    let services: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 2)).collect();
    converged(&services)
}

fn n_empty(cluster: &Cluster) -> usize {
    let is_empty = |n: &usize| endpoints(cluster, &format!("s{n:02}")).is_empty();
    (0..N_SERVICES).filter(is_empty).count()
}

#[test]
fn services_that_lose_all_pods_to_a_list_are_emptied_slowly() {
    let mut cluster = many_services();
    for n in 0..N_SERVICES {
        cluster.remove_pod(&key(&format!("s{n:02}-0")));
        cluster.remove_pod(&key(&format!("s{n:02}-1")));
    }
    relist_pods(&mut cluster);
    assert_eq!(n_empty(&cluster), 20);
    assert!(cluster.report().deletion_limiter.is_active);
    assert_eq!(cluster.sent.len(), 2 * 20, "slices and Endpoints");
    cluster.advance(Duration::from_secs(121));
    assert_eq!(n_empty(&cluster), N_SERVICES);
}

#[test]
fn services_that_lose_some_pods_to_a_list_are_not_limited() {
    let mut cluster = many_services();
    (0..N_SERVICES).for_each(|n| cluster.remove_pod(&key(&format!("s{n:02}-0"))));
    relist_pods(&mut cluster);
    assert_eq!(cluster.sent.len(), 2 * N_SERVICES);
    assert_eq!(cluster.report().deletion_limiter.n_deletions_last_minute, 0);
}

#[test]
fn pods_whose_deletion_the_watch_reports_are_not_limited() {
    let mut cluster = many_services();
    for n in 0..N_SERVICES {
        cluster.remove_pod(&key(&format!("s{n:02}-0")));
        cluster.remove_pod(&key(&format!("s{n:02}-1")));
    }
    cluster.run();
    assert_eq!((n_empty(&cluster), cluster.live_reads.len()), (N_SERVICES, 0));
    assert!(!cluster.report().deletion_limiter.is_active);
}

/// The pod was published by nobody when the key was planned first; another leader publishes it later.
#[test]
fn pods_that_another_client_publishes_are_kept_although_no_list_has_contained_them() {
    let mut cluster = converged(&[("web", 1)]);
    let published = cluster.slices()[0].clone();
    cluster.put_object(Object::Slice(EndpointSlice { endpoints: Vec::new(), ..published.clone() }));
    cluster.remove_object(PublishedResource::Endpoints, &key("web"));
    restart_without_pods(&mut cluster, Vec::new());
    assert_eq!(endpoints(&cluster, "web"), [""; 0], "the list is empty, and nothing shows that");
    cluster.clear_log();
    cluster.put_object(Object::Slice(published));
    cluster.run();
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready"]);
    assert_eq!(cluster.live_reads, [pods_of("ns")]);
}
