//! Faults of watches and connections, and relists of everything (F27).

use std::thread;
use std::time::{Duration, Instant};

use endpointd_fault_proxy::{Answer, Fault, Injected, Requests, Verb};
use endpointd_scenarios::convergence::converge_within;
use endpointd_scenarios::proxied_cluster::{toggle, wait_until, web, web_expected};
use endpointd_scenarios::{ProxiedCluster, TestNamespace};
use serde_json::json;

use crate::shared::Group;

/// Also for `credentials`.
pub static GROUP: Group = Group::new();

const RECOVERY_MAX: Duration = Duration::from_secs(30);
const WATCHED: [&str; 5] = ["services", "pods", "nodes", "endpoints", "endpointslices"];
const REFUSED: Duration = Duration::from_secs(4);
const N_SERVICES: usize = 300;
const CREATE_THREADS: usize = 4;
/// Includes the time of the test's own requests.
const DURING_RELIST_MAX: Duration = Duration::from_secs(8);

fn watches() -> Requests {
    Requests::all().verbs(&[Verb::Watch])
}

/// The fault hits the next request of each watch.
fn once_per_watch(cluster: &ProxiedCluster, fault: &Fault) -> [Injected; 5] {
    WATCHED.map(|resource| {
        let next = watches().resources(&[resource]).occurrences(0..1);
        cluster.proxy.inject(next, fault.clone())
    })
}

pub fn cut_and_refused_connections_and_error_answers_lose_nothing() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let mut daemon = cluster.daemon("faulted", &cluster.flags());
    let ns = web(cluster.api(), "faulted", 4);

    let cut = cluster.proxy.inject(watches().occurrences(0..4), Fault::CutBody);
    toggle_all(&ns, "half an event");
    cut.wait_until_fired(2, RECOVERY_MAX);
    drop(cut);

    let on_resume = [
        ("410 on resume", Fault::status(410)),
        ("410 as an event", Fault::Answer(Answer::watch_error(410))),
        ("401 on resume", Fault::status(401)),
        ("500 on resume", Fault::status(500)),
        ("429 on resume", Fault::Answer(Answer::error(429).retry_after("1"))),
    ];
    for (name, fault) in on_resume {
        let injected = once_per_watch(cluster, &fault);
        cluster.proxy.close_connections();
        toggle_all(&ns, name);
        injected.iter().for_each(|one| one.wait_until_fired(1, RECOVERY_MAX));
    }
    conflicts_and_refused_connections(cluster, &ns);

    let converged = converge_within(RECOVERY_MAX, ns.api(), ns.namespace(), &web_expected(1..=4));
    converged.unwrap_or_else(|error| panic!("{ns}: {error}"));
    assert!(daemon.is_running(), "{}", daemon.log());
}

fn conflicts_and_refused_connections(cluster: &ProxiedCluster, ns: &TestNamespace<'_>) {
    let writes = Requests::writes_of_endpoints().namespace(ns.namespace());
    for code in [409, 401] {
        let injected = cluster.proxy.inject(writes.clone().occurrences(0..2), Fault::status(code));
        toggle_all(ns, "writes answered with an error");
        injected.wait_until_fired(2, RECOVERY_MAX);
    }
    let resets = cluster.proxy.reset_connections();
    ns.unready("web-4");
    thread::sleep(REFUSED);
    drop(resets);
    toggle_all(ns, "refused connections");
}

/// Each pod becomes not ready and ready again, and both are published.
fn toggle_all(ns: &TestNamespace<'_>, during: &str) {
    let started = Instant::now();
    for is_ready in [false, true] {
        for n in 1..=4 {
            toggle(ns, n, is_ready, RECOVERY_MAX);
        }
    }
    println!("{during}: eight toggles in {:?}", started.elapsed());
}

pub fn removals_are_fast_while_everything_is_listed_again() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let _daemon = cluster.daemon("relisting", &cluster.flags());
    let many = TestNamespace::new(cluster.api(), "many-services");
    thread::scope(|scope| {
        for first in 0..CREATE_THREADS {
            let many = &many;
            scope.spawn(move || {
                for n in (first..N_SERVICES).step_by(CREATE_THREADS) {
                    let spec = json!({"selector": {"app": "none"}, "ports": [{"port": 80}]});
                    many.service(&format!("service-{n}"), &spec);
                }
            });
        }
    });
    let ns = web(cluster.api(), "while-relisting", 2);
    let expired = once_per_watch(cluster, &Fault::Answer(Answer::watch_error(410)));
    cluster.proxy.close_connections();
    expired.iter().for_each(|one| one.wait_until_fired(1, RECOVERY_MAX));
    let relisted = Instant::now();
    wait_until("all resources are listed again", RECOVERY_MAX, || {
        let all = cluster.proxy.exchanges_of(&watches());
        all.iter().filter(|one| one.started > relisted).count() >= 5
    });
    let mut latencies: Vec<Duration> =
        (0..10).map(|round| toggle(&ns, 1, round % 2 == 1, DURING_RELIST_MAX)).collect();
    latencies.sort();
    println!("toggles while {N_SERVICES} Services are listed again: {latencies:?}");
}
