//! Services of several clusters with the whole daemon on two real control planes, one of which it only
//! reads, with exactly the permissions of `deploy/multicluster/source`: the life of an export.

use std::fs;
use std::path::Path;
use std::time::Duration;

use endpointd_control_plane::{Audit, Binaries, Cluster, Options};
use endpointd_model::{Key, derived_name};
use endpointd_scenarios::audit;
use endpointd_scenarios::harness::{self, Test};
use endpointd_scenarios::{Daemon, DaemonFlags, kubectl, proxied_cluster};
use serde_json::{Value, json};

const TESTS: &[Test] = &[("exports_of_another_cluster_are_imported", life_of_an_export)];
const NAMESPACE: &str = "shop";
const ACCOUNTS: &str = "endpointd";
const EXPORTS: &str = "/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceexports";
const IMPORT: &str = "/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceimports/web";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/endpointd/leases/endpointd-source-eu1";
const WAIT_MAX: Duration = Duration::from_secs(90);

fn main() {
    harness::run(TESTS)
}

fn life_of_an_export() {
    let Some(binaries) = Binaries::for_test() else { return };
    if !kubectl::is_installed() {
        return;
    }
    let home = Site::start(&binaries, &["deploy/multicluster", "deploy/multicluster/controller"]);
    let eu1 = Site::start(&binaries, &["deploy/multicluster", "deploy/multicluster/source"]);
    let clusters = home.cluster.directory().join("clusters");
    fs::create_dir_all(&clusters).expect("we own the directory of a cluster");
    let daemon = home.daemon(&clusters);

    // The kubeconfig comes while it runs.
    eu1.service(&["10.1.0.1", "10.1.0.2"]);
    eu1.export();
    let kubeconfig = eu1.cluster.kubeconfig_of(ACCOUNTS, "endpointd-source").expect("a token");
    fs::copy(&kubeconfig, clusters.join("eu1")).expect("it is written");
    home.wait("an export elsewhere", "eu1 10.1.0.1 10.1.0.2");
    let import = home.cluster.api().get(IMPORT).expect("it exists");
    let derived = derived_name(&Key::new(NAMESPACE, "web"));
    let service = format!("/api/v1/namespaces/{NAMESPACE}/services/{derived}");
    let service = home.cluster.api().get(&service).expect("it is derived");
    wait_until("it has the address of the derived Service", || {
        let import = home.cluster.api().get(IMPORT).expect("it exists");
        import["spec"]["ips"] == service["spec"]["clusterIPs"]
            && import["status"]["clusters"] == json!([{"cluster": "eu1"}])
    });
    assert_eq!(import["metadata"]["labels"]["app.kubernetes.io/managed-by"], "endpointd");
    fs::copy(&kubeconfig, clusters.join("twice")).expect("it is written");
    wait_until("the same cluster twice is refused", || {
        daemon.log().contains("is the same cluster as")
    });
    fs::remove_file(clusters.join("twice")).expect("it is there");

    eu1.set_ready("10.1.0.1", false);
    home.wait("an endpoint there is not ready", "eu1 10.1.0.1! 10.1.0.2");
    eu1.set_ready("10.1.0.1", true);
    home.wait("it is ready", "eu1 10.1.0.1 10.1.0.2");
    home.service(&["10.0.0.1"]);
    home.export();
    home.wait("an export here", "eu1 10.1.0.1 10.1.0.2, home 10.0.0.1");
    wait_until("the Lease says when it was in contact", || {
        home.cluster.api().get(LEASE).is_ok_and(|lease| lease["spec"]["renewTime"].is_string())
    });
    // The last export goes right after the one before.
    eu1.unexport();
    home.unexport();
    home.wait("no export is left", "");
    wait_until("the import is gone", || home.cluster.api().get(IMPORT).is_err());
    nothing_foreign_was_touched(&home, &eu1);
    let secret = fs::read_to_string(&kubeconfig).expect("it is there");
    let token = secret.lines().find_map(|line| line.trim().strip_prefix("token: "));
    let token = token.expect("a kubeconfig with a token");
    let report = daemon.status().get("/report").expect("it is served").to_string();
    for text in [daemon.log(), report] {
        assert!(!text.contains(token), "no credential of another cluster is shown");
    }
}

/// At home only objects of imports were written, elsewhere none, and nothing was forbidden.
fn nothing_foreign_was_touched(home: &Site, eu1: &Site) {
    for (site, account) in [(home, "endpointd-multicluster"), (eu1, "endpointd-source")] {
        let user = format!("system:serviceaccount:{ACCOUNTS}:{account}");
        let mut requests = audit::requests_since(&site.cluster, 0);
        requests.retain(|one| one.user == user);
        assert!(!requests.is_empty(), "{user} has sent requests");
        for request in &requests {
            assert_ne!(request.status, 403, "{request:?}");
            let is_ours = match request.resource.as_str() {
                "services" | "endpointslices" => request.path.contains("/derived-"),
                "serviceimports" | "serviceimports/status" | "serviceexports/status" => true,
                "leases" | "events" => true,
                _ => false,
            };
            // The name of a new object is in its body.
            let is_create = request.verb == "create";
            let is_home = account == "endpointd-multicluster";
            assert!(!request.is_write() || (is_home && (is_ours || is_create)), "{request:?}");
        }
    }
}

struct Site {
    cluster: Cluster,
}

impl Site {
    fn start(binaries: &Binaries, folders: &[&str]) -> Self {
        let options = Options { audit: Audit::Metadata, ..Options::default() };
        let cluster = Cluster::start(binaries, options).expect("a cluster starts");
        folders.iter().for_each(|folder| kubectl::apply(&cluster, folder));
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        cluster.api().create("/api/v1/namespaces", &namespace).expect("a new namespace");
        wait_until("exports are served", || cluster.api().get(EXPORTS).is_ok());
        Self { cluster }
    }

    fn daemon(&self, clusters: &Path) -> Daemon {
        let account = "endpointd-multicluster";
        let kubeconfig = self.cluster.kubeconfig_of(ACCOUNTS, account).expect("a token");
        let flags = DaemonFlags::elected(&kubeconfig)
            .with("--controllers=multicluster-controller")
            .with("--cluster-id=home")
            .with(&format!("--clusters={}", clusters.display()))
            .with(&format!("--leader-elect-resource-name={account}"))
            .with(&format!("--leader-elect-resource-namespace={ACCOUNTS}"));
        Daemon::start(&self.cluster, account, &flags)
    }

    fn service(&self, addresses: &[&str]) {
        let api = self.cluster.api();
        let service = json!({
            "metadata": {"name": "web"},
            "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
        });
        api.create("/api/v1/namespaces/shop/services", &service).expect("a valid Service");
        let endpoint =
            |address: &&str| json!({"addresses": [address], "conditions": {"ready": true}});
        let slice = json!({
            "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4",
            "endpoints": addresses.iter().map(endpoint).collect::<Vec<_>>(),
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        });
        api.create(SLICES, &slice).expect("a valid slice");
    }

    fn export(&self) {
        let api_version = "multicluster.x-k8s.io/v1beta1";
        let export = json!({
            "apiVersion": api_version, "kind": "ServiceExport", "metadata": {"name": "web"},
        });
        self.cluster.api().create(EXPORTS, &export).expect("a valid export");
    }

    fn unexport(&self) {
        self.cluster.api().delete(&format!("{EXPORTS}/web")).expect("it exists");
    }

    fn set_ready(&self, address: &str, ready: bool) {
        let path = format!("{SLICES}/web-1");
        let mut slice = self.cluster.api().get(&path).expect("it exists");
        for endpoint in slice["endpoints"].as_array_mut().expect("a list") {
            if endpoint["addresses"][0] == address {
                endpoint["conditions"]["ready"] = json!(ready);
            }
        }
        self.cluster.api().replace(&path, &slice).expect("a valid slice");
    }

    /// `eu1 10.1.0.1! 10.1.0.2, home 10.0.0.1`: what is imported here.
    fn imported(&self) -> String {
        let slices = self.cluster.api().get(SLICES).expect("they are listed");
        let text = |slice: &Value| {
            let label = &slice["metadata"]["labels"]["multicluster.kubernetes.io/source-cluster"];
            let mut words = vec![label.as_str()?.to_owned()];
            for one in slice["endpoints"].as_array().into_iter().flatten() {
                let mark = if one["conditions"]["ready"] == true { "" } else { "!" };
                words.push(format!("{}{mark}", one["addresses"][0].as_str().unwrap_or("?")));
            }
            Some(words.join(" "))
        };
        let all = slices["items"].as_array().into_iter().flatten();
        let mut texts: Vec<String> = all.filter_map(text).collect();
        texts.sort();
        texts.join(", ")
    }

    fn wait(&self, step: &str, imported: &str) {
        wait_until(&format!("{step}: {imported}"), || self.imported() == imported);
    }
}

fn wait_until(what: &str, is_reached: impl Fn() -> bool) {
    proxied_cluster::wait_until(what, WAIT_MAX, is_reached);
}
