//! On a settled cluster nobody writes: not who takes over, not who starts again, not who just runs.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use endpointd_control_plane::{Audit, Binaries, Options};
use endpointd_histories::audit::{self, Request};
use endpointd_histories::cluster::{WITNESS, ours};
use endpointd_histories::view::View;
use endpointd_histories::{ClusterUnderTest, Controllers, Daemon, DaemonFlags, HISTORIES, play};

/// Played under kube-controller-manager, for us to take over.
const THEIRS: &[&str] = &[
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
/// Played under endpointd, for kube-controller-manager to take over.
const OURS: &[&str] = &[
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
/// A write that is going to come comes within this.
const AFTERWARDS: Duration = Duration::from_secs(3);
const AT_REST: Duration = Duration::from_secs(30);

#[test]
fn whoever_takes_over_a_settled_cluster_writes_nothing() {
    let Some(binaries) = Binaries::for_test() else { return };
    let theirs = Controllers::ControllerManager;
    let under_test = ClusterUnderTest::start(&binaries, theirs, Options::default());
    play_all(&under_test, THEIRS);

    let before = versions(&under_test);
    assert!(before.len() > 20, "there is something to take over: {before:?}");
    under_test.restart_controllers(ours());
    assert_eq!(changed(&under_test, &before), [""; 0], "endpointd took over");

    play_all(&under_test, OURS);
    let before = versions(&under_test);
    under_test.restart_controllers(ours());
    assert_eq!(changed(&under_test, &before), [""; 0], "endpointd started again");

    let before = versions(&under_test);
    under_test.restart_controllers(theirs);
    assert_eq!(changed(&under_test, &before), [""; 0], "kube-controller-manager took over");
}

#[test]
fn at_rest_there_are_only_watches_and_the_lease() {
    let Some(binaries) = Binaries::for_test() else { return };
    if ours() == Controllers::ControllerManager {
        return;
    }
    let options = Options { audit: Audit::Metadata, ..Options::default() };
    let under_test = ClusterUnderTest::start(&binaries, Controllers::Nobody, options);
    let flags = DaemonFlags::elected(&under_test.kubeconfig);
    let mut daemon = Daemon::start(&under_test.cluster, "endpointd", &flags);
    under_test.wait_until_at_work();
    play_all(&under_test, &["created", "mirrored-ipv6", "prefer-close"]);
    thread::sleep(AFTERWARDS);

    let from = audit::end(&under_test.cluster);
    thread::sleep(AT_REST);
    let mut requests = audit::requests_since(&under_test.cluster, from);
    requests.retain(|request| request.user == audit::daemon_user());
    assert!(daemon.is_running(), "{}", under_test.daemon_log());
    let (lease, others): (Vec<Request>, Vec<Request>) =
        requests.into_iter().partition(|request| request.resource == "leases");
    assert!(!lease.is_empty(), "the lease is renewed");
    let others: Vec<&Request> = others.iter().filter(|request| request.verb != "watch").collect();
    assert!(others.is_empty(), "{others:#?}");
}

fn play_all(under_test: &ClusterUnderTest, names: &[&str]) {
    thread::scope(|scope| {
        for name in names {
            let history = HISTORIES.iter().find(|history| history.name == *name);
            let history = history.unwrap_or_else(|| panic!("no history is called `{name}`"));
            scope.spawn(|| play(history, &under_test.api));
        }
    });
}

fn versions(under_test: &ClusterUnderTest) -> BTreeMap<String, String> {
    let view = View::everywhere(&under_test.api).expect("lists are served");
    let mut versions = view.versions();
    versions.retain(|place, _| !place.contains(WITNESS));
    versions
}

/// What was written since `before`. Whoever runs now has shown that it works.
fn changed(under_test: &ClusterUnderTest, before: &BTreeMap<String, String>) -> Vec<String> {
    thread::sleep(AFTERWARDS);
    let after = versions(under_test);
    let all = before.keys().chain(after.keys());
    let differs = |place: &&String| before.get(*place) != after.get(*place);
    let mut changed: Vec<String> = all.filter(differs).cloned().collect();
    changed.dedup();
    changed
}
