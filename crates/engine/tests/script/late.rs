//! Answers, reads, and pictures that are older than what the watches have told since. Each of these
//! was found by the simulator; the seeds are those of `cargo xtask sim`.

use std::time::Duration;

use endpointd_engine::{ControllerSettings, Effect, Input, RequestId, Settings};
use endpointd_model::{
    Controller, EndpointAddress, Endpoints, Labels, LiveRead, LiveReadResult, Meta, Object,
    ObjectEvent, PublishedResource, ResourceEvent, Service, Subset, Uid, WatchSignal,
    WatchedResource, names,
};

use crate::cluster::{Cluster, Mishap};
use crate::objects::{addresses, endpoints, key, pod, service, settled, unready};

/// Steps until the engine asks for a read; says which.
fn next_look(cluster: &mut Cluster) -> (RequestId, LiveRead) {
    for _ in 0..1000 {
        match cluster.engine.next(cluster.now) {
            Some(Effect::LiveRead { id, read }) => return (id, read),
            Some(effect) => cluster.perform(effect),
            None if cluster.step() => {}
            None => cluster.now = cluster.engine.wake_at().expect("something will be done"),
        }
    }
    panic!("nothing is looked at");
}

/// Hand-written Endpoints and a Service without selector.
fn mirrored() -> Cluster {
    let mut cluster = settled(&[]);
    cluster.put_service(Service { selector: Labels::default(), ..service("old") });
    cluster.put_object(by_hand("old"));
    cluster.run();
    assert_eq!(cluster.slices().len(), 1);
    cluster.forget_log();
    cluster
}

fn by_hand(name: &str) -> Object {
    let meta = Meta { namespace: "ns".into(), name: name.into(), ..Meta::default() };
    let address = EndpointAddress { ip: "10.1.0.1".into(), ..EndpointAddress::default() };
    let subset = Subset { addresses: vec![address], ..Subset::default() };
    Object::Endpoints(Endpoints { meta, subsets: vec![subset] })
}

/// Seed 14.
#[test]
fn a_slice_deleted_before_our_create_is_answered_is_created_again() {
    let mut cluster = settled(&[]);
    cluster.is_slow = true;
    cluster.put_service(service("web"));
    cluster.step_until(|cluster| !cluster.slices().is_empty());
    let slice = cluster.slices()[0].meta.key();
    cluster.remove_object(PublishedResource::Slices, &slice);
    cluster.pass(Duration::from_secs(60));
    assert_eq!(cluster.slices().len(), 1);
}

/// Seeds 35 and 53.
#[test]
fn a_read_from_before_an_object_appeared_does_not_hide_it() {
    let mut cluster = settled(&[]);
    cluster.put_service(service("web"));
    cluster.mishaps.extend([Mishap::LostNotApplied, Mishap::LostNotApplied]);
    let looks = [next_look(&mut cluster), next_look(&mut cluster)];
    // Someone else creates them after they were looked for and before we hear of it.
    cluster.put_object(by_hand("web"));
    cluster.run();
    for (id, _) in looks {
        cluster.tell(Input::LiveReadResult(id, LiveReadResult::Absent));
    }
    cluster.pass(Duration::from_secs(60));
    assert!(cluster.sent.len() <= 6, "no end: {:?}", cluster.sent);
    assert_eq!(cluster.report().keys, []);
}

#[test]
fn a_deletion_is_that_of_the_object_it_named() {
    let mut cluster = settled(&[("web", 1)]);
    cluster.is_slow = true;
    let labels: Labels =
        [(names::SERVICE_NAME, "web"), (names::MANAGED_BY, names::MANAGED_BY_SLICES)]
            .into_iter()
            .collect();
    let meta = Meta { namespace: "ns".into(), name: "web-x".into(), labels, ..Meta::default() };
    let impostor = endpointd_model::EndpointSlice { meta, ..Default::default() };
    cluster.put_object(Object::Slice(impostor.clone()));
    cluster.step_until(|cluster| cluster.slices().len() <= 1);
    // Another of the same name, before the answer.
    cluster.put_object(Object::Slice(impostor));
    cluster.pass(Duration::from_secs(60));
    assert_eq!(cluster.slices().len(), 1, "{:?}", cluster.sent);
}

/// Seed 1232.
#[test]
fn a_selector_that_comes_while_slices_are_being_mirrored_ends_the_mirroring() {
    let mut cluster = settled(&[]);
    cluster.is_slow = true;
    cluster.put_service(Service { selector: Labels::default(), ..service("old") });
    cluster.put_object(by_hand("old"));
    cluster.step_until(|cluster| !cluster.slices().is_empty());
    cluster.hold(WatchedResource::Slices);
    cluster.put_service(service("old"));
    cluster.run();
    cluster.release();
    cluster.pass(Duration::from_secs(60));
    let is_mirrored = |slice: &&endpointd_model::EndpointSlice| {
        slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_MIRROR)
    };
    assert_eq!(cluster.slices().into_iter().filter(is_mirrored).count(), 0);
}

/// Seeds 54 and 1274.
#[test]
fn an_old_picture_brings_nothing_back() {
    let mut cluster = settled(&[("web", 2)]);
    let ghost = cluster.pods[&key("web-1")].clone();
    cluster.remove_pod(&key("web-1"));
    cluster.run();
    cluster.forget_log();
    cluster.tell(Input::Watch(WatchedResource::Pods, WatchSignal::InitStarted));
    for pod in [cluster.pods[&key("web-0")].clone(), ghost] {
        let seen = WatchSignal::Event(Box::new(ResourceEvent::Pod(ObjectEvent::Applied(pod))));
        cluster.tell(Input::Watch(WatchedResource::Pods, seen));
    }
    cluster.pass(Duration::from_secs(5));
    cluster.tell(Input::Watch(WatchedResource::Pods, WatchSignal::InitDone(1.into())));
    cluster.pass(Duration::from_secs(60));
    assert_eq!(cluster.sent, [""; 0]);
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready"]);
}

/// Seed 840: the two reads took turns for ever.
#[test]
fn two_absences_are_confirmed_one_after_the_other() {
    let mut cluster = mirrored();
    cluster.remove_service(&key("old"));
    // Of the endpoints controller and of the mirroring controller.
    let looks = [next_look(&mut cluster), next_look(&mut cluster)];
    cluster.remove_object(PublishedResource::Endpoints, &key("old"));
    while cluster.deliver() {}
    for (id, read) in looks {
        cluster.answer_look(id, &read);
    }
    cluster.pass(Duration::from_secs(60));
    assert!(cluster.slices().is_empty());
    assert!(cluster.looked.len() < 10, "{} reads", cluster.looked.len());
}

/// Seed 40.
#[test]
fn a_lock_is_not_deleted_even_if_its_service_goes_during_a_sync() {
    let mut cluster = settled(&[("web", 1)]);
    let Object::Endpoints(mut lock) =
        cluster.objects[&(PublishedResource::Endpoints, key("web"))].clone()
    else {
        panic!("Endpoints")
    };
    lock.meta.annotations = [(names::LEADER, "{}")].into_iter().collect();
    cluster.put_object(Object::Endpoints(lock));
    cluster.run();
    cluster.is_slow = true;
    cluster.forget_log();
    cluster.change_pod(&key("web-0"), unready);
    cluster.step_until_sent(2);
    cluster.remove_service(&key("web"));
    cluster.pass(Duration::from_secs(60));
    assert_eq!(addresses(&cluster, "web"), ["(10.0.0.1)"]);
}

/// Seed 8: one entry stayed for every Service that went while its key was waiting.
#[test]
fn nothing_is_remembered_of_a_service_that_is_gone() {
    let one_by_one = |controller| ControllerSettings {
        batch_period: Duration::from_secs(1),
        ..ControllerSettings::new(controller)
    };
    let controllers = Controller::ALL.map(one_by_one).to_vec();
    let mut cluster = Cluster::new(Settings { controllers, ..Settings::default() });
    cluster.put_service(service("web"));
    cluster.start();
    cluster.put_pod(pod("web-0"));
    cluster.run();
    cluster.remove_service(&key("web"));
    cluster.pass(Duration::from_secs(60));
    cluster.remove_pod(&key("web-0"));
    cluster.pass(Duration::from_secs(60));
    assert_eq!(cluster.report().sizes.n_tracked_keys, 0);
}

/// Seed 39: a confirmed absence outlived the term it was read in.
#[test]
fn what_was_read_before_the_lease_was_lost_is_forgotten() {
    let mut cluster = settled(&[("web", 1)]);
    cluster.remove_service(&key("web"));
    let (id, _) = next_look(&mut cluster);
    cluster.tell(Input::LeadershipLost);
    cluster.tell(Input::LiveReadResult(id, LiveReadResult::Absent));
    cluster.run();
    assert_eq!(cluster.report().sizes.n_tracked_keys, 0);
    assert_ne!(cluster.services.get(&key("web")).map(|one| &one.uid), Some(&Uid::default()));
}

/// LiveReadResult by the small-scope search: the answer about a node came after the node, and then the view
/// of the nodes was lost.
#[test]
fn a_read_from_before_a_node_came_does_not_take_its_pods_out() {
    let mut cluster = settled(&[("web", 1)]);
    let node = cluster.nodes["n"].clone();
    cluster.remove_node("n");
    let (id, read) = next_look(&mut cluster);
    assert_eq!(read, LiveRead::Node("n".into()));
    cluster.put_node(node);
    while cluster.deliver() {}
    let hidden = std::mem::take(&mut cluster.nodes);
    cluster.list(WatchedResource::Nodes);
    cluster.tell(Input::LiveReadResult(id, LiveReadResult::Absent));
    cluster.nodes = hidden;
    cluster.pass(Duration::from_secs(60));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready"]);
    assert_eq!(cluster.sent, [""; 0]);
}

/// Seed 738: a picture without Services, a read that found the Service, and then it went.
#[test]
fn a_service_that_goes_while_it_is_looked_for_stays_gone() {
    let mut cluster = settled(&[("web", 1)]);
    let hidden = std::mem::take(&mut cluster.services);
    cluster.list(WatchedResource::Services);
    cluster.services = hidden;
    let (id, read) = next_look(&mut cluster);
    let found = cluster.look(&read);
    cluster.remove_service(&key("web"));
    while cluster.deliver() {}
    cluster.tell(Input::LiveReadResult(id, found));
    cluster.pass(Duration::from_secs(60));
    let slices: Vec<_> = cluster.slices().iter().map(|slice| slice.meta.key()).collect();
    for slice in slices {
        cluster.remove_object(PublishedResource::Slices, &slice);
    }
    cluster.pass(Duration::from_secs(60));
    assert!(cluster.slices().is_empty(), "{:?}", cluster.sent);
}

/// Seed 998: the answer came while a picture was being told that did not show the slice any more.
#[test]
fn an_answer_during_a_picture_is_judged_by_the_picture() {
    let mut cluster = settled(&[]);
    cluster.is_slow = true;
    cluster.hold(WatchedResource::Slices);
    cluster.put_service(service("web"));
    cluster.step_until(|cluster| !cluster.slices().is_empty());
    let slice = cluster.slices()[0].meta.key();
    cluster.remove_object(PublishedResource::Slices, &slice);
    cluster.forget_news(WatchedResource::Slices);
    cluster.tell(Input::Watch(WatchedResource::Slices, WatchSignal::InitStarted));
    cluster.run();
    cluster.tell(Input::Watch(WatchedResource::Slices, WatchSignal::InitDone(cluster.version())));
    cluster.release();
    cluster.pass(Duration::from_secs(60));
    assert_eq!(cluster.slices().len(), 1);
}
