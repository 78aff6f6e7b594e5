//! Answers that are lost, late, or no.

use std::time::Duration;

use endpointd_engine::{Input, KeyState};
use endpointd_model::{Key, Meta, Object, WatchSignal, WatchedResource, Write};

use crate::cluster::Mishap;
use crate::objects::{endpoints, key, pod, service, settled, unready};

#[test]
fn a_create_whose_answer_was_lost_is_not_repeated() {
    let mut cluster = settled(&[]);
    cluster.hold(WatchedResource::Slices);
    cluster.hold(WatchedResource::Endpoints);
    cluster.mishaps.extend([Mishap::LostApplied, Mishap::LostApplied]);
    cluster.put_service(service("web"));
    cluster.run();
    assert_eq!(cluster.slices().len(), 1);
    assert_eq!(cluster.sent.len(), 2, "{:?}", cluster.sent);
    assert_eq!(cluster.looked.len(), 2, "settled by a live read");
    cluster.release();
    cluster.pass(Duration::from_secs(60));
    assert_eq!(cluster.sent.len(), 2);
}

#[test]
fn a_create_that_was_lost_on_its_way_is_sent_again() {
    let mut cluster = settled(&[]);
    cluster.mishaps.extend([Mishap::LostNotApplied, Mishap::LostNotApplied]);
    cluster.put_service(service("web"));
    cluster.run();
    assert_eq!((cluster.slices().len(), cluster.sent.len()), (1, 4));
}

#[test]
fn a_conflict_is_settled_by_reading_and_planning_again() {
    let mut cluster = settled(&[("web", 2)]);
    cluster.hold(WatchedResource::Slices);
    let mut edited = cluster.slices()[0].clone();
    edited.endpoints.pop();
    cluster.put_object(Object::Slice(edited));
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 unready", "10.0.0.2 ready"]);
    cluster.release();
    assert_eq!(endpoints(&cluster, "web").len(), 2);
}

#[test]
fn an_answer_that_comes_after_its_echo_changes_nothing() {
    let mut cluster = settled(&[("web", 2)]);
    cluster.is_slow = true;
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    assert_eq!((cluster.sent.len(), cluster.ends.len()), (2, 2), "{:?}", cluster.sent);
}

#[test]
fn a_service_deleted_while_its_endpoints_are_being_created_leaves_none_behind() {
    let mut cluster = settled(&[]);
    cluster.is_slow = true;
    cluster.put_service(service("web"));
    cluster.step_until_sent(2);
    cluster.remove_service(&key("web"));
    cluster.run();
    assert_eq!(cluster.objects.keys().filter(|(_, one)| *one == key("web")).count(), 0);
}

#[test]
fn a_foreign_edit_while_our_write_is_under_way_is_repaired() {
    let mut cluster = settled(&[("web", 2)]);
    cluster.is_slow = true;
    cluster.change_pod(&key("web-0"), unready);
    let n_before = cluster.sent.len();
    cluster.step_until_sent(n_before + 2);
    let mut edited = cluster.slices()[0].clone();
    edited.endpoints.clear();
    cluster.put_object(Object::Slice(edited));
    cluster.run();
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 unready", "10.0.0.2 ready"]);
}

#[test]
fn a_refused_create_holds_back_neither_removals_nor_neighbours() {
    let mut cluster = settled(&[("web", 100), ("api", 1)]);
    cluster.refuse = Some(|write| matches!(write, Write::Create(_)));
    cluster.put_pod(pod("web-100"));
    cluster.run();
    assert_eq!(endpoints(&cluster, "web").len(), 100, "the new slice is refused");
    let report = cluster.report();
    let failed = report.keys.iter().find(|one| one.key == key("web")).expect("it is told");
    assert!(matches!(failed.state, KeyState::BackingOff { .. }), "{failed:?}");
    assert_eq!(failed.last_error.as_deref(), Some("quota exceeded"));

    for n in 0..10 {
        cluster.change_pod(&key(&format!("web-{n}")), unready);
    }
    cluster.change_pod(&key("api-0"), unready);
    cluster.run();
    let n_unready = endpoints(&cluster, "web").iter().filter(|one| one.contains("un")).count();
    assert_eq!(n_unready, 10, "at once");
    assert_eq!(endpoints(&cluster, "api"), ["10.0.0.1 unready"]);
    assert!(cluster.event_records.iter().any(|one| one.message.contains("quota exceeded")));

    cluster.refuse = None;
    cluster.pass(Duration::from_secs(31));
    assert_eq!(endpoints(&cluster, "web").len(), 101, "never given up");
    assert!(cluster.report().keys.is_empty());
}

/// Another Service of the same name: its slices are new, and those of the old one must go.
fn made_again() -> endpointd_model::Service {
    endpointd_model::Service { uid: endpointd_model::Uid::from("second"), ..service("web") }
}

#[test]
fn what_moves_is_published_before_it_is_removed() {
    let mut cluster = settled(&[("web", 2)]);
    cluster.mishaps.extend([Mishap::LostNotApplied, Mishap::LostNotApplied]);
    cluster.put_service(made_again());
    cluster.run();
    let last = |verb: &str| cluster.sent.iter().rposition(|sent| sent.starts_with(verb));
    let (created, deleted) = (last("create endpointslices"), last("delete endpointslices"));
    assert!(created.is_some() && created < deleted, "{:?}", cluster.sent);
    assert_eq!(endpoints(&cluster, "web").len(), 2);
}

#[test]
fn what_cannot_be_published_elsewhere_is_not_removed() {
    let mut cluster = settled(&[("web", 2)]);
    cluster.refuse = Some(|write| matches!(write, Write::Create(_)));
    cluster.put_service(made_again());
    cluster.pass(Duration::from_secs(60));
    assert_eq!(endpoints(&cluster, "web").len(), 2, "better the old than nothing");
    cluster.refuse = None;
    cluster.pass(Duration::from_secs(31));
    assert_eq!(cluster.slices()[0].meta.owners[0].uid.to_string(), "second");
    assert_eq!(endpoints(&cluster, "web").len(), 2);
}

#[test]
fn what_is_refused_for_ever_is_tried_a_few_times_a_minute_for_ever() {
    let mut cluster = settled(&[]);
    cluster.refuse = Some(|write| write.resource() == endpointd_model::PublishedResource::Slices);
    cluster.put_service(service("web"));
    cluster.pass(Duration::from_secs(60));
    let n_first = cluster.sent.len() - 1;
    assert!((3..=10).contains(&n_first), "{n_first} in the first minute");
    cluster.pass(Duration::from_secs(3600));
    let n_later = cluster.sent.len() - 1 - n_first;
    assert!((120..=160).contains(&n_later), "{n_later} in an hour");
}

#[test]
fn a_throttled_engine_waits_as_long_as_it_was_told() {
    let mut cluster = settled(&[("web", 1), ("api", 1)]);
    cluster.mishaps.extend([Mishap::Throttled(30)]);
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    cluster.change_pod(&key("api-0"), unready);
    cluster.pass(Duration::from_secs(29));
    assert_eq!(cluster.sent.len(), 1, "{:?}", cluster.sent);
    cluster.pass(Duration::from_secs(2));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 unready"]);
    assert_eq!(endpoints(&cluster, "api"), ["10.0.0.1 unready"]);
}

#[test]
fn an_outage_is_probed_gently_and_over_as_soon_as_it_is_over() {
    let names: Vec<String> = (0..40).map(|n| format!("s{n}")).collect();
    let services: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let mut cluster = settled(&services);
    cluster.mishaps.extend(vec![Mishap::Unreachable; 10]);
    for name in &names {
        cluster.change_pod(&key(&format!("{name}-0")), unready);
    }
    cluster.pass(Duration::from_secs(120));
    assert_eq!(cluster.sent.len(), 80 + 10, "each refusal was one write");
    assert!(names.iter().all(|name| endpoints(&cluster, name)[0].ends_with("unready")));
}

#[test]
fn a_terminating_namespace_ends_the_matter() {
    let mut cluster = settled(&[]);
    cluster.mishaps.extend([Mishap::Terminating, Mishap::Terminating]);
    cluster.put_service(service("web"));
    cluster.pass(Duration::from_secs(3600));
    assert_eq!(cluster.sent.len(), 2, "no retry");
    assert!(cluster.report().keys.is_empty());
}

#[test]
fn an_older_event_does_not_undo_our_own_write() {
    let mut cluster = settled(&[("web", 1)]);
    let old = cluster.slices()[0].clone();
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    cluster.forget_log();
    let change = endpointd_model::ResourceEvent::Slice(endpointd_model::ObjectEvent::Applied(old));
    cluster.tell(Input::Watch(WatchedResource::Slices, WatchSignal::Event(Box::new(change))));
    cluster.run();
    assert_eq!((cluster.sent.len(), cluster.ends.len()), (0, 0));
}

#[test]
fn a_deleted_slice_is_not_brought_back_by_older_events() {
    let mut cluster = settled(&[("web", 1)]);
    cluster.hold(WatchedResource::Slices);
    let slice = cluster.slices()[0].clone();
    let touched = cluster.put_object(Object::Slice(slice));
    cluster.put_service(endpointd_model::Service {
        families: vec![endpointd_model::Family::V6],
        cluster_ip: endpointd_model::ClusterIp::Ip(endpointd_model::Family::V6),
        ..service("web")
    });
    cluster.run();
    let is_there = |cluster: &crate::cluster::Cluster, key: &Key| {
        cluster.slices().iter().any(|slice| slice.meta.key() == *key)
    };
    assert!(!is_there(&cluster, &touched.meta().key()), "deleted after a conflict and a read");
    cluster.forget_log();
    cluster.release();
    assert_eq!(cluster.sent, [""; 0], "old events about it change nothing");
    assert_eq!(cluster.report().sizes.n_tombstones, 0, "and are forgotten");
}

#[test]
fn a_foreign_slice_with_the_name_we_want_is_left_alone() {
    let cluster = settled(&[("web", 1)]);
    let ours = cluster.slices()[0].meta.key();
    let mut blocked = settled(&[]);
    let meta = Meta { namespace: "ns".into(), name: ours.name.clone(), ..Meta::default() };
    let foreign = endpointd_model::EndpointSlice { meta, ..Default::default() };
    blocked.put_object(Object::Slice(foreign));
    blocked.put_service(service("web"));
    blocked.put_pod(pod("web-0"));
    blocked.pass(Duration::from_secs(60));
    assert_eq!(endpoints(&blocked, "web"), ["10.0.0.1 ready"]);
    assert_eq!(blocked.slices().len(), 2, "one of theirs, one of ours");
    assert!(!blocked.sent.iter().any(|sent| sent.starts_with("delete")), "{:?}", blocked.sent);
}

#[test]
fn an_object_that_cannot_be_read_stays_as_it_was() {
    let mut cluster = settled(&[("web", 2)]);
    cluster.tell(Input::Watch(WatchedResource::Pods, WatchSignal::InitStarted));
    let reason = "`status.podIPs`: not a list".into();
    cluster.tell(Input::Watch(
        WatchedResource::Pods,
        WatchSignal::DecodeError { key: key("web-0"), reason },
    ));
    let pod = cluster.pods[&key("web-1")].clone();
    let change = endpointd_model::ResourceEvent::Pod(endpointd_model::ObjectEvent::Applied(pod));
    cluster.tell(Input::Watch(WatchedResource::Pods, WatchSignal::Event(Box::new(change))));
    cluster.tell(Input::Watch(WatchedResource::Pods, WatchSignal::InitDone(10_000.into())));
    cluster.run();
    assert_eq!(cluster.sent, [""; 0]);
    let report = cluster.report();
    let pods =
        report.watches.iter().find(|one| one.resource == WatchedResource::Pods).expect("watched");
    assert_eq!(pods.decode_errors.len(), 1);
}
