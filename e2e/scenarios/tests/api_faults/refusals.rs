//! Writes that one namespace refuses for good: a webhook or a policy (F20, F32).

use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::Api;
use endpointd_fault_proxy::{AdmissionWebhook, Verdict};
use endpointd_scenarios::convergence::converge_within;
use endpointd_scenarios::proxied_cluster::{toggle, wait_until, web, web_expected};
use endpointd_scenarios::{Daemon, ProxiedCluster, TestNamespace};
use serde_json::json;

use crate::shared::Group;
use crate::webhooks::{Placed, WebhookKind, deny_by_policy, register};

static GROUP: Group = Group::new();

/// A pod becomes not ready and ready again all the time.
const FLAPPING: Duration = Duration::from_secs(20);
const FLAP_PAUSE: Duration = Duration::from_millis(100);
/// Of the slices of one key in a minute.
const WRITES_MAX: usize = 10;
const SHOWN_MAX: Duration = Duration::from_secs(10);
/// Includes the time of the test's own requests.
const NEIGHBOUR_MAX: Duration = Duration::from_secs(8);
/// Back-off, and the wait for a throttled key, end after 30 seconds.
const RECOVERY_MAX: Duration = Duration::from_secs(45);

/// What the error of the key contains, and whether it is a failure, which has an Event.
struct Refusal {
    namespace: &'static str,
    error: &'static str,
    is_failure: bool,
}

pub fn refused_slices_are_tried_rarely_and_delay_nobody() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let daemon = cluster.daemon("refused", &cluster.flags());
    let neighbour = web(cluster.api(), "beside-the-refused", 2);
    let deny = |code: u16| {
        let details = json!({"retryAfterSeconds": 600});
        let status = json!({"code": code, "message": "not today", "details": details});
        AdmissionWebhook::start(cluster.directory(), Verdict::Deny(status)).expect("a port is free")
    };
    let (denying, throttling) = (deny(403), deny(429));
    let dead = json!({"url": "https://127.0.0.1:1/"});
    thread::scope(|scope| {
        let refuse = |refusal: Refusal, place: &dyn Fn(&TestNamespace<'_>) -> Placed| {
            let ns = web(cluster.api(), refusal.namespace, 2);
            let placed = place(&ns).wait_until_effective(Result::is_err);
            let daemon = &daemon;
            scope.spawn(move || refused_for_good(cluster, daemon, &ns, placed, &refusal));
        };
        let validating = |client_config: serde_json::Value| {
            move |ns: &TestNamespace<'_>| {
                register(cluster, ns, WebhookKind::Validating, &client_config)
            }
        };
        let [namespace, error] = ["dead-webhook", "failed calling webhook"];
        refuse(Refusal { namespace, error, is_failure: true }, &validating(dead));
        let [namespace, error] = ["denying-webhook", "not today"];
        let of_webhook = |webhook: &AdmissionWebhook| webhook.client_config(&cluster.authority());
        refuse(Refusal { namespace, error, is_failure: true }, &validating(of_webhook(&denying)));
        let [namespace, error] = ["throttling-webhook", "429"];
        refuse(
            Refusal { namespace, error, is_failure: false },
            &validating(of_webhook(&throttling)),
        );
        let [namespace, error] = ["denying-policy", "never again"];
        let policy = |ns: &TestNamespace<'_>| deny_by_policy(cluster, ns, error);
        refuse(Refusal { namespace, error, is_failure: true }, &policy);
        for round in 0..4 {
            let latency = toggle(&neighbour, 1, round % 2 == 1, NEIGHBOUR_MAX);
            println!("beside refused namespaces: {latency:?}");
            thread::sleep(FLAPPING / 8);
        }
    });
}

fn refused_for_good(
    cluster: &ProxiedCluster,
    daemon: &Daemon,
    ns: &TestNamespace<'_>,
    placed: Placed,
    refusal: &Refusal,
) {
    let started = Instant::now();
    let mut n_changes = 0;
    while started.elapsed() < FLAPPING {
        if n_changes % 2 == 0 {
            ns.unready("web-1")
        } else {
            ns.ready("web-1")
        };
        n_changes += 1;
        thread::sleep(FLAP_PAUSE);
    }
    ns.unready("web-1");
    let key = format!("{}/web", refusal.namespace);
    wait_until("the key shows the error", SHOWN_MAX, || {
        let text = |row: &serde_json::Value| row["lastError"].as_str().unwrap_or("").to_owned();
        daemon.key_rows(&key).iter().any(|row| text(row).contains(refusal.error))
    });
    let writes = cluster.writes_since(refusal.namespace, started);
    let slices = writes.iter().filter(|write| write.request.resource == "endpointslices");
    let n = slices.count();
    println!("{}: {n} writes of slices after {n_changes} changes", refusal.namespace);
    assert!((1..=WRITES_MAX).contains(&n), "{n} writes of slices in {:?}", started.elapsed());
    if refusal.is_failure {
        assert!(has_event(cluster.api(), refusal.namespace), "no Event in {}", refusal.namespace);
        assert!(daemon.log().contains(refusal.error), "{}", daemon.log());
    }
    drop(placed);
    ns.ready("web-1");
    ns.web_pods(3..=3, &["a"]);
    let converged =
        converge_within(RECOVERY_MAX, ns.api(), refusal.namespace, &web_expected(1..=3));
    converged.unwrap_or_else(|error| panic!("{ns}: {error}"));
}

fn has_event(api: &Api, namespace: &str) -> bool {
    let events = api.get(&format!("/api/v1/namespaces/{namespace}/events")).expect("a list");
    let events = events["items"].as_array().cloned().unwrap_or_default();
    events.iter().any(|event| event["reason"] == "FailedToUpdateEndpointSlices")
}
