//! Faults during rollouts: restarts of the API server, network faults, killed daemons, lost
//! leaders. After each fault every ready pod is published exactly once, and a new daemon writes
//! nothing.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Api, Binaries, Options, Program, Stop};
use endpointd_rng::SplitMix64;
use endpointd_scenarios::cluster::controllers_under_test;
use endpointd_scenarios::convergence::converge_within;
use endpointd_scenarios::harness::{self, Test};
use endpointd_scenarios::observed_state::ObservedState;
use endpointd_scenarios::pods::{web_ip, web_pod};
use endpointd_scenarios::tcp_proxy::TcpProxy;
use endpointd_scenarios::{
    ClusterUnderTest, Controllers, Daemon, DaemonFlags, Expected, TestNamespace,
};
use rustix::process::Signal;
use serde_json::json;

const PODS: usize = 12;
/// After a fault that closes connections.
const RECOVERY_MAX: Duration = Duration::from_secs(30);
/// A watch without events is closed after 90 seconds; recovery follows.
const FREEZE_RECOVERY_MAX: Duration = Duration::from_secs(110);
/// Until the Lease shows it, plus the time to publish and to observe convergence.
const SILENT_FAIL_OVER_MAX: Duration = Duration::from_secs(7 + 6);
/// Lease duration plus retry period.
const LEASE: Duration = Duration::from_secs(15 + 2);
/// Plus the time to publish and to observe convergence.
const TAKE_OVER_MAX: Duration = LEASE.saturating_add(Duration::from_secs(6));
const ETCD_PAUSE: Duration = Duration::from_secs(20);

const TESTS: &[Test] = &[
    (
        "api_server_restarts_during_a_rollout_lose_nothing",
        api_server_restarts_during_a_rollout_lose_nothing,
    ),
    ("closed_and_frozen_connections_lose_nothing", closed_and_frozen_connections_lose_nothing),
    (
        "silent_fail_over_keeps_the_lease_and_delays_little",
        silent_fail_over_keeps_the_lease_and_delays_little,
    ),
    (
        "daemon_killed_at_random_times_of_a_rollout_loses_nothing",
        daemon_killed_at_random_times_of_a_rollout_loses_nothing,
    ),
    (
        "replica_takes_over_from_a_killed_or_stopped_leader",
        replica_takes_over_from_a_killed_or_stopped_leader,
    ),
];

fn main() {
    harness::run(TESTS)
}

/// A Service whose pods are replaced, one generation after another.
struct Rollout<'a> {
    ns: TestNamespace<'a>,
    generation: usize,
}

impl<'a> Rollout<'a> {
    fn start(api: &'a Api, namespace: &str) -> Self {
        let ns = TestNamespace::new(api, namespace);
        ns.node_in("a", "zone-a");
        ns.service(
            "web",
            &json!({
                "selector": {"app": "web"},
                "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
            }),
        );
        let rollout = Self { ns, generation: 0 };
        (0..PODS).for_each(|n| rollout.ns.pod(&web_pod(number(rollout.generation, n), &["a"])));
        rollout
    }

    /// Replaces all pods; calls `between` after each.
    fn roll(&mut self, mut between: impl FnMut(usize, &TestNamespace<'_>)) {
        for n in 0..PODS {
            let old = format!("web-{}", number(self.generation, n));
            let new = number(self.generation + 1, n);
            self.ns.pod(&web_pod(new, &["a"]).unready());
            self.ns.ready(&format!("web-{new}"));
            self.ns.terminating(&old);
            self.ns.gone(&old);
            between(n, &self.ns);
        }
        self.generation += 1;
    }

    fn expected(&self) -> [Expected; 2] {
        let ips: Vec<String> = (0..PODS).map(|n| web_ip(number(self.generation, n))).collect();
        [Expected::slices("web", &ips.join(" ")), Expected::endpoints("web", &ips.join(" "))]
    }

    fn published(&self) -> BTreeMap<String, String> {
        versions_of(&self.ns)
    }

    /// Waits until exactly the ready pods are published and nothing is written any more.
    fn converge_within(&self, timeout: Duration, after: &str) {
        let started = Instant::now();
        let converged =
            converge_within(timeout, self.ns.api(), self.ns.namespace(), &self.expected());
        converged.unwrap_or_else(|error| panic!("after {after}: {error}"));
        println!("converged {:.1} s after {after}", started.elapsed().as_secs_f32());
    }
}

/// The number of the `n`th pod of a generation. Addresses are reused after 20 generations.
fn number(generation: usize, n: usize) -> usize {
    generation % 20 * PODS + n
}

fn versions_of(ns: &TestNamespace<'_>) -> BTreeMap<String, String> {
    let state = ObservedState::without_pods(ns.api(), ns.namespace()).expect("lists are served");
    state.versions()
}

fn cluster_with(controllers: Controllers) -> Option<ClusterUnderTest> {
    // Upstream needs a minute to recover from the first of these faults.
    if controllers_under_test() == Controllers::ControllerManager {
        return None;
    }
    let binaries = Binaries::for_test()?;
    Some(ClusterUnderTest::start(&binaries, controllers, Options::default()))
}

/// A new daemon writes nothing.
fn assert_nothing_left_to_write(under_test: &ClusterUnderTest) {
    let versions = || {
        ObservedState::everywhere(under_test.cluster.api()).expect("lists are served").versions()
    };
    let before = versions();
    let flags = DaemonFlags::new(&under_test.kubeconfig);
    let _new = Daemon::start(&under_test.cluster, "new", &flags);
    thread::sleep(Duration::from_secs(4));
    assert_eq!(versions(), before, "a new daemon writes");
}

fn api_server_restarts_during_a_rollout_lose_nothing() {
    let Some(under_test) = cluster_with(Controllers::Endpointd) else { return };
    let cluster = &under_test.cluster;
    let mut rollout = Rollout::start(cluster.api(), "restarted");
    rollout.converge_within(RECOVERY_MAX, "the start");
    for how in [Stop::Kill, Stop::Terminate] {
        rollout.roll(|n, _| {
            if n == PODS / 2 {
                cluster.stop(Program::ApiServer, how).expect("it can be signalled");
                thread::sleep(Duration::from_secs(3));
                cluster.start_apiserver().expect("it starts again");
            }
        });
        rollout.converge_within(RECOVERY_MAX, &format!("a restart of kube-apiserver, {how:?}"));
    }
    rollout.roll(|n, _| {
        if n == PODS / 2 {
            cluster.pause(Program::Etcd).expect("it can be signalled");
            thread::sleep(ETCD_PAUSE);
            cluster.resume(Program::Etcd).expect("it can be signalled");
            wait_until_writes_succeed(cluster.api(), "restarted");
        }
    });
    rollout.converge_within(RECOVERY_MAX, "a pause of etcd");
    under_test.stop_controllers();
    assert_nothing_left_to_write(&under_test);
}

/// After a pause of etcd the API server may still reject the test's own requests for some time.
fn wait_until_writes_succeed(api: &Api, namespace: &str) {
    let started = Instant::now();
    let path = format!("/api/v1/namespaces/{namespace}");
    let annotated = json!({"metadata": {"annotations": {"example.com/etcd": "resumed"}}});
    while let Err(error) = api.merge(&path, &annotated) {
        assert!(started.elapsed() < RECOVERY_MAX, "after a pause of etcd: {error}");
        thread::sleep(Duration::from_millis(100));
    }
}

fn closed_and_frozen_connections_lose_nothing() {
    let Some(under_test) = cluster_with(Controllers::None) else { return };
    let (proxy, kubeconfig) = through_proxy(&under_test);
    let mut daemon =
        Daemon::start(&under_test.cluster, "endpointd", &DaemonFlags::new(&kubeconfig));
    let mut rollout = Rollout::start(&under_test.api, "network");
    rollout.converge_within(RECOVERY_MAX, "the start");
    assert!(proxy.n_accepted() > 0, "the daemon connects through the proxy");

    rollout.roll(|n, _| {
        if n % 3 == 0 {
            proxy.close_connections();
        }
    });
    rollout.converge_within(RECOVERY_MAX, "closed connections");
    proxy.freeze_connections();
    rollout.roll(|_, _| {});
    rollout.converge_within(FREEZE_RECOVERY_MAX, "frozen connections");
    assert!(daemon.is_running(), "{}", under_test.daemon_log());
    daemon.stop();
    assert_nothing_left_to_write(&under_test);
}

/// The daemon's kubeconfig with the address of the proxy.
/// As after the fail-over of a load balancer: all connections stay open and are dead, and new ones
/// work. The Lease shows it after at most 7 seconds.
fn silent_fail_over_keeps_the_lease_and_delays_little() {
    let Some(under_test) = cluster_with(Controllers::None) else { return };
    let (proxy, kubeconfig) = through_proxy(&under_test);
    let cluster = &under_test.cluster;
    let _daemon = Daemon::start(cluster, "fail-over", &DaemonFlags::elected(&kubeconfig));
    let mut rollout = Rollout::start(&under_test.api, "fail-over");
    rollout.converge_within(TAKE_OVER_MAX, "the start");
    proxy.freeze_connections();
    rollout.roll(|_, _| {});
    rollout.converge_within(SILENT_FAIL_OVER_MAX, "a silent fail-over");
    let log = Daemon::log_of(cluster, "fail-over");
    assert!(log.contains("connections are dead") && !log.contains("lost leadership"), "{log}");
}

fn through_proxy(under_test: &ClusterUnderTest) -> (TcpProxy, PathBuf) {
    let url = under_test.cluster.url();
    let address: SocketAddr =
        url.trim_start_matches("https://").parse().expect("an address and a port");
    let proxy = TcpProxy::start(address).expect("a port is free");
    let text = fs::read_to_string(&under_test.kubeconfig).expect("it was written");
    let path = under_test.cluster.directory().join("proxied.kubeconfig");
    let forwarded = text.replace(url, &format!("https://127.0.0.1:{}", proxy.port()));
    fs::write(&path, forwarded).expect("we own the directory of a cluster");
    (proxy, path)
}

/// `ENDPOINTD_KILLS` sets the number of kills, `ENDPOINTD_SEED` repeats a run.
fn daemon_killed_at_random_times_of_a_rollout_loses_nothing() {
    let Some(under_test) = cluster_with(Controllers::None) else { return };
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
    let n_kills = number("ENDPOINTD_KILLS").unwrap_or(25);
    let seed = number("ENDPOINTD_SEED").unwrap_or(20_260_101);
    println!("ENDPOINTD_SEED={seed} ENDPOINTD_KILLS={n_kills}");
    let mut rng = SplitMix64::new(seed);
    let mut rollout = Rollout::start(&under_test.api, "killed");
    under_test.start_daemon();
    rollout.converge_within(RECOVERY_MAX, "the start");
    let mut n_during_writes = 0;
    for round in 1..=n_kills {
        let at = rng.index(PODS);
        let delay = Duration::from_millis(rng.below(100));
        let before = rollout.published();
        let mut at_kill = before.clone();
        rollout.roll(|n, ns| {
            if n == at {
                thread::sleep(delay);
                under_test.kill_daemon();
                at_kill = versions_of(ns);
                under_test.start_daemon();
            }
        });
        n_during_writes += u64::from(at_kill != before);
        rollout.converge_within(RECOVERY_MAX, &format!("kill {round} at pod {at} + {delay:?}"));
    }
    assert!(
        2 * n_during_writes > n_kills,
        "only {n_during_writes} of {n_kills} kills hit a daemon that was writing"
    );
    under_test.kill_daemon();
    assert_nothing_left_to_write(&under_test);
}

fn replica_takes_over_from_a_killed_or_stopped_leader() {
    let Some(under_test) = cluster_with(Controllers::None) else { return };
    let replica = |name: &str| {
        Daemon::start(&under_test.cluster, name, &DaemonFlags::elected(&under_test.kubeconfig))
    };
    let mut rollout = Rollout::start(&under_test.api, "replicas");
    let mut first = Some(replica("first"));
    rollout.converge_within(RECOVERY_MAX, "the first replica started");
    let mut second = replica("second");
    rollout.roll(|_, _| {});
    rollout.converge_within(RECOVERY_MAX, "the second replica started");

    rollout.roll(|n, _| {
        if n == PODS / 2 {
            drop(first.take());
        }
    });
    rollout.converge_within(TAKE_OVER_MAX, "the leader was killed");

    let mut third = replica("third");
    second.signal(Signal::STOP);
    rollout.roll(|_, _| {});
    rollout.converge_within(TAKE_OVER_MAX, "the leader was stopped");
    // For a moment the continued process may assume that it is still the leader.
    rollout.roll(|n, _| {
        if n == PODS / 2 {
            second.signal(Signal::CONT);
        }
    });
    rollout.converge_within(RECOVERY_MAX, "the old leader continued");
    assert!(third.is_running(), "{}", Daemon::log_of(&under_test.cluster, "third"));
    drop((second, third));
    assert_nothing_left_to_write(&under_test);
}
