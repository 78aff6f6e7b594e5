//! Lists of pods that are empty although the version is current, and lists after a gap in the watch.

use std::thread;
use std::time::{Duration, Instant};

use endpointd_fault_proxy::{Answer, Fault, Requests, Verb};
use endpointd_scenarios::ProxiedCluster;
use endpointd_scenarios::observed_state::ObservedState;
use endpointd_scenarios::pods::web_ips;
use endpointd_scenarios::proxied_cluster::{toggle, wait_until, web, web_expected};

use crate::connections::GROUP;

const RECOVERY_MAX: Duration = Duration::from_secs(30);
/// Includes the time of the test's own requests.
const REMOVED_MAX: Duration = Duration::from_secs(8);
const OBSERVED: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(50);

fn pod_watches() -> Requests {
    Requests::all().verbs(&[Verb::Watch]).resources(&["pods"])
}

fn namespace_lists(namespace: &str) -> Requests {
    Requests::all().verbs(&[Verb::List]).resources(&["pods"]).namespace(namespace)
}

/// The resourceVersion of the cluster now.
fn version(cluster: &ProxiedCluster) -> String {
    let list = cluster.api().get("/api/v1/pods?limit=1").expect("pods can be listed");
    list["metadata"]["resourceVersion"].as_str().expect("a list has a version").to_owned()
}

pub fn empty_list_of_pods_unpublishes_nothing() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let daemon = cluster.daemon("short-lists", &cluster.flags());
    let ns = web(cluster.api(), "empty-list", 3);
    let started = Instant::now();
    let expired = cluster.proxy.inject(pod_watches().occurrences(0..1), Fault::status(410));
    let empty = Answer::empty_list("v1", "Pod", &version(cluster));
    let empty = cluster.proxy.inject(pod_watches().occurrences(0..1), Fault::Answer(empty));
    cluster.proxy.close_connections();
    expired.wait_until_fired(1, RECOVERY_MAX);
    empty.wait_until_fired(1, RECOVERY_MAX);
    let listed = Instant::now();
    while listed.elapsed() < OBSERVED {
        let state = ObservedState::without_pods(ns.api(), ns.namespace()).expect("it is served");
        assert_eq!(
            state.slice_summary("web"),
            Some(web_ips(1..=3)),
            "after {:?}",
            listed.elapsed()
        );
        thread::sleep(POLL);
    }
    assert_eq!(cluster.writes_since("empty-list", started).len(), 0);
    let n_reads = cluster.proxy.exchanges_of(&namespace_lists("empty-list")).len();
    println!("the namespace was read {n_reads} times");
    assert!((1..=3).contains(&n_reads), "{n_reads}");
    assert!(daemon.log().contains("list older than cache or short"), "{}", daemon.log_end());
    toggle(&ns, 1, false, REMOVED_MAX);
    toggle(&ns, 1, true, REMOVED_MAX);
    drop((expired, empty));

    let unreachable = cluster.proxy.inject(pod_watches(), Fault::status(500));
    cluster.proxy.close_connections();
    unreachable.wait_until_fired(1, RECOVERY_MAX);
    ns.gone("web-2");
    let expired = cluster.proxy.inject(pod_watches().occurrences(0..1), Fault::status(410));
    drop(unreachable);
    expired.wait_until_fired(1, RECOVERY_MAX);
    let relisted = Instant::now();
    wait_until("the pod deleted during the gap is removed", REMOVED_MAX, || {
        let state = ObservedState::without_pods(ns.api(), ns.namespace()).expect("it is served");
        state.slice_summary("web") == Some(web_ips([1, 3]))
    });
    println!("removed {:?} after the watch had expired", relisted.elapsed());
    ns.wait_for(&web_expected([1, 3]));
}
