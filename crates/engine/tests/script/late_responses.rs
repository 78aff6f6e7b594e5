//! Responses, live reads, and lists that are older than what the watches have reported since. Each
//! case was found by the simulator; the seeds are those of `cargo xtask sim`.

use std::time::Duration;

use endpointd_engine::{ControllerSettings, Effect, Input, RequestId, Settings};
use endpointd_model::{
    Controller, Labels, LiveRead, LiveReadResult, Meta, Object, ObjectEvent, Phase, Pod,
    PublishedResource, ResourceEvent, Service, Uid, WatchSignal, WatchedResource, names,
};

use crate::cluster::{Cluster, WriteFault};
use crate::objects::{
    addresses, converged, endpoints, key, manual_endpoints, node, pod, service, unready,
};

/// Steps until the engine asks for a live read.
fn next_read(cluster: &mut Cluster) -> (RequestId, LiveRead) {
    for _ in 0..1000 {
        match cluster.engine.next(cluster.now) {
            Some(Effect::LiveRead { id, read }) => return (id, read),
            Some(effect) => cluster.perform(effect),
            None if cluster.step() => {}
            None => cluster.now = cluster.engine.wake_at().expect("something is due later"),
        }
    }
    panic!("the engine reads nothing");
}

/// Manual Endpoints and a Service without selector.
fn mirrored_cluster() -> Cluster {
    let mut cluster = converged(&[]);
    cluster.put_service(Service { selector: Labels::default(), ..service("old") });
    cluster.put_object(manual_endpoints("old"));
    cluster.run();
    assert_eq!(cluster.slices().len(), 1);
    cluster.clear_log();
    cluster
}

/// Seed 14.
#[test]
fn slice_deleted_before_the_create_response_is_created_again() {
    let mut cluster = converged(&[]);
    cluster.responses_last = true;
    cluster.put_service(service("web"));
    cluster.step_until(|cluster| !cluster.slices().is_empty());
    let slice = cluster.slices()[0].meta.key();
    cluster.remove_object(PublishedResource::Slices, &slice);
    cluster.advance(Duration::from_secs(60));
    assert_eq!(cluster.slices().len(), 1);
}

/// Seeds 35 and 53.
#[test]
fn stale_read_does_not_hide_a_newer_object() {
    let mut cluster = converged(&[]);
    cluster.put_service(service("web"));
    cluster.write_faults.extend([WriteFault::DroppedNoResponse, WriteFault::DroppedNoResponse]);
    let reads = [next_read(&mut cluster), next_read(&mut cluster)];
    // Another client creates the Endpoints after the read and before its response.
    cluster.put_object(manual_endpoints("web"));
    cluster.run();
    for (id, _) in reads {
        cluster.handle(Input::LiveReadResult(id, LiveReadResult::Absent));
    }
    cluster.advance(Duration::from_secs(60));
    assert!(cluster.sent.len() <= 6, "does not converge: {:?}", cluster.sent);
    assert_eq!(cluster.report().keys, []);
}

#[test]
fn delete_response_applies_only_to_the_uid_it_named() {
    let mut cluster = converged(&[("web", 1)]);
    cluster.responses_last = true;
    let labels: Labels =
        [(names::SERVICE_NAME, "web"), (names::MANAGED_BY, names::MANAGED_BY_SLICES)]
            .into_iter()
            .collect();
    let meta = Meta { namespace: "ns".into(), name: "web-x".into(), labels, ..Meta::default() };
    let other = endpointd_model::EndpointSlice { meta, ..Default::default() };
    cluster.put_object(Object::Slice(other.clone()));
    cluster.step_until(|cluster| cluster.slices().len() <= 1);
    // Another slice of the same name is created before the response.
    cluster.put_object(Object::Slice(other));
    cluster.advance(Duration::from_secs(60));
    assert_eq!(cluster.slices().len(), 1, "{:?}", cluster.sent);
}

/// Seed 1232.
#[test]
fn selector_added_during_a_mirror_sync_ends_mirroring() {
    let mut cluster = converged(&[]);
    cluster.responses_last = true;
    cluster.put_service(Service { selector: Labels::default(), ..service("old") });
    cluster.put_object(manual_endpoints("old"));
    cluster.step_until(|cluster| !cluster.slices().is_empty());
    cluster.hold_watch(WatchedResource::Slices);
    cluster.put_service(service("old"));
    cluster.run();
    cluster.release_watches();
    cluster.advance(Duration::from_secs(60));
    let is_mirrored = |slice: &&endpointd_model::EndpointSlice| {
        slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_MIRROR)
    };
    assert_eq!(cluster.slices().into_iter().filter(is_mirrored).count(), 0);
}

/// Seeds 54 and 1274.
#[test]
fn older_list_restores_nothing() {
    let mut cluster = converged(&[("web", 2)]);
    let deleted = cluster.pod(&key("web-1"));
    cluster.remove_pod(&key("web-1"));
    cluster.run();
    cluster.clear_log();
    cluster.handle(Input::Watch(WatchedResource::Pods, WatchSignal::InitStarted));
    for pod in [cluster.pod(&key("web-0")), deleted] {
        let seen = WatchSignal::Event(Box::new(ResourceEvent::Pod(ObjectEvent::Applied(pod))));
        cluster.handle(Input::Watch(WatchedResource::Pods, seen));
    }
    cluster.advance(Duration::from_secs(5));
    cluster.handle(Input::Watch(WatchedResource::Pods, WatchSignal::InitDone(1.into())));
    cluster.advance(Duration::from_secs(60));
    assert_eq!(cluster.sent, [""; 0]);
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready"]);
}

/// Seed 840: the two reads voided each other forever.
#[test]
fn two_missing_objects_are_confirmed_by_two_reads() {
    let mut cluster = mirrored_cluster();
    cluster.remove_service(&key("old"));
    // One of the endpoints controller, one of the mirroring controller.
    let reads = [next_read(&mut cluster), next_read(&mut cluster)];
    cluster.remove_object(PublishedResource::Endpoints, &key("old"));
    while cluster.deliver() {}
    for (id, read) in reads {
        cluster.answer_read(id, &read);
    }
    cluster.advance(Duration::from_secs(60));
    assert!(cluster.slices().is_empty());
    assert!(cluster.live_reads.len() < 10, "{} reads", cluster.live_reads.len());
}

/// Seed 40.
#[test]
fn leader_election_lock_survives_a_service_deleted_during_a_sync() {
    let mut cluster = converged(&[("web", 1)]);
    let Object::Endpoints(mut lock) =
        cluster.object(PublishedResource::Endpoints, &key("web")).expect("stored")
    else {
        panic!("Endpoints")
    };
    lock.meta.annotations = [(names::LEADER, "{}")].into_iter().collect();
    cluster.put_object(Object::Endpoints(lock));
    cluster.run();
    cluster.responses_last = true;
    cluster.clear_log();
    cluster.change_pod(&key("web-0"), unready);
    cluster.step_until_sent(2);
    cluster.remove_service(&key("web"));
    cluster.advance(Duration::from_secs(60));
    assert_eq!(addresses(&cluster, "web"), ["(10.0.0.1)"]);
}

/// Seed 8: an entry leaked for each Service that was deleted while its key was waiting.
#[test]
fn deleted_service_leaves_no_tracked_keys() {
    let one_by_one = |controller| ControllerSettings {
        batch_period: Duration::from_secs(1),
        ..ControllerSettings::new(controller)
    };
    let controllers = Controller::DEFAULT.map(one_by_one).to_vec();
    let mut cluster = Cluster::new(Settings { controllers, ..Settings::default() });
    cluster.put_service(service("web"));
    cluster.start();
    cluster.put_pod(pod("web-0"));
    cluster.run();
    cluster.remove_service(&key("web"));
    cluster.advance(Duration::from_secs(60));
    cluster.remove_pod(&key("web-0"));
    cluster.advance(Duration::from_secs(60));
    assert_eq!(cluster.report().sizes.n_tracked_keys, 0);
}

/// Seed 39: a confirmed absence outlived the leadership in which it was read.
#[test]
fn reads_from_before_lost_leadership_are_discarded() {
    let mut cluster = converged(&[("web", 1)]);
    cluster.remove_service(&key("web"));
    let (id, _) = next_read(&mut cluster);
    cluster.handle(Input::LeadershipLost);
    cluster.handle(Input::LiveReadResult(id, LiveReadResult::Absent));
    cluster.run();
    assert_eq!(cluster.report().sizes.n_tracked_keys, 0);
    assert_ne!(cluster.service(&key("web")).map(|one| &one.uid), Some(&Uid::default()));
}

/// Found by the targeted fault schedules: the response about a node arrived after the node did, and
/// then an empty list of nodes.
#[test]
fn stale_node_read_removes_no_endpoints() {
    let mut cluster = converged(&[("web", 1)]);
    let node = node("n");
    cluster.remove_node("n");
    let (id, read) = next_read(&mut cluster);
    assert_eq!(read, LiveRead::Node("n".into()));
    cluster.put_node(node);
    while cluster.deliver() {}
    cluster.list_nothing(WatchedResource::Nodes);
    cluster.handle(Input::LiveReadResult(id, LiveReadResult::Absent));
    cluster.advance(Duration::from_secs(60));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready"]);
    assert_eq!(cluster.sent, [""; 0]);
}

/// Seed 738: a list without Services, a live read that found the Service, and then its deletion.
#[test]
fn service_deleted_during_a_live_read_stays_deleted() {
    let mut cluster = converged(&[("web", 1)]);
    cluster.list_nothing(WatchedResource::Services);
    let (id, read) = next_read(&mut cluster);
    let found = cluster.read_now(&read);
    cluster.remove_service(&key("web"));
    while cluster.deliver() {}
    cluster.handle(Input::LiveReadResult(id, found));
    cluster.advance(Duration::from_secs(60));
    let slices: Vec<_> = cluster.slices().iter().map(|slice| slice.meta.key()).collect();
    for slice in slices {
        cluster.remove_object(PublishedResource::Slices, &slice);
    }
    cluster.advance(Duration::from_secs(60));
    assert!(cluster.slices().is_empty(), "{:?}", cluster.sent);
}

/// Seed 998: the response arrived during a list that no longer contained the slice.
#[test]
fn response_during_a_list_is_checked_against_the_list() {
    let mut cluster = converged(&[]);
    cluster.responses_last = true;
    cluster.hold_watch(WatchedResource::Slices);
    cluster.put_service(service("web"));
    cluster.step_until(|cluster| !cluster.slices().is_empty());
    let slice = cluster.slices()[0].meta.key();
    cluster.remove_object(PublishedResource::Slices, &slice);
    cluster.drop_pending_events(WatchedResource::Slices);
    cluster.handle(Input::Watch(WatchedResource::Slices, WatchSignal::InitStarted));
    cluster.run();
    cluster.handle(Input::Watch(WatchedResource::Slices, WatchSignal::InitDone(cluster.version())));
    cluster.release_watches();
    cluster.advance(Duration::from_secs(60));
    assert_eq!(cluster.slices().len(), 1);
}

/// A live read finds another Service than the watch has reported meanwhile. The state of the old one
/// must not be used for it, as after a watch event.
#[test]
fn recreated_service_found_by_a_live_read_resets_its_key() {
    let mut cluster = converged(&[("web", 1)]);
    cluster.put_pod(Pod { phase: Phase::Failed, ..pod("web-1") });
    cluster.list_nothing(WatchedResource::Services);
    let (id, read) = next_read(&mut cluster);
    assert_eq!(read, LiveRead::Service(key("web")));
    cluster.put_service(service("web"));
    cluster.run();
    let n_excluded = |cluster: &Cluster| -> usize {
        let report = cluster.engine.report_key(&key("web"), cluster.now);
        report.iter().flat_map(|one| one.excluded_pods.values()).sum()
    };
    assert_eq!(n_excluded(&cluster), 1, "slices are planned, Endpoints wait for the read");
    cluster.hold_watch(WatchedResource::Services);
    cluster.remove_service(&key("web"));
    cluster.put_service(Service { uid: Uid::from("second"), ..service("web") });
    let found = cluster.read_now(&read);
    cluster.handle(Input::LiveReadResult(id, found));
    assert_eq!(n_excluded(&cluster), 0, "the entry of the old Service is dropped");
    cluster.run();
    let owners: Vec<String> =
        cluster.slices().iter().map(|slice| slice.meta.owners[0].uid.to_string()).collect();
    assert_eq!(owners, ["second"]);
}
