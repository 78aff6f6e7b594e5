//! Connections without bytes: a watch, a write, and idle clients of the status port (F33).

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::Api;
use endpointd_fault_proxy::{Fault, Requests, Verb};
use endpointd_scenarios::convergence::converge_within;
use endpointd_scenarios::proxied_cluster::{toggle, web, web_expected};
use endpointd_scenarios::test_namespace::Kind;
use endpointd_scenarios::{Expected, TestNamespace};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::shared::{Common, Over};

static COMMON: Common = Common::new();

/// A watch without events is closed after 90 seconds; recovery follows.
const SILENT_RECOVERY_MAX: Duration = Duration::from_secs(110);
/// A request without a response is given up after 30 seconds.
const SILENT_WRITE_MAX: Duration = Duration::from_secs(45);
const N_IDLE: usize = 2000;
const N_SCRAPES_PER_SECOND: u32 = 100;
const CONNECT_MAX: Duration = Duration::from_secs(1);
const FLOODED: Duration = Duration::from_secs(12);
/// Every probe; the median is below one second.
const PROBE_MAX: Duration = Duration::from_secs(5);
/// Includes the time of the test's own requests.
const TOGGLE_MAX: Duration = Duration::from_secs(8);

pub fn silent_watch_is_reopened() {
    let Some((cluster, _)) = COMMON.get() else { return };
    let watch = Requests::all().verbs(&[Verb::Watch]).resources(&["endpoints"]).occurrences(0..1);
    let silent = cluster.proxy.inject(watch, Fault::StallBody);
    let mut ns = TestNamespace::new(cluster.api(), "silent-watch");
    ns.service("db", &json!({"ports": [{"port": 5432}]}));
    let db = json!({
        "metadata": {"name": "db"},
        "subsets": [{"addresses": [{"ip": "192.168.0.1"}], "ports": [{"port": 5432}]}],
    });
    let started = Instant::now();
    ns.create(Kind::Endpoints, &db);
    silent.wait_until_fired(1, TOGGLE_MAX);
    drop(silent);
    thread::scope(|scope| {
        scope.spawn(|| write_without_response_is_repeated(cluster.api(), "silent-write"));
        let mirrored = [Expected::slices("db", "192.168.0.1")];
        let converged = converge_within(SILENT_RECOVERY_MAX, ns.api(), ns.namespace(), &mirrored);
        converged.unwrap_or_else(|error| panic!("{ns}: {error}"));
    });
    println!("a silent watch was reopened, and its event mirrored after {:?}", started.elapsed());
    ns.converge("at the end", &[Expected::slices("db", "192.168.0.1")]);
}

fn write_without_response_is_repeated(api: &Api, namespace: &str) {
    let Some((cluster, _)) = COMMON.get() else { return };
    let ns = web(api, namespace, 2);
    let neighbour = web(api, "beside-a-silent-write", 2);
    let write = Requests::writes_of_endpoints().namespace(namespace).occurrences(0..1);
    let silent = cluster.proxy.inject(write, Fault::Silence);
    ns.unready("web-1");
    silent.wait_until_fired(1, TOGGLE_MAX);
    toggle(&neighbour, 1, false, TOGGLE_MAX);
    ns.ready("web-1");
    ns.web_pods(3..=3, &["a"]);
    let converged = converge_within(SILENT_WRITE_MAX, api, namespace, &web_expected(1..=3));
    converged.unwrap_or_else(|error| panic!("{ns}: {error}"));
}

pub fn flooded_status_port_delays_neither_probes_nor_removals() {
    let Some((cluster, daemon)) = COMMON.get() else { return };
    let ns = web(cluster.api(), "flooded", 2);
    raise_open_files_limit();
    let address = daemon.status_address();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| hold_idle_connections(address, &is_over));
        scope.spawn(|| scrape(&daemon.status(), &is_over));
        let _over = Over(&is_over);
        let started = Instant::now();
        let mut probes = Vec::new();
        let mut is_ready = true;
        while started.elapsed() < FLOODED {
            let probed = Instant::now();
            let probe = Api::plain(&format!("http://{address}")).text("/livez");
            let elapsed = probed.elapsed();
            assert!(probe.is_ok() && elapsed < PROBE_MAX, "{probe:?} after {elapsed:?}");
            probes.push(elapsed);
            is_ready = !is_ready;
            toggle(&ns, 1, is_ready, TOGGLE_MAX);
            thread::sleep(Duration::from_millis(300));
        }
        probes.sort();
        println!("probes of a flooded port: {probes:?}");
        assert!(probes[probes.len() / 2] < Duration::from_secs(1), "{probes:?}");
    });
}

/// The limit of this process, for the idle connections.
fn raise_open_files_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = N_IDLE as u64 + 1000;
    assert!(maximum.is_none_or(|maximum| maximum >= wanted), "too few descriptors: {maximum:?}");
    if current.is_some_and(|current| current < wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).expect("allowed");
    }
}

/// Keeps the number of connections without a request constant: closed ones are opened again.
fn hold_idle_connections(address: SocketAddr, is_over: &AtomicBool) {
    let mut idle: Vec<TcpStream> = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        idle.retain(|connection| !is_closed(connection));
        for _ in idle.len()..N_IDLE {
            // Fails when the backlog is full; the next turn tries again.
            if let Ok(connection) = TcpStream::connect_timeout(&address, CONNECT_MAX)
                && connection.set_nonblocking(true).is_ok()
            {
                idle.push(connection);
            }
            if is_over.load(Ordering::SeqCst) {
                return;
            }
        }
        thread::sleep(Duration::from_millis(200));
    }
}

fn is_closed(connection: &TcpStream) -> bool {
    matches!(connection.peek(&mut [0]), Ok(0))
}

fn scrape(status: &Api, is_over: &AtomicBool) {
    let mut n_answered = 0;
    while !is_over.load(Ordering::SeqCst) {
        n_answered += usize::from(status.text("/metrics").is_ok());
        thread::sleep(Duration::from_secs(1) / N_SCRAPES_PER_SECOND);
    }
    println!("{n_answered} scrapes were answered");
}
