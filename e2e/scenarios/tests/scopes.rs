//! Instances beside each other on a real API server: `--namespaces`, `--service-selector`, `--shard`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Audit, Binaries, Options};
use endpointd_scenarios::audit;
use endpointd_scenarios::daemon::command;
use endpointd_scenarios::harness::{self, Test};
use endpointd_scenarios::pods::web_ips;
use endpointd_scenarios::test_namespace::Kind;
use endpointd_scenarios::{
    ClusterUnderTest, Controllers, Daemon, DaemonFlags, Expected, TestNamespace,
};
use serde_json::{Value, json};

const TESTS: &[Test] = &[
    (
        "instances_with_disjoint_scopes_touch_only_their_own_objects",
        instances_with_disjoint_scopes_touch_only_their_own_objects,
    ),
    ("instances_with_names_own_only_their_slices", instances_with_names_own_only_their_slices),
    ("a_scope_lowers_what_an_instance_receives", a_scope_lowers_what_an_instance_receives),
    ("shards_share_the_namespaces", shards_share_the_namespaces),
    (
        "shards_are_filtered_by_the_api_server_if_it_can",
        shards_are_filtered_by_the_api_server_if_it_can,
    ),
];
const N_PODS: usize = 5;
/// Names whose hashes are in both halves; those of names that differ only at the end are close together.
const NAMESPACES: [&str; 8] =
    ["shop", "billing", "search", "mail", "build", "media", "cart", "video"];
const N_NAMESPACES: usize = NAMESPACES.len();
const METRIC_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(200);
const LEASES: &str = "kube-system";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

fn main() {
    harness::run(TESTS)
}

fn cluster(apiserver_flags: &[&str]) -> Option<ClusterUnderTest> {
    let options = Options {
        audit: Audit::Metadata,
        apiserver_flags: apiserver_flags.iter().map(|flag| (*flag).to_owned()).collect(),
        ..Options::default()
    };
    Some(ClusterUnderTest::start(&Binaries::for_test()?, Controllers::None, options))
}

/// An elected daemon with an account of its own, whose name is also that of its log.
fn start(under_test: &ClusterUnderTest, account: &str, flags: &[&str]) -> Daemon {
    let kubeconfig = kubeconfig(under_test, account);
    start_as(under_test, account, &kubeconfig, flags)
}

fn start_as(
    under_test: &ClusterUnderTest,
    name: &str,
    kubeconfig: &Path,
    flags: &[&str],
) -> Daemon {
    let elected = DaemonFlags::elected(kubeconfig)
        .with(&format!("--leader-elect-resource-namespace={LEASES}"));
    let flags = flags.iter().fold(elected, |flags, flag| flags.with(flag));
    Daemon::start(&under_test.cluster, name, &flags)
}

fn kubeconfig(under_test: &ClusterUnderTest, account: &str) -> PathBuf {
    let kubeconfig = under_test.cluster.service_account(LEASES, account).expect("it is new");
    let binding = json!({
        "metadata": {"name": account},
        "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": LEASES}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    under_test.cluster.api().create(bindings, &binding).expect("the binding is valid");
    kubeconfig
}

fn web(ns: &mut TestNamespace<'_>) {
    ns.node_in("a", "zone-a");
    ns.service("web", &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}));
    ns.web_pods(1..=N_PODS, &["a"]);
}

fn published(name: &str) -> [Expected; 2] {
    let all = web_ips(1..=N_PODS);
    [Expected::slices(name, &all), Expected::endpoints(name, &all)]
}

/// The paths of all writes of Endpoints and slices of this account.
fn written_paths(under_test: &ClusterUnderTest, account: &str) -> Vec<String> {
    let user = format!("system:serviceaccount:{LEASES}:{account}");
    let requests = audit::requests_since(&under_test.cluster, 0).into_iter();
    let written = requests.filter(|one| {
        one.user == user
            && one.is_write()
            && ["endpoints", "endpointslices"].contains(&one.resource.as_str())
    });
    written.map(|one| one.path).collect()
}

fn instances_with_disjoint_scopes_touch_only_their_own_objects() {
    let Some(under_test) = cluster(&[]) else { return };
    let one = start(&under_test, "one", &["--namespaces=side-a"]);
    let two = start(&under_test, "two", &["--namespaces=side-b,side-c"]);
    let team = ["--namespaces=side-d", "--service-selector=team=x"];
    let _team_x = start(&under_test, "team-x", &team);
    let team = ["--namespaces=side-d", "--service-selector=team!=x"];
    let _others = start(&under_test, "others", &team);
    let mut namespaces: Vec<TestNamespace<'_>> = ["side-a", "side-b", "side-c"]
        .iter()
        .map(|name| TestNamespace::new(&under_test.api, name))
        .collect();
    namespaces.iter_mut().for_each(web);
    let mut shared = TestNamespace::new(&under_test.api, "side-d");
    web(&mut shared);
    let of_x = json!({
        "metadata": {"name": "x", "labels": {"team": "x"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    });
    shared.create(Kind::Service, &of_x);
    for ns in &mut namespaces {
        ns.converge("published", &published("web"));
    }
    shared.converge("published", &[published("web"), published("x")].concat());
    let is_in = |paths: Vec<String>, names: &[&str]| {
        assert!(!paths.is_empty());
        for path in paths {
            let is_one = names.iter().any(|name| path.contains(&format!("/namespaces/{name}/")));
            assert!(is_one, "{path} is not in {names:?}");
        }
    };
    is_in(written_paths(&under_test, "one"), &["side-a"]);
    is_in(written_paths(&under_test, "two"), &["side-b", "side-c"]);
    is_in(written_paths(&under_test, "team-x"), &["side-d"]);
    let web_slice = shared.slice_name("web");
    let is_of_web = |path: &String| path.ends_with(&web_slice) || path.ends_with("endpoints/web");
    assert!(!written_paths(&under_test, "team-x").iter().any(is_of_web));

    // The Service changes hands: nothing is unpublished, and the other instance goes on.
    shared.merge(Kind::Service, "x", &json!({"metadata": {"labels": {"team": "y"}}}));
    shared.converge("another team", &published("x"));
    shared.unready("web-1");
    let without = web_ips(2..=N_PODS);
    let unready = format!("10.0.0.2! {without}");
    shared.converge("still followed", &[Expected::slices("x", &unready)]);
    // A deleted Service leaves nothing, although no instance deletes because of an absence.
    shared.delete(Kind::Service, "x");
    shared.converge("deleted", &[Expected::no_slices("x"), Expected::no_endpoints("x")]);

    let (small, large) = (cached_pods(&one, N_PODS), cached_pods(&two, 2 * N_PODS));
    assert_eq!((small, large), (N_PODS, 2 * N_PODS), "pods of other namespaces are not kept");
    assert_eq!(overlap(&under_test), "ok");
    let _third = start(&under_test, "third", &["--namespaces=side-c,side-e"]);
    let started = Instant::now();
    while overlap(&under_test) != "failed" {
        assert!(started.elapsed() < METRIC_MAX, "`check` does not find the overlap");
        thread::sleep(POLL);
    }
}

fn instances_with_names_own_only_their_slices() {
    let Some(under_test) = cluster(&[]) else { return };
    let name = |name: &str| format!("--controller-name={name}");
    let _blue = start(&under_test, "blue", &["--namespaces=blue", &name("blue")]);
    let _green = start(&under_test, "green", &["--namespaces=green", &name("green")]);
    let mut namespaces = ["blue", "green"].map(|name| TestNamespace::new(&under_test.api, name));
    for ns in &mut namespaces {
        web(ns);
        by_hand(ns);
        ns.converge("published", &[&published("web")[..], &mirrored()].concat());
    }
    let [blue, green] = namespaces;
    let values = |instance: &str| {
        let value = |controller: &str| format!("{controller}-controller.{instance}");
        BTreeSet::from([value("endpointslice"), value("endpointslicemirroring")])
    };
    assert_eq!(managers(&blue), values("blue"));
    assert_eq!(managers(&green), values("green"));
    for account in ["blue", "green"] {
        let own = format!("/namespaces/{account}/");
        let paths = written_paths(&under_test, account);
        assert!(!paths.is_empty() && paths.iter().all(|path| path.contains(&own)), "{paths:?}");
    }
    assert_eq!(overlap(&under_test), "ok");
    the_commands_know_the_name(&under_test);

    // Without a scope of its own, another name publishes again, and still touches no slice of others.
    let red = start(&under_test, "red", &["--namespaces=blue", &name("red")]);
    let started = Instant::now();
    while overlap(&under_test) != "failed" || managers(&blue).len() < 4 {
        assert!(started.elapsed() < METRIC_MAX, "{:?}", managers(&blue));
        thread::sleep(POLL);
    }
    assert_eq!(managers(&blue), &values("blue") | &values("red"));
    let of_blue = slice_names(&blue, "blue");
    let of_red = slice_names(&blue, "red");
    blue.unready("web-1");
    blue.wait_for(&[Expected::endpoints("web", &format!("10.0.0.2! {}", web_ips(2..=N_PODS)))]);
    let touched = |account: &str, slices: &[String]| {
        let paths = written_paths(&under_test, account);
        paths.iter().any(|path| slices.iter().any(|name| path.ends_with(&format!("/{name}"))))
    };
    assert!(touched("red", &of_red) || touched("blue", &of_blue), "a slice is updated");
    assert!(!touched("red", &of_blue) && !touched("blue", &of_red));
    red.stop();
}

/// Endpoints that somebody wrote, which are mirrored.
fn by_hand(ns: &TestNamespace<'_>) {
    ns.service("by-hand", &json!({"ports": [{"port": 80}]}));
    let subset = json!({"addresses": [{"ip": "10.9.0.1"}], "ports": [{"port": 80}]});
    let endpoints = json!({"metadata": {"name": "by-hand"}, "subsets": [subset]});
    ns.create(Kind::Endpoints, &endpoints);
}

fn mirrored() -> [Expected; 1] {
    [Expected::slices("by-hand", "10.9.0.1")]
}

/// The managed-by label of each slice, with its name.
fn labelled(ns: &TestNamespace<'_>) -> Vec<(String, String)> {
    let path = format!("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices", ns.namespace());
    let list = ns.api().get(&path).expect("slices can be listed");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let slices = list["items"].as_array().into_iter().flatten().map(|slice| &slice["metadata"]);
    slices.map(|meta| (text(&meta["labels"][MANAGED_BY]), text(&meta["name"]))).collect()
}

fn managers(ns: &TestNamespace<'_>) -> BTreeSet<String> {
    labelled(ns).into_iter().map(|(manager, _)| manager).collect()
}

fn slice_names(ns: &TestNamespace<'_>, instance: &str) -> Vec<String> {
    let is_own = |manager: &str| manager.ends_with(&format!(".{instance}"));
    let own = labelled(ns).into_iter().filter(|(manager, _)| is_own(manager));
    own.map(|(_, name)| name).collect()
}

/// `diff` and `explain` agree with the instance if they are told its name, and otherwise find foreign
/// slices.
fn the_commands_know_the_name(under_test: &ClusterUnderTest) {
    let code = |args: &[&str]| {
        let output = command()
            .args(args)
            .args(["-n", "blue", "--kubeconfig"])
            .arg(under_test.cluster.kubeconfig())
            .output()
            .expect("endpointd can be started");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    };
    let named = "--controller-name=blue";
    let (agrees, text) = code(&["diff", named]);
    assert_eq!(agrees, Some(0), "{text}");
    let (differs, text) = code(&["diff", "--settle-time=0s"]);
    assert_eq!(differs, Some(1), "{text}");
    let (_, text) = code(&["explain", "svc/web", named]);
    assert!(
        text.contains("sends traffic to all of its 5 pods") && !text.contains("EPD705"),
        "{text}"
    );
    let (_, text) = code(&["explain", "svc/web"]);
    assert!(text.contains("`endpointslice-controller.blue`"), "{text}");
}

/// Bytes of lists and watches, and of the cache.
fn received(daemon: &Daemon) -> (f64, f64) {
    let of = |resource: &str| {
        let metric = format!("endpointd_watch_received_bytes_total{{resource=\"{resource}\"}}");
        daemon.metric(&metric).unwrap_or_default()
    };
    let bytes = ["services", "pods", "endpoints", "endpointslices"].map(of).iter().sum();
    (bytes, daemon.metric("endpointd_cache_bytes").unwrap_or_default())
}

fn a_scope_lowers_what_an_instance_receives() {
    let Some(under_test) = cluster(&[]) else { return };
    let _namespaces = {
        let _all = start(&under_test, "all", &[]);
        share(&under_test)
    };
    let kubeconfig = kubeconfig(&under_test, "reader");
    let reader = |name: &str, flags: &[&str]| start_as(&under_test, name, &kubeconfig, flags);
    let everything = reader("everything", &[]);
    let one = reader("one", &["--namespaces=shop"]);
    let shard = reader("shard", &["--shard=1/2"]);
    let all_pods = N_PODS * N_NAMESPACES;
    assert_eq!(cached_pods(&everything, all_pods), all_pods);
    assert_eq!(cached_pods(&one, N_PODS), N_PODS);
    let settled = |daemon: &Daemon, least: f64| {
        let started = Instant::now();
        while received(daemon).0 < least && started.elapsed() < METRIC_MAX {
            thread::sleep(POLL);
        }
        received(daemon)
    };
    let (all_bytes, all_cache) = settled(&everything, 10_000.0);
    let (one_bytes, one_cache) = settled(&one, 1.0);
    assert!(one_bytes * 4.0 < all_bytes, "{one_bytes} of {all_bytes} bytes received");
    assert!(one_cache * 2.0 < all_cache, "{one_cache} of {all_cache} bytes in the cache");
    // Without ShardedListAndWatch the API server sends everything.
    let (shard_bytes, shard_cache) = settled(&shard, all_bytes * 0.9);
    assert!(shard_bytes > all_bytes * 0.9, "{shard_bytes} of {all_bytes} bytes received");
    assert!(shard_cache < all_cache, "{shard_cache} of {all_cache} bytes in the cache");
}

fn overlap(under_test: &ClusterUnderTest) -> String {
    let output = command()
        .args(["check", "-n", LEASES, "-o", "json", "--kubeconfig"])
        .arg(under_test.cluster.kubeconfig())
        .output()
        .expect("endpointd can be started");
    let checks: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut all = checks["checks"].as_array().into_iter().flatten();
    let instances = all.find(|one| one["name"] == "instances").expect("it is checked");
    instances["result"].as_str().unwrap_or_default().to_owned()
}

/// Waits until the daemon has so many pods, and returns how many it has.
fn cached_pods(daemon: &Daemon, want: usize) -> usize {
    let started = Instant::now();
    loop {
        let n = daemon.metric("endpointd_cache_objects{resource=\"pods\"}").unwrap_or_default();
        if n as usize == want || started.elapsed() > METRIC_MAX {
            return n as usize;
        }
        thread::sleep(POLL);
    }
}

fn shards_share_the_namespaces() {
    let Some(under_test) = cluster(&[]) else { return };
    let kubeconfigs = ["first", "second"].map(|name| kubeconfig(&under_test, name));
    let first = start_as(&under_test, "first", &kubeconfigs[0], &["--shard=1/2"]);
    let second = start_as(&under_test, "second", &kubeconfigs[1], &["--shard=2/2"]);
    let mut namespaces = share(&under_test);
    let (a, b) = halves(&first, &second);
    assert_eq!(a + b, N_PODS * N_NAMESPACES, "each pod is in one shard");
    assert_eq!(overlap(&under_test), "ok");

    // A standby takes the lease of a shard over, and misses nothing.
    let standby = start_as(&under_test, "standby", &kubeconfigs[0], &["--shard=1/2"]);
    assert_eq!(cached_pods(&standby, a), a, "the standby has the objects of its shard");
    first.stop();
    for ns in &mut namespaces {
        ns.unready("web-1");
    }
    let without = web_ips(2..=N_PODS);
    for ns in &mut namespaces {
        ns.converge("handed over", &[Expected::slices("web", &format!("10.0.0.2! {without}"))]);
    }
}

/// Namespaces with as many pods each, all published.
fn share(under_test: &ClusterUnderTest) -> Vec<TestNamespace<'_>> {
    let mut namespaces: Vec<TestNamespace<'_>> =
        NAMESPACES.iter().map(|name| TestNamespace::new(&under_test.api, name)).collect();
    namespaces.iter_mut().for_each(web);
    for ns in &mut namespaces {
        ns.converge("published", &published("web"));
    }
    namespaces
}

/// The numbers of pods that two shards have, once they have all.
fn halves(first: &Daemon, second: &Daemon) -> (usize, usize) {
    let started = Instant::now();
    let n = |daemon: &Daemon| {
        daemon.metric("endpointd_cache_objects{resource=\"pods\"}").unwrap_or_default() as usize
    };
    loop {
        let (a, b) = (n(first), n(second));
        if a + b == N_PODS * N_NAMESPACES || started.elapsed() > METRIC_MAX {
            assert!(a > 0 && b > 0, "a shard is empty: {a} and {b}");
            return (a, b);
        }
        thread::sleep(POLL);
    }
}

/// Alpha in Kubernetes 1.36 and 1.37, and off by default.
fn shards_are_filtered_by_the_api_server_if_it_can() {
    let flags = ["--feature-gates=ShardedListAndWatch=true"];
    let Some(under_test) = cluster(&flags) else { return };
    let first = start(&under_test, "first", &["--shard=1/2"]);
    let second = start(&under_test, "second", &["--shard=2/2"]);
    let _namespaces = share(&under_test);
    let (a, b) = halves(&first, &second);
    assert_eq!(a + b, N_PODS * N_NAMESPACES);

    let watch = audit::requests_since(&under_test.cluster, 0)
        .into_iter()
        .find(|one| one.resource == "pods" && one.verb == "watch" && one.user.ends_with(":first"));
    let watch = watch.expect("it watches pods").path;
    let (_, selector) = watch.split_once("shardSelector=").expect("the watch asks for a shard");
    let list = under_test.api.get(&format!("/api/v1/pods?shardSelector={selector}"));
    let list = list.expect("the selector is accepted");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(a), "the server has the same hash");
    assert!(list["metadata"]["shardInfo"].is_object(), "{:#}", list["metadata"]);
}
