//! Plans that are large (F34, F39), and many nodes deleted at once.

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_fault_proxy::{Fault, Requests, Verb, in_flight_max};
use endpointd_scenarios::convergence::converge_within;
use endpointd_scenarios::pods::{Pod, web_ip, web_ips};
use endpointd_scenarios::proxied_cluster::{toggle, wait_until, web};
use endpointd_scenarios::test_namespace::Kind;
use endpointd_scenarios::{Expected, TestNamespace};
use serde_json::{Value, json};

use crate::shared::Group;

/// Also for `storage`.
pub static GROUP: Group = Group::new();

const OPEN_FILES_MAX: u32 = 256;
const WRITES_IN_FLIGHT_MAX: usize = 64;
const N_SLICES: usize = 300;
const SLOW: Duration = Duration::from_millis(200);
const PUBLISHED_MAX: Duration = Duration::from_secs(60);
/// Includes the time of the test's own requests.
const NEIGHBOUR_MAX: Duration = Duration::from_secs(8);
const N_PORTS: usize = 3000;
const N_DIFFERING_PODS: usize = 100;
/// Of all port sets of a Service together (docs/spec.md, section 9).
const PORTS_MAX: usize = 200_000;
const HOSTILE: Duration = Duration::from_secs(20);
const RESIDENT_BYTES_MAX: f64 = 256e6;
/// `ENDPOINTD_NODES=1000` runs the test with more.
const NODES_VARIABLE: &str = "ENDPOINTD_NODES";
const N_NODES: usize = 150;
const CREATE_THREADS: usize = 4;
const READS_IN_FLIGHT_MAX: usize = 32;

/// One plan updates 300 slices, and each write takes a while.
pub fn few_file_descriptors_suffice_for_a_large_plan() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let flags = cluster.elected().with("--max-endpoints-per-slice=1");
    let daemon = cluster.daemon("few-files", &flags.open_files_max(OPEN_FILES_MAX));
    let neighbour = web(cluster.api(), "beside-a-large-plan", 2);
    let ns = TestNamespace::new(cluster.api(), "large-plan");
    ns.node_in("a", "zone-a");
    let numbers: Vec<usize> = (1..=N_SLICES).collect();
    ns.many_web_pods(&numbers, &["a"]);
    let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]});
    ns.service("web", &spec);
    let all = [Expected::slices("web", &web_ips(1..=N_SLICES))];
    let converge = || {
        let converged = converge_within(PUBLISHED_MAX, ns.api(), ns.namespace(), &all);
        converged.unwrap_or_else(|error| panic!("{ns}: {error}"));
    };
    converge();

    let writes = Requests::writes_of_endpoints().namespace(ns.namespace());
    let slow = cluster.proxy.inject(writes, Fault::DelayResponse(SLOW));
    let started = Instant::now();
    ns.merge(Kind::Service, "web", &json!({"metadata": {"labels": {"changed": "yes"}}}));
    slow.wait_until_fired(N_SLICES / 4, PUBLISHED_MAX);
    toggle(&neighbour, 1, false, NEIGHBOUR_MAX);
    slow.wait_until_fired(N_SLICES, PUBLISHED_MAX);
    drop(slow);
    converge();
    let n = in_flight_max(&cluster.writes_since("large-plan", started));
    println!("{N_SLICES} slices with {OPEN_FILES_MAX} descriptors: {n} writes in flight");
    assert!(n <= WRITES_IN_FLIGHT_MAX, "{n} writes in flight");
    let log = daemon.log();
    assert!(!log.contains("Too many open files") && !log.contains("lost leadership"), "{log}");
    assert_eq!(daemon.metric("leader_election_master_status{name=\"endpointd\"}"), Some(1.0));
}

/// Each pod resolves one named port to another number, so that each needs a slice of its own with
/// all the ports.
pub fn service_with_thousands_of_ports_does_not_stop_its_neighbours() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let mut daemon = cluster.daemon("hostile", &cluster.flags());
    let neighbour = web(cluster.api(), "beside-a-hostile-one", 2);
    let ns = TestNamespace::new(cluster.api(), "thousands-of-ports");
    ns.node_in("a", "zone-a");
    for n in 0..N_DIFFERING_PODS {
        let ports = json!([{"name": "http", "containerPort": 20_000 + n}]);
        ns.pod(&Pod::new(&format!("web-{n}"), &web_ip(n)).ports(ports));
    }
    let named = json!({"name": "http", "port": 80, "targetPort": "http"});
    let others = (1..N_PORTS).map(|n| json!({"name": format!("port-{n}"), "port": 1000 + n}));
    let ports: Vec<Value> = std::iter::once(named).chain(others).collect();
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": ports}));
    let started = Instant::now();
    let mut peak = 0_f64;
    let mut is_ready = true;
    while started.elapsed() < HOSTILE {
        is_ready = !is_ready;
        toggle(&neighbour, 1, is_ready, NEIGHBOUR_MAX);
        peak = peak.max(daemon.metric("process_resident_memory_bytes").expect("it is measured"));
        thread::sleep(Duration::from_millis(500));
    }
    println!("{N_PORTS} ports, {N_DIFFERING_PODS} pods: {:.0} MB at most", peak / 1e6);
    assert!(daemon.is_running() && peak < RESIDENT_BYTES_MAX, "{peak} bytes");
    let n_published = PORTS_MAX / N_PORTS;
    wait_until("pods within the limit are published", PUBLISHED_MAX, || {
        ns.slice_names("web").len() == n_published
    });
    wait_until("the others are excluded with a reason", PUBLISHED_MAX, || {
        let rows = daemon.key_rows("thousands-of-ports/web");
        rows.iter()
            .any(|row| row["excludedPods"]["TooManyPorts"] == json!(N_DIFFERING_PODS - n_published))
    });
}

/// Services lose the endpoints on nodes that are gone, after a live read of each node.
pub fn deleted_nodes_are_read_once_each_and_delay_no_removal() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let _daemon = cluster.daemon("many-nodes", &cluster.flags());
    let neighbour = web(cluster.api(), "beside-many-nodes", 2);
    let ns = TestNamespace::new(cluster.api(), "many-nodes");
    let n_nodes = env::var(NODES_VARIABLE).map_or(N_NODES, |n| n.parse().expect("a number"));
    let numbers: Vec<usize> = (1..=n_nodes).collect();
    thread::scope(|scope| {
        for numbers in numbers.chunks(n_nodes.div_ceil(CREATE_THREADS)) {
            let ns = &ns;
            scope.spawn(move || {
                for n in numbers {
                    let node = format!("n{n}");
                    ns.node(&node, &json!({"many": "yes"}));
                    ns.web_pods(*n..=*n, &[&node]);
                }
            });
        }
    });
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    let converge = |ips: &str| {
        let expected = [Expected::slices("web", ips)];
        let converged = converge_within(PUBLISHED_MAX, ns.api(), ns.namespace(), &expected);
        converged.unwrap_or_else(|error| panic!("{ns}: {error}"));
    };
    converge(&web_ips(1..=n_nodes));

    let started = Instant::now();
    let all = "/api/v1/nodes?labelSelector=many%3Dyes";
    cluster.api().delete(all).expect("nodes can be deleted");
    for is_ready in [false, true] {
        let latency = toggle(&neighbour, 1, is_ready, NEIGHBOUR_MAX);
        println!("{n_nodes} nodes deleted at once, neighbour: {latency:?}");
    }
    converge("");
    println!("their endpoints were removed after {:?}", started.elapsed());
    let gets = Requests::all().verbs(&[Verb::Get]).resources(&["nodes"]);
    let mut reads = cluster.proxy.exchanges_of(&gets);
    reads.retain(|read| read.started >= started);
    let n = in_flight_max(&reads);
    println!("{} live reads of nodes, {n} in flight", reads.len());
    assert!((n_nodes..=n_nodes + n_nodes / 10).contains(&reads.len()), "{}", reads.len());
    assert!(n <= READS_IN_FLIGHT_MAX, "{n} live reads in flight");
}
