//! Requests that fail, conflict, or get no response.

use std::time::Duration;

use endpointd_engine::{Input, KeyState, Settings};
use endpointd_model::{Key, Meta, Object, WatchSignal, WatchedResource, Write};

use crate::cluster::{Cluster, WriteFault};
use crate::objects::{converged, endpoints, key, node, pod, service, unready};

#[test]
fn applied_create_without_response_is_not_repeated() {
    let mut cluster = converged(&[]);
    cluster.hold_watch(WatchedResource::Slices);
    cluster.hold_watch(WatchedResource::Endpoints);
    cluster.write_faults.extend([WriteFault::AppliedNoResponse, WriteFault::AppliedNoResponse]);
    cluster.put_service(service("web"));
    cluster.run();
    assert_eq!(cluster.slices().len(), 1);
    assert_eq!(cluster.sent.len(), 2, "{:?}", cluster.sent);
    assert_eq!(cluster.live_reads.len(), 2, "resolved by live reads");
    cluster.release_watches();
    cluster.advance(Duration::from_secs(60));
    assert_eq!(cluster.sent.len(), 2);
}

#[test]
fn unapplied_create_without_response_is_sent_again() {
    let mut cluster = converged(&[]);
    cluster.write_faults.extend([WriteFault::DroppedNoResponse, WriteFault::DroppedNoResponse]);
    cluster.put_service(service("web"));
    cluster.run();
    assert_eq!((cluster.slices().len(), cluster.sent.len()), (0, 2), "a failure: not at once");
    cluster.advance(Duration::from_secs(1));
    assert_eq!((cluster.slices().len(), cluster.sent.len()), (1, 4));
}

#[test]
fn conflict_is_resolved_by_a_live_read_and_a_new_plan() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.hold_watch(WatchedResource::Slices);
    let mut edited = cluster.slices()[0].clone();
    edited.endpoints.pop();
    cluster.put_object(Object::Slice(edited));
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 unready", "10.0.0.2 ready"]);
    cluster.release_watches();
    assert_eq!(endpoints(&cluster, "web").len(), 2);
}

#[test]
fn response_after_its_echo_causes_no_sync() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.responses_last = true;
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    assert_eq!((cluster.sent.len(), cluster.results.len()), (2, 2), "{:?}", cluster.sent);
}

#[test]
fn service_deleted_during_its_first_sync_leaves_nothing() {
    let mut cluster = converged(&[]);
    cluster.responses_last = true;
    cluster.put_service(service("web"));
    cluster.step_until_sent(2);
    cluster.remove_service(&key("web"));
    cluster.run();
    assert_eq!(cluster.published().iter().filter(|(_, one)| *one == key("web")).count(), 0);
}

#[test]
fn concurrent_foreign_edit_is_repaired() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.responses_last = true;
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
fn rejected_create_blocks_neither_removals_nor_other_keys() {
    let mut cluster = converged(&[("web", 100), ("api", 1)]);
    cluster.rejects = Some(|write| matches!(write, Write::Create(_)));
    cluster.put_pod(pod("web-100"));
    cluster.run();
    assert_eq!(endpoints(&cluster, "web").len(), 100, "the new slice is refused");
    let report = cluster.report();
    let failed =
        report.keys.iter().find(|one| one.key == key("web")).expect("failed keys are listed");
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

    cluster.rejects = None;
    cluster.advance(Duration::from_secs(31));
    assert_eq!(endpoints(&cluster, "web").len(), 101, "the key is retried until it succeeds");
    assert!(cluster.report().keys.is_empty());
}

/// A Service of the same name with another uid: it gets new slices, and the old ones are deleted.
fn recreated() -> endpointd_model::Service {
    endpointd_model::Service { uid: endpointd_model::Uid::from("second"), ..service("web") }
}

#[test]
fn moved_endpoint_is_created_before_its_old_slice_is_deleted() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.write_faults.extend([WriteFault::DroppedNoResponse, WriteFault::DroppedNoResponse]);
    cluster.put_service(recreated());
    cluster.advance(Duration::from_secs(1));
    let last = |verb: &str| cluster.sent.iter().rposition(|sent| sent.starts_with(verb));
    let (created, deleted) = (last("create endpointslices"), last("delete endpointslices"));
    assert!(created.is_some() && created < deleted, "{:?}", cluster.sent);
    assert_eq!(endpoints(&cluster, "web").len(), 2);
}

#[test]
fn slice_is_kept_while_its_replacement_is_rejected() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.rejects = Some(|write| matches!(write, Write::Create(_)));
    cluster.put_service(recreated());
    cluster.advance(Duration::from_secs(60));
    assert_eq!(endpoints(&cluster, "web").len(), 2, "the old endpoints stay");
    cluster.rejects = None;
    cluster.advance(Duration::from_secs(31));
    assert_eq!(cluster.slices()[0].meta.owners[0].uid.to_string(), "second");
    assert_eq!(endpoints(&cluster, "web").len(), 2);
}

#[test]
fn permanently_rejected_write_is_retried_with_capped_backoff() {
    let mut cluster = converged(&[]);
    cluster.rejects = Some(|write| write.resource() == endpointd_model::PublishedResource::Slices);
    cluster.put_service(service("web"));
    cluster.advance(Duration::from_secs(60));
    let n_first = cluster.sent.len() - 1;
    assert!((3..=10).contains(&n_first), "{n_first} in the first minute");
    cluster.advance(Duration::from_secs(3600));
    let n_later = cluster.sent.len() - 1 - n_first;
    assert!((120..=160).contains(&n_later), "{n_later} in an hour");
}

/// The back-off of many conflicts and that of a failed read do not add up.
#[test]
fn live_read_that_succeeds_at_last_is_followed_by_the_plan_at_once() {
    let mut cluster = converged(&[("web", 1)]);
    cluster.write_faults.extend(vec![WriteFault::DroppedNoResponse; 40]);
    cluster.change_pod(&key("web-0"), unready);
    cluster.advance(Duration::from_secs(20));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready"]);
    cluster.reads_fail = true;
    cluster.advance(Duration::from_secs(40));
    cluster.reads_fail = false;
    cluster.write_faults.clear();
    let n_reads = cluster.live_reads.len();
    for _ in 0..31 {
        cluster.advance(Duration::from_secs(1));
        if cluster.live_reads.len() > n_reads {
            break;
        }
    }
    cluster.advance(Duration::from_secs(5));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 unready"]);
}

#[test]
fn outage_is_probed_and_recovery_is_immediate() {
    let names: Vec<String> = (0..40).map(|n| format!("s{n}")).collect();
    let services: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let mut cluster = converged(&services);
    cluster.write_faults.extend(vec![WriteFault::Unreachable; 10]);
    for name in &names {
        cluster.change_pod(&key(&format!("{name}-0")), unready);
    }
    cluster.advance(Duration::from_secs(120));
    assert_eq!(cluster.sent.len(), 80 + 10, "each unreachable attempt was one write");
    assert!(names.iter().all(|name| endpoints(&cluster, name)[0].ends_with("unready")));
}

#[test]
fn write_in_a_terminating_namespace_is_not_retried() {
    let mut cluster = converged(&[]);
    cluster.write_faults.extend([WriteFault::Terminating, WriteFault::Terminating]);
    cluster.put_service(service("web"));
    cluster.advance(Duration::from_secs(3600));
    assert_eq!(cluster.sent.len(), 2, "no retry");
    assert!(cluster.report().keys.is_empty());
}

#[test]
fn older_event_does_not_undo_our_write() {
    let mut cluster = converged(&[("web", 1)]);
    let old = cluster.slices()[0].clone();
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    cluster.clear_log();
    let change = endpointd_model::ResourceEvent::Slice(endpointd_model::ObjectEvent::Applied(old));
    cluster.handle(Input::Watch(WatchedResource::Slices, WatchSignal::Event(Box::new(change))));
    cluster.run();
    assert_eq!((cluster.sent.len(), cluster.results.len()), (0, 0));
}

#[test]
fn older_events_do_not_restore_a_deleted_slice() {
    let mut cluster = converged(&[("web", 1)]);
    cluster.hold_watch(WatchedResource::Slices);
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
    cluster.clear_log();
    cluster.release_watches();
    assert_eq!(cluster.sent, [""; 0], "older events about it are ignored");
    assert_eq!(cluster.report().sizes.n_tombstones, 0, "and its tombstone is dropped");
}

#[test]
fn foreign_slice_with_a_conflicting_name_is_not_changed() {
    let cluster = converged(&[("web", 1)]);
    let ours = cluster.slices()[0].meta.key();
    let mut blocked = converged(&[]);
    let meta = Meta { namespace: "ns".into(), name: ours.name.clone(), ..Meta::default() };
    let foreign = endpointd_model::EndpointSlice { meta, ..Default::default() };
    blocked.put_object(Object::Slice(foreign));
    blocked.put_service(service("web"));
    blocked.put_pod(pod("web-0"));
    blocked.advance(Duration::from_secs(60));
    assert_eq!(endpoints(&blocked, "web"), ["10.0.0.1 ready"]);
    assert_eq!(blocked.slices().len(), 2, "one of the other owner, one of ours");
    assert!(!blocked.sent.iter().any(|sent| sent.starts_with("delete")), "{:?}", blocked.sent);
}

#[test]
fn any_number_of_foreign_slices_with_derived_names_is_avoided() {
    let mut cluster = converged(&[("web", 1)]);
    for _ in 0..40 {
        let own = |slice: &&endpointd_model::EndpointSlice| !slice.meta.labels.is_empty();
        let mut taken = cluster.slices().into_iter().find(own).expect("one of ours").clone();
        taken.meta.labels = Default::default();
        cluster.put_object(Object::Slice(taken));
        // Repairs that repeat are rare.
        cluster.advance(Duration::from_secs(31));
    }
    assert_eq!(cluster.sent.len(), 40, "each time one slice is created, and none is refused");
    assert!(cluster.live_reads.is_empty(), "{:?}", cluster.live_reads);
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready"]);
}

#[test]
fn undecodable_object_keeps_its_last_known_version() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.handle(Input::Watch(WatchedResource::Pods, WatchSignal::InitStarted));
    let reason = "`status.podIPs`: not a list".into();
    cluster.handle(Input::Watch(
        WatchedResource::Pods,
        WatchSignal::DecodeError { key: key("web-0"), reason },
    ));
    let pod = cluster.pod(&key("web-1"));
    let change = endpointd_model::ResourceEvent::Pod(endpointd_model::ObjectEvent::Applied(pod));
    cluster.handle(Input::Watch(WatchedResource::Pods, WatchSignal::Event(Box::new(change))));
    cluster.handle(Input::Watch(WatchedResource::Pods, WatchSignal::InitDone(10_000.into())));
    cluster.run();
    assert_eq!(cluster.sent, [""; 0]);
    let report = cluster.report();
    let pods =
        report.watches.iter().find(|one| one.resource == WatchedResource::Pods).expect("watched");
    assert_eq!(pods.decode_errors.len(), 1);
}

#[test]
fn only_failed_keys_count_as_backing_off() {
    let mut settings = Settings::default();
    settings.controllers.iter_mut().for_each(|one| one.batch_period = Duration::from_secs(60));
    let mut cluster = Cluster::new(settings);
    cluster.put_node(node("n"));
    cluster.put_service(service("web"));
    cluster.start();
    let n_backing_off = |cluster: &Cluster| -> usize {
        cluster.report().controllers.iter().map(|one| one.n_backing_off).sum()
    };
    cluster.put_pod(pod("web-0"));
    cluster.run();
    assert_eq!(cluster.report().keys.len(), 2, "both controllers wait for the batch period");
    assert_eq!(n_backing_off(&cluster), 0);
    cluster.rejects = Some(|_| true);
    cluster.advance(Duration::from_secs(60));
    assert_eq!(n_backing_off(&cluster), 2);
}

#[test]
fn one_key_is_reported_whether_it_failed_or_not() {
    let mut cluster = converged(&[("web", 1), ("api", 1)]);
    cluster.rejects = Some(|_| true);
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    let states = |name: &str| -> Vec<(u32, bool)> {
        let report = cluster.engine.report_key(&key(name), cluster.now);
        report.iter().map(|one| (one.n_failures, one.state == KeyState::Idle)).collect()
    };
    assert_eq!(states("web"), [(1, false), (1, false)]);
    assert_eq!(states("api"), [(0, true), (0, true)], "not among the notable keys");
    assert_eq!(states("none"), []);
}
