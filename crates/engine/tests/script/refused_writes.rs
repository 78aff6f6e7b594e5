//! Writes that are refused for good while their key keeps changing.

use std::time::Duration;

use endpointd_engine::KeyState;
use endpointd_model::Write;

use crate::cluster::{Cluster, WriteFault};
use crate::objects::{converged, endpoints, key, pod, ready, service, unready};

/// Changes a pod so often, every 200 ms.
fn flap(cluster: &mut Cluster, name: &str, n_changes: usize) {
    for n in 0..n_changes {
        cluster.change_pod(&key(name), if n % 2 == 0 { unready } else { ready });
        cluster.advance(Duration::from_millis(200));
    }
}

#[test]
fn removals_do_not_repeat_refused_writes_without_end() {
    for rejection in [WriteFault::Forbidden, WriteFault::DroppedNoResponse] {
        let mut cluster = converged(&[("web", 1)]);
        cluster.rejects = Some(|_| true);
        cluster.rejection = rejection;
        for minute in 0..3 {
            cluster.clear_log();
            flap(&mut cluster, "web-0", 301);
            let of = |one: &str| cluster.sent.iter().filter(|sent| sent.contains(one)).count();
            let (slices, objects) = (of("endpointslices"), of("endpoints "));
            assert!((1..=10).contains(&slices), "{slices} in minute {minute}");
            assert!((1..=10).contains(&objects), "{objects} in minute {minute}");
        }
        let report = cluster.report();
        assert_eq!(report.keys.len(), 2);
        for one in &report.keys {
            assert!(matches!(one.state, KeyState::BackingOff { .. }), "{one:?}");
            assert!(one.last_error.is_some(), "{one:?}");
        }
        cluster.rejects = None;
        cluster.advance(Duration::from_secs(31));
        assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 unready"]);
        assert!(cluster.report().keys.is_empty());
    }
}

/// A quota refuses the second slice indefinitely.
#[test]
fn refused_creates_delay_no_removal() {
    let mut cluster = converged(&[("web", 100)]);
    cluster.rejects = Some(|write| matches!(write, Write::Create(_)));
    cluster.put_pod(pod("web-100"));
    cluster.run();
    flap(&mut cluster, "web-5", 60);
    cluster.clear_log();
    for n in 0..50 {
        cluster.change_pod(&key(&format!("web-{n}")), unready);
        cluster.run();
        let n_unready = endpoints(&cluster, "web").iter().filter(|one| one.contains("un")).count();
        assert_eq!(n_unready, n + 1, "at once");
        cluster.advance(Duration::from_secs(1));
    }
    let n_creates = cluster.sent.iter().filter(|sent| sent.starts_with("create")).count();
    assert!(n_creates <= 10, "{n_creates} in 50 s");
    cluster.rejects = None;
    cluster.advance(Duration::from_secs(31));
    assert_eq!(endpoints(&cluster, "web").len(), 101);
}

#[test]
fn large_plan_is_tried_with_one_write_and_then_whole() {
    let mut cluster = converged(&[]);
    cluster.rejects = Some(|write| matches!(write, Write::Create(_)));
    (0..2000).for_each(|n| cluster.put_pod(pod(&format!("web-{n}"))));
    cluster.put_service(service("web"));
    cluster.run();
    assert_eq!(cluster.sent.len(), 20 + 1, "all slices, and the Endpoints");
    cluster.clear_log();
    cluster.advance(Duration::from_secs(120));
    let n_creates = cluster.sent.iter().filter(|sent| sent.contains("endpointslices")).count();
    assert!((3..=5).contains(&n_creates), "{n_creates} in two minutes");
    cluster.rejects = None;
    cluster.advance(Duration::from_secs(31));
    assert_eq!(endpoints(&cluster, "web").len(), 2000);
    assert!(cluster.report().keys.is_empty());
}
