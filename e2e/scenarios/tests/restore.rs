//! etcd is restored from a backup while endpointd runs: resourceVersions go backwards. The daemons
//! notice it, are not ready meanwhile, and publish the restored state without a restart.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Binaries, Options};
use endpointd_scenarios::convergence::converge_within;
use endpointd_scenarios::harness::{self, Test};
use endpointd_scenarios::pods::{Pod, web_pod};
use endpointd_scenarios::{
    ClusterUnderTest, Controllers, Daemon, DaemonFlags, Expected, TestNamespace,
};
use serde_json::json;

/// Until a rollback is noticed and the published state is right again.
const NOTICED_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
/// More writes than a restarted API server makes before the first check.
const WRITES_SINCE_BACKUP: usize = 300;
const SERVICES: usize = 6;

const TESTS: &[Test] = &[
    ("leader_and_standby_notice_a_restore", leader_and_standby_notice_a_restore),
    ("restore_is_noticed_without_leader_election", restore_is_noticed_without_leader_election),
];

fn main() {
    harness::run(TESTS)
}

/// Several Services, each with two pods.
struct Shop<'a>(TestNamespace<'a>);

impl<'a> Shop<'a> {
    fn create(under_test: &'a ClusterUnderTest) -> Self {
        let ns = TestNamespace::new(under_test.cluster.api(), "shop");
        ns.node_in("a", "zone-a");
        for n in 0..SERVICES {
            let app = format!("app-{n}");
            ns.service(&app, &json!({"selector": {"app": app}, "ports": [{"port": 80}]}));
            for pod in [2 * n, 2 * n + 1] {
                ns.pod(&web_pod(pod, &["a"]).labelled(json!({ "app": app })));
            }
        }
        Self(ns)
    }

    fn expected(&self, is_ready: impl Fn(usize) -> bool) -> Vec<Expected> {
        let pods = |n: usize| [2 * n, 2 * n + 1].into_iter();
        let ip = |pod| endpointd_scenarios::pods::web_ip(pod);
        let endpoints = |n| {
            let one = |pod| if is_ready(pod) { ip(pod) } else { format!("{}!", ip(pod)) };
            pods(n).map(one).collect::<Vec<_>>().join(" ")
        };
        (0..SERVICES).map(|n| Expected::slices(&format!("app-{n}"), &endpoints(n))).collect()
    }

    fn converge_within(&self, timeout: Duration, expected: &[Expected], after: &str) {
        let started = Instant::now();
        let converged = converge_within(timeout, self.0.api(), self.0.namespace(), expected);
        converged.unwrap_or_else(|error| panic!("after {after}: {error}"));
        println!("converged {:.1} s after {after}", started.elapsed().as_secs_f32());
    }

    /// What happens between the backup and the restore, and is lost.
    fn change(&self) {
        for pod in 0..SERVICES {
            self.0.unready(&format!("web-{pod}"));
        }
        self.0.pod(&Pod::new("lost", "10.0.9.9").labelled(json!({"app": "app-0"})).on("a"));
        let path = "/api/v1/namespaces/shop";
        for n in 0..WRITES_SINCE_BACKUP {
            let count = json!({"metadata": {"annotations": {"example.com/n": n.to_string()}}});
            self.0.api().merge(path, &count).expect("the namespace exists");
        }
    }
}

/// Polls `/readyz` of a daemon in a thread until it failed because of the rollback.
fn rollback_is_shown(address: SocketAddr) -> thread::JoinHandle<bool> {
    thread::spawn(move || {
        let started = Instant::now();
        while started.elapsed() < NOTICED_MAX {
            let page = page(address, "/readyz?verbose").unwrap_or_default();
            if page.contains(" 503 ") && page.contains("resourceVersions went backwards") {
                return true;
            }
            thread::sleep(POLL);
        }
        false
    })
}

fn page(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut connection = TcpStream::connect(address)?;
    write!(connection, "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")?;
    let mut page = String::new();
    connection.read_to_string(&mut page)?;
    Ok(page)
}

fn wait_until_ready(address: SocketAddr) {
    let started = Instant::now();
    while !page(address, "/readyz").is_ok_and(|page| page.contains(" 200 ")) {
        assert!(started.elapsed() < NOTICED_MAX, "{:?}", page(address, "/readyz?verbose"));
        thread::sleep(POLL);
    }
}

fn leader_and_standby_notice_a_restore() {
    restore_is_noticed(&["leader", "standby"], DaemonFlags::elected);
}

/// Without a Lease only the watches show it.
fn restore_is_noticed_without_leader_election() {
    restore_is_noticed(&["alone"], DaemonFlags::new);
}

fn restore_is_noticed(names: &[&str], flags: impl Fn(&std::path::Path) -> DaemonFlags) {
    let Some(binaries) = Binaries::for_test() else { return };
    let under_test = ClusterUnderTest::start(&binaries, Controllers::None, Options::default());
    let cluster = &under_test.cluster;
    let flags = flags(&under_test.kubeconfig);
    let mut daemons: Vec<(Daemon, SocketAddr)> = Vec::new();
    for name in names {
        let daemon = Daemon::start(cluster, name, &flags);
        let address = Daemon::status_address_of(cluster, name);
        wait_until_ready(address);
        daemons.push((daemon, address));
    }
    let shop = Shop::create(&under_test);
    let all_ready = shop.expected(|_| true);
    shop.converge_within(NOTICED_MAX, &all_ready, "the start");
    let backup = cluster.back_up().expect("the data can be copied");
    shop.change();

    let shown: Vec<_> = daemons.iter().map(|(_, address)| rollback_is_shown(*address)).collect();
    cluster.restore(&backup).expect("both start again");
    // This change is after the restore and at a version that the watches believe to know.
    shop.0.unready("web-0");
    let expected = shop.expected(|pod| pod != 0);
    shop.converge_within(NOTICED_MAX, &expected, "the restore");
    for (shown, name) in shown.into_iter().zip(names) {
        assert!(shown.join().expect("it polls"), "{name}: {}", Daemon::log_of(cluster, name));
    }
    for (daemon, address) in &mut daemons {
        assert!(daemon.is_running());
        wait_until_ready(*address);
    }
    // Later changes are published at once: the watches are not blind any more.
    shop.0.unready("web-3");
    let expected = shop.expected(|pod| pod != 0 && pod != 3);
    shop.converge_within(Duration::from_secs(10), &expected, "a later change");
}
