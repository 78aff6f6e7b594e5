//! The commands that look at a cluster, while kube-controller-manager publishes: `run --dry-run`,
//! `explain`, `diff`, `check`. All of them only read. And `dashboard`.

mod check;
mod contexts;
mod dashboard;
mod fake_kubelet;
mod shadow;
mod worlds;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::thread;

use endpointd_control_plane::{Api, Audit, Binaries, Cluster, Options};
use endpointd_scenarios::audit;
use endpointd_scenarios::daemon::command;
use endpointd_scenarios::harness::{self, Test};
use endpointd_scenarios::observed_state::ObservedState;
use endpointd_scenarios::pods::Pod;
use endpointd_scenarios::{
    ClusterUnderTest, Controllers, Daemon, DaemonFlags, Expected, SCENARIOS, TestNamespace,
    run_scenario,
};
use serde_json::{Value, json};

const TESTS: &[Test] = &[
    ("commands_agree_with_kube_controller_manager", commands_agree_with_kube_controller_manager),
    ("explain_says_what_is_published", explain_says_what_is_published),
    (
        "every_world_is_explained_as_it_is_published",
        worlds::every_world_is_explained_as_it_is_published,
    ),
    ("a_dashboard_reaches_the_pod_that_leads", dashboard::a_dashboard_reaches_the_pod_that_leads),
];
const ACCOUNT: &str = "shadow";

fn main() {
    harness::run(TESTS)
}

/// All scenarios under kube-controller-manager, with a shadow beside it.
fn commands_agree_with_kube_controller_manager() {
    let Some(binaries) = Binaries::for_test() else { return };
    let options = Options { audit: Audit::Metadata, ..Options::default() };
    let under_test = ClusterUnderTest::start(&binaries, Controllers::ControllerManager, options);
    let kubeconfig = reading_account(&under_test.cluster);
    let flags = DaemonFlags::new(&kubeconfig).with("--dry-run");
    let daemon = Daemon::start(&under_test.cluster, "shadow", &flags);
    thread::scope(|scope| {
        for scenario in SCENARIOS {
            scope.spawn(|| run_scenario(scenario, &under_test.api));
        }
    });
    shadow::agrees_at_every_quiet_point(&daemon);

    let diff = run(&kubeconfig, &["diff", "-A"]);
    assert_eq!(diff.code, Some(0), "{diff:?}");
    let explained = run(&kubeconfig, &["explain", "-A", "-o", "json"]);
    let n_compared = explain_agrees(&under_test.api, &explained.json());
    assert!(n_compared > 10, "too few Services with ready endpoints: {n_compared}");
    shadow::shows_a_planted_difference(&under_test, &daemon);

    let requests = audit::requests_since(&under_test.cluster, 0);
    let user = format!("system:serviceaccount:kube-system:{ACCOUNT}");
    let mut writes = requests.into_iter().filter(|one| one.user == user && one.is_write());
    assert_eq!(writes.next(), None, "a shadow only reads");
}

/// What `explain` says is published is what is there, and nothing is said to be wrong with it.
/// Returns the number of Services with ready endpoints.
fn explain_agrees(api: &Api, explained: &Value) -> usize {
    let published = ready_pods_by_slice(api, |_| true);
    let with_ports = ready_pods_by_slice(api, |slice| {
        slice["ports"].as_array().is_some_and(|ports| !ports.is_empty())
    });
    let mut n_compared = 0;
    for item in explained["items"].as_array().expect("items") {
        let object = &item["object"];
        let name = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let (namespace, service) = (name("namespace"), name("name"));
        let codes: Vec<&str> = item["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| one["code"].as_str())
            .collect();
        let is_writer_blamed = codes.iter().any(|code| code.starts_with("EPD80"));
        // More than 1,000 addresses do not fit into Endpoints.
        let is_truncated = codes.contains(&"EPD801");
        assert!(!is_writer_blamed || is_truncated, "{namespace}/{service}: {item:#}");
        // Its slices are of the time when it had a selector; nothing should be published.
        if codes.contains(&"EPD113") {
            continue;
        }
        let mut said: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for endpoint in item["endpoints"].as_array().into_iter().flatten() {
            let pod = endpoint["pod"].as_str().unwrap_or_default().to_owned();
            let slices = endpoint["slices"].as_array().into_iter().flatten();
            for slice in slices.filter_map(Value::as_str) {
                let key = format!("{namespace}/{service}/{slice}");
                said.entry(key).or_default().insert(pod.clone());
            }
        }
        // A pod without the port of the Service is in a slice without ports, and gets no traffic.
        let lacks_port = ["EPD401", "EPD402"].iter().any(|code| codes.contains(code));
        let published = if lacks_port { &with_ports } else { &published };
        let prefix = format!("{namespace}/{service}/");
        let there = published.iter().filter(|(key, _)| key.starts_with(&prefix));
        let there: BTreeMap<String, BTreeSet<String>> =
            there.map(|(key, pods)| (key.clone(), pods.clone())).collect();
        assert_eq!(said, there, "{item:#}");
        n_compared += usize::from(!said.is_empty());
    }
    n_compared
}

/// The ready pods in each slice that the controller writes, by `namespace/service/slice`.
fn ready_pods_by_slice(
    api: &Api,
    is_counted: impl Fn(&Value) -> bool,
) -> BTreeMap<String, BTreeSet<String>> {
    let state = ObservedState::everywhere(api).expect("lists are served");
    let mut pods_by_slice: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for slice in state.slices.iter().filter(|slice| is_counted(slice)) {
        let meta = &slice["metadata"];
        let label = |key: &str| meta["labels"][key].as_str().unwrap_or_default();
        let is_ours =
            label("endpointslice.kubernetes.io/managed-by") == "endpointslice-controller.k8s.io";
        let text = |field: &str| meta[field].as_str().unwrap_or_default();
        let service = label("kubernetes.io/service-name");
        let key = format!("{}/{service}/{}", text("namespace"), text("name"));
        let endpoints = slice["endpoints"].as_array().into_iter().flatten();
        let ready = endpoints.filter(|one| is_ours && one["conditions"]["ready"] == true);
        for pod in ready.filter_map(|one| one["targetRef"]["name"].as_str()) {
            pods_by_slice.entry(key.clone()).or_default().insert(pod.to_owned());
        }
    }
    pods_by_slice
}

/// One Service with every kind of pod, and permissions that do not cover everything.
fn explain_says_what_is_published() {
    let Some(binaries) = Binaries::for_test() else { return };
    let options = Options { audit: Audit::Metadata, ..Options::default() };
    let under_test = ClusterUnderTest::start(&binaries, Controllers::ControllerManager, options);
    let mut ns = TestNamespace::new(&under_test.api, "explained");
    ns.node_in("explained-node", "a");
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    let pod = |name: &str, ip: &str| {
        Pod::new(name, ip).labelled(json!({"app": "web"})).on("explained-node")
    };
    ns.pod(&pod("web-0", "10.9.8.1"));
    ns.pod(&pod("web-1", "10.9.8.2").unready());
    ns.pod(&pod("web-2", "10.9.8.3").labelled(json!({"app": "wbe"})));
    ns.pod(&pod("web-3", "10.9.8.4").on("missing"));
    ns.converge("published", &[Expected::endpoints("web", "10.9.8.1 10.9.8.2! 10.9.8.4")]);

    let admin = &under_test.cluster.kubeconfig();
    let from = audit::end(&under_test.cluster);
    let explained = run(admin, &["explain", "svc/web", "-n", "explained", "-o", "json"]);
    assert_eq!(explained.code, Some(1), "{explained:?}");
    let findings = explained.json()["findings"].clone();
    let code_of = |pod: &str| -> Vec<String> {
        let about =
            |one: &&Value| one["message"].as_str().is_some_and(|text| text.starts_with(pod));
        let found = findings.as_array().into_iter().flatten().filter(about);
        found.filter_map(|one| one["code"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(code_of("web-0"), [""; 0], "{findings:#}");
    assert_eq!(code_of("web-2"), ["EPD103"], "{findings:#}");
    assert_eq!(code_of("web-3"), ["EPD205"], "{findings:#}");
    only_one_namespace_was_read(&under_test.cluster, from);

    let nobody = run(admin, &["explain", "web", "-n", "explained", "--as", "nobody"]);
    assert_eq!(nobody.code, Some(2), "{nobody:?}");
    let hint = "hint: `kubectl auth can-i list services -n explained`";
    assert!(nobody.err.contains(hint), "{nobody:?}");
    let missing = run(admin, &["explain", "wbe", "-n", "explained"]);
    assert!(missing.err.contains("hint: did you mean `web`?"), "{missing:?}");

    check::says_what_holds_and_what_does_not(&under_test.cluster);
    contexts::name_the_cluster_and_the_namespace(&under_test.cluster);
}

fn only_one_namespace_was_read(cluster: &Cluster, from: usize) {
    let requests = audit::requests_since(cluster, from).into_iter();
    let is_of_command = |path: &str| path.contains("limit=") || path.contains("/nodes/");
    let outside = requests.filter(|one| is_of_command(&one.path) && one.verb == "list");
    let outside = outside.filter(|one| !one.path.contains("/namespaces/explained/"));
    let resources: BTreeSet<String> = outside.map(|one| one.resource).collect();
    assert_eq!(resources, ["leases".to_owned()].into(), "Leases of the controllers, and no more");
}

/// An account that may read what the controllers read, and what explains it.
fn reading_account(cluster: &Cluster) -> PathBuf {
    let kubeconfig = cluster.service_account("kube-system", ACCOUNT).expect("it is new");
    let reads = json!(["get", "list", "watch"]);
    let role = json!({
        "metadata": {"name": ACCOUNT},
        "rules": [
            {"apiGroups": [""], "verbs": reads,
                "resources": ["services", "pods", "nodes", "endpoints", "events"]},
            {"apiGroups": ["discovery.k8s.io"], "verbs": reads, "resources": ["endpointslices"]},
            {"apiGroups": ["apps", "batch", "autoscaling", "coordination.k8s.io"], "verbs": reads,
                "resources": ["*"]},
        ],
    });
    let binding = json!({
        "metadata": {"name": ACCOUNT},
        "roleRef": {"kind": "ClusterRole", "name": ACCOUNT},
        "subjects": [
            {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "kube-system"},
        ],
    });
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    cluster.api().create(&format!("{rbac}/clusterroles"), &role).expect("it is new");
    cluster.api().create(&format!("{rbac}/clusterrolebindings"), &binding).expect("it is new");
    kubeconfig
}

#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

fn run(kubeconfig: &Path, args: &[&str]) -> Ran {
    let output = command().args(args).arg("--kubeconfig").arg(kubeconfig).output();
    let output = output.expect("endpointd can be started");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}
