//! With exactly the rights of the manifests in `deploy/` no request is refused; with one right less the
//! rest goes on, and the log says what is missing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use endpointd_control_plane::binaries::is_ci;
use endpointd_control_plane::{Audit, Binaries, Options};
use endpointd_histories::audit::{self, Request};
use endpointd_histories::cluster::ours;
use endpointd_histories::harness::{self, Test};
use endpointd_histories::pods::web_ips;
use endpointd_histories::stage::Kind;
use endpointd_histories::{
    ClusterUnderTest, Controllers, Daemon, DaemonFlags, HISTORIES, Stage, Wanted, play,
};
use serde_json::{Value, json};

/// Whose settled states ask for every verb: create, update and delete of Endpoints, of slices and
/// of mirrored slices, notices, owners that block deletion.
const PLAYED: &[&str] = &[
    "created",
    "scaled",
    "deleted",
    "dual-stack",
    "named-ports",
    "ports-changed",
    "mirrored",
    "mirrored-ipv6",
    "mirrored-deleted",
    "foreign-delete",
    "late-node",
    "topology",
];
const NAMESPACE: &str = "endpointd";
const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/endpointd";

const TESTS: &[Test] = &[
    (
        "one_account_with_the_rights_of_the_manifests_is_refused_nothing",
        one_account_with_the_rights_of_the_manifests_is_refused_nothing,
    ),
    (
        "three_accounts_with_the_rights_of_the_manifests_are_refused_nothing",
        three_accounts_with_the_rights_of_the_manifests_are_refused_nothing,
    ),
    (
        "without_one_right_the_rest_goes_on_and_the_log_says_what_is_missing",
        without_one_right_the_rest_goes_on_and_the_log_says_what_is_missing,
    ),
];

fn main() {
    harness::run(TESTS)
}

fn one_account_with_the_rights_of_the_manifests_is_refused_nothing() {
    let Some(under_test) = cluster_with("deploy/namespace.yaml deploy/rbac.yaml") else { return };
    let _daemon = start(&under_test, "endpointd", &[]);
    assert_none_refused(&under_test, &["endpointd"]);
}

fn three_accounts_with_the_rights_of_the_manifests_are_refused_nothing() {
    let manifests = "deploy/namespace.yaml deploy/separate-accounts/rbac.yaml";
    let Some(under_test) = cluster_with(manifests) else { return };
    let accounts = ["endpointd-endpoints", "endpointd-slices", "endpointd-mirror"];
    let controllers =
        ["endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller"];
    let daemons = accounts.iter().zip(controllers).map(|(account, controller)| {
        start(&under_test, account, &[&format!("--controllers={controller}")])
    });
    let _daemons: Vec<Daemon> = daemons.collect();
    assert_none_refused(&under_test, &accounts);
}

fn without_one_right_the_rest_goes_on_and_the_log_says_what_is_missing() {
    let Some(under_test) = cluster_with("deploy/namespace.yaml deploy/rbac.yaml") else { return };
    take_right(&under_test, "endpoints", "create");
    let mut daemon = start(&under_test, "endpointd", &[]);
    let mut stage = Stage::enter(&under_test.api, "less");
    stage.node_in("a", "zone-a");
    stage.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    stage.web_pods(1..=2, &["a"]);
    let both = web_ips(1..=2);
    stage.settle("one right less", &[Wanted::slices("web", &both), Wanted::no_endpoints("web")]);
    stage.unready("web-1");
    stage.settle("and it goes on", &[Wanted::slices("web", "10.0.0.2! 10.0.0.3")]);
    assert!(daemon.is_running());
    let log = Daemon::log_of(&under_test.cluster, "endpointd");
    let says = |line: &str| line.contains("create") && line.contains("endpoints");
    assert!(log.lines().any(|line| says(line) && line.contains("forbidden")), "{log}");

    give_right(&under_test, "endpoints", "create");
    stage.settle("with the right again", &[Wanted::endpoints("web", "10.0.0.2! 10.0.0.3")]);
}

/// A cluster without controllers and with these files applied; `None` means skip.
fn cluster_with(manifests: &str) -> Option<ClusterUnderTest> {
    if ours() == Controllers::ControllerManager || !has_kubectl() {
        return None;
    }
    let options = Options { audit: Audit::Metadata, ..Options::default() };
    let under_test = ClusterUnderTest::start(&Binaries::for_test()?, Controllers::Nobody, options);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("e2e/histories");
    for file in manifests.split_whitespace() {
        let mut kubectl = Command::new("kubectl");
        kubectl.arg("--kubeconfig").arg(under_test.cluster.kubeconfig());
        kubectl.args(["apply", "--filename"]).arg(root.join(file));
        let output = kubectl.output().expect("`kubectl` is installed");
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
    }
    leave_endpoints_behind(&under_test);
    Some(under_test)
}

/// Endpoints without a Service, for whoever starts. Those of a Service deleted later the API server may
/// remove before we do.
fn leave_endpoints_behind(under_test: &ClusterUnderTest) {
    let stage = Stage::enter(&under_test.api, "left");
    let endpoints = json!({
        "metadata": {"name": "behind"},
        "subsets": [{"addresses": [{"ip": "192.168.0.1"}], "ports": [{"port": 80}]}],
    });
    stage.create(Kind::Endpoints, &endpoints);
}

/// Skips like a missing control plane does: never where nobody would read it.
fn has_kubectl() -> bool {
    let found = Command::new("kubectl").args(["version", "--client"]).output().is_ok();
    assert!(found || !is_ci(), "`kubectl` is not installed");
    found
}

/// A daemon as its Deployment would start it.
fn start(under_test: &ClusterUnderTest, account: &str, flags: &[&str]) -> Daemon {
    let kubeconfig: PathBuf =
        under_test.cluster.kubeconfig_of(NAMESPACE, account).expect("the account is there");
    let elected = DaemonFlags::elected(&kubeconfig)
        .with(&format!("--leader-elect-resource-name={account}"))
        .with(&format!("--leader-elect-resource-namespace={NAMESPACE}"));
    let flags = flags.iter().fold(elected, |flags, flag| flags.with(flag));
    Daemon::start(&under_test.cluster, account, &flags)
}

fn assert_none_refused(under_test: &ClusterUnderTest, accounts: &[&str]) {
    under_test.wait_until_at_work();
    thread::scope(|scope| {
        for history in HISTORIES.iter().filter(|history| PLAYED.contains(&history.name)) {
            scope.spawn(|| play(history, &under_test.api));
        }
    });
    // Notices are written at leisure.
    thread::sleep(Duration::from_secs(2));
    let users = accounts.iter().map(|name| format!("system:serviceaccount:{NAMESPACE}:{name}"));
    let users: Vec<String> = users.collect();
    let mut requests = audit::requests_since(&under_test.cluster, 0);
    requests.retain(|request| users.contains(&request.user));
    for (resource, verb) in [
        ("endpoints", "create"),
        ("endpoints", "update"),
        ("endpoints", "delete"),
        ("endpointslices", "create"),
        ("endpointslices", "update"),
        ("endpointslices", "delete"),
        ("leases", "create"),
        ("leases", "update"),
    ] {
        let is_it = |request: &Request| request.resource == resource && request.verb == verb;
        let counted = || audit::counted(&requests);
        assert!(requests.iter().any(is_it), "no {verb} of {resource} in {:#?}", counted());
    }
    let refused: Vec<&Request> = requests.iter().filter(|one| one.status == 403).collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

fn take_right(under_test: &ClusterUnderTest, resource: &str, verb: &str) {
    change_role(under_test, resource, &|verbs| verbs.retain(|one| one != verb));
}

fn give_right(under_test: &ClusterUnderTest, resource: &str, verb: &str) {
    change_role(under_test, resource, &|verbs| verbs.push(json!(verb)));
}

fn change_role(under_test: &ClusterUnderTest, resource: &str, change: &dyn Fn(&mut Vec<Value>)) {
    let mut role = under_test.api.get(ROLE).expect("the role is there");
    let rules = role["rules"].as_array_mut().expect("a role has rules");
    let rule = rules.iter_mut().find(|rule| rule["resources"] == json!([resource]));
    change(rule.expect("a rule of its own")["verbs"].as_array_mut().expect("a rule has verbs"));
    under_test.api.replace(ROLE, &role).expect("the role is valid");
}
