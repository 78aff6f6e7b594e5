//! Other clients that change our objects again and again.

use std::time::Duration;

use endpointd_engine::KeyState;
use endpointd_model::{Conditions, Endpoint, EndpointSlice, LiveRead, Object, PublishedResource};

use crate::cluster::Cluster;
use crate::objects::{addresses, converged, endpoints, key, pod, ready, unready};

const WRITES_MAX: usize = 10;

/// Adds a label to every slice that lacks it.
fn relabel(cluster: &mut Cluster) {
    let slices: Vec<EndpointSlice> = cluster.slices().into_iter().cloned().collect();
    for mut slice in slices.into_iter().filter(|slice| !slice.meta.labels.has("team", "x")) {
        slice.meta.labels = slice.meta.labels.with("team", Some("x"));
        cluster.put_object(Object::Slice(slice));
    }
}

/// The other client acts every 100 ms.
fn fight(cluster: &mut Cluster, time: Duration, edit: impl Fn(&mut Cluster)) {
    for _ in 0..time.as_millis() / 100 {
        edit(cluster);
        cluster.advance(Duration::from_millis(100));
    }
}

fn n_sent(cluster: &Cluster, resource: &str) -> usize {
    cluster.sent.iter().filter(|sent| sent.contains(resource)).count()
}

#[test]
fn relabelled_slice_is_repaired_a_few_times_a_minute() {
    let mut cluster = converged(&[("web", 2)]);
    for minute in 0..3 {
        cluster.clear_log();
        fight(&mut cluster, Duration::from_secs(60), relabel);
        let n = n_sent(&cluster, "endpointslices");
        assert!((2..=WRITES_MAX).contains(&n), "{n} in minute {minute}");
    }
    relabel(&mut cluster);
    cluster.run();
    let report = cluster.report();
    let contested: usize = report.controllers.iter().map(|one| one.n_contested).sum();
    assert!(contested >= 1, "{report:?}");
    let row = report.keys.iter().find(|row| row.is_contested).expect("it is shown");
    let error = row.last_error.as_deref().expect("it says who");
    assert!(error.contains("field manager `other-client`"), "{error}");
    assert!(matches!(row.state, KeyState::BackingOff { .. }), "{row:?}");
    assert_eq!(row.n_failures, 0);
    // The other client ends: the last repair follows, and the key counts as contested for a minute.
    cluster.advance(Duration::from_secs(31));
    assert!(cluster.slices().iter().all(|slice| !slice.meta.labels.contains_key("team")));
    cluster.advance(Duration::from_secs(60));
    let report = cluster.report();
    assert!(report.keys.is_empty(), "{report:?}");
}

#[test]
fn contested_key_removes_dead_endpoints_at_once() {
    let mut cluster = converged(&[("web", 4)]);
    fight(&mut cluster, Duration::from_secs(10), relabel);
    for n in 0..3 {
        cluster.change_pod(&key(&format!("web-{n}")), unready);
        cluster.run();
        let n_unready = endpoints(&cluster, "web").iter().filter(|one| one.contains("un")).count();
        assert_eq!(n_unready, n + 1, "at once");
        fight(&mut cluster, Duration::from_secs(1), relabel);
    }
    cluster.remove_pod(&key("web-3"));
    cluster.put_pod(pod("web-7"));
    cluster.run();
    assert_eq!(endpoints(&cluster, "web").len(), 4, "a new pod need not wait either");
}

#[test]
fn endpoint_that_another_client_adds_is_removed_a_few_times_a_minute() {
    let mut cluster = converged(&[("web", 1)]);
    let add = |cluster: &mut Cluster| {
        let mut slice = cluster.slices()[0].clone();
        if slice.endpoints.len() < 2 {
            let conditions = Conditions { ready: Some(true), ..Conditions::default() };
            let addresses = vec!["10.9.9.9".into()];
            slice.endpoints.push(Endpoint { addresses, conditions, ..Endpoint::default() });
            cluster.put_object(Object::Slice(slice));
        }
    };
    fight(&mut cluster, Duration::from_secs(60), add);
    let n = n_sent(&cluster, "endpointslices");
    assert!((8..=WRITES_MAX).contains(&n), "{n}");
    cluster.advance(Duration::from_secs(31));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready"]);
}

#[test]
fn slices_and_endpoints_that_another_client_deletes_come_back_a_few_times_a_minute() {
    let mut cluster = converged(&[("web", 1)]);
    fight(&mut cluster, Duration::from_secs(60), |cluster| {
        for (resource, key) in cluster.published() {
            cluster.remove_object(resource, &key);
        }
    });
    for resource in ["endpointslices", "endpoints "] {
        let n = n_sent(&cluster, resource);
        assert!((8..=WRITES_MAX).contains(&n), "{n} of {resource}");
    }
    cluster.advance(Duration::from_secs(31));
    assert_eq!(addresses(&cluster, "web"), ["10.0.0.1"]);
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready"]);
}

#[test]
fn few_edits_are_repaired_at_once_and_nobody_is_asked() {
    let mut cluster = converged(&[("web", 1)]);
    for _ in 0..5 {
        relabel(&mut cluster);
        cluster.advance(Duration::from_secs(1));
        assert!(!cluster.slices()[0].meta.labels.contains_key("team"));
    }
    assert_eq!(cluster.live_reads, []);
    assert!(cluster.report().keys.is_empty());
}

/// Changes of pods are no edits of another client, however often they come.
#[test]
fn flapping_pod_is_no_contest() {
    let mut cluster = converged(&[("web", 1)]);
    for _ in 0..50 {
        cluster.change_pod(&key("web-0"), unready);
        cluster.advance(Duration::from_millis(500));
        cluster.change_pod(&key("web-0"), ready);
        cluster.advance(Duration::from_millis(500));
    }
    assert_eq!(n_sent(&cluster, "endpointslices"), 100);
    assert!(cluster.report().keys.is_empty());
}

/// The other client is so quick that its edit is reported before the response to our write.
#[test]
fn edits_during_a_write_are_contested_too() {
    let mut cluster = converged(&[("web", 1)]);
    cluster.responses_last = true;
    relabel(&mut cluster);
    let end = cluster.now + Duration::from_secs(60);
    while cluster.now < end {
        let before = cluster.sent.len();
        for _ in 0..1000 {
            if !cluster.step() {
                break;
            }
            relabel(&mut cluster);
        }
        assert!(cluster.sent.len() - before < 20, "{:?}", cluster.sent);
        cluster.advance(Duration::from_millis(500));
    }
    let n = n_sent(&cluster, "endpointslices");
    assert!((8..=2 * WRITES_MAX).contains(&n), "{n}");
    let slice = cluster.slices()[0].meta.key();
    let asked = LiveRead::FieldManager(PublishedResource::Slices, slice);
    assert!(cluster.live_reads.contains(&asked), "{:?}", cluster.live_reads);
}

/// Refused repairs are limited by themselves; another client cannot have undone them.
#[test]
fn refused_repairs_do_not_make_a_key_contested() {
    let mut cluster = converged(&[("web", 0)]);
    cluster.rejects = Some(|_| true);
    let mut slice = cluster.slices()[0].clone();
    slice.meta.name = "by-hand".into();
    slice.meta.uid = "by-hand".into();
    let addresses = vec!["192.0.2.7".into()];
    slice.endpoints = vec![Endpoint { addresses, ..Endpoint::default() }];
    cluster.put_object(Object::Slice(slice));
    cluster.advance(Duration::from_secs(20));
    assert_eq!(cluster.sent.len(), 8, "two writes four times: {:?}", cluster.sent);
    cluster.rejects = None;
    cluster.advance(Duration::from_secs(31));
    let published = cluster.slices();
    assert_eq!((published.len(), published[0].endpoints.len()), (1, 0), "{:?}", cluster.sent);
}
