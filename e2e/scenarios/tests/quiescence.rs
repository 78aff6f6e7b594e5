//! On a converged cluster no controller writes: not after a takeover, not after a restart, not
//! while nothing changes.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use endpointd_control_plane::{Audit, Binaries, Options, Release};
use endpointd_scenarios::audit::{self, Request};
use endpointd_scenarios::cluster::{PROBE_NAMESPACE, controllers_under_test};
use endpointd_scenarios::observed_state::ObservedState;
use endpointd_scenarios::{
    ClusterUnderTest, Controllers, Daemon, DaemonFlags, SCENARIOS, run_scenario,
};

/// Run under kube-controller-manager before endpointd takes over.
const BEFORE_TAKEOVER: &[&str] = &[
    "created",
    "dual-stack",
    "named-ports",
    "prefer-same-node",
    "mirrored-ipv6",
    "mirrored-skipped",
    "not-ready-published",
    "address-reused",
    "external-name",
    "headless-portless",
];
/// Run under endpointd before kube-controller-manager takes over.
const BEFORE_HANDBACK: &[&str] = &[
    "ipv6-alone",
    "families-changed",
    "ports-changed",
    "prefer-close",
    "mirrored",
    "scaled",
    "terminating",
    "hostnames",
    "headless",
    "selector",
    "foreign-slices",
];
/// A late write occurs within this time.
const LATE_WRITE_MAX: Duration = Duration::from_secs(3);
/// Of one resource in the observed time.
const VERSION_READS_MAX: usize = 2;
const OBSERVED_TIME: Duration = Duration::from_secs(30);

#[test]
fn takeover_of_a_converged_cluster_writes_nothing() {
    let Some(binaries) = Binaries::for_test() else { return };
    let kcm = Controllers::ControllerManager;
    let under_test = ClusterUnderTest::start(&binaries, kcm, Options::default());
    run_all(&under_test, BEFORE_TAKEOVER);

    let before = versions(&under_test);
    assert!(before.len() > 20, "too few objects to take over: {before:?}");
    under_test.restart_controllers(controllers_under_test());
    assert_eq!(changed(&under_test, &before), [""; 0], "endpointd took over");

    run_all(&under_test, BEFORE_HANDBACK);
    let before = versions(&under_test);
    under_test.restart_controllers(controllers_under_test());
    assert_eq!(changed(&under_test, &before), [""; 0], "endpointd restarted");

    let before = versions(&under_test);
    under_test.restart_controllers(kcm);
    // The controllers of 1.33 write some slices again that those of 1.36 leave as they are.
    if Release::under_test() != Release::V1_33 {
        assert_eq!(changed(&under_test, &before), [""; 0], "kube-controller-manager took over");
    }
}

#[test]
fn idle_daemon_only_watches_and_renews_its_lease() {
    let Some(binaries) = Binaries::for_test() else { return };
    if controllers_under_test() == Controllers::ControllerManager {
        return;
    }
    let options = Options { audit: Audit::Metadata, ..Options::default() };
    let under_test = ClusterUnderTest::start(&binaries, Controllers::None, options);
    let flags = DaemonFlags::elected(&under_test.kubeconfig);
    let mut daemon = Daemon::start(&under_test.cluster, "endpointd", &flags);
    under_test.wait_until_synced();
    run_all(&under_test, &["created", "mirrored-ipv6", "prefer-close"]);
    thread::sleep(LATE_WRITE_MAX);

    let from = audit::end(&under_test.cluster);
    thread::sleep(OBSERVED_TIME);
    let mut requests = audit::requests_since(&under_test.cluster, from);
    requests.retain(|request| request.user == audit::daemon_user());
    assert!(daemon.is_running(), "{}", under_test.daemon_log());
    let (lease, others): (Vec<Request>, Vec<Request>) =
        requests.into_iter().partition(|request| request.resource == "leases");
    assert!(!lease.is_empty(), "the lease is renewed");
    let mut others: Vec<&Request> =
        others.iter().filter(|request| request.verb != "watch").collect();
    // One object of each resource is read live at times, to notice versions that went backwards.
    let mut n_version_reads = BTreeMap::new();
    others.retain(|request| {
        let n = n_version_reads.entry(&request.resource).or_insert(0);
        *n += usize::from(is_read_of_one_object(request));
        !is_read_of_one_object(request) || *n > VERSION_READS_MAX
    });
    assert!(others.is_empty(), "{others:#?}");
}

fn is_read_of_one_object(request: &Request) -> bool {
    request.verb == "list" && request.path.contains("?fieldSelector=metadata.name%3D")
}

fn run_all(under_test: &ClusterUnderTest, names: &[&str]) {
    thread::scope(|scope| {
        for name in names {
            let scenario = SCENARIOS.iter().find(|scenario| scenario.name == *name);
            let scenario = scenario.unwrap_or_else(|| panic!("no scenario is called `{name}`"));
            if scenario.runs_on(Release::under_test()) {
                scope.spawn(|| run_scenario(scenario, &under_test.api));
            }
        }
    });
}

fn versions(under_test: &ClusterUnderTest) -> BTreeMap<String, String> {
    let state = ObservedState::everywhere(&under_test.api).expect("lists are served");
    let mut versions = state.versions();
    versions.retain(|key, _| !key.contains(PROBE_NAMESPACE));
    versions
}

/// Keys of the objects written since `before`. The probe namespaces show that the controllers run.
fn changed(under_test: &ClusterUnderTest, before: &BTreeMap<String, String>) -> Vec<String> {
    thread::sleep(LATE_WRITE_MAX);
    let after = versions(under_test);
    let all = before.keys().chain(after.keys());
    let differs = |key: &&String| before.get(*key) != after.get(*key);
    let mut changed: Vec<String> = all.filter(differs).cloned().collect();
    changed.dedup();
    changed
}
