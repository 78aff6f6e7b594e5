//! `endpointd cluster` on two real control planes: it makes the account and the kubeconfig with which a
//! running daemon then imports, lists it, and removes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use endpointd_control_plane::{Binaries, Cluster, Options};
use endpointd_scenarios::daemon::command;
use endpointd_scenarios::harness::{self, Test};
use endpointd_scenarios::{Daemon, DaemonFlags, kubectl, proxied_cluster};
use serde_json::{Value, json};

const TESTS: &[Test] =
    &[("a_cluster_is_added_listed_and_removed", a_cluster_is_added_listed_and_removed)];
const SECRET: &str = "/api/v1/namespaces/endpointd/secrets/endpointd-clusters";
const ACCOUNT: &str = "/api/v1/namespaces/endpointd/serviceaccounts/endpointd-source";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";
const WAIT_MAX: Duration = Duration::from_secs(90);

fn main() {
    harness::run(TESTS)
}

fn a_cluster_is_added_listed_and_removed() {
    let Some(binaries) = Binaries::for_test() else { return };
    if !kubectl::is_installed() {
        return;
    }
    let sites = Sites::start(&binaries);
    let clusters = sites.home.directory().join("clusters");
    fs::create_dir_all(&clusters).expect("we own the directory of a cluster");
    let directory = format!("--clusters={}", clusters.display());
    let daemon = sites.daemon(&directory);

    // Into the Secret, with a token that has no end.
    let added = sites.run(&["add", "eu1", "--context=eu1"]);
    assert!(added.contains("token: no end") && added.contains("created there"), "{added}");
    let secret = sites.home.api().get(SECRET).expect("it is written");
    assert!(secret["data"]["eu1"].is_string(), "{secret}");
    sites.fails(&["add", "eu1", "--context=eu1"], "`eu1` is known already");
    sites.fails(&["add", "eu2", "--context=eu1"], "`eu2` is the same cluster as `eu1`");
    sites.fails(&["add", "us1", "--context=home"], "`us1` is this cluster");
    let renewed = sites.run(&["add", "eu1", "--context=eu1", "--replace"]);
    assert!(renewed.contains("unchanged there: clusterroles/endpointd-source"), "{renewed}");
    let listed = sites.list(&[], 0);
    assert_eq!((&listed["state"], &listed["token"]), (&json!("reachable"), &json!("withoutEnd")));
    let kube_system = sites.eu1.api().get("/api/v1/namespaces/kube-system").expect("it exists");
    assert_eq!(listed["uid"], kube_system["metadata"]["uid"]);

    // Into the directory, with a token that ends; the running daemon takes it.
    sites.export_in_eu1();
    let args = ["add", "eu1", "--context=eu1", "--token-lifetime=1h", &directory];
    let added = sites.run(&args);
    assert!(added.contains("token: valid until 20"), "{added}");
    assert_eq!(mode(&clusters.join("eu1")), 0o600, "only its owner may read a credential");
    wait_until("the daemon imports", || sites.has_imported("eu1"));
    let listed = sites.list(&[&directory], 0);
    assert_eq!((&listed["state"], &listed["token"]), (&json!("reachable"), &json!("limited")));

    // Permissions that are missing are named.
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/endpointd-source";
    let rules = json!({"rules": [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
    ]});
    sites.eu1.api().merge(role, &rules).expect("a valid role");
    wait_until("the list sees it", || sites.list(&[&directory], 1)["state"] == "limited");
    let missing = sites.list(&[&directory], 1)["missingPermissions"].to_string();
    assert!(missing.contains("watch serviceexports"), "{missing}");

    // The account goes, and with it all its tokens.
    let removed = sites.run(&["remove", "eu1", "--purge", "--context=eu1"]);
    assert!(removed.contains("deleted there: serviceaccounts/endpointd-source"), "{removed}");
    assert!(sites.eu1.api().get(ACCOUNT).is_err());
    let secret = sites.home.api().get(SECRET).expect("it stays");
    assert!(secret["data"]["eu1"].is_null(), "{secret}");
    wait_until("its token is refused", || sites.list(&[&directory], 1)["state"] == "denied");
    drop(daemon);
}

struct Sites {
    home: Cluster,
    eu1: Cluster,
    /// With a context for each; that of `home` is the current one.
    kubeconfig: PathBuf,
}

impl Sites {
    fn start(binaries: &Binaries) -> Self {
        let start = || Cluster::start(binaries, Options::default()).expect("a cluster starts");
        let (home, eu1) = (start(), start());
        // It writes tokens into Secrets.
        let key = eu1.directory().join("service-account.key");
        let key = format!("--service-account-private-key-file={}", key.display());
        eu1.start_controller_manager(&["serviceaccount-token-controller"], &[&key])
            .expect("kube-controller-manager starts");
        kubectl::apply(&home, "deploy/multicluster");
        kubectl::apply(&home, "deploy/multicluster/controller");
        kubectl::apply(&eu1, "deploy/multicluster");
        for cluster in [&home, &eu1] {
            let namespace = json!({"metadata": {"name": "shop"}});
            cluster.api().create("/api/v1/namespaces", &namespace).expect("a new namespace");
        }
        let kubeconfig = home.directory().join("contexts.kubeconfig");
        let contexts = merged(&[("home", &home), ("eu1", &eu1)]);
        fs::write(&kubeconfig, contexts.to_string()).expect("a file");
        Self { home, eu1, kubeconfig }
    }

    fn daemon(&self, directory: &str) -> Daemon {
        let account = "endpointd-multicluster";
        let kubeconfig = self.home.kubeconfig_of("endpointd", account).expect("a token");
        let flags = DaemonFlags::new(&kubeconfig)
            .with("--controllers=multicluster-controller")
            .with("--cluster-id=home")
            .with(directory)
            .with("--leader-elect-resource-namespace=endpointd");
        Daemon::start(&self.home, account, &flags)
    }

    fn cluster_command(&self, args: &[&str]) -> Output {
        let mut command = command();
        command.arg("cluster").args(args).arg("--kubeconfig").arg(&self.kubeconfig);
        let output = command.output().expect("it starts");
        let text = format!("{output:?}");
        // How every token of a ServiceAccount begins: `{"alg":`.
        assert!(!text.contains("eyJ"), "no credential is shown: {args:?}");
        output
    }

    fn run(&self, args: &[&str]) -> String {
        let output = self.cluster_command(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn fails(&self, args: &[&str], error: &str) {
        let output = self.cluster_command(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && text.contains(error), "{args:?}: {output:?}");
    }

    /// What the list says of the only cluster.
    fn list(&self, args: &[&str], code: i32) -> Value {
        let output = self.cluster_command(&[&["list", "-o", "json"], args].concat());
        let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        if list["clusters"][0]["state"] != "reachable" {
            assert_eq!(output.status.code(), Some(code.max(1)), "{output:?}");
        }
        assert_eq!(list["clusters"].as_array().map(Vec::len), Some(1), "{list}");
        list["clusters"][0].clone()
    }

    fn export_in_eu1(&self) {
        let api = self.eu1.api();
        let service = json!({
            "metadata": {"name": "web"}, "spec": {"ports": [{"name": "http", "port": 80}]},
        });
        api.create("/api/v1/namespaces/shop/services", &service).expect("a valid Service");
        let slice = json!({
            "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4", "endpoints": [{"addresses": ["10.1.0.1"]}],
            "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
        });
        api.create(SLICES, &slice).expect("a valid slice");
        let export = json!({
            "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
            "metadata": {"name": "web"},
        });
        let exports = "/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceexports";
        wait_until("exports are served", || api.create(exports, &export).is_ok());
    }

    fn has_imported(&self, cluster: &str) -> bool {
        let slices = self.home.api().get(SLICES).expect("they are listed");
        slices["items"].as_array().into_iter().flatten().any(|slice| {
            slice["metadata"]["labels"]["multicluster.kubernetes.io/source-cluster"] == cluster
        })
    }
}

/// One kubeconfig with a context for each cluster; the first is the current one.
fn merged(clusters: &[(&str, &Cluster)]) -> Value {
    let mut all = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": clusters[0].0,
        "clusters": [], "users": [], "contexts": [],
    });
    for (name, cluster) in clusters {
        let mut view = kubectl::command(cluster);
        let view = view.args(["config", "view", "--raw", "--flatten", "-o", "json"]).output();
        let view: Value =
            serde_json::from_slice(&view.expect("`kubectl` is installed").stdout).expect("JSON");
        let context = json!({"name": name, "context": {"cluster": name, "user": name}});
        let renamed =
            |field: &str, inner: &str| json!({"name": name, inner: view[field][0][inner]});
        for (field, entry) in [
            ("clusters", renamed("clusters", "cluster")),
            ("users", renamed("users", "user")),
            ("contexts", context),
        ] {
            all[field].as_array_mut().expect("a list").push(entry);
        }
    }
    all
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

fn wait_until(what: &str, is_reached: impl Fn() -> bool) {
    proxied_cluster::wait_until(what, WAIT_MAX, is_reached);
}
