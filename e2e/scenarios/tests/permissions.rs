//! With exactly the permissions of the manifests in `deploy/` no request is forbidden. Without one
//! of them the other writes continue, and the log names the missing permission.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use endpointd_control_plane::{Audit, Binaries, Options};
use endpointd_scenarios::audit::{self, Request};
use endpointd_scenarios::cluster::controllers_under_test;
use endpointd_scenarios::harness::{self, Test};
use endpointd_scenarios::kubectl;
use endpointd_scenarios::pods::web_ips;
use endpointd_scenarios::test_namespace::Kind;
use endpointd_scenarios::{
    ClusterUnderTest, Controllers, Daemon, DaemonFlags, Expected, SCENARIOS, TestNamespace,
    run_scenario,
};
use serde_json::{Value, json};

/// Scenarios that need every permission: create, update, and delete of Endpoints, slices, and
/// mirrored slices, Events, and owner references that block deletion.
const PERFORMED: &[&str] = &[
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
        "one_account_with_the_manifests_permissions_is_never_forbidden",
        one_account_with_the_manifests_permissions_is_never_forbidden,
    ),
    (
        "three_accounts_with_the_manifests_permissions_are_never_forbidden",
        three_accounts_with_the_manifests_permissions_are_never_forbidden,
    ),
    (
        "missing_permission_is_logged_and_other_writes_continue",
        missing_permission_is_logged_and_other_writes_continue,
    ),
];

fn main() {
    harness::run(TESTS)
}

fn one_account_with_the_manifests_permissions_is_never_forbidden() {
    let Some(under_test) = cluster_with("deploy") else { return };
    let _daemon = start(&under_test, "endpointd", &[]);
    assert_none_forbidden(&under_test, &["endpointd"]);
}

fn three_accounts_with_the_manifests_permissions_are_never_forbidden() {
    let Some(under_test) = cluster_with("deploy/separate-accounts") else { return };
    let accounts = ["endpointd-endpoints", "endpointd-slices", "endpointd-mirror"];
    let controllers =
        ["endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller"];
    let daemons = accounts.iter().zip(controllers).map(|(account, controller)| {
        start(&under_test, account, &[&format!("--controllers={controller}")])
    });
    let _daemons: Vec<Daemon> = daemons.collect();
    assert_none_forbidden(&under_test, &accounts);
}

fn missing_permission_is_logged_and_other_writes_continue() {
    let Some(under_test) = cluster_with("deploy") else { return };
    revoke(&under_test, "endpoints", "create");
    let mut daemon = start(&under_test, "endpointd", &[]);
    let mut ns = TestNamespace::new(&under_test.api, "less");
    ns.node_in("a", "zone-a");
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.web_pods(1..=2, &["a"]);
    let both = web_ips(1..=2);
    ns.converge(
        "without the permission",
        &[Expected::slices("web", &both), Expected::no_endpoints("web")],
    );
    ns.unready("web-1");
    ns.converge("after another change", &[Expected::slices("web", "10.0.0.2! 10.0.0.3")]);
    assert!(daemon.is_running());
    let log = Daemon::log_of(&under_test.cluster, "endpointd");
    let says = |line: &str| line.contains("create") && line.contains("endpoints");
    assert!(log.lines().any(|line| says(line) && line.contains("forbidden")), "{log}");

    grant(&under_test, "endpoints", "create");
    ns.converge("with the permission again", &[Expected::endpoints("web", "10.0.0.2! 10.0.0.3")]);
}

/// A cluster without controllers, with the manifests of this folder applied; `None` means skip. No
/// pods are created, because nothing there acts on a Deployment.
fn cluster_with(folder: &str) -> Option<ClusterUnderTest> {
    if controllers_under_test() == Controllers::ControllerManager || !kubectl::is_installed() {
        return None;
    }
    let options = Options { audit: Audit::Metadata, ..Options::default() };
    let under_test = ClusterUnderTest::start(&Binaries::for_test()?, Controllers::None, options);
    kubectl::apply(&under_test.cluster, folder);
    create_orphaned_endpoints(&under_test);
    Some(under_test)
}

/// Endpoints without a Service, which a daemon deletes when it starts. Endpoints of a Service that
/// is deleted later may be removed by the API server first.
fn create_orphaned_endpoints(under_test: &ClusterUnderTest) {
    let ns = TestNamespace::new(&under_test.api, "orphaned");
    let endpoints = json!({
        "metadata": {"name": "orphan"},
        "subsets": [{"addresses": [{"ip": "192.168.0.1"}], "ports": [{"port": 80}]}],
    });
    ns.create(Kind::Endpoints, &endpoints);
}

/// A daemon with the flags of the Deployment.
fn start(under_test: &ClusterUnderTest, account: &str, flags: &[&str]) -> Daemon {
    let kubeconfig: PathBuf =
        under_test.cluster.kubeconfig_of(NAMESPACE, account).expect("the account is there");
    let elected = DaemonFlags::elected(&kubeconfig)
        .with(&format!("--leader-elect-resource-name={account}"))
        .with(&format!("--leader-elect-resource-namespace={NAMESPACE}"));
    let flags = flags.iter().fold(elected, |flags, flag| flags.with(flag));
    Daemon::start(&under_test.cluster, account, &flags)
}

fn assert_none_forbidden(under_test: &ClusterUnderTest, accounts: &[&str]) {
    under_test.wait_until_synced();
    thread::scope(|scope| {
        for scenario in SCENARIOS.iter().filter(|scenario| PERFORMED.contains(&scenario.name)) {
            scope.spawn(|| run_scenario(scenario, &under_test.api));
        }
    });
    // Events are recorded asynchronously.
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
        let counts = || audit::count_by_kind(&requests);
        assert!(requests.iter().any(is_it), "no {verb} of {resource} in {:#?}", counts());
    }
    let forbidden: Vec<&Request> = requests.iter().filter(|one| one.status == 403).collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}");
}

fn revoke(under_test: &ClusterUnderTest, resource: &str, verb: &str) {
    change_role(under_test, resource, &|verbs| verbs.retain(|one| one != verb));
}

fn grant(under_test: &ClusterUnderTest, resource: &str, verb: &str) {
    change_role(under_test, resource, &|verbs| verbs.push(json!(verb)));
}

fn change_role(under_test: &ClusterUnderTest, resource: &str, change: &dyn Fn(&mut Vec<Value>)) {
    let mut role = under_test.api.get(ROLE).expect("the role is there");
    let rules = role["rules"].as_array_mut().expect("a role has rules");
    let rule = rules.iter_mut().find(|rule| rule["resources"] == json!([resource]));
    change(
        rule.expect("a rule for this resource")["verbs"].as_array_mut().expect("a rule has verbs"),
    );
    under_test.api.replace(ROLE, &role).expect("the role is valid");
}
