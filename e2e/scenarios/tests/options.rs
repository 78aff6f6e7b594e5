//! Flags that kube-controller-manager does not have, on a real API server: what is off by default
//! and has no counterpart upstream.

use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Binaries, Options};
use endpointd_scenarios::harness::{self, Test};
use endpointd_scenarios::pods::Pod;
use endpointd_scenarios::test_namespace::Kind;
use endpointd_scenarios::{
    ClusterUnderTest, Controllers, Daemon, DaemonFlags, Expected, TestNamespace,
};
use serde_json::{Value, json};

const TESTS: &[Test] = &[(
    "an_honored_tolerate_unready_annotation_publishes_unready_pods",
    an_honored_tolerate_unready_annotation_publishes_unready_pods,
)];
/// Events are recorded asynchronously.
const EVENTS_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(200);
const TOLERATE_UNREADY: &str = "service.alpha.kubernetes.io/tolerate-unready-endpoints";

fn main() {
    harness::run(TESTS)
}

/// `None` means skip. The tests start their own daemons.
fn cluster() -> Option<ClusterUnderTest> {
    let binaries = Binaries::for_test()?;
    Some(ClusterUnderTest::start(&binaries, Controllers::None, Options::default()))
}

fn an_honored_tolerate_unready_annotation_publishes_unready_pods() {
    let Some(under_test) = cluster() else { return };
    let flags =
        DaemonFlags::new(&under_test.kubeconfig).with("--honor-tolerate-unready-annotation");
    let honoring = Daemon::start(&under_test.cluster, "honoring", &flags);
    let mut ns = TestNamespace::new(&under_test.api, "tolerating");
    ns.node_in("a", "zone-a");
    for (name, value) in [("web", "true"), ("api", "maybe")] {
        let service = json!({
            "metadata": {"name": name, "annotations": {TOLERATE_UNREADY: value}},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
        });
        ns.create(Kind::Service, &service);
    }
    let pod = Pod::new("web-1", "10.0.0.2").labelled(json!({"app": "web"})).on("a");
    ns.pod(&pod.unready());
    let honored = [
        Expected::endpoints("web", "10.0.0.2"),
        Expected::slices("web", "10.0.0.2s"),
        Expected::endpoints("api", "10.0.0.2!"),
        Expected::slices("api", "10.0.0.2!"),
    ];
    ns.converge("honored", &honored);
    let told = events(&ns, "InvalidAnnotation");
    assert!(told.iter().all(|event| event["involvedObject"]["name"] == "api"), "{told:#?}");
    assert_eq!(told.len(), 2, "once per controller: {told:#?}");
    assert!(told.iter().all(|event| event["count"] == 1), "{told:#?}");
    honoring.stop();

    let flags = DaemonFlags::new(&under_test.kubeconfig);
    let _ignoring = Daemon::start(&under_test.cluster, "ignoring", &flags);
    let ignored = [Expected::endpoints("web", "10.0.0.2!"), Expected::slices("web", "10.0.0.2!")];
    ns.converge("ignored, as by upstream", &ignored);
}

/// Waits until there are Events with this reason.
fn events(ns: &TestNamespace<'_>, reason: &str) -> Vec<Value> {
    let path =
        format!("/api/v1/namespaces/{}/events?fieldSelector=reason={reason}", ns.namespace());
    let started = Instant::now();
    loop {
        let events = ns.api().get(&path).expect("events are listed");
        let items = events["items"].as_array().cloned().unwrap_or_default();
        if items.len() >= 2 {
            return items;
        }
        assert!(started.elapsed() < EVENTS_MAX, "no Events: {items:#?}");
        thread::sleep(POLL);
    }
}
