//! Slices are written before Endpoints, which wait for at most 25 ms.

use std::time::Duration;

use endpointd_engine::{Effect, Input};
use endpointd_model::{Object, Pod, PublishedResource, Readiness, Timestamp, Write, names};

use crate::cluster::Cluster;
use crate::objects::{addresses, converged, endpoints, key, pod, unready};

const MILLI: Duration = Duration::from_millis(1);

/// The writes sent at this time; none of them is answered.
fn writes_now(cluster: &mut Cluster) -> Vec<Write> {
    while cluster.deliver() {}
    let effects = std::iter::from_fn(|| cluster.engine.next(cluster.now));
    let sent = effects.filter_map(|effect| match effect {
        Effect::Send { write, .. } => Some(*write),
        _ => None,
    });
    sent.collect()
}

fn resources_sent_now(cluster: &mut Cluster) -> Vec<PublishedResource> {
    writes_now(cluster).iter().map(Write::resource).collect()
}

fn unready_since(second: i64) -> impl Fn(&mut Pod) {
    let since = Timestamp::from_second(second).ok();
    move |pod| pod.readiness = Some(Readiness { is_ready: false, since })
}

#[test]
fn slices_are_written_before_endpoints_in_any_dequeue_order() {
    let mut cluster = converged(&[("web", 2), ("api", 2)]);
    cluster.responses_last = true;
    for _ in 0..3 {
        cluster.clear_log();
        cluster.change_pod(&key("web-0"), unready);
        cluster.remove_object(PublishedResource::Endpoints, &key("api"));
        cluster.run();
        let position = |what: &str| cluster.sent.iter().position(|sent| sent.starts_with(what));
        assert!(position("update endpointslices") < position("update endpoints web"));
        assert_eq!(addresses(&cluster, "web"), ["10.0.0.2", "(10.0.0.1)"]);
        cluster.change_pod(&key("web-0"), crate::objects::ready);
        cluster.advance(Duration::from_secs(1));
    }
}

#[test]
fn unanswered_slice_write_delays_endpoints_by_25_ms_at_most() {
    // The second is large enough for a cooldown after each plan.
    for n_pods in [2, 150] {
        let mut cluster = converged(&[("web", n_pods)]);
        cluster.advance(Duration::from_secs(1));
        cluster.change_pod(&key("web-0"), unready);
        assert_eq!(resources_sent_now(&mut cluster), [PublishedResource::Slices]);
        cluster.now = cluster.now + 24 * MILLI;
        assert_eq!(resources_sent_now(&mut cluster), []);
        cluster.now = cluster.engine.wake_at().expect("Endpoints wait");
        assert_eq!(resources_sent_now(&mut cluster), [PublishedResource::Endpoints]);
    }
}

#[test]
fn continuous_changes_do_not_extend_the_endpoints_delay() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.put_pod(pod("web-2"));
    assert_eq!(resources_sent_now(&mut cluster), [PublishedResource::Slices]);
    for n in 3..8 {
        cluster.now = cluster.now + 4 * MILLI;
        cluster.put_pod(pod(&format!("web-{n}")));
        assert_eq!(resources_sent_now(&mut cluster), []);
    }
    cluster.now = cluster.now + 5 * MILLI;
    assert_eq!(resources_sent_now(&mut cluster), [PublishedResource::Endpoints]);
}

#[test]
fn endpoints_changed_while_deferred_are_written_once() {
    let mut cluster = converged(&[("web", 3)]);
    cluster.change_pod(&key("web-0"), unready_since(100));
    assert_eq!(resources_sent_now(&mut cluster), [PublishedResource::Slices]);
    cluster.now = cluster.now + 4 * MILLI;
    cluster.change_pod(&key("web-1"), unready_since(200));
    assert_eq!(resources_sent_now(&mut cluster), []);
    cluster.now = cluster.engine.wake_at().expect("Endpoints wait");
    let writes = writes_now(&mut cluster);
    let [Write::Update(Object::Endpoints(written))] = &*writes else { panic!("{writes:?}") };
    assert_eq!(written.subsets[0].not_ready_addresses.len(), 2);
    let first_change = written.meta.annotations.get(names::TRIGGER_TIME);
    assert_eq!(first_change.map(|time| &**time), Some("1970-01-01T00:01:40Z"));
}

#[test]
fn lost_leadership_drops_deferred_plans() {
    let mut cluster = converged(&[("web", 2)]);
    let n_in_flight = |cluster: &Cluster| -> usize {
        cluster.report().controllers.iter().map(|one| one.n_in_flight).sum()
    };
    cluster.change_pod(&key("web-0"), unready);
    assert_eq!(resources_sent_now(&mut cluster), [PublishedResource::Slices]);
    assert_eq!(n_in_flight(&cluster), 2);
    cluster.handle(Input::LeadershipLost);
    assert_eq!(n_in_flight(&cluster), 1, "only the sync whose write was sent");
    cluster.now = cluster.now + 60 * MILLI;
    assert_eq!(resources_sent_now(&mut cluster), []);
    cluster.handle(Input::LeadershipAcquired);
    assert_eq!(
        resources_sent_now(&mut cluster),
        [PublishedResource::Endpoints],
        "the slices are unanswered"
    );
}

#[test]
fn failed_slice_write_releases_endpoints_at_once() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.responses_last = true;
    cluster.rejects = Some(|write| write.resource() == PublishedResource::Slices);
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    assert_eq!(addresses(&cluster, "web"), ["10.0.0.2", "(10.0.0.1)"], "at once");
    cluster.rejects = None;
    cluster.advance(Duration::from_secs(60));
    assert_eq!(endpoints(&cluster, "web")[0], "10.0.0.1 unready");
}

#[test]
fn endpoints_without_a_pending_slice_sync_are_written_at_once() {
    let mut cluster = converged(&[("web", 2)]);
    let mut edited = cluster.object(PublishedResource::Endpoints, &key("web")).expect("stored");
    if let Object::Endpoints(endpoints) = &mut edited {
        endpoints.subsets.clear();
    }
    cluster.put_object(edited);
    assert_eq!(resources_sent_now(&mut cluster), [PublishedResource::Endpoints]);
}
