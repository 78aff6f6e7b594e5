//! 429, and 503 with Retry-After (F11).

use std::thread;
use std::time::{Duration, Instant};

use endpointd_fault_proxy::{Answer, Fault, Injected, Requests};
use endpointd_scenarios::ProxiedCluster;
use endpointd_scenarios::convergence::converge_within;
use endpointd_scenarios::proxied_cluster::{toggle, wait_until, web, web_expected};

use crate::shared::Group;

static GROUP: Group = Group::new();

const FIRED_MAX: Duration = Duration::from_secs(20);
/// Retry-After counts for 30 seconds at most.
const RECOVERY_MAX: Duration = Duration::from_secs(45);
/// Includes the time of the test's own requests.
const NEIGHBOUR_MAX: Duration = Duration::from_secs(8);

fn throttle(cluster: &ProxiedCluster, namespace: &str, answer: Answer) -> Injected {
    let writes = Requests::writes_of_endpoints().namespace(namespace).occurrences(0..2);
    cluster.proxy.inject(writes, Fault::Answer(answer))
}

/// One namespace for each value of the header; removals in another one are not delayed.
pub fn throttled_namespaces_wait_and_others_do_not() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let daemon = cluster.daemon("throttled", &cluster.elected());
    let answers = [
        ("throttled-0", 0, Answer::error(429).retry_after("0")),
        ("throttled-1", 1, Answer::error(429).retry_after("1")),
        ("throttled-malformed", 0, Answer::error(429).retry_after("soon")),
        ("throttled-503", 3, Answer::error(503).retry_after("3")),
    ];
    thread::scope(|scope| {
        for (namespace, least_secs, answer) in answers {
            scope.spawn(move || {
                let ns = web(cluster.api(), namespace, 2);
                let throttled = throttle(cluster, namespace, answer);
                let started = Instant::now();
                ns.web_pods(3..=3, &["a"]);
                throttled.wait_until_fired(2, FIRED_MAX);
                let converged =
                    converge_within(RECOVERY_MAX, ns.api(), namespace, &web_expected(1..=3));
                converged.unwrap_or_else(|error| panic!("{ns}: {error}"));
                let least = Duration::from_secs(least_secs);
                assert!(started.elapsed() >= least, "{namespace} after {:?}", started.elapsed());
            });
        }
    });

    let neighbour = web(cluster.api(), "beside-a-throttled-one", 2);
    let ns = web(cluster.api(), "throttled-600", 2);
    let throttled = throttle(cluster, "throttled-600", Answer::error(429).retry_after("600"));
    let started = Instant::now();
    ns.web_pods(3..=3, &["a"]);
    throttled.wait_until_fired(2, FIRED_MAX);
    let latency = toggle(&neighbour, 1, false, NEIGHBOUR_MAX);
    println!("beside a key with Retry-After 600: {latency:?}");
    wait_until("the key shows why it waits", NEIGHBOUR_MAX, || {
        let rows = daemon.key_rows("throttled-600/web");
        rows.iter().any(|row| row["lastError"].as_str().unwrap_or_default().contains("429"))
    });
    let converged = converge_within(RECOVERY_MAX, ns.api(), "throttled-600", &web_expected(1..=3));
    converged.unwrap_or_else(|error| panic!("{ns}: {error}"));
    println!("Retry-After 600: published after {:?}", started.elapsed());
    let writes = cluster.writes_since("throttled-600", started);
    let n_early = writes.iter().filter(|one| one.started < started + RECOVERY_MAX / 2).count();
    // Each of the two controllers has one write, whose answer was 429.
    assert_eq!(n_early, 2, "no write before the time is over");
    assert!(!daemon.log().contains("lost leadership"), "{}", daemon.log());
}
