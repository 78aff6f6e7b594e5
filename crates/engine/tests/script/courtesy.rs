//! Slices go before Endpoints, and neither holds up the other for long.

use std::time::Duration;

use endpointd_engine::{Effect, Input};
use endpointd_model::{Object, Pod, PublishedResource, Readiness, Timestamp, Write, names};

use crate::cluster::Cluster;
use crate::objects::{addresses, endpoints, key, pod, settled, unready};

const MILLI: Duration = Duration::from_millis(1);

/// What is sent at this moment, without an answer to any of it.
fn writes_now(cluster: &mut Cluster) -> Vec<Write> {
    while cluster.deliver() {}
    let effects = std::iter::from_fn(|| cluster.engine.next(cluster.now));
    let sent = effects.filter_map(|effect| match effect {
        Effect::Send { write, .. } => Some(*write),
        _ => None,
    });
    sent.collect()
}

fn sent_now(cluster: &mut Cluster) -> Vec<PublishedResource> {
    writes_now(cluster).iter().map(Write::resource).collect()
}

fn unready_since(second: i64) -> impl Fn(&mut Pod) {
    let since = Timestamp::from_second(second).ok();
    move |pod| pod.readiness = Some(Readiness { is_ready: false, since })
}

#[test]
fn slices_are_written_first_whichever_controller_has_its_turn() {
    let mut cluster = settled(&[("web", 2), ("api", 2)]);
    cluster.is_slow = true;
    for _ in 0..3 {
        cluster.forget_log();
        cluster.change_pod(&key("web-0"), unready);
        cluster.remove_object(PublishedResource::Endpoints, &key("api"));
        cluster.run();
        let place = |what: &str| cluster.sent.iter().position(|sent| sent.starts_with(what));
        assert!(place("update endpointslices") < place("update endpoints web"));
        assert_eq!(addresses(&cluster, "web"), ["10.0.0.2", "(10.0.0.1)"]);
        cluster.change_pod(&key("web-0"), crate::objects::ready);
        cluster.pass(Duration::from_secs(1));
    }
}

#[test]
fn slices_without_an_answer_hold_up_endpoints_for_a_moment_only() {
    // The second is large enough to rest after each plan.
    for n_pods in [2, 150] {
        let mut cluster = settled(&[("web", n_pods)]);
        cluster.pass(Duration::from_secs(1));
        cluster.change_pod(&key("web-0"), unready);
        assert_eq!(sent_now(&mut cluster), [PublishedResource::Slices]);
        cluster.now = cluster.now + 24 * MILLI;
        assert_eq!(sent_now(&mut cluster), []);
        cluster.now = cluster.engine.wake_at().expect("Endpoints wait");
        assert_eq!(sent_now(&mut cluster), [PublishedResource::Endpoints]);
    }
}

#[test]
fn changes_that_keep_coming_do_not_prolong_the_wait() {
    let mut cluster = settled(&[("web", 2)]);
    cluster.put_pod(pod("web-2"));
    assert_eq!(sent_now(&mut cluster), [PublishedResource::Slices]);
    for n in 3..8 {
        cluster.now = cluster.now + 4 * MILLI;
        cluster.put_pod(pod(&format!("web-{n}")));
        assert_eq!(sent_now(&mut cluster), []);
    }
    cluster.now = cluster.now + 5 * MILLI;
    assert_eq!(sent_now(&mut cluster), [PublishedResource::Endpoints]);
}

#[test]
fn endpoints_overtaken_while_they_wait_are_written_once_for_all_changes() {
    let mut cluster = settled(&[("web", 3)]);
    cluster.change_pod(&key("web-0"), unready_since(100));
    assert_eq!(sent_now(&mut cluster), [PublishedResource::Slices]);
    cluster.now = cluster.now + 4 * MILLI;
    cluster.change_pod(&key("web-1"), unready_since(200));
    assert_eq!(sent_now(&mut cluster), []);
    cluster.now = cluster.engine.wake_at().expect("Endpoints wait");
    let writes = writes_now(&mut cluster);
    let [Write::Update(Object::Endpoints(written))] = &*writes else { panic!("{writes:?}") };
    assert_eq!(written.subsets[0].not_ready_addresses.len(), 2);
    let first_change = written.meta.annotations.get(names::TRIGGER_TIME);
    assert_eq!(first_change.map(|time| &**time), Some("1970-01-01T00:01:40Z"));
}

#[test]
fn who_stops_leading_drops_what_waits() {
    let mut cluster = settled(&[("web", 2)]);
    let n_in_flight = |cluster: &Cluster| -> usize {
        cluster.report().controllers.iter().map(|one| one.n_in_flight).sum()
    };
    cluster.change_pod(&key("web-0"), unready);
    assert_eq!(sent_now(&mut cluster), [PublishedResource::Slices]);
    assert_eq!(n_in_flight(&cluster), 2);
    cluster.tell(Input::LeadershipLost);
    assert_eq!(n_in_flight(&cluster), 1, "only what was sent");
    cluster.now = cluster.now + 60 * MILLI;
    assert_eq!(sent_now(&mut cluster), []);
    cluster.tell(Input::LeadershipAcquired);
    assert_eq!(sent_now(&mut cluster), [PublishedResource::Endpoints], "the slices are unanswered");
}

#[test]
fn slices_that_fail_hold_up_nothing() {
    let mut cluster = settled(&[("web", 2)]);
    cluster.is_slow = true;
    cluster.refuse = Some(|write| write.resource() == PublishedResource::Slices);
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    assert_eq!(addresses(&cluster, "web"), ["10.0.0.2", "(10.0.0.1)"], "at once");
    cluster.refuse = None;
    cluster.pass(Duration::from_secs(60));
    assert_eq!(endpoints(&cluster, "web")[0], "10.0.0.1 unready");
}

#[test]
fn endpoints_that_alone_are_wrong_wait_for_nobody() {
    let mut cluster = settled(&[("web", 2)]);
    let mut edited = cluster.objects[&(PublishedResource::Endpoints, key("web"))].clone();
    if let Object::Endpoints(endpoints) = &mut edited {
        endpoints.subsets.clear();
    }
    cluster.put_object(edited);
    assert_eq!(sent_now(&mut cluster), [PublishedResource::Endpoints]);
}
