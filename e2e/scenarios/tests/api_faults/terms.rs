//! The Lease is lost while writes wait (F36).

use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::Api;
use endpointd_scenarios::TestNamespace;
use endpointd_scenarios::proxied_cluster::wait_until;
use serde_json::json;

use crate::connections::GROUP;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/endpointd";
const N_SERVICES: usize = 20;
const NOTICED_MAX: Duration = Duration::from_secs(20);
/// A request that had been sent may still arrive.
const ON_THE_WAY: Duration = Duration::from_millis(200);
const OBSERVED: Duration = Duration::from_secs(12);

pub fn lost_lease_stops_waiting_writes() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let flags = cluster.elected().with("--kube-api-qps=1").with("--kube-api-burst=1");
    let daemon = cluster.daemon("loser", &flags);
    let ns = TestNamespace::new(cluster.api(), "waiting-writes");
    let started = Instant::now();
    for n in 0..N_SERVICES {
        let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80}]});
        ns.service(&format!("web-{n}"), &spec);
    }
    let writes = || cluster.writes_since("waiting-writes", started);
    wait_until("the first write is sent", NOTICED_MAX, || !writes().is_empty());

    take_lease(cluster.api());
    wait_until("the loss is noticed", NOTICED_MAX, || daemon.log().contains("lost leadership"));
    let noticed = Instant::now() + ON_THE_WAY;
    let renewed = Instant::now();
    while renewed.elapsed() < OBSERVED {
        take_lease(cluster.api());
        thread::sleep(Duration::from_secs(1));
    }
    let late = writes().iter().filter(|write| write.started > noticed).count();
    let n = writes().len();
    assert!(n < 2 * N_SERVICES, "all {n} writes were sent before the loss");
    assert_eq!(late, 0, "writes without the Lease, of {n}");
}

/// Another process holds the Lease from now on.
fn take_lease(api: &Api) {
    // A change of the record is a renewal: observers do not compare times.
    let lease = api.get(LEASE).expect("the Lease is there");
    let n = lease["spec"]["leaseTransitions"].as_u64().unwrap_or(0);
    let spec = json!({"spec": {
        "holderIdentity": "another process", "leaseDurationSeconds": 15, "leaseTransitions": n + 1,
    }});
    api.merge(LEASE, &spec).expect("the Lease can be edited");
}
