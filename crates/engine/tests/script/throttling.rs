//! Writes that the API server answers with 429, or with 503 and `Retry-After`.

use std::time::Duration;

use endpointd_engine::{Input, KeyState};
use endpointd_memory_api::NamespaceState;
use endpointd_model::{Key, Pod, Service};

use crate::cluster::{Cluster, WriteFault};
use crate::objects::{converged, endpoints, key, pod, ready, service, unready};

/// The slices and the Endpoints of a key are written at the same time, and throttled both.
fn throttle_both(cluster: &mut Cluster, secs: u32) {
    cluster.write_faults.extend([WriteFault::Throttled(secs), WriteFault::Throttled(secs)]);
}

#[test]
fn throttled_key_waits_for_retry_after_and_others_do_not() {
    let mut cluster = converged(&[("web", 1), ("api", 1)]);
    throttle_both(&mut cluster, 20);
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    cluster.clear_log();
    cluster.change_pod(&key("api-0"), unready);
    cluster.run();
    assert_eq!(endpoints(&cluster, "api"), ["10.0.0.1 unready"], "at once");
    cluster.change_pod(&key("web-0"), ready);
    cluster.change_pod(&key("web-0"), unready);
    cluster.advance(Duration::from_secs(19));
    assert!(!cluster.sent.iter().any(|sent| sent.contains("web")), "{:?}", cluster.sent);
    let waiting = cluster.report().keys;
    assert_eq!(waiting.len(), 2);
    for one in &waiting {
        assert!(matches!(one.state, KeyState::BackingOff { .. }), "{one:?}");
        assert_eq!(one.last_result, Some("throttled"));
        assert!(one.last_error.is_some(), "{one:?}");
    }
    cluster.advance(Duration::from_secs(1));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 unready"]);
    assert!(cluster.report().keys.is_empty());
}

#[test]
fn retry_after_counts_for_thirty_seconds_at_most() {
    let mut cluster = converged(&[("web", 1)]);
    throttle_both(&mut cluster, 600);
    cluster.change_pod(&key("web-0"), unready);
    cluster.advance(Duration::from_secs(29));
    assert_eq!(cluster.sent.len(), 2, "{:?}", cluster.sent);
    cluster.advance(Duration::from_secs(1));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 unready"]);
}

/// The process is the leader again before the time is over.
#[test]
fn throttled_key_waits_also_after_a_change_of_leadership() {
    let mut cluster = converged(&[("web", 1)]);
    throttle_both(&mut cluster, 20);
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    cluster.clear_log();
    cluster.handle(Input::LeadershipLost);
    cluster.advance(Duration::from_secs(5));
    cluster.handle(Input::LeadershipAcquired);
    cluster.advance(Duration::from_secs(14));
    assert_eq!(cluster.sent, [""; 0]);
    cluster.advance(Duration::from_secs(1));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 unready"]);
    assert!(cluster.report().keys.is_empty());
}

/// Another Service of this name is created while another process leads.
#[test]
fn throttled_key_waits_also_after_its_service_was_replaced_without_leadership() {
    let mut cluster = converged(&[("web", 1)]);
    throttle_both(&mut cluster, 20);
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    cluster.clear_log();
    cluster.handle(Input::LeadershipLost);
    cluster.remove_service(&key("web"));
    cluster.put_service(Service { uid: "another".into(), ..service("web") });
    cluster.advance(Duration::from_secs(5));
    cluster.handle(Input::LeadershipAcquired);
    cluster.advance(Duration::from_secs(14));
    assert_eq!(cluster.sent, [""; 0]);
    cluster.advance(Duration::from_secs(1));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 unready"]);
    assert!(cluster.report().keys.is_empty());
}

#[test]
fn throttled_key_waits_also_if_the_response_arrives_without_leadership() {
    let mut cluster = converged(&[("web", 1)]);
    throttle_both(&mut cluster, 20);
    cluster.responses_last = true;
    cluster.change_pod(&key("web-0"), unready);
    cluster.step_until_sent(2);
    cluster.handle(Input::LeadershipLost);
    cluster.run();
    cluster.clear_log();
    cluster.handle(Input::LeadershipAcquired);
    cluster.advance(Duration::from_secs(19));
    assert_eq!(cluster.sent, [""; 0]);
    cluster.advance(Duration::from_secs(1));
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 unready"]);
}

/// A webhook of one namespace throttles all of its Services.
#[test]
fn throttled_namespace_does_not_delay_others() {
    let names: Vec<String> = (0..20).map(|n| format!("s{n}")).collect();
    let services: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let mut cluster = converged(&services);
    cluster.api.namespaces.insert("other".into(), NamespaceState::Active);
    cluster.put_service(Service { namespace: "other".into(), ..service("far") });
    cluster.put_pod(Pod { namespace: "other".into(), ..pod("far-0") });
    cluster.advance(Duration::from_secs(1));
    cluster.write_faults.extend(vec![WriteFault::Throttled(600); 40]);
    names.iter().for_each(|name| cluster.change_pod(&key(&format!("{name}-0")), unready));
    cluster.run();
    assert_eq!(cluster.report().throttled_for, None);
    cluster.clear_log();
    cluster.change_pod(&Key::new("other", "far-0"), unready);
    cluster.run();
    assert_eq!(cluster.sent.len(), 2, "{:?}", cluster.sent);
}

/// An overloaded API server throttles all clients.
#[test]
fn all_keys_wait_while_keys_of_several_namespaces_are_throttled() {
    let mut cluster = converged(&[("web", 1), ("api", 1), ("db", 1)]);
    cluster.api.namespaces.insert("other".into(), NamespaceState::Active);
    cluster.put_service(Service { namespace: "other".into(), ..service("far") });
    cluster.put_pod(Pod { namespace: "other".into(), ..pod("far-0") });
    cluster.advance(Duration::from_secs(1));
    cluster.clear_log();
    cluster.write_faults.extend(vec![WriteFault::Throttled(7); 5]);
    cluster.change_pod(&key("web-0"), unready);
    cluster.change_pod(&key("api-0"), unready);
    cluster.change_pod(&Key::new("other", "far-0"), unready);
    cluster.run();
    cluster.change_pod(&key("db-0"), unready);
    cluster.advance(Duration::from_secs(6));
    assert_eq!(cluster.sent.len(), 5, "none after that of the second namespace");
    assert!(cluster.report().throttled_for.is_some());
    cluster.advance(Duration::from_secs(1));
    assert_eq!(cluster.sent.len(), 5 + 8, "{:?}", cluster.sent);
}
