//! Changes of a healthy cluster.

use std::time::Duration;

use endpointd_engine::{Input, Settings};
use endpointd_model::{Object, PublishedResource, Uid, WatchSignal, WatchedResource};

use crate::cluster::Cluster;
use crate::objects::{
    addresses, converged, endpoints, key, manual_endpoints, node, pod, ready, service, unready,
};

#[test]
fn converged_cluster_causes_no_requests() {
    let mut cluster = converged(&[("web", 2)]);
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready", "10.0.0.2 ready"]);
    assert_eq!(addresses(&cluster, "web"), ["10.0.0.1", "10.0.0.2"]);
    cluster.advance(Duration::from_secs(3600));
    assert!(cluster.sent.is_empty() && cluster.live_reads.is_empty(), "{:?}", cluster.sent);
    assert_eq!(cluster.engine.wake_at(), None, "no timer is needed");
}

#[test]
fn one_pod_change_causes_one_sync_and_one_write_per_controller() {
    let mut cluster = converged(&[("web", 3), ("other", 3)]);
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web")[0], "10.0.0.1 unready");
    assert_eq!(addresses(&cluster, "web"), ["10.0.0.2", "10.0.0.3", "(10.0.0.1)"]);
    assert_eq!(cluster.sent.len(), 2, "{:?}", cluster.sent);
    assert_eq!(cluster.results, ["written", "written"], "the echo of a write causes no sync");
}

#[test]
fn restart_on_a_converged_cluster_writes_nothing() {
    let mut cluster = converged(&[("web", 250), ("empty", 0)]);
    cluster.restart();
    cluster.advance(Duration::from_secs(60));
    assert!(cluster.sent.is_empty(), "{:?}", cluster.sent);
}

#[test]
fn foreign_deletes_and_edits_are_repaired_after_a_restart() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.restart();
    let name = cluster.slices()[0].meta.key();
    cluster.remove_object(PublishedResource::Slices, &name);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web").len(), 2, "created again");

    let mut edited = cluster.slices()[0].clone();
    edited.endpoints.clear();
    cluster.put_object(Object::Slice(edited));
    cluster.run();
    assert_eq!(endpoints(&cluster, "web").len(), 2, "repaired");

    cluster.remove_object(PublishedResource::Endpoints, &key("web"));
    cluster.run();
    assert_eq!(addresses(&cluster, "web").len(), 2);
}

#[test]
fn recreated_service_gets_new_slices() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.remove_service(&key("web"));
    let again = endpointd_model::Service { uid: Uid::from("second"), ..service("web") };
    cluster.put_service(again);
    cluster.run();
    let owners: Vec<String> =
        cluster.slices().iter().map(|slice| slice.meta.owners[0].uid.to_string()).collect();
    assert_eq!(owners, ["second"]);
    assert_eq!(addresses(&cluster, "web").len(), 2);
}

#[test]
fn removal_is_written_before_the_rest_of_the_initial_sync() {
    let services: Vec<String> = (0..50).map(|n| format!("s{n:02}")).collect();
    let mut cluster = Cluster::new(Settings::default());
    cluster.put_node(node("n"));
    for name in &services {
        cluster.put_service(service(name));
        cluster.put_pod(pod(&format!("{name}-0")));
    }
    for kind in cluster.engine.watched_resources() {
        cluster.list(kind);
    }
    cluster.handle(Input::LeadershipAcquired);
    cluster.change_pod(&key("s49-0"), unready);
    let pod = cluster.pod(&key("s49-0"));
    let change = endpointd_model::ResourceEvent::Pod(endpointd_model::ObjectEvent::Applied(pod));
    cluster.handle(Input::Watch(WatchedResource::Pods, WatchSignal::Event(Box::new(change))));
    cluster.run();
    let at = |name: &str| {
        let is_it = |sent: &String| sent.starts_with(&format!("create endpointslices {name}"));
        cluster.sent.iter().position(is_it).expect("sent")
    };
    assert!(at("s49") < 12, "at {}", at("s49"));
}

#[test]
fn burst_of_changes_is_batched_by_the_cooldown() {
    const MILLI: Duration = Duration::from_millis(1);
    let mut cluster = converged(&[("web", 2)]);
    cluster.write_takes = MILLI;
    for n in 2..52 {
        cluster.put_pod(pod(&format!("web-{n}")));
        cluster.advance(MILLI);
    }
    // 50 changes for each of two controllers: fewer than 100 writes, and more than one each.
    assert!((4..=40).contains(&cluster.sent.len()), "{} writes", cluster.sent.len());
    cluster.advance(250 * MILLI);
    assert_eq!(endpoints(&cluster, "web").len(), 52);

    cluster.clear_log();
    cluster.put_pod(pod("web-60"));
    cluster.advance(MILLI);
    cluster.change_pod(&key("web-0"), unready);
    cluster.advance(2 * MILLI);
    let is_out = endpoints(&cluster, "web").iter().any(|one| one.ends_with("unready"));
    assert!(is_out, "a removal waits at most as long as the last write took");
}

#[test]
fn large_service_is_not_planned_for_every_change() {
    const MILLI: Duration = Duration::from_millis(1);
    let mut cluster = converged(&[("web", 1500)]);
    cluster.advance(Duration::from_secs(1));
    cluster.results.clear();
    for n in 0..100 {
        let change = if n % 2 == 0 { unready } else { ready };
        cluster.change_pod(&key("web-7"), change);
        cluster.advance(MILLI);
    }
    // The cooldown is 28 ms for removals; Endpoints and additions wait for 350 ms.
    assert!((4..=12).contains(&cluster.results.len()), "{} plans", cluster.results.len());

    cluster.change_pod(&key("web-7"), unready);
    cluster.advance(Duration::from_secs(1));
    let n_out = endpoints(&cluster, "web").iter().filter(|one| one.ends_with("unready")).count();
    assert_eq!(n_out, 1, "no change is lost");
    cluster.results.clear();
    cluster.change_pod(&key("web-8"), unready);
    cluster.run();
    assert_eq!(cluster.results.len(), 2, "after the cooldown a change is synced at once");
}

#[test]
fn manual_endpoints_are_mirrored_until_the_service_gets_a_selector() {
    let mut cluster = converged(&[]);
    let manual = endpointd_model::Service { selector: Default::default(), ..service("db") };
    cluster.put_service(manual);
    cluster.put_object(manual_endpoints("db"));
    cluster.run();
    assert_eq!(endpoints(&cluster, "db"), ["10.1.0.1 ready"]);
    cluster.put_service(service("db"));
    cluster.run();
    assert!(endpoints(&cluster, "db").is_empty(), "a selector ends mirroring");
    assert_eq!(cluster.slices().len(), 1, "and the Service has a slice of its own");
}

#[test]
fn relabelled_pod_moves_between_services() {
    let mut cluster = converged(&[("web", 1), ("api", 1), ("idle", 1)]);
    cluster.change_pod(&key("web-0"), |pod| pod.labels = crate::objects::labels("api"));
    cluster.run();
    assert!(endpoints(&cluster, "web").is_empty());
    assert_eq!(endpoints(&cluster, "api").len(), 2);
    assert!(cluster.sent.iter().all(|sent| !sent.contains("idle")));
}

#[test]
fn flapping_pod_converges_while_the_endpoints_watch_is_delayed() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.hold_watch(WatchedResource::Endpoints);
    cluster.hold_watch(WatchedResource::Slices);
    for _ in 0..5 {
        cluster.change_pod(&key("web-0"), unready);
        cluster.run();
        cluster.change_pod(&key("web-0"), ready);
        cluster.run();
    }
    cluster.release_watches();
    assert_eq!(addresses(&cluster, "web"), ["10.0.0.1", "10.0.0.2"]);
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready", "10.0.0.2 ready"]);
    assert_eq!(cluster.live_reads, [], "every write was planned from the newest state");
    assert_eq!(cluster.sent.len(), 20);
}
