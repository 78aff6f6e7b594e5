//! `endpointd diff` as a process, against the embedded API server and from files.

use expect_test::expect;
use serde_json::{Value, json};

use crate::run::{CommandOutput, run};
use crate::test_cluster::{TestCluster, namespace, node, pod, service};

fn shop() -> TestCluster {
    let cluster = TestCluster::start(&[]);
    cluster.add(&[namespace("shop"), node("node-1")]);
    let mut web = service("shop", "web", json!({"app": "web"}));
    web["spec"]["ipFamilies"] = json!(["IPv4"]);
    cluster.add(&[web, pod("shop", "web-1", "web", "10.0.0.1")]);
    cluster
}

fn diff(cluster: &TestCluster, args: &[&str]) -> CommandOutput {
    cluster.run(&[&["diff", "--settle-time", "0"], args].concat())
}

#[track_caller]
fn has_code(output: &CommandOutput, code: i32) {
    assert_eq!(output.code, Some(code), "{output:?}");
}

/// Creates everything that should be published in the namespace.
fn publish(cluster: &TestCluster) {
    let output = diff(cluster, &["-n", "shop", "-o", "json"]).json();
    for difference in output["differences"].as_array().expect("differences") {
        for write in difference["writes"].as_array().expect("writes") {
            cluster.add(&[write["after"].clone()]);
        }
    }
}

/// The generated part of a slice's name depends on the uid of the Service.
fn with_fixed_name(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once("slice web-") {
        Some((start, _)) => format!("{start}slice web-0000000000"),
        None => line.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}

#[test]
fn what_is_missing_is_shown() {
    let output = diff(&shop(), &["svc/web", "-n", "shop"]);
    has_code(&output, 1);
    expect![[r#"
        shop/web
          + slice web-0000000000
              + 10.0.0.1 (web-1), ready, zone a, node node-1
              + port http=8080/TCP
          + endpoints web
              + 10.0.0.1 (web-1), ready, node node-1
              + port http=8080/TCP

        1 of 1 differs: 2 to create, 0 to update, 0 to delete.
    "#]]
    .assert_eq(&with_fixed_name(&output.out));
}

#[test]
fn what_is_published_as_planned_does_not_differ() {
    let cluster = shop();
    publish(&cluster);
    let output = diff(&cluster, &["-n", "shop"]);
    has_code(&output, 0);
    expect![[r#"
        No difference: what is published is what endpointd would publish.
    "#]]
    .assert_eq(&output.out);
    // `kubernetes` in `default` is written by the API server.
    let output = diff(&cluster, &["-A"]);
    has_code(&output, 0);
    assert_eq!(output.out, "No differences in 2 Services and Endpoints.\n", "{output:?}");
}

#[test]
fn what_differs_is_said_in_words_and_as_yaml() {
    let cluster = shop();
    publish(&cluster);
    let mut second = pod("shop", "web-2", "web", "10.0.0.2");
    second["status"]["conditions"][0]["status"] = "False".into();
    cluster.add(&[second]);
    let output = diff(&cluster, &["-A"]);
    has_code(&output, 1);
    expect![[r#"
        shop/web
          ~ slice web-0000000000
              + 10.0.0.2 (web-2), not ready, zone a, node node-1
          ~ endpoints web
              + 10.0.0.2 (web-2), not ready, node node-1

        1 of 2 differs: 0 to create, 2 to update, 0 to delete.
    "#]]
    .assert_eq(&with_fixed_name(&output.out));
    let output = diff(&cluster, &["web", "-n", "shop", "-o", "unified"]);
    has_code(&output, 1);
    assert!(output.out.contains("\n+- addresses:\n+  - \"10.0.0.2\"\n"), "{}", output.out);
    assert!(output.out.contains("--- published/endpointslices/shop/web-"), "{}", output.out);
    assert!(!output.out.contains("resourceVersion"), "{}", output.out);
    let output = diff(&cluster, &["-A", "-o", "json"]);
    has_code(&output, 1);
    let write = &output.json()["differences"][0]["writes"][0];
    assert_eq!(write["before"]["endpoints"].as_array().map(Vec::len), Some(1));
    assert_eq!(write["after"]["endpoints"].as_array().map(Vec::len), Some(2));
    assert_eq!(write["changes"][0], "+ 10.0.0.2 (web-2), not ready, zone a, node node-1");
}

#[test]
fn only_the_namespace_and_nodes_are_read() {
    let cluster = shop();
    has_code(&diff(&cluster, &["-n", "shop"]), 1);
    let paths = cluster.paths();
    let others: Vec<&String> =
        paths.iter().filter(|path| !path.contains("/namespaces/shop/")).collect();
    assert!(others.iter().all(|path| *path == "/api/v1/nodes"), "{others:?}");
    assert!(!others.is_empty());
}

#[test]
fn files_are_compared_without_a_cluster() {
    let objects = [
        service("shop", "web", json!({"app": "web"})),
        pod("shop", "web-1", "web", "10.0.0.1"),
        node("node-1"),
    ];
    let dump = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let files = [("dump.json", dump.as_str())];
    let output = run(&files, &["diff", "-f", "dump.json", "-o", "json"], b"");
    has_code(&output, 1);
    let keys: Vec<Value> = output.json()["differences"]
        .as_array()
        .expect("differences")
        .iter()
        .map(|one| one["key"].clone())
        .collect();
    assert_eq!(keys, ["shop/web", "shop/web"]);
    assert_eq!(output.err, "");
    let dump = json!({"apiVersion": "v1", "kind": "List", "items": &objects[..2]}).to_string();
    let output = run(&[("dump.json", dump.as_str())], &["diff", "-f", "dump.json"], b"");
    output.logs("warning: the input has pods but no nodes");
}

#[test]
fn bad_input_is_one_sentence_and_a_hint() {
    let cluster = shop();
    for (args, error, hint) in [
        (&["web"][..], "no Service, Endpoints, or slice for `default/web`", "check the name"),
        (&["web", "-A"], "an object is in one namespace", "`-n`"),
        (&["pod/web-1"], "only Services and Endpoints are compared", "explain"),
        (&["--settle-time", "1"], "must be a duration: `1`", "`500ms`"),
    ] {
        cluster.run(&[&["diff"], args].concat()).fails_with(error, hint);
    }
    let cluster = TestCluster::start(&["/pods"]);
    diff(&cluster, &["-n", "shop"]).fails_with("cannot list pods of http://", "auth can-i");
    diff(&cluster, &["-A"]).fails_with("cannot list pods of http://", "auth can-i");
}

/// A Service that had a selector before, and its slice.
const LEFT_BEHIND: &str = r#"
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web, uid: u1}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
addressType: IPv4
metadata:
  namespace: shop
  name: web-x
  labels:
    kubernetes.io/service-name: web
    endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io
  ownerReferences: [{apiVersion: v1, kind: Service, name: web, uid: u1}]
endpoints: []
ports: []
"#;

#[test]
fn what_a_removed_selector_left_behind_is_listed_and_deleted_on_request() {
    let diff = |args: &[&str]| {
        run(&[("web.yaml", LEFT_BEHIND)], &[&["diff", "-f", "web.yaml"], args].concat(), b"")
    };
    let kept = diff(&[]);
    has_code(&kept, 0);
    let listed = "left behind by Services that had a selector before:\n    slice shop/web-x\n";
    assert!(kept.out.contains(listed), "{}", kept.out);
    assert_eq!(diff(&["-o", "json"]).json()["leftBehind"][0]["name"], "web-x");
    let deleted = diff(&["--orphan-policy=delete"]);
    has_code(&deleted, 1);
    assert!(deleted.out.contains("- slice web-x"), "{}", deleted.out);
    let bad = diff(&["--orphan-policy=remove"]);
    bad.fails_with("`--orphan-policy` must be `keep` or `delete`: `remove`", "they are kept");
}
