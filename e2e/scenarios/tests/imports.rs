//! Endpoints of other namespaces beside a real kube-controller-manager, with exactly the permissions of
//! `deploy/imports`: the life of a pair, the ReferenceGrant included, and what the consumer learns
//! without consent.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Api, Audit, Binaries, Options};
use endpointd_model::{Key, derived_name};
use endpointd_scenarios::audit;
use endpointd_scenarios::cluster::controllers_under_test;
use endpointd_scenarios::harness::{self, Test};
use endpointd_scenarios::kubectl;
use endpointd_scenarios::pods::Pod;
use endpointd_scenarios::test_namespace::Kind;
use endpointd_scenarios::{ClusterUnderTest, Controllers, Daemon, DaemonFlags, TestNamespace};
use serde_json::{Value, json};

const TESTS: &[Test] = &[
    (
        "life_of_a_pair_beside_kube_controller_manager",
        life_of_a_pair_beside_kube_controller_manager,
    ),
    ("consumer_learns_nothing_without_consent", consumer_learns_nothing_without_consent),
];
const NAMESPACE: &str = "endpointd";
const ACCOUNT: &str = "endpointd-imports";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WAIT_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);

fn main() {
    harness::run(TESTS)
}

fn life_of_a_pair_beside_kube_controller_manager() {
    let Some(under_test) = cluster() else { return };
    let daemon = start(&under_test);
    let (data, shop) = pair(&under_test.api, "life");
    let consumer = Consumer { ns: &shop };

    consumer.wait("without consent", "", "False RefNotPermitted");
    consent(&data, &json!("web, life-shop"));
    consumer.wait("with consent", "10.1.0.1 10.1.0.2", "True Mirrored");
    data.unready("postgres-1");
    consumer.wait("a pod is not ready", "10.1.0.1! 10.1.0.2", "True Mirrored");
    data.ready("postgres-1");
    consumer.wait("it is ready", "10.1.0.1 10.1.0.2", "True Mirrored");
    assert_eq!(consumer.slices()[0]["ports"][0]["name"], "pg", "the name of the consumer's port");

    edit_copy(&consumer, &|copy| copy["metadata"]["labels"] = json!({"a": "b"}));
    edit_copy(&consumer, &|copy| copy["metadata"]["ownerReferences"] = json!([]));
    edit_copy(&consumer, &|copy| copy["endpoints"] = json!([]));
    consumer.wait("after edits", "10.1.0.1 10.1.0.2", "True Mirrored");

    consent(&data, &Value::Null);
    consumer.wait("consent is withdrawn", "", "False RefNotPermitted");
    grants_are_installed_later(&under_test, &consumer);
    the_source_is_a_service_import(&data, &shop, &consumer);

    data.delete(Kind::Service, "postgres");
    consumer.wait("the source is deleted", "", "False SourceNotFound");
    source(&data);
    consumer.wait("it was created again", "10.1.0.1 10.1.0.2", "True Mirrored");

    shop.merge(Kind::Service, "db", &json!({"spec": {"selector": {"app": "db"}}}));
    consumer.wait_for_condition("with a selector", "False HasSelector");
    shop.merge(Kind::Service, "db", &json!({"spec": {"selector": null}}));
    consumer.wait_for_condition("without", "True Mirrored");

    let events =
        under_test.api.get("/api/v1/namespaces/life-shop/events").expect("they are listed");
    let events = items(&events);
    let reasons: BTreeSet<&str> = events.iter().filter_map(|one| one["reason"].as_str()).collect();
    for reason in ["Mirrored", "RefNotPermitted", "SourceNotFound", "HasSelector"] {
        assert!(reasons.contains(reason), "no Event {reason} in {reasons:?}");
    }
    // Gauges show a state that the engine publishes once a second.
    let metric = || daemon.metric("endpointd_import_services{reason=\"Mirrored\"}");
    wait_until("the metric counts it", || metric() == Some(1.0));

    shop.delete(Kind::Service, "db");
    consumer.wait_for_slices("the garbage collector deletes the slices", "");
    only_its_own_objects_were_written(&under_test);
}

/// The Gateway API is not installed at first; the daemon is not restarted.
fn grants_are_installed_later(under_test: &ClusterUnderTest, consumer: &Consumer) {
    let api = &under_test.api;
    api.create(DEFINITIONS, &definition()).expect("the definition is valid");
    let grants = "/apis/gateway.networking.k8s.io/v1beta1/namespaces/life-data/referencegrants";
    let grant = json!({
        "apiVersion": "gateway.networking.k8s.io/v1beta1",
        "kind": "ReferenceGrant",
        "metadata": {"name": "shop-may-use-postgres"},
        "spec": {
            "from": [{"group": "", "kind": "Service", "namespace": "life-shop"}],
            "to": [{"group": "", "kind": "Service", "name": "postgres"}],
        },
    });
    wait_until("grants are served", || api.create(grants, &grant).is_ok());
    consumer.wait("with a grant", "10.1.0.1 10.1.0.2", "True Mirrored");
    api.delete(&format!("{grants}/shop-may-use-postgres")).expect("it exists");
    consumer.wait("the grant is deleted", "", "False RefNotPermitted");
    api.create(grants, &grant).expect("it is valid");
    consumer.wait("it was created again", "10.1.0.1 10.1.0.2", "True Mirrored");
}

/// A ServiceImport as implementations of the Multi-Cluster Services API publish it: a derived Service,
/// and slices of two clusters.
fn the_source_is_a_service_import(data: &TestNamespace, shop: &TestNamespace, consumer: &Consumer) {
    let derived = derived_name(&Key::new("life-data", "web"));
    data.service(&derived, &json!({"ports": [{"name": "sql", "port": 5432}]}));
    let annotations = json!({"endpointd/endpoints-to": "life-shop"});
    data.merge(Kind::Service, &derived, &json!({"metadata": {"annotations": annotations}}));
    for (cluster, address) in [("eu1", "10.2.0.1"), ("us1", "10.3.0.1")] {
        let labels = json!({
            "kubernetes.io/service-name": &*derived,
            "endpointslice.kubernetes.io/managed-by": "another-implementation",
            "multicluster.kubernetes.io/source-cluster": cluster,
        });
        let slice = json!({
            "metadata": {"name": format!("{derived}-{cluster}"), "labels": labels},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
            "ports": [{"name": "sql", "port": 5432, "protocol": "TCP"}],
        });
        data.create(Kind::Slice, &slice);
    }
    let from = |source: &str| {
        let annotations = json!({"endpointd/endpoints-from": source});
        shop.merge(Kind::Service, "db", &json!({"metadata": {"annotations": annotations}}));
    };
    from("serviceimports/life-data/web");
    consumer.wait("a ServiceImport is the source", "10.2.0.1 10.3.0.1", "True Mirrored");
    from("life-data/postgres");
    consumer.wait("a Service is again", "10.1.0.1 10.1.0.2", "True Mirrored");
}

/// A ReferenceGrant as the Gateway API defines it, without its validation.
fn definition() -> Value {
    let fields = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "metadata": {
            "name": "referencegrants.gateway.networking.k8s.io",
            "annotations": {
                "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api/pull/1",
            },
        },
        "spec": {
            "group": "gateway.networking.k8s.io",
            "names": {"kind": "ReferenceGrant", "plural": "referencegrants"},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1beta1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": fields}}},
            }],
        },
    })
}

/// No request of the account was forbidden, and its writes were those of this controller.
fn only_its_own_objects_were_written(under_test: &ClusterUnderTest) {
    let user = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
    let mut requests = audit::requests_since(&under_test.cluster, 0);
    requests.retain(|one| one.user == user);
    let forbidden: Vec<_> = requests.iter().filter(|one| one.status == 403).collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}");
    for request in &requests {
        let (resource, path) = (request.resource.as_str(), request.path.as_str());
        let is_ours = match (request.is_write(), resource) {
            (true, "endpointslices") => path.contains("-shop/") || path.contains("-nobody/"),
            (true, "services/status") => request.verb == "patch",
            (true, "events") => true,
            (true, "leases") => path.contains("/leases"),
            (true, _) => false,
            (false, "pods" | "endpoints") => false,
            (false, _) => true,
        };
        assert!(is_ours, "{request:?}");
    }
    assert!(requests.iter().any(|one| one.resource == "services/status"), "conditions are written");
}

/// Two consumers ask for a source that exists and for one that does not: what they see is equal.
fn consumer_learns_nothing_without_consent() {
    let Some(under_test) = cluster() else { return };
    let _daemon = start(&under_test);
    let api = &under_test.api;
    let (_data, shop) = pair(api, "secret");
    let nobody = TestNamespace::new(api, "secret-nobody");
    nobody.create(Kind::Service, &consuming("secret-none/postgres"));
    let told = |ns: &TestNamespace, source: &str| {
        let consumer = Consumer { ns };
        consumer.wait_for_condition("told", "False RefNotPermitted");
        let wait = || !events_of(api, ns.namespace()).is_empty();
        wait_until("an Event is recorded", wait);
        let texts = [vec![consumer.message()], events_of(api, ns.namespace())].concat();
        let blind =
            |text: String| text.replace(source, "SOURCE").replace(ns.namespace(), "CONSUMER");
        assert_eq!(consumer.slices(), Vec::<Value>::new());
        texts.into_iter().map(blind).collect::<Vec<_>>()
    };
    let existing = told(&shop, "secret-data");
    let absent = told(&nobody, "secret-none");
    assert_eq!(existing, absent);
    assert!(existing.iter().all(|text| !text.contains("10.1.") && !text.contains("5432")));
}

struct Consumer<'a> {
    ns: &'a TestNamespace<'a>,
}

impl Consumer<'_> {
    fn wait(&self, step: &str, endpoints: &str, condition: &str) {
        self.wait_for_slices(step, endpoints);
        self.wait_for_condition(step, condition);
    }

    fn wait_for_slices(&self, step: &str, endpoints: &str) {
        let is_there = || summary(&self.slices()) == endpoints;
        wait_until(&format!("{step}: {endpoints}"), is_there);
    }

    fn wait_for_condition(&self, step: &str, condition: &str) {
        let is_written = || self.condition() == condition;
        wait_until(&format!("{step}: {condition}"), is_written);
    }

    fn slices(&self) -> Vec<Value> {
        let path = format!("{SLICES}/{}/endpointslices", self.ns.namespace());
        let list = self.ns.api().get(&path).expect("slices are listed");
        let managed_by = "endpointslice.kubernetes.io/managed-by";
        let is_copy = |slice: &Value| slice["metadata"]["labels"][managed_by] == "endpointd-mirror";
        items(&list).into_iter().filter(is_copy).collect()
    }

    fn condition(&self) -> String {
        let condition = self.source_condition();
        let text = |field: &str| condition[field].as_str().unwrap_or("none").to_owned();
        format!("{} {}", text("status"), text("reason"))
    }

    fn message(&self) -> String {
        self.source_condition()["message"].as_str().expect("a message").to_owned()
    }

    fn source_condition(&self) -> Value {
        let service = self.ns.get(Kind::Service, "db").expect("the consumer exists");
        let conditions = service["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ours = conditions.into_iter().find(|one| one["type"] == "endpointd/EndpointsFrom");
        ours.unwrap_or_default()
    }
}

/// A person edits the copy; it must become what it was.
fn edit_copy(consumer: &Consumer, edit: &dyn Fn(&mut Value)) {
    let before = consumer.slices();
    let [copy] = before.as_slice() else { panic!("one copy: {before:#?}") };
    let name = copy["metadata"]["name"].as_str().expect("a name");
    consumer.ns.edit(Kind::Slice, name, edit);
    let content = |slice: &Value| {
        let meta = &slice["metadata"];
        (meta["labels"].clone(), meta["ownerReferences"].clone(), slice["endpoints"].clone())
    };
    let is_repaired = || {
        let now = consumer.ns.get(Kind::Slice, name);
        now.is_ok_and(|now| content(&now) == content(copy))
    };
    wait_until("the copy is repaired", is_repaired);
}

/// `10.1.0.1 10.1.0.2!` for all endpoints of these slices, sorted.
fn summary(slices: &[Value]) -> String {
    let endpoints =
        slices.iter().flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
    let mut all: Vec<String> = endpoints
        .map(|one| {
            let mark = if one["conditions"]["ready"] == true { "" } else { "!" };
            format!("{}{mark}", one["addresses"][0].as_str().unwrap_or("?"))
        })
        .collect();
    all.sort();
    all.join(" ")
}

/// The namespaces `NAME-data`, with a source of two pods, and `NAME-shop`, with a consumer.
fn pair<'a>(api: &'a Api, name: &str) -> (TestNamespace<'a>, TestNamespace<'a>) {
    let data = TestNamespace::new(api, &format!("{name}-data"));
    let shop = TestNamespace::new(api, &format!("{name}-shop"));
    data.node_in("a", "zone-a");
    source(&data);
    for n in 1..=2 {
        let pod = Pod::new(&format!("postgres-{n}"), &format!("10.1.0.{n}"));
        data.pod(&pod.labelled(json!({"app": "postgres"})));
    }
    shop.create(Kind::Service, &consuming(&format!("{name}-data/postgres")));
    (data, shop)
}

fn source(data: &TestNamespace) {
    let spec = json!({"selector": {"app": "postgres"}, "ports": [{"name": "sql", "port": 5432}]});
    data.service("postgres", &spec);
}

fn consuming(source: &str) -> Value {
    json!({
        "metadata": {"name": "db", "annotations": {"endpointd/endpoints-from": source}},
        "spec": {"ports": [{"name": "pg", "port": 5432}]},
    })
}

fn consent(data: &TestNamespace, to: &Value) {
    let annotations = json!({"endpointd/endpoints-to": to});
    data.merge(Kind::Service, "postgres", &json!({"metadata": {"annotations": annotations}}));
}

fn events_of(api: &Api, namespace: &str) -> Vec<String> {
    let list = api.get(&format!("/api/v1/namespaces/{namespace}/events")).expect("they are listed");
    let text = |event: &Value| format!("{} {}", event["reason"], event["message"]);
    items(&list).iter().map(text).collect()
}

fn items(list: &Value) -> Vec<Value> {
    list["items"].as_array().cloned().unwrap_or_default()
}

fn wait_until(what: &str, is_reached: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_reached() {
        assert!(started.elapsed() < WAIT_MAX, "not reached: {what}");
        thread::sleep(POLL);
    }
}

/// kube-controller-manager with all its endpoint controllers, and the account of the manifest. `None`
/// means skip.
fn cluster() -> Option<ClusterUnderTest> {
    if controllers_under_test() == Controllers::ControllerManager || !kubectl::is_installed() {
        return None;
    }
    let options = Options { audit: Audit::Metadata, ..Options::default() };
    let binaries = Binaries::for_test()?;
    let under_test = ClusterUnderTest::start(&binaries, Controllers::ControllerManager, options);
    kubectl::apply(&under_test.cluster, "deploy/imports");
    Some(under_test)
}

fn start(under_test: &ClusterUnderTest) -> Daemon {
    let kubeconfig = under_test.cluster.kubeconfig_of(NAMESPACE, ACCOUNT);
    let flags = DaemonFlags::elected(&kubeconfig.expect("the account is there"))
        .with("--controllers=endpointslice-import-controller")
        .with(&format!("--leader-elect-resource-name={ACCOUNT}"))
        .with(&format!("--leader-elect-resource-namespace={NAMESPACE}"));
    Daemon::start(&under_test.cluster, ACCOUNT, &flags)
}
