//! Writes that are answered 5xx, or not at all (F12, F40), and slowly.

use std::thread;
use std::time::{Duration, Instant};

use endpointd_fault_proxy::{AdmissionWebhook, Answer, Fault, Requests, Verdict};
use endpointd_scenarios::convergence::converge_within;
use endpointd_scenarios::daemon::Daemon;
use endpointd_scenarios::proxied_cluster::{
    toggle, wait_until, web, web_expected, web_unpublished,
};
use endpointd_scenarios::test_namespace::Kind;
use endpointd_scenarios::{ProxiedCluster, TestNamespace};
use serde_json::json;

use crate::shared::Group;
use crate::webhooks::{WebhookKind, register};

static GROUP: Group = Group::new();

const RECOVERY_MAX: Duration = Duration::from_secs(30);
const SLOW_WEBHOOK: Duration = Duration::from_secs(10);
const N_SLOW_SERVICES: usize = 50;
/// Includes the time of the test's own requests.
const REMOVAL_MAX: Duration = Duration::from_secs(8);
const RECREATIONS: u64 = 12;
const RECREATED_MAX: Duration = Duration::from_secs(40);
const DURING_ERRORS: Duration = Duration::from_secs(5);
const N_SERVICES: usize = 30;
/// After the errors end.
const ALL_PUBLISHED_MAX: Duration = Duration::from_secs(12);

/// Each fault hits the first two writes of its namespace: the creates of a slice and of Endpoints.
pub fn error_responses_and_lost_requests_leave_no_duplicates() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let _daemon = cluster.daemon("errors", &cluster.flags());
    let mut faults = vec![
        ("lost-request".to_owned(), Fault::LoseRequest),
        ("lost-response".to_owned(), Fault::LoseResponse),
    ];
    for code in [500, 503, 504] {
        faults.push((format!("not-applied-{code}"), Fault::status(code)));
        faults.push((format!("applied-{code}"), Fault::ApplyAndAnswer(Answer::error(code))));
    }
    thread::scope(|scope| {
        for (namespace, fault) in &faults {
            scope.spawn(|| published_despite(cluster, namespace, fault.clone()));
        }
    });
}

fn published_despite(cluster: &ProxiedCluster, namespace: &str, fault: Fault) {
    let first = Requests::writes_of_endpoints().namespace(namespace).occurrences(0..2);
    let injected = cluster.proxy.inject(first, fault);
    let ns = web_unpublished(cluster.api(), namespace, 2);
    injected.wait_until_fired(2, RECOVERY_MAX);
    let converged = converge_within(RECOVERY_MAX, ns.api(), ns.namespace(), &web_expected(1..=2));
    converged.unwrap_or_else(|error| panic!("{ns}: {error}"));
    assert_eq!(ns.slice_names("web").len(), 1, "{ns}");
}

/// Every other write has the fault. The API server deletes Endpoints with their Service, so events,
/// responses, and live reads about two objects of one name come in many orders.
pub fn recreated_services_are_published_despite_faults() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let daemon = cluster.daemon("recreated", &cluster.flags());
    let faults = [
        ("slow", Fault::DelayResponse(Duration::from_millis(150))),
        ("late", Fault::DelayRequest(Duration::from_millis(150))),
        ("failed", Fault::status(500)),
        ("conflict", Fault::status(409)),
        ("lost-request", Fault::LoseRequest),
        ("lost-response", Fault::LoseResponse),
    ];
    thread::scope(|scope| {
        for (name, fault) in faults {
            let namespace = format!("recreated-{name}");
            scope.spawn(move || recreated(cluster, &namespace, fault));
        }
    });
    drop(daemon);
}

fn recreated(cluster: &ProxiedCluster, namespace: &str, fault: Fault) {
    let ns = web(cluster.api(), namespace, 2);
    let service = ns.get(Kind::Service, "web").expect("the Service is there");
    let writes = Requests::writes_of_endpoints().namespace(namespace);
    for round in 0..RECREATIONS {
        let injected = cluster.proxy.inject(writes.clone().every(2), fault.clone());
        ns.delete(Kind::Service, "web");
        thread::sleep(Duration::from_millis(round * 7));
        ns.service(
            "web",
            &json!({
                "selector": service["spec"]["selector"], "ports": service["spec"]["ports"],
            }),
        );
        let converged = converge_within(RECREATED_MAX, ns.api(), namespace, &web_expected(1..=2));
        converged.unwrap_or_else(|error| panic!("{ns}, round {round}: {error}"));
        drop(injected);
    }
}

pub fn services_created_while_writes_fail_are_published_at_once_after() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let daemon = cluster.daemon("created", &cluster.flags());
    let ns = TestNamespace::new(cluster.api(), "created-meanwhile");
    let failing = cluster
        .proxy
        .inject(Requests::writes_of_endpoints().namespace(ns.namespace()), Fault::status(500));
    let started = Instant::now();
    for n in 0..N_SERVICES {
        let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80}]});
        ns.service(&format!("web-{n}"), &spec);
    }
    failing.wait_until_fired(N_SERVICES, DURING_ERRORS);
    thread::sleep(DURING_ERRORS.saturating_sub(started.elapsed()));
    drop(failing);
    let ended = Instant::now();
    wait_until("all Services are published", ALL_PUBLISHED_MAX, || {
        (0..N_SERVICES).all(|n| !ns.slice_names(&format!("web-{n}")).is_empty())
    });
    println!("{N_SERVICES} Services were published {:?} after the errors", ended.elapsed());
    assert_limiter_untouched(&daemon);
}

fn assert_limiter_untouched(daemon: &Daemon) {
    let deletions = daemon.metric("endpointd_deletion_limiter_deletions_last_minute");
    assert_eq!(deletions, Some(0.0), "a create is no deletion");
    assert!(!daemon.log().contains("unusually many"), "{}", daemon.log());
}

pub fn slow_webhook_does_not_delay_other_namespaces() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let _daemon = cluster.daemon("slow", &cluster.flags());
    let neighbour = web(cluster.api(), "beside-the-slow-one", 2);
    let ns = TestNamespace::new(cluster.api(), "slow-webhook");
    let webhook = AdmissionWebhook::start(cluster.directory(), Verdict::AllowAfter(SLOW_WEBHOOK))
        .expect("a port is free");
    let client_config = webhook.client_config(&cluster.authority());
    let registered = register(cluster, &ns, WebhookKind::Validating, &client_config);
    for n in 0..N_SLOW_SERVICES {
        let spec = json!({"selector": {"app": "slow"}, "ports": [{"port": 80}]});
        ns.service(&format!("slow-{n}"), &spec);
    }
    wait_until("the webhook is asked", RECOVERY_MAX, || webhook.n_asked() >= 5);
    for round in 0..6 {
        let latency = toggle(&neighbour, 1, round % 2 == 1, REMOVAL_MAX);
        println!("beside a slow webhook: {latency:?}");
    }
    drop(registered);
}
