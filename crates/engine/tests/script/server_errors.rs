//! Writes that the API server answers with 5xx, or not at all, and that it has not applied.

use std::collections::BTreeSet;
use std::time::Duration;

use endpointd_engine::KeyState;
use endpointd_model::{EventReason, Write};

use crate::cluster::WriteFault;
use crate::objects::{converged, endpoints, key, ready, service, unready};

/// A webhook is down that the API server must ask for every write: 500.
#[test]
fn server_error_is_a_failure_like_any_other() {
    let mut cluster = converged(&[("web", 1)]);
    cluster.rejects = Some(|_| true);
    cluster.rejection = WriteFault::DroppedNoResponse;
    cluster.change_pod(&key("web-0"), unready);
    cluster.advance(Duration::from_secs(60));
    let n_sent = |resource| cluster.sent.iter().filter(|sent| sent.contains(resource)).count();
    assert!((5..=10).contains(&n_sent("endpointslices")), "{:?}", cluster.sent);
    assert!((5..=10).contains(&n_sent("endpoints ")), "{:?}", cluster.sent);
    let reasons: BTreeSet<EventReason> =
        cluster.event_records.iter().map(|record| record.reason).collect();
    let failed = [EventReason::FailedToUpdateEndpoint, EventReason::FailedToUpdateEndpointSlices];
    assert_eq!(reasons, failed.into());
    assert_eq!(cluster.event_records.len(), cluster.sent.len(), "one for each write");
    let report = cluster.report();
    assert_eq!(report.keys.len(), 2);
    for one in &report.keys {
        assert!(matches!(one.state, KeyState::BackingOff { .. }), "{one:?}");
        assert_eq!(one.last_error.as_deref(), Some("no response"));
    }
    cluster.rejects = None;
    cluster.advance(Duration::from_secs(31));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 unready"]);
    assert!(cluster.report().keys.is_empty());
}

/// The change of family replaces the slice of IPv4. Its delete depends on no create.
#[test]
fn write_without_response_does_not_hold_back_independent_deletes() {
    let mut cluster = converged(&[("web", 1)]);
    cluster.rejects = Some(|write| matches!(write, Write::Create(_)));
    cluster.rejection = WriteFault::DroppedNoResponse;
    cluster.put_service(endpointd_model::Service {
        families: vec![endpointd_model::Family::V6],
        cluster_ip: endpointd_model::ClusterIp::Ip(endpointd_model::Family::V6),
        ..service("web")
    });
    cluster.run();
    assert_eq!(endpoints(&cluster, "web"), [""; 0], "the IPv4 endpoints are withdrawn at once");
}

/// That the API server answers again says nothing about a webhook of one namespace.
#[test]
fn keys_with_server_errors_are_expedited_only_when_one_of_them_succeeds() {
    let mut cluster = converged(&[("a", 1), ("b", 1), ("c", 1)]);
    cluster.rejects = Some(|write| !write.key().name.starts_with('c'));
    cluster.rejection = WriteFault::DroppedNoResponse;
    cluster.change_pod(&key("a-0"), unready);
    cluster.change_pod(&key("b-0"), unready);
    cluster.advance(Duration::from_secs(300));
    cluster.clear_log();
    for n in 0..10 {
        cluster.write_faults.extend(vec![WriteFault::Unreachable; 4]);
        cluster.change_pod(&key("c-0"), if n % 2 == 0 { unready } else { ready });
        cluster.advance(Duration::from_secs(6));
    }
    let is_refused = |sent: &&String| !sent.contains(" c");
    let n_refused = cluster.sent.iter().filter(is_refused).count();
    assert!(n_refused <= 16, "{n_refused} in a minute of {:?}", cluster.sent);
    cluster.rejects = None;
    cluster.clear_log();
    cluster.advance(Duration::from_secs(31));
    assert!(cluster.report().keys.is_empty());
}
