//! etcd without space (F22).

use std::time::{Duration, Instant};

use endpointd_control_plane::SpaceAlarm;
use endpointd_fault_proxy::{Fault, Requests};
use endpointd_scenarios::convergence::converge_within;
use endpointd_scenarios::proxied_cluster::{wait_until, web};
use endpointd_scenarios::{Expected, ProxiedCluster};

use crate::limits::GROUP;

/// The alarm is raised before.
const LATE: Duration = Duration::from_secs(2);
const OBSERVED: Duration = Duration::from_secs(20);
const WRITES_MAX: usize = 10;
const SHOWN_MAX: Duration = Duration::from_secs(10);
/// Back-off ends after 30 seconds.
const RECOVERY_MAX: Duration = Duration::from_secs(36);

/// Clears the alarm when the test ends.
struct NoSpace<'a>(&'a ProxiedCluster);

impl<'a> NoSpace<'a> {
    fn begin(cluster: &'a ProxiedCluster) -> Self {
        let raised = cluster.under_test.cluster.set_space_alarm(SpaceAlarm::Raised);
        raised.expect("etcd answers");
        Self(cluster)
    }
}

impl Drop for NoSpace<'_> {
    fn drop(&mut self) {
        let cleared = self.0.under_test.cluster.set_space_alarm(SpaceAlarm::Cleared);
        assert!(cleared.is_ok() || std::thread::panicking(), "{cleared:?}");
    }
}

pub fn etcd_without_space_is_an_error_and_not_a_loop() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let daemon = cluster.daemon("no-space", &cluster.flags());
    let ns = web(cluster.api(), "no-space", 3);
    // Without space the test cannot change a pod, so the write waits until there is none.
    let write = Requests::writes_of_endpoints().namespace(ns.namespace()).occurrences(0..1);
    let late = cluster.proxy.inject(write, Fault::DelayRequest(LATE));
    ns.unready("web-3");
    late.wait_until_fired(1, SHOWN_MAX);
    let no_space = NoSpace::begin(cluster);
    let started = Instant::now();
    wait_until("the key shows the error", SHOWN_MAX, || {
        let rows = daemon.key_rows("no-space/web");
        let shows = |row: &serde_json::Value| {
            row["lastError"].as_str().unwrap_or_default().contains("space exceeded")
        };
        rows.iter().any(shows)
    });
    let all_published = [Expected::slices("web", "10.0.0.2 10.0.0.3 10.0.0.4")];
    let kept = converge_within(OBSERVED, ns.api(), ns.namespace(), &all_published);
    kept.unwrap_or_else(|error| panic!("{ns}: nothing can be written: {error}"));
    std::thread::sleep(OBSERVED.saturating_sub(started.elapsed()));
    let writes = cluster.writes_since("no-space", started);
    // Slices and Endpoints are two keys.
    let n = writes.iter().filter(|write| write.request.resource == "endpointslices").count();
    println!("no space: {n} writes of slices in {:?}", started.elapsed());
    assert!(n > 1, "not tried again");
    assert!(n <= WRITES_MAX, "{n} writes in {:?}", started.elapsed());

    drop(no_space);
    let unready = [
        Expected::slices("web", "10.0.0.2 10.0.0.3 10.0.0.4!"),
        Expected::endpoints("web", "10.0.0.2 10.0.0.3 10.0.0.4!"),
    ];
    let converged = converge_within(RECOVERY_MAX, ns.api(), ns.namespace(), &unready);
    converged.unwrap_or_else(|error| panic!("{ns}: {error}"));
}
