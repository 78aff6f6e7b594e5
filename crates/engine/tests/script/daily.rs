//! What happens every day.

use std::time::Duration;

use endpointd_engine::{Input, Settings};
use endpointd_model::{Object, PublishedResource, Uid, WatchSignal, WatchedResource};

use crate::cluster::Cluster;
use crate::objects::{addresses, endpoints, key, node, pod, ready, service, settled, unready};

#[test]
fn pods_are_published_and_then_all_is_quiet() {
    let mut cluster = settled(&[("web", 2)]);
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready", "10.0.0.2 ready"]);
    assert_eq!(addresses(&cluster, "web"), ["10.0.0.1", "10.0.0.2"]);
    cluster.pass(Duration::from_secs(3600));
    assert!(cluster.sent.is_empty() && cluster.looked.is_empty(), "{:?}", cluster.sent);
    assert_eq!(cluster.engine.wake_at(), None, "nothing to wake up for");
}

#[test]
fn one_change_costs_one_sync_and_one_write_a_controller() {
    let mut cluster = settled(&[("web", 3), ("other", 3)]);
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web")[0], "10.0.0.1 unready");
    assert_eq!(addresses(&cluster, "web"), ["10.0.0.2", "10.0.0.3", "(10.0.0.1)"]);
    assert_eq!(cluster.sent.len(), 2, "{:?}", cluster.sent);
    assert_eq!(cluster.ends, ["written", "written"], "the echo of a write asks for nothing");
}

#[test]
fn nothing_is_written_before_every_kind_is_known() {
    let mut cluster = Cluster::new(Settings::default());
    cluster.put_node(node("n"));
    cluster.put_service(service("web"));
    cluster.put_pod(pod("web-0"));
    cluster.tell(Input::LeadershipAcquired);
    for kind in [
        WatchedResource::Services,
        WatchedResource::Pods,
        WatchedResource::Endpoints,
        WatchedResource::Slices,
    ] {
        cluster.list(kind);
        cluster.pass(Duration::from_secs(60));
        assert!(cluster.sent.is_empty(), "{kind:?}");
    }
    cluster.list(WatchedResource::Nodes);
    cluster.run();
    assert_eq!(cluster.sent.len(), 2);
}

#[test]
fn a_restart_writes_nothing() {
    let mut cluster = settled(&[("web", 250), ("empty", 0)]);
    cluster.restart();
    cluster.pass(Duration::from_secs(60));
    assert!(cluster.sent.is_empty(), "{:?}", cluster.sent);
}

#[test]
fn a_foreign_delete_and_a_foreign_edit_are_repaired_also_after_a_restart() {
    let mut cluster = settled(&[("web", 2)]);
    cluster.restart();
    let name = cluster.slices()[0].meta.key();
    cluster.remove_object(PublishedResource::Slices, &name);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web").len(), 2, "made again");

    let mut edited = cluster.slices()[0].clone();
    edited.endpoints.clear();
    cluster.put_object(Object::Slice(edited));
    cluster.run();
    assert_eq!(endpoints(&cluster, "web").len(), 2, "put right");

    cluster.remove_object(PublishedResource::Endpoints, &key("web"));
    cluster.run();
    assert_eq!(addresses(&cluster, "web").len(), 2);
}

#[test]
fn a_service_made_again_under_its_name_gets_slices_of_its_own() {
    let mut cluster = settled(&[("web", 2)]);
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
fn a_removal_goes_before_the_rest_of_the_start_up() {
    let services: Vec<String> = (0..50).map(|n| format!("s{n:02}")).collect();
    let mut cluster = Cluster::new(Settings::default());
    cluster.put_node(node("n"));
    for name in &services {
        cluster.put_service(service(name));
        cluster.put_pod(pod(&format!("{name}-0")));
    }
    for kind in cluster.engine.kinds() {
        cluster.list(kind);
    }
    cluster.tell(Input::LeadershipAcquired);
    cluster.change_pod(&key("s49-0"), unready);
    let pod = cluster.pods[&key("s49-0")].clone();
    let change = endpointd_model::ResourceEvent::Pod(endpointd_model::ObjectEvent::Applied(pod));
    cluster.tell(Input::Watch(WatchedResource::Pods, WatchSignal::Event(Box::new(change))));
    cluster.run();
    let at = |name: &str| {
        let is_it = |sent: &String| sent.starts_with(&format!("create endpointslices {name}"));
        cluster.sent.iter().position(is_it).expect("sent")
    };
    assert!(at("s49") < 12, "at {}", at("s49"));
}

#[test]
fn changes_are_collected_for_the_batch_period() {
    let mut settings = Settings::default();
    settings.controllers.iter_mut().for_each(|one| one.batch_period = Duration::from_secs(1));
    let mut cluster = Cluster::new(settings);
    cluster.put_node(node("n"));
    cluster.put_service(service("web"));
    cluster.put_pod(pod("web-0"));
    cluster.start();
    cluster.forget_log();
    for n in 1..10 {
        cluster.put_pod(pod(&format!("web-{n}")));
        cluster.pass(Duration::from_millis(90));
    }
    assert!(cluster.sent.is_empty());
    cluster.pass(Duration::from_secs(1));
    assert_eq!(cluster.sent.len(), 2, "one write a controller: {:?}", cluster.sent);
    assert_eq!(endpoints(&cluster, "web").len(), 10);
}

#[test]
fn changes_that_come_in_a_stream_are_collected() {
    const MILLI: Duration = Duration::from_millis(1);
    let mut cluster = settled(&[("web", 2)]);
    cluster.write_takes = MILLI;
    for n in 2..52 {
        cluster.put_pod(pod(&format!("web-{n}")));
        cluster.pass(MILLI);
    }
    // Two controllers, which write and rest: not 100 writes for 50 changes, and not only one each.
    assert!((4..=40).contains(&cluster.sent.len()), "{} writes", cluster.sent.len());
    cluster.pass(250 * MILLI);
    assert_eq!(endpoints(&cluster, "web").len(), 52);

    cluster.forget_log();
    cluster.put_pod(pod("web-60"));
    cluster.pass(MILLI);
    cluster.change_pod(&key("web-0"), unready);
    cluster.pass(2 * MILLI);
    let is_out = endpoints(&cluster, "web").iter().any(|one| one.ends_with("unready"));
    assert!(is_out, "a removal waits no longer than the write before it took");
}

#[test]
fn a_large_service_is_not_planned_for_every_change() {
    const MILLI: Duration = Duration::from_millis(1);
    let mut cluster = settled(&[("web", 1500)]);
    cluster.pass(Duration::from_secs(1));
    cluster.ends.clear();
    for n in 0..100 {
        let change = if n % 2 == 0 { unready } else { ready };
        cluster.change_pod(&key("web-7"), change);
        cluster.pass(MILLI);
    }
    // A removal every 28 ms at most, for each of two controllers.
    assert!((4..=12).contains(&cluster.ends.len()), "{} plans", cluster.ends.len());

    cluster.change_pod(&key("web-7"), unready);
    cluster.pass(250 * MILLI);
    let n_out = endpoints(&cluster, "web").iter().filter(|one| one.ends_with("unready")).count();
    assert_eq!(n_out, 1, "nothing is forgotten");
    cluster.ends.clear();
    cluster.change_pod(&key("web-8"), unready);
    cluster.run();
    assert_eq!(cluster.ends.len(), 2, "who has rested acts at once");
}

#[test]
fn hand_written_endpoints_are_mirrored_and_follow_their_service() {
    let mut cluster = settled(&[]);
    let manual = endpointd_model::Service { selector: Default::default(), ..service("db") };
    cluster.put_service(manual);
    let meta =
        endpointd_model::Meta { namespace: "ns".into(), name: "db".into(), ..Default::default() };
    let address = endpointd_model::EndpointAddress { ip: "192.0.2.1".into(), ..Default::default() };
    let subset = endpointd_model::Subset { addresses: vec![address], ..Default::default() };
    let written = endpointd_model::Endpoints { meta, subsets: vec![subset] };
    cluster.put_object(Object::Endpoints(written));
    cluster.run();
    assert_eq!(endpoints(&cluster, "db"), ["192.0.2.1 ready"]);
    cluster.put_service(service("db"));
    cluster.run();
    assert!(endpoints(&cluster, "db").is_empty(), "a selector ends the mirror");
    assert_eq!(cluster.slices().len(), 1, "and the Service has a slice of its own");
}

#[test]
fn a_label_that_moves_a_pod_concerns_the_service_it_leaves_and_the_one_it_joins() {
    let mut cluster = settled(&[("web", 1), ("api", 1), ("idle", 1)]);
    cluster.change_pod(&key("web-0"), |pod| pod.labels = crate::objects::labels("api"));
    cluster.run();
    assert!(endpoints(&cluster, "web").is_empty());
    assert_eq!(endpoints(&cluster, "api").len(), 2);
    assert!(cluster.sent.iter().all(|sent| !sent.contains("idle")));
}

#[test]
fn a_pod_that_flaps_faster_than_the_watch_of_endpoints_ends_up_right() {
    let mut cluster = settled(&[("web", 2)]);
    cluster.hold(WatchedResource::Endpoints);
    cluster.hold(WatchedResource::Slices);
    for _ in 0..5 {
        cluster.change_pod(&key("web-0"), unready);
        cluster.run();
        cluster.change_pod(&key("web-0"), ready);
        cluster.run();
    }
    cluster.release();
    assert_eq!(addresses(&cluster, "web"), ["10.0.0.1", "10.0.0.2"]);
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready", "10.0.0.2 ready"]);
    assert_eq!(cluster.looked, [], "every write was decided on the newest state");
    assert_eq!(cluster.sent.len(), 20);
}
