//! The multi-cluster plan on two real control planes: the API servers accept every object that is
//! planned, what they make of it causes no further write, and both clusters see one Service.
//!
//! The daemon does not run the plan yet, so the test reads both clusters and carries the plans out.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::binaries::is_ci;
use endpointd_control_plane::{ApiError, Binaries, Cluster, Options};
use endpointd_model::{
    ClusterId, EndpointSlice, Key, MultiClusterVersion, ServiceImport, Timestamp, Write,
    derived_name, names,
};
use endpointd_plan::{ClusterObjects, ClusterSetState, SourceState};
use endpointd_wire::{Decoded, decode_value, to_json_value};
use serde_json::{Value, json};

const NAMESPACE: &str = "shop";
const VERSION: MultiClusterVersion = MultiClusterVersion::V1Beta1;
const MULTICLUSTER: &str = "/apis/multicluster.x-k8s.io/v1beta1";
const DISCOVERY: &str = "/apis/discovery.k8s.io/v1";

/// A control plane under its name in the clusterset.
struct Site {
    id: ClusterId,
    cluster: Cluster,
}

/// Two clusters with the definitions and the namespace.
struct Sites([Site; 2]);

#[test]
fn services_of_two_clusters_are_one() {
    let Some(binaries) = Binaries::for_test() else { return };
    if !has_kubectl() {
        return;
    }
    let sites = Sites(["eu1", "us1"].map(|id| Site::start(id, &binaries)));
    exports_are_merged(&sites);
    a_changed_endpoint_is_one_write_in_each_cluster(&sites);
    every_kind_of_service_is_accepted(&sites);
    a_lost_cluster_is_demoted_and_comes_back(&sites);
    a_type_that_changes_replaces_the_service(&sites);
    nothing_is_left_after_the_last_export(&sites);
}

fn exports_are_merged(sites: &Sites) {
    let [eu1, us1] = &sites.0;
    let port = |name: &str| json!([{"name": name, "port": 80, "targetPort": 8080}]);
    eu1.service("web", json!({"ports": port("http")}));
    eu1.slice("web", "http", &["10.1.0.1", "10.1.0.2"]);
    us1.service("web", json!({"ports": port("web")}));
    us1.slice("web", "web", &["10.2.0.1"]);
    eu1.export("web");
    // Timestamps have whole seconds: the export of eu1 must be older, or the ids decide alike.
    us1.export("web");
    sites.settle();
    for site in &sites.0 {
        let import = site.import("web");
        assert_eq!(import.spec.ports[0].name.as_ref(), "http", "that of the oldest");
        assert_eq!(import.status.clusters, ["eu1".into(), "us1".into()]);
        let derived = site.get("/api/v1", &format!("services/{}", site.derived("web")));
        let ips: Vec<&str> = import.spec.ips.iter().map(AsRef::as_ref).collect();
        assert_eq!(derived["spec"]["clusterIPs"], json!(ips), "its address");
        assert!(derived["spec"]["selector"].is_null());
        assert_eq!(site.condition("web", "Conflict"), "True PortConflict");
        assert_eq!(site.condition("web", "Ready"), "True Ready");
        // C7: another name, the same number.
        let published: Vec<(String, String)> = site
            .imported("web")
            .iter()
            .map(|slice| {
                let label = |name| slice.meta.labels.get(name).expect("set").to_string();
                (
                    label(names::SOURCE_CLUSTER),
                    slice.ports[0].name.as_deref().unwrap_or_default().to_owned(),
                )
            })
            .collect();
        assert_eq!(published, [("eu1".into(), "http".into()), ("us1".into(), "http".into())]);
    }
}

fn a_changed_endpoint_is_one_write_in_each_cluster(sites: &Sites) {
    let [eu1, _] = &sites.0;
    let path = format!("{DISCOVERY}/namespaces/{NAMESPACE}/endpointslices/web");
    let mut slice = eu1.cluster.api().get(&path).expect("it exists");
    slice["endpoints"][0]["conditions"]["ready"] = json!(false);
    eu1.cluster.api().replace(&path, &slice).expect("a valid slice");
    assert_eq!(sites.settle(), 2);
    for site in &sites.0 {
        let ready = site.imported("web")[0].endpoints[0].conditions.ready;
        assert_eq!(ready, Some(false));
    }
}

/// What the API servers fill in must cause no further write, and what they are sent must be valid.
fn every_kind_of_service_is_accepted(sites: &Sites) {
    let http = json!([{"name": "http", "port": 80}]);
    let unnamed = json!([{"port": 80}]);
    let several =
        json!([{"name": "http", "port": 81}, {"name": "dns", "port": 53, "protocol": "UDP"}]);
    let kinds = [
        ("headless", json!({"clusterIP": "None", "ports": http})),
        ("sticky", json!({"ports": http, "sessionAffinity": "ClientIP"})),
        ("local", json!({"ports": http, "internalTrafficPolicy": "Local"})),
        ("zonal", json!({"ports": http, "trafficDistribution": "PreferSameZone"})),
        ("dual", json!({"ports": http, "ipFamilyPolicy": "RequireDualStack"})),
        ("six", json!({"ports": http, "ipFamilies": ["IPv6"], "ipFamilyPolicy": "SingleStack"})),
        ("node-port", json!({"ports": http, "type": "NodePort"})),
        ("unnamed", json!({"ports": unnamed})),
    ];
    for (name, spec) in &kinds {
        for site in &sites.0 {
            // C6: an unnamed port beside others.
            let other = json!({"ports": several});
            let is_second = site.id.as_str() == "us1" && *name == "unnamed";
            site.service(name, if is_second { other } else { spec.clone() });
            site.export(name);
        }
    }
    sites.settle();
    for (name, _) in &kinds {
        for site in &sites.0 {
            let import = site.import(name);
            let n_ips = if *name == "headless" { 0 } else { import.spec.families.len() };
            assert_eq!(import.spec.ips.len(), n_ips, "{name}");
            assert_eq!(import.status.clusters.len(), 2, "{name}");
            let ready = import.status.conditions.iter().find(|one| &*one.condition_type == "Ready");
            assert_eq!(ready.expect("it is set").status.as_str(), "True", "{name}");
        }
    }
    let [eu1, _] = &sites.0;
    assert_eq!(eu1.import("dual").spec.families.len(), 2);
    let unnamed = eu1.get("/api/v1", &format!("services/{}", eu1.derived("unnamed")));
    assert_eq!(unnamed["spec"]["ports"][0]["name"], "port-80-tcp");
}

fn a_lost_cluster_is_demoted_and_comes_back(sites: &Sites) {
    let [eu1, us1] = &sites.0;
    // Two endpoints of us1, one ready of eu1: enough only with this threshold.
    let ready = |site: &Site, of: &str| {
        let slices = site.imported("web");
        let of_cluster = slices.iter().filter(|one| one.meta.labels.has(names::SOURCE_CLUSTER, of));
        of_cluster.flat_map(|one| &one.endpoints).filter(|one| one.is_ready()).count()
    };
    assert_eq!(ready(eu1, "us1"), 1);
    let lost = SourceState::Demoted { last_contact: Some(Timestamp::now()) };
    eu1.settle(&[(us1, lost)]);
    assert_eq!((ready(eu1, "us1"), ready(eu1, "eu1")), (0, 1));
    // Nothing is known of it: what is published stays.
    assert_eq!(eu1.settle(&[(us1, SourceState::Unknown)]), 0);
    eu1.settle(&[(us1, SourceState::InSync)]);
    assert_eq!(ready(eu1, "us1"), 1);
}

fn a_type_that_changes_replaces_the_service(sites: &Sites) {
    for is_headless in [true, false] {
        for (site, port) in sites.0.iter().zip(["http", "web"]) {
            let mut spec = json!({"ports": [{"name": port, "port": 80, "targetPort": 8080}]});
            if is_headless {
                spec["clusterIP"] = json!("None");
            }
            site.delete("/api/v1", "services/web");
            site.service("web", spec);
        }
        sites.settle();
        for site in &sites.0 {
            let derived =
                format!("/api/v1/namespaces/{NAMESPACE}/services/{}", site.derived("web"));
            let found = site.cluster.api().get(&derived);
            assert_eq!(matches!(found, Err(ApiError::Refused { status: 404, .. })), is_headless);
            assert_eq!(site.imported("web").len(), 2, "the slices stay");
        }
    }
}

fn nothing_is_left_after_the_last_export(sites: &Sites) {
    let [eu1, us1] = &sites.0;
    eu1.delete(MULTICLUSTER, "serviceexports/web");
    sites.settle();
    assert_eq!(us1.import("web").status.clusters, ["us1".into()]);
    assert_eq!(eu1.imported("web").len(), 1, "the namespace is here, so is the import");
    for site in &sites.0 {
        for export in site.list(MULTICLUSTER, "serviceexports") {
            let name = export["metadata"]["name"].as_str().expect("a name").to_owned();
            site.delete(MULTICLUSTER, &format!("serviceexports/{name}"));
        }
    }
    sites.settle();
    for site in &sites.0 {
        assert_eq!(site.list(MULTICLUSTER, "serviceimports"), [Value::Null; 0]);
        let of = |group: &str, resource: &str, label: &str| {
            let all = site.list(group, resource);
            all.iter().filter(|one| one["metadata"]["labels"][label].is_string()).count()
        };
        assert_eq!(of("/api/v1", "services", names::IMPORT_NAME), 0);
        assert_eq!(of(DISCOVERY, "endpointslices", names::IMPORT_NAME), 0);
    }
}

impl Sites {
    /// Carries out the plans of both clusters until neither writes, and returns how many writes
    /// there were.
    fn settle(&self) -> usize {
        const ROUNDS_MAX: usize = 12;
        let [eu1, us1] = &self.0;
        let mut n_writes = 0;
        for _ in 0..ROUNDS_MAX {
            let n_more = eu1.settle(&[(us1, SourceState::InSync)])
                + us1.settle(&[(eu1, SourceState::InSync)]);
            if n_more == 0 {
                return n_writes;
            }
            n_writes += n_more;
        }
        panic!("the clusters never agree");
    }
}

impl Site {
    fn start(id: &str, binaries: &Binaries) -> Self {
        let cluster = Cluster::start(binaries, Options::default()).expect("a cluster starts");
        let site = Self { id: ClusterId::parse(id).expect("a label"), cluster };
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        site.cluster.api().create("/api/v1/namespaces", &namespace).expect("a new namespace");
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/multicluster");
        let mut kubectl = Command::new("kubectl");
        kubectl.arg("--kubeconfig").arg(site.cluster.kubeconfig());
        let applied = kubectl.args(["apply", "--kustomize"]).arg(deploy).output();
        let applied = applied.expect("kubectl starts");
        assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
        site.wait_until_served();
        site
    }

    fn wait_until_served(&self) {
        const SERVED_MAX: Duration = Duration::from_secs(60);
        let started = Instant::now();
        for resource in ["serviceexports", "serviceimports"] {
            let path = format!("{MULTICLUSTER}/namespaces/{NAMESPACE}/{resource}");
            while let Err(error) = self.cluster.api().get(&path) {
                assert!(started.elapsed() < SERVED_MAX, "{path}: {error}");
                thread::sleep(Duration::from_millis(100));
            }
        }
    }

    /// Carries out the plans of this cluster until nothing is left to write.
    fn settle(&self, others: &[(&Site, SourceState)]) -> usize {
        const ROUNDS_MAX: usize = 12;
        let mut n_writes = 0;
        for _ in 0..ROUNDS_MAX {
            let state = self.state(others);
            let plans = state.keys().into_iter().map(|key| state.plan(&key));
            let writes: Vec<Write> = plans.flat_map(|plan| plan.writes).collect();
            if writes.is_empty() {
                return n_writes;
            }
            n_writes += writes.len();
            writes.iter().for_each(|write| self.send(write));
        }
        panic!("{} never stops to write", self.id);
    }

    fn state(&self, others: &[(&Site, SourceState)]) -> ClusterSetState {
        let mut state = ClusterSetState::new(self.id.clone(), Timestamp::now());
        state.home = self.objects();
        let imports = self.decoded::<ServiceImport>(MULTICLUSTER, "serviceimports");
        state.imports = imports.into_iter().map(|one| (one.meta.key(), one)).collect();
        let services = self.decoded::<endpointd_model::DerivedService>("/api/v1", "services");
        let is_derived = |one: &endpointd_model::DerivedService| {
            state.keys().iter().any(|key| derived_name(key) == one.meta.name)
        };
        state.derived =
            services.into_iter().filter(is_derived).map(|one| (one.meta.key(), one)).collect();
        for (site, source_state) in others {
            state.remotes.push(ClusterObjects { state: *source_state, ..site.objects() });
        }
        state
    }

    fn objects(&self) -> ClusterObjects {
        let mut objects = ClusterObjects::new(self.id.clone());
        for one in self.decoded::<endpointd_model::ServiceExport>(MULTICLUSTER, "serviceexports") {
            objects.exports.insert(one.meta.key(), one);
        }
        for one in self.decoded::<endpointd_model::Service>("/api/v1", "services") {
            objects.services.insert(one.key(), one);
        }
        for one in self.decoded::<EndpointSlice>(DISCOVERY, "endpointslices") {
            objects.slices.insert(one.meta.key(), one);
        }
        objects
    }

    fn send(&self, write: &Write) {
        let api = self.cluster.api();
        // `serviceimports/status`: the subresource comes after the name.
        let (resource, subresource) = match write.resource().as_str().split_once('/') {
            Some((resource, subresource)) => (resource, format!("/{subresource}")),
            None => (write.resource().as_str(), String::new()),
        };
        let group = match resource {
            "services" => "/api/v1",
            "endpointslices" => DISCOVERY,
            _ => MULTICLUSTER,
        };
        let objects = format!("{group}/namespaces/{NAMESPACE}/{resource}");
        let object = format!("{objects}/{}{subresource}", write.key().name);
        let result = match write {
            Write::Create(body) => api.create(&objects, &to_json_value(body)),
            Write::Update(body) => api.replace(&object, &to_json_value(body)),
            Write::Delete(_) => api.delete(&object),
        };
        if let Err(error) = result {
            panic!("{}: the API server refuses {write:?}: {error}", self.id);
        }
    }

    fn service(&self, name: &str, mut spec: Value) {
        spec["selector"] = json!({"app": name});
        let service = json!({"metadata": {"name": name}, "spec": spec});
        let path = format!("/api/v1/namespaces/{NAMESPACE}/services");
        self.cluster.api().create(&path, &service).expect("a valid Service");
    }

    fn slice(&self, service: &str, port: &str, addresses: &[&str]) {
        let endpoint = |address: &&str| {
            let conditions = json!({"ready": true, "serving": true, "terminating": false});
            json!({"addresses": [address], "conditions": conditions, "nodeName": "n1", "zone": "a"})
        };
        let slice = json!({
            "metadata": {"name": service, "labels": {names::SERVICE_NAME: service}},
            "addressType": "IPv4",
            "endpoints": addresses.iter().map(endpoint).collect::<Vec<_>>(),
            "ports": [{"name": port, "port": 8080, "protocol": "TCP"}],
        });
        let path = format!("{DISCOVERY}/namespaces/{NAMESPACE}/endpointslices");
        self.cluster.api().create(&path, &slice).expect("a valid slice");
    }

    fn export(&self, name: &str) {
        let api_version = VERSION.api_version();
        let export =
            json!({"apiVersion": api_version, "kind": "ServiceExport", "metadata": {"name": name}});
        let path = format!("{MULTICLUSTER}/namespaces/{NAMESPACE}/serviceexports");
        self.cluster.api().create(&path, &export).expect("a valid export");
    }

    fn derived(&self, name: &str) -> String {
        derived_name(&Key::new(NAMESPACE, name)).to_string()
    }

    fn import(&self, name: &str) -> ServiceImport {
        decode_value(&self.get(MULTICLUSTER, &format!("serviceimports/{name}"))).expect("ours")
    }

    /// The imported slices, by cluster.
    fn imported(&self, name: &str) -> Vec<EndpointSlice> {
        let mut slices = self.decoded::<EndpointSlice>(DISCOVERY, "endpointslices");
        slices.retain(|slice| slice.meta.labels.has(names::IMPORT_NAME, name));
        slices.sort_by_key(|slice| slice.meta.labels.get(names::SOURCE_CLUSTER).cloned());
        slices
    }

    /// Status and reason of a condition of this cluster's export.
    fn condition(&self, name: &str, about: &str) -> String {
        let export = self.get(MULTICLUSTER, &format!("serviceexports/{name}"));
        let conditions = export["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|one| one["type"] == about);
        let text = |field: &str| found.and_then(|one| one[field].as_str()).unwrap_or_default();
        format!("{} {}", text("status"), text("reason"))
    }

    fn get(&self, group: &str, rest: &str) -> Value {
        let path = format!("{group}/namespaces/{NAMESPACE}/{rest}");
        self.cluster.api().get(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn delete(&self, group: &str, rest: &str) {
        let path = format!("{group}/namespaces/{NAMESPACE}/{rest}");
        self.cluster.api().delete(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    fn list(&self, group: &str, resource: &str) -> Vec<Value> {
        self.get(group, resource)["items"].as_array().cloned().unwrap_or_default()
    }

    fn decoded<T: Decoded>(&self, group: &str, resource: &str) -> Vec<T> {
        let items = self.list(group, resource);
        items.iter().map(|item| decode_value(item).expect("the API server sends it")).collect()
    }
}

/// Without `kubectl` the test is skipped, except in CI, where it fails.
fn has_kubectl() -> bool {
    let is_installed = Command::new("kubectl").args(["version", "--client"]).output().is_ok();
    assert!(is_installed || !is_ci(), "`kubectl` is not installed");
    is_installed
}
