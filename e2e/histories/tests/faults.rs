//! The world breaks while pods come and go; when it is whole again, every ready pod is published
//! exactly once, and a fresh daemon finds nothing to write.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Api, Binaries, Options, Program, Stop};
use endpointd_histories::cluster::ours;
use endpointd_histories::forwarder::Forwarder;
use endpointd_histories::harness::{self, Test};
use endpointd_histories::pods::{web_ip, web_pod};
use endpointd_histories::settle::settle_within;
use endpointd_histories::view::View;
use endpointd_histories::{ClusterUnderTest, Controllers, Daemon, DaemonFlags, Stage, Wanted};
use rustix::process::Signal;
use serde_json::json;

const PODS: usize = 12;
/// Back to normal after an interruption that both ends noticed.
const RECOVERY_MAX: Duration = Duration::from_secs(30);
/// A watch on which nothing comes is given up after 90 seconds; then it recovers.
const SILENCE_MAX: Duration = Duration::from_secs(110);
/// How long a lease is good after its holder died, and the interval at which others look.
const LEASE: Duration = Duration::from_secs(15 + 2);
/// With the time to publish, and to be seen at rest.
const TAKE_OVER_MAX: Duration = LEASE.saturating_add(Duration::from_secs(6));
const ETCD_PAUSE: Duration = Duration::from_secs(20);

const TESTS: &[Test] = &[
    (
        "an_api_server_killed_in_a_rollout_loses_nothing",
        an_api_server_killed_in_a_rollout_loses_nothing,
    ),
    (
        "a_network_that_cuts_and_one_that_goes_silent_lose_nothing",
        a_network_that_cuts_and_one_that_goes_silent_lose_nothing,
    ),
    (
        "a_daemon_killed_at_any_moment_of_a_rollout_loses_nothing",
        a_daemon_killed_at_any_moment_of_a_rollout_loses_nothing,
    ),
    (
        "another_replica_takes_over_from_a_leader_that_is_killed_or_asleep",
        another_replica_takes_over_from_a_leader_that_is_killed_or_asleep,
    ),
];

fn main() {
    harness::run(TESTS)
}

/// A Service and its pods, rolled from one generation to the next.
struct Rollout<'a> {
    stage: Stage<'a>,
    generation: usize,
}

impl<'a> Rollout<'a> {
    fn start(api: &'a Api, namespace: &str) -> Self {
        let stage = Stage::enter(api, namespace);
        stage.node_in("a", "zone-a");
        stage.service(
            "web",
            &json!({
                "selector": {"app": "web"},
                "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
            }),
        );
        let rollout = Self { stage, generation: 0 };
        (0..PODS).for_each(|n| rollout.stage.pod(&web_pod(number(rollout.generation, n), &["a"])));
        rollout
    }

    /// Replaces all pods by new ones; `between` is called after each.
    fn roll(&mut self, mut between: impl FnMut(usize, &Stage<'_>)) {
        for n in 0..PODS {
            let old = format!("web-{}", number(self.generation, n));
            let new = number(self.generation + 1, n);
            self.stage.pod(&web_pod(new, &["a"]).unready());
            self.stage.ready(&format!("web-{new}"));
            self.stage.terminating(&old);
            self.stage.gone(&old);
            between(n, &self.stage);
        }
        self.generation += 1;
    }

    fn wanted(&self) -> [Wanted; 2] {
        let ips: Vec<String> = (0..PODS).map(|n| web_ip(number(self.generation, n))).collect();
        [Wanted::slices("web", &ips.join(" ")), Wanted::endpoints("web", &ips.join(" "))]
    }

    fn published(&self) -> BTreeMap<String, String> {
        versions_of(&self.stage)
    }

    /// Every ready pod exactly once, nothing else, and at rest.
    fn settle_within(&self, patience: Duration, after: &str) {
        let started = Instant::now();
        let settled =
            settle_within(patience, self.stage.api(), self.stage.namespace(), &self.wanted());
        settled.unwrap_or_else(|error| panic!("after {after}: {error}"));
        println!("settled {:.1} s after {after}", started.elapsed().as_secs_f32());
    }
}

/// Of the `n`th pod of a generation. Addresses come back after a while, as they do in clusters.
fn number(generation: usize, n: usize) -> usize {
    generation % 20 * PODS + n
}

fn versions_of(stage: &Stage<'_>) -> BTreeMap<String, String> {
    let view = View::without_pods(stage.api(), stage.namespace()).expect("lists are served");
    view.versions()
}

fn cluster_with(controllers: Controllers) -> Option<ClusterUnderTest> {
    // Upstream needs a minute to come back from the first of these faults, and has no second try.
    if ours() == Controllers::ControllerManager {
        return None;
    }
    let binaries = Binaries::for_test()?;
    Some(ClusterUnderTest::start(&binaries, controllers, Options::default()))
}

/// A daemon that starts now has nothing to write.
fn assert_nothing_left_to_write(under_test: &ClusterUnderTest) {
    let versions =
        || View::everywhere(under_test.cluster.api()).expect("lists are served").versions();
    let before = versions();
    let flags = DaemonFlags::new(&under_test.kubeconfig);
    let _fresh = Daemon::start(&under_test.cluster, "fresh", &flags);
    thread::sleep(Duration::from_secs(4));
    assert_eq!(versions(), before, "a fresh daemon writes");
}

fn an_api_server_killed_in_a_rollout_loses_nothing() {
    let Some(under_test) = cluster_with(Controllers::Endpointd) else { return };
    let cluster = &under_test.cluster;
    let mut rollout = Rollout::start(cluster.api(), "restarted");
    rollout.settle_within(RECOVERY_MAX, "the start");
    for how in [Stop::AtOnce, Stop::Gracefully] {
        rollout.roll(|n, _| {
            if n == PODS / 2 {
                cluster.stop(Program::ApiServer, how).expect("it can be signalled");
                thread::sleep(Duration::from_secs(3));
                cluster.start_apiserver().expect("it starts again");
            }
        });
        rollout.settle_within(RECOVERY_MAX, &format!("a restart of kube-apiserver, {how:?}"));
    }
    rollout.roll(|n, _| {
        if n == PODS / 2 {
            cluster.pause(Program::Etcd).expect("it can be signalled");
            thread::sleep(ETCD_PAUSE);
            cluster.resume(Program::Etcd).expect("it can be signalled");
            // What was asked during the pause may have been refused; the test itself goes on.
            thread::sleep(Duration::from_secs(1));
        }
    });
    rollout.settle_within(RECOVERY_MAX, "a pause of etcd");
    under_test.stop_controllers();
    assert_nothing_left_to_write(&under_test);
}

fn a_network_that_cuts_and_one_that_goes_silent_lose_nothing() {
    let Some(under_test) = cluster_with(Controllers::Nobody) else { return };
    let (forwarder, kubeconfig) = through_a_forwarder(&under_test);
    let mut daemon =
        Daemon::start(&under_test.cluster, "endpointd", &DaemonFlags::new(&kubeconfig));
    let mut rollout = Rollout::start(&under_test.api, "network");
    rollout.settle_within(RECOVERY_MAX, "the start");
    assert!(forwarder.n_accepted() > 0, "the daemon goes through the forwarder");

    rollout.roll(|n, _| {
        if n % 3 == 0 {
            forwarder.cut();
        }
    });
    rollout.settle_within(RECOVERY_MAX, "cuts");
    forwarder.silence();
    rollout.roll(|_, _| {});
    rollout.settle_within(SILENCE_MAX, "silence");
    assert!(daemon.is_running(), "{}", under_test.daemon_log());
    daemon.stop();
    assert_nothing_left_to_write(&under_test);
}

/// The daemon's kubeconfig, with the forwarder in the place of the server.
fn through_a_forwarder(under_test: &ClusterUnderTest) -> (Forwarder, PathBuf) {
    let url = under_test.cluster.url();
    let address: SocketAddr =
        url.trim_start_matches("https://").parse().expect("an address and a port");
    let forwarder = Forwarder::start(address).expect("a port is free");
    let text = fs::read_to_string(&under_test.kubeconfig).expect("it was written");
    let path = under_test.cluster.directory().join("forwarded.kubeconfig");
    let forwarded = text.replace(url, &format!("https://127.0.0.1:{}", forwarder.port()));
    fs::write(&path, forwarded).expect("the directory of a cluster is ours");
    (forwarder, path)
}

/// `ENDPOINTD_KILLS` says how often, `ENDPOINTD_SEED` repeats a run.
fn a_daemon_killed_at_any_moment_of_a_rollout_loses_nothing() {
    let Some(under_test) = cluster_with(Controllers::Nobody) else { return };
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
    let n_kills = number("ENDPOINTD_KILLS").unwrap_or(25);
    let mut chance = Chance(number("ENDPOINTD_SEED").unwrap_or(20_260_101));
    println!("ENDPOINTD_SEED={} ENDPOINTD_KILLS={n_kills}", chance.0);
    let mut rollout = Rollout::start(&under_test.api, "killed");
    under_test.start_daemon();
    rollout.settle_within(RECOVERY_MAX, "the start");
    let mut n_at_work = 0;
    for round in 1..=n_kills {
        let at = usize::try_from(chance.below(PODS as u64)).expect("it is below a `usize`");
        let moment = Duration::from_millis(chance.below(100));
        let before = rollout.published();
        let mut at_kill = before.clone();
        rollout.roll(|n, stage| {
            if n == at {
                thread::sleep(moment);
                under_test.kill_daemon();
                at_kill = versions_of(stage);
                under_test.start_daemon();
            }
        });
        n_at_work += u64::from(at_kill != before);
        rollout.settle_within(RECOVERY_MAX, &format!("kill {round} at pod {at} + {moment:?}"));
    }
    assert!(2 * n_at_work > n_kills, "only {n_at_work} of {n_kills} kills met a daemon at work");
    under_test.kill_daemon();
    assert_nothing_left_to_write(&under_test);
}

/// A small generator (splitmix64): a failure must be repeatable by its seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }
}

fn another_replica_takes_over_from_a_leader_that_is_killed_or_asleep() {
    let Some(under_test) = cluster_with(Controllers::Nobody) else { return };
    let replica = |name: &str| {
        Daemon::start(&under_test.cluster, name, &DaemonFlags::elected(&under_test.kubeconfig))
    };
    let mut rollout = Rollout::start(&under_test.api, "replicas");
    let mut first = Some(replica("first"));
    rollout.settle_within(RECOVERY_MAX, "the first replica started");
    let mut second = replica("second");
    rollout.roll(|_, _| {});
    rollout.settle_within(RECOVERY_MAX, "the second replica started");

    rollout.roll(|n, _| {
        if n == PODS / 2 {
            drop(first.take());
        }
    });
    rollout.settle_within(TAKE_OVER_MAX, "the leader was killed");

    let mut third = replica("third");
    second.signal(Signal::STOP);
    rollout.roll(|_, _| {});
    rollout.settle_within(TAKE_OVER_MAX, "the leader fell asleep");
    // Awake again, the second may believe for a moment that it still leads.
    rollout.roll(|n, _| {
        if n == PODS / 2 {
            second.signal(Signal::CONT);
        }
    });
    rollout.settle_within(RECOVERY_MAX, "the old leader woke up");
    assert!(third.is_running(), "{}", Daemon::log_of(&under_test.cluster, "third"));
    drop((second, third));
    assert_nothing_left_to_write(&under_test);
}
