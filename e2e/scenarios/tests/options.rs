//! Flags that kube-controller-manager does not have, on a real API server: what is off by default
//! and has no counterpart upstream.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Binaries, Options};
use endpointd_scenarios::daemon::command;
use endpointd_scenarios::harness::{self, Test};
use endpointd_scenarios::pods::{Pod, web_ips};
use endpointd_scenarios::test_namespace::Kind;
use endpointd_scenarios::{
    ClusterUnderTest, Controllers, Daemon, DaemonFlags, Expected, TestNamespace,
};
use serde_json::{Value, json};

const TESTS: &[Test] = &[
    (
        "an_honored_tolerate_unready_annotation_publishes_unready_pods",
        an_honored_tolerate_unready_annotation_publishes_unready_pods,
    ),
    ("what_a_removed_selector_leaves_is_deleted", what_a_removed_selector_leaves_is_deleted),
    ("endpoints_can_be_left_behind", endpoints_can_be_left_behind),
];
/// Events are recorded asynchronously.
const EVENTS_MAX: Duration = Duration::from_secs(10);
/// Endpoints can be deleted when nobody has written them for 30 s.
const PRUNE_MAX: Duration = Duration::from_secs(120);
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
    let told = events(&ns, "InvalidAnnotation", 2);
    assert!(told.iter().all(|event| event["involvedObject"]["name"] == "api"), "{told:#?}");
    assert_eq!(told.len(), 2, "once per controller: {told:#?}");
    assert!(told.iter().all(|event| event["count"] == 1), "{told:#?}");
    honoring.stop();

    let flags = DaemonFlags::new(&under_test.kubeconfig);
    let _ignoring = Daemon::start(&under_test.cluster, "ignoring", &flags);
    let ignored = [Expected::endpoints("web", "10.0.0.2!"), Expected::slices("web", "10.0.0.2!")];
    ns.converge("ignored, as by upstream", &ignored);
}

fn what_a_removed_selector_leaves_is_deleted() {
    let Some(under_test) = cluster() else { return };
    let flags = DaemonFlags::new(&under_test.kubeconfig).with("--orphan-policy=delete");
    let _daemon = Daemon::start(&under_test.cluster, "deleting", &flags);
    let mut ns = TestNamespace::new(&under_test.api, "left");
    ns.node_in("a", "zone-a");
    for name in ["web", "api"] {
        ns.service(name, &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    }
    ns.web_pods(1..=2, &["a"]);
    let both = web_ips(1..=2);
    let published = |name: &str| [Expected::slices(name, &both), Expected::endpoints(name, &both)];
    ns.converge("published", &[published("web"), published("api")].concat());

    ns.merge(Kind::Service, "web", &json!({"spec": {"selector": null}}));
    let external = json!({"spec": {"type": "ExternalName", "externalName": "example.com", "clusterIP": null,
            "clusterIPs": null}});
    ns.merge(Kind::Service, "api", &external);
    let gone = |name: &str| [Expected::no_slices(name), Expected::no_endpoints(name)];
    ns.converge("deleted", &[gone("web"), gone("api")].concat());
    let told = events(&ns, "DeletedLeftBehind", 4);
    assert!(told.iter().all(|event| event["type"] == "Normal"), "{told:#?}");

    ns.merge(Kind::Service, "web", &json!({"spec": {"selector": {"app": "web"}}}));
    ns.converge("published again", &published("web"));
    let own = json!({
        "metadata": {"name": "db"},
        "subsets": [{"addresses": [{"ip": "192.168.0.1"}], "ports": [{"port": 5432}]}],
    });
    ns.service("db", &json!({"ports": [{"port": 5432}]}));
    ns.create(Kind::Endpoints, &own);
    let manual = [Expected::slices("db", "192.168.0.1"), Expected::endpoints("db", "192.168.0.1")];
    ns.converge("what a user writes stays", &manual);
}

/// KEP-4974: without the endpoints controller, and then without permission to list Endpoints.
fn endpoints_can_be_left_behind() {
    let Some(under_test) = cluster() else { return };
    let all = Daemon::start(&under_test.cluster, "all", &DaemonFlags::new(&under_test.kubeconfig));
    let mut ns = TestNamespace::new(&under_test.api, "leaving");
    ns.node_in("a", "zone-a");
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.web_pods(1..=2, &["a"]);
    let both = web_ips(1..=2);
    ns.converge("published", &[Expected::slices("web", &both), Expected::endpoints("web", &both)]);
    let admin = under_test.cluster.kubeconfig();
    let prune = ["endpoints", "prune", "-n", "leaving", "--confirm", "--probe-time=2s"];
    let refused = run(&admin, &prune);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("wrote Endpoints leaving/web in the last 30 s"), "{refused:?}");
    let started = Instant::now();
    let refused = loop {
        let refused = run(&admin, &prune);
        if !refused.err.contains("in the last 30 s") || started.elapsed() > PRUNE_MAX {
            break refused;
        }
        thread::sleep(Duration::from_secs(2));
    };
    assert!(refused.err.contains("an endpoints controller is running"), "{refused:?}");
    ns.converge("nothing deleted", &[Expected::endpoints("web", &both)]);
    all.stop();
    // One that looks at this namespace only is found, too.
    let flags = DaemonFlags::new(&under_test.kubeconfig).with("--namespaces=leaving");
    let limited = Daemon::start(&under_test.cluster, "limited", &flags);
    let refused = run(&admin, &["endpoints", "prune", "-A", "--confirm"]);
    assert!(refused.err.contains("for a new Service in `leaving`"), "{refused:?}");
    limited.stop();

    let kubeconfig = without_endpoints(&under_test);
    let flags = DaemonFlags::new(&kubeconfig).with("--controllers=*,-endpoints-controller");
    let waiting = Daemon::start(&under_test.cluster, "without-endpoints", &flags);
    ns.unready("web-1");
    ns.converge(
        "slices without Endpoints",
        &[Expected::slices("web", "10.0.0.2! 10.0.0.3"), Expected::endpoints("web", &both)],
    );
    let not_ready = waiting.status().text("/readyz?verbose");
    let reason = format!("{not_ready:?}");
    assert!(reason.contains("endpoints") && reason.contains("mirroring"), "{reason}");
    waiting.stop();
    let flags = DaemonFlags::new(&kubeconfig)
        .with("--controllers=*,-endpoints-controller,-endpointslice-mirroring-controller");
    let slices_only = Daemon::start(&under_test.cluster, "slices-only", &flags);
    ns.unready("web-2");
    ns.converge("slices only", &[Expected::slices("web", "10.0.0.2! 10.0.0.3!")]);
    slices_only.status().text("/readyz").expect("it is ready without Endpoints");

    let report = run(&admin, &["endpoints", "report", "-n", "leaving", "-o", "json"]);
    assert_eq!(report.code, Some(0), "{report:?}");
    let report: Value = serde_json::from_str(&report.out).expect("JSON");
    assert_eq!(report["purposes"]["published"]["objects"], 1, "{report:#}");
    assert_eq!(report["writers"][0]["manager"], "endpointd", "{report:#}");
    let pruned = run(&admin, &prune);
    assert_eq!(pruned.out, "leaving/web deleted\n\n1 Endpoints: 1 deleted.\n", "{pruned:?}");
    let slices = Expected::slices("web", "10.0.0.2! 10.0.0.3!");
    ns.converge("pruned", &[slices, Expected::no_endpoints("web")]);
    let services = under_test.api.get("/api/v1/namespaces/leaving/services").expect("a list");
    assert_eq!(services["items"].as_array().map(Vec::len), Some(1), "the probe is gone");
}

/// An account that may do what the slice controllers do, without Endpoints.
fn without_endpoints(under_test: &ClusterUnderTest) -> PathBuf {
    let account = "slices-only";
    let kubeconfig = under_test.cluster.service_account("kube-system", account).expect("it is new");
    let all = json!(["*"]);
    let role = json!({
        "metadata": {"name": account},
        "rules": [
            {"apiGroups": [""], "verbs": all,
                "resources": ["services", "pods", "nodes", "events", "services/finalizers"]},
            {"apiGroups": ["discovery.k8s.io"], "verbs": all, "resources": ["endpointslices"]},
        ],
    });
    let binding = json!({
        "metadata": {"name": account},
        "roleRef": {"kind": "ClusterRole", "name": account},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}],
    });
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let api = under_test.cluster.api();
    api.create(&format!("{rbac}/clusterroles"), &role).expect("it is new");
    api.create(&format!("{rbac}/clusterrolebindings"), &binding).expect("it is new");
    kubeconfig
}

#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn run(kubeconfig: &Path, args: &[&str]) -> Ran {
    let output = command().args(args).arg("--kubeconfig").arg(kubeconfig).output();
    let output = output.expect("endpointd can be started");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Waits until there are so many Events with this reason.
fn events(ns: &TestNamespace<'_>, reason: &str, n: usize) -> Vec<Value> {
    let path =
        format!("/api/v1/namespaces/{}/events?fieldSelector=reason={reason}", ns.namespace());
    let started = Instant::now();
    loop {
        let events = ns.api().get(&path).expect("events are listed");
        let items = events["items"].as_array().cloned().unwrap_or_default();
        if items.len() >= n {
            return items;
        }
        assert!(started.elapsed() < EVENTS_MAX, "no Events: {items:#?}");
        thread::sleep(POLL);
    }
}
