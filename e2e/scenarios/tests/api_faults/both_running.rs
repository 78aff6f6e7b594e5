//! kube-controller-manager and the daemon at the same time (F28).

use std::thread;
use std::time::Duration;

use endpointd_control_plane::{Binaries, Options, Program, Stop};
use endpointd_scenarios::cluster::controllers_under_test;
use endpointd_scenarios::convergence::converge_within;
use endpointd_scenarios::observed_state::ObservedState;
use endpointd_scenarios::proxied_cluster::{toggle, web, web_expected};
use endpointd_scenarios::{ClusterUnderTest, Controllers, Daemon, DaemonFlags, TestNamespace};

const N_NAMESPACES: usize = 5;
const N_PODS: usize = 4;
const TOGGLE_MAX: Duration = Duration::from_secs(30);
const CONVERGED_MAX: Duration = Duration::from_secs(45);
/// A late write occurs within this time.
const LATE_WRITE_MAX: Duration = Duration::from_secs(3);

pub fn kube_controller_manager_beside_the_daemon_does_no_harm() {
    if controllers_under_test() == Controllers::ControllerManager {
        return;
    }
    let Some(binaries) = Binaries::for_test() else { return };
    let kcm = Controllers::ControllerManager;
    let under_test = ClusterUnderTest::start(&binaries, kcm, Options::default());
    let api = &under_test.api;
    let all: Vec<TestNamespace<'_>> =
        (0..N_NAMESPACES).map(|n| web(api, &format!("both-{n}"), N_PODS)).collect();

    let before = versions(&under_test);
    let flags = DaemonFlags::new(&under_test.kubeconfig);
    let mut daemon = Daemon::start(&under_test.cluster, "beside", &flags);
    under_test.wait_until_synced();
    thread::sleep(LATE_WRITE_MAX);
    assert_eq!(versions(&under_test), before, "the daemon started beside it");

    roll(&all);
    assert_converged(&all, "both run");
    let stopped = under_test.cluster.stop(Program::ControllerManager, Stop::Kill);
    stopped.expect("it can be signalled");
    roll(&all);
    assert_converged(&all, "only the daemon runs");
    assert!(daemon.is_running(), "{}", daemon.log());
}

fn roll(all: &[TestNamespace<'_>]) {
    thread::scope(|scope| {
        for ns in all {
            scope.spawn(move || toggle_all(ns));
        }
    });
}

fn toggle_all(ns: &TestNamespace<'_>) {
    for is_ready in [false, true] {
        for n in 1..=N_PODS {
            toggle(ns, n, is_ready, TOGGLE_MAX);
        }
    }
}

fn assert_converged(all: &[TestNamespace<'_>], when: &str) {
    for ns in all {
        let expected = web_expected(1..=N_PODS);
        let converged = converge_within(CONVERGED_MAX, ns.api(), ns.namespace(), &expected);
        converged.unwrap_or_else(|error| panic!("{ns}, {when}: {error}"));
    }
}

fn versions(under_test: &ClusterUnderTest) -> std::collections::BTreeMap<String, String> {
    let state = ObservedState::everywhere(&under_test.api).expect("lists are served");
    let mut versions = state.versions();
    versions.retain(|key, _| key.contains("both-"));
    versions
}
