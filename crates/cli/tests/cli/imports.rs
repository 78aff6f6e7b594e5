//! Endpoints of other namespaces in `endpointd plan` and `endpointd diff`.

use expect_test::expect;
use serde_json::{Value, json};

use crate::run::{CommandOutput, plan};
use crate::test_cluster::{TestCluster, namespace, node, pod, service};

const CONTROLLER: &str = "--controllers=endpointslice-import-controller";

/// The source `data/postgres` with a slice, and the consumer `shop/db`.
const PAIR: &str = r#"
apiVersion: v1
kind: Service
metadata: {namespace: data, name: postgres, annotations: {endpointd/endpoints-to: CONSENT}}
spec: {selector: {app: postgres}, clusterIP: 10.96.0.1, ports: [{name: pg, port: 5432}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: db, annotations: {endpointd/endpoints-from: data/postgres}}
spec: {clusterIP: 10.96.0.2, ports: [{name: sql, port: 5432}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  namespace: data
  name: postgres-1
  labels: {kubernetes.io/service-name: postgres}
addressType: IPv4
ports: [{name: pg, port: 5432, protocol: TCP}]
endpoints:
  - {addresses: [10.0.0.1], conditions: {ready: true}, nodeName: n1, zone: za}
  - {addresses: [10.0.0.2], conditions: {ready: false}, nodeName: n2, zone: zb}
"#;

const GRANT: &str = r#"
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {namespace: data, name: shop-may}
spec:
  from: [{group: "", kind: Service, namespace: shop}]
  to: [{group: "", kind: Service, name: postgres}]
"#;

fn plan_pair(consent: &str, more: &str, args: &[&str]) -> CommandOutput {
    let text = PAIR.replace("CONSENT", consent) + more;
    plan(&[("pair.yaml", text.as_str())], &[&["-f", "pair.yaml", CONTROLLER], args].concat())
}

#[test]
fn the_plan_of_a_pair_has_the_copy_and_the_condition() {
    let output = plan_pair("shop", "", &[]).succeeded();
    expect![[r#"
        CONTROLLER  KEY      VERB    RESOURCE         NAME           SUMMARY
        import      shop/db  create  endpointslices   db-hdvtnh2swz  IPv4 5432/TCP: 2 endpoints, 1 ready
        import      shop/db  update  services/status  db             condition endpointd/EndpointsFrom: True Mirrored: has the endpoints of data/postgres (was none)
    "#]].assert_eq(&output.out);
}

fn writes_for_the_consumer(output: &CommandOutput) -> String {
    let json = output.json();
    let plans = json["plans"].as_array().expect("plans");
    let plan = plans.iter().find(|plan| plan["key"] == "shop/db").expect("the consumer");
    plan["writes"].to_string()
}

#[test]
fn the_plan_says_in_the_condition_that_consent_is_missing() {
    let text = writes_for_the_consumer(&plan_pair("web", "", &["-o", "json"]));
    assert!(!text.contains("10.0.0."), "no address without consent: {text}");
    assert!(text.contains("RefNotPermitted"), "{text}");
    let text = writes_for_the_consumer(&plan_pair("web", GRANT, &["-o", "json"]));
    assert!(text.contains("10.0.0.1") && text.contains("Mirrored"), "{text}");
}

#[test]
fn without_the_controller_nothing_is_planned() {
    let text = PAIR.replace("CONSENT", "shop");
    let output = plan(&[("pair.yaml", text.as_str())], &["-f", "pair.yaml"]).succeeded();
    assert!(!output.out.contains("shop/db"), "{}", output.out);
}

fn cluster(consent: &str) -> TestCluster {
    let cluster = TestCluster::start(&[]);
    cluster.add(&[namespace("shop"), namespace("data"), node("node-1")]);
    let mut source = service("data", "web", json!({"app": "web"}));
    source["metadata"]["annotations"] = json!({"endpointd/endpoints-to": consent});
    let mut consumer = service("shop", "web", Value::Null);
    consumer["metadata"]["annotations"] = json!({"endpointd/endpoints-from": "data/web"});
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": "data",
            "name": "web-1",
            "labels": {"kubernetes.io/service-name": "web"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    });
    cluster.add(&[source, consumer, slice, pod("data", "web-1", "web", "10.0.0.1")]);
    cluster
}

fn diff(cluster: &TestCluster) -> CommandOutput {
    cluster.run(&["diff", "-n", "shop", "--settle-time", "0", CONTROLLER])
}

/// The generated part of the name depends on nothing that a test changes.
#[test]
fn the_difference_shows_what_the_consumer_lacks() {
    let cluster = cluster("shop");
    let output = diff(&cluster);
    assert_eq!(output.code, Some(1), "{output:?}");
    expect![[r#"
        shop/web
          + slice web-qkxj8nxhp2
              + 10.0.0.1, ready
              + port http=8080/TCP
          ~ status of Service web
              + condition endpointd/EndpointsFrom=True (Mirrored: has the endpoints of data/web)

        1 of 1 differs: 1 to create, 1 to update, 0 to delete.
    "#]]
    .assert_eq(&output.out);
    assert_eq!(cluster.n_writes(), 0);
}

#[test]
fn without_consent_the_difference_shows_no_endpoint() {
    let output = diff(&cluster("nobody"));
    assert_eq!(output.code, Some(1), "{output:?}");
    expect![[r#"
        shop/web
          ~ status of Service web
              + condition endpointd/EndpointsFrom=False (RefNotPermitted: data/web does not permit it: the annotation endpointd/endpoints-to of that Service must list shop, or a ReferenceGrant in data must name it)

        1 of 1 differs: 0 to create, 1 to update, 0 to delete.
    "#]].assert_eq(&output.out);
}
