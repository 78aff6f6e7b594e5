//! `endpointd explain` as a process: from files, and from a cluster.

use expect_test::expect;
use serde_json::{Value, json};

use crate::run::{CommandOutput, run};
use crate::test_cluster::{TestCluster, namespace, node, pod, service};

/// One Service `web`, one ready pod, one with a typo in its label.
fn dump() -> String {
    let objects = [
        service("shop", "web", json!({"app": "web"})),
        pod("shop", "web-1", "web", "10.0.0.1"),
        pod("shop", "web-2", "wbe", "10.0.0.2"),
        node("node-1"),
    ];
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

fn explain_file(text: &str, args: &[&str]) -> CommandOutput {
    run(&[("dump.json", text)], &[&["explain", "-f", "dump.json"], args].concat(), b"")
}

#[track_caller]
fn has_code(output: &CommandOutput, code: i32) {
    assert_eq!(output.code, Some(code), "{output:?}");
}

fn codes(output: &Value) -> Vec<&str> {
    let findings = output["findings"].as_array().expect("findings");
    findings.iter().map(|one| one["code"].as_str().expect("a code")).collect()
}

#[test]
fn the_verdict_comes_first_and_a_code_last() {
    let output = explain_file(&dump(), &["svc/web"]);
    has_code(&output, 1);
    expect![[r#"
        Service shop/web should send traffic to its only pod.

          ! not chosen   web-2 nearly matches: it has app=wbe, the selector asks for app=web  EPD103
                         try:  kubectl -n shop label pod web-2 app=web --overwrite
          √ ready        web-1  10.0.0.1:8080 in a

        The codes are explained in docs/explain.md#epd103
    "#]]
    .assert_eq(&output.out);
}

#[test]
fn json_and_yaml_have_the_same_findings() {
    let output = explain_file(&dump(), &["web", "-o", "json"]);
    has_code(&output, 1);
    let value = output.json();
    assert_eq!(value["formatVersion"], "1.0");
    assert_eq!(value["verdict"], "Service shop/web should send traffic to its only pod.");
    assert_eq!(codes(&value), ["EPD103"]);
    assert_eq!(value["findings"][0]["object"]["name"], "web-2");
    assert_eq!(value["findings"][0]["level"], "warning");
    let yaml = explain_file(&dump(), &["web", "-o", "yaml"]);
    assert!(yaml.out.contains("- code: EPD103\n  evidence:\n"), "{}", yaml.out);
    assert!(yaml.out.contains("\nformatVersion: \"1.0\"\n"), "{}", yaml.out);
}

#[test]
fn a_pod_is_explained_the_other_way() {
    let output = explain_file(&dump(), &["pod/web-2"]);
    has_code(&output, 1);
    assert!(output.out.starts_with("No Service in namespace `shop` chooses pod web-2.\n"));
    let output = explain_file(&dump(), &["pod", "web-1"]);
    has_code(&output, 0);
    assert!(output.out.starts_with("Pod shop/web-1 is behind Service web.\n"), "{output:?}");
}

#[test]
fn all_services_with_problems_only() {
    let mut dump: Value = serde_json::from_str(&dump()).expect("JSON");
    let items = dump["items"].as_array_mut().expect("items");
    let mut back = service("shop", "back", json!({"app": "back"}));
    back["metadata"]["labels"] = json!({"tier": "back"});
    items.push(back);
    items.push(pod("shop", "back-1", "back", "10.0.0.3"));
    let dump = dump.to_string();
    let output = explain_file(&dump, &["-A", "--only-problems"]);
    has_code(&output, 1);
    assert!(!output.out.contains("shop/back"), "{}", output.out);
    assert!(output.out.contains("\n1 of 2 Services has findings.\n"), "{}", output.out);
    let output = explain_file(&dump, &["-A", "-l", "tier=back"]);
    has_code(&output, 0);
    expect![[r#"
        √ Service shop/back should send traffic to its only pod.

        The only Service is well.
    "#]]
    .assert_eq(&output.out);
}

#[test]
fn more_than_ten_of_a_kind_are_counted() {
    let mut objects = vec![service("shop", "web", json!({"app": "web"})), node("node-1")];
    for n in 0..25 {
        let mut pod = pod("shop", &format!("web-{n:02}"), "web", &format!("10.0.0.{n}"));
        pod["spec"]["nodeName"] = "node-2".into();
        objects.push(pod);
    }
    let dump = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let output = explain_file(&dump, &["web"]);
    assert_eq!(output.out.matches("EPD205").count(), 11, "{}", output.out);
    assert!(output.out.contains("and 15 more for the same reason  EPD205\n"), "{}", output.out);
    let wide = explain_file(&dump, &["web", "-o", "wide"]);
    assert_eq!(wide.out.matches("  EPD205").count(), 25, "{}", wide.out);
}

#[test]
fn bad_input_is_one_sentence_and_a_hint() {
    let dump = dump();
    for (args, error, hint) in [
        (&["wbe"][..], "There is no Service `wbe` in namespace `shop`", "did you mean `web`?"),
        (&["pod/web-3"], "There is no pod `web-3` in namespace `shop`", "lists what there is"),
        (&["deploy/web"], "cannot explain objects of this kind: `deploy`", "`svc`, `pod`"),
        (&["svc/web", "-A"], "an object is in one namespace", "`-n`"),
        (&["-l", "a in (b)"], "not a label selector: `a in (b)`", "`key=value`"),
    ] {
        explain_file(&dump, args).fails_with(error, hint);
    }
    explain_file("{]", &["web"]).fails_with("cannot parse `dump.json`", "YAML or JSON");
    run(&[], &["explain", "web", "-f", "no.yaml"], b"").fails_with("no such file", "`-f`");
    let unreachable = run(&[], &["explain", "web", "--server", "http://127.0.0.1:1"], b"");
    unreachable.fails_with("cannot read from the API server at http://127.0.0.1:1", "`-f FILE`");
}

#[test]
fn one_namespace_of_a_cluster_is_read() {
    let cluster = TestCluster::start(&[]);
    cluster.add(&[namespace("shop"), namespace("other"), node("node-1")]);
    cluster.add(&[
        service("shop", "web", json!({"app": "web"})),
        pod("shop", "web-1", "web", "10.0.0.1"),
        service("other", "api", json!({"app": "api"})),
    ]);
    let output = cluster.run(&["explain", "svc/web", "-n", "shop", "-o", "json"]);
    has_code(&output, 1);
    // No controller runs.
    assert!(codes(&output.json()).contains(&"EPD802"), "{output:?}");
    let foreign = |path: &String| !path.contains("/namespaces/shop/");
    let mut others: Vec<String> = cluster.paths().into_iter().filter(foreign).collect();
    others.sort();
    assert_eq!(
        others,
        [
            "/api/v1/nodes/node-1",
            "/apis/coordination.k8s.io/v1/leases",
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
        ]
    );
}

#[test]
fn a_name_in_another_namespace_is_a_near_miss() {
    let cluster = TestCluster::start(&[]);
    cluster.add(&[namespace("shop"), service("shop", "web", json!({"app": "web"}))]);
    let output = cluster.run(&["explain", "web"]);
    output.fails_with("There is no Service `web` in namespace `default`", "`-n shop`");
}

#[test]
fn what_may_not_be_read_is_said() {
    let cluster = TestCluster::start(&["/events", "/nodes/node-1"]);
    cluster.add(&[namespace("shop"), node("node-1")]);
    cluster.add(&[
        service("shop", "web", json!({"app": "web"})),
        pod("shop", "web-1", "web", "10.0.0.1"),
    ]);
    let output = cluster.run(&["explain", "web", "-n", "shop"]);
    has_code(&output, 1);
    assert!(output.out.contains("? not read     events: not allowed\n"), "{}", output.out);
    assert!(output.out.contains("? not read     nodes: not allowed\n"), "{}", output.out);
    assert!(!output.out.contains("EPD205"), "an unread node is no missing node: {}", output.out);
}

#[test]
fn without_pods_nothing_is_said_about_them() {
    let cluster = TestCluster::start(&["/pods"]);
    cluster.add(&[namespace("shop"), service("shop", "web", json!({"app": "web"}))]);
    let output = cluster.run(&["explain", "web", "-n", "shop"]);
    has_code(&output, 2);
    expect![[r#"
        The pods of Service shop/web could not be read; its slices have 0 ready endpoints.

          ? not read     pods: not allowed
    "#]]
    .assert_eq(&output.out);
}

#[test]
fn without_services_nothing_can_be_found_out() {
    let cluster = TestCluster::start(&["/services"]);
    let output = cluster.run(&["explain", "web", "-n", "shop"]);
    output.fails_with(
        "cannot list the Services of namespace `shop`: not allowed",
        "`kubectl auth can-i list services -n shop`",
    );
}

#[test]
fn what_would_be_if_a_file_were_applied() {
    let cluster = TestCluster::start(&[]);
    cluster.add(&[namespace("shop"), node("node-1")]);
    cluster.add(&[
        service("shop", "web", json!({"app": "wbe"})),
        pod("shop", "web-1", "web", "10.0.0.1"),
    ]);
    let new = service("shop", "web", json!({"app": "web"})).to_string();
    let files = [("new.json", new.as_str())];
    let args = ["explain", "web", "-f", "new.json", "--live"];
    let output = cluster.run_with(&files, &args);
    has_code(&output, 0);
    assert!(
        output.out.starts_with("Service shop/web would send traffic to its only pod.\n"),
        "{}",
        output.out
    );
    // Nothing was applied.
    let output = cluster.run(&["explain", "web", "-n", "shop"]);
    assert!(output.out.starts_with("Service shop/web chooses no pod"), "{}", output.out);
}

#[test]
fn all_namespaces_are_read_one_by_one() {
    let cluster = TestCluster::start(&[]);
    cluster.add(&[namespace("shop"), namespace("other"), node("node-1")]);
    cluster.add(&[
        service("shop", "web", json!({"app": "web"})),
        service("other", "web", json!({"app": "web"})),
        pod("other", "web-1", "web", "10.0.0.1"),
    ]);
    let output = cluster.run(&["explain", "-A", "-o", "json"]);
    has_code(&output, 1);
    let value = output.json();
    let items = value["items"].as_array().expect("items").iter();
    let found: Vec<String> =
        items.map(|one| format!("{} {:?}", one["object"]["namespace"], codes(one))).collect();
    assert_eq!(
        found,
        [
            r#""default" ["EPD112", "EPD701", "EPD705"]"#,
            r#""other" ["EPD802", "EPD804"]"#,
            r#""shop" ["EPD107", "EPD802", "EPD804"]"#,
        ]
    );
    let pods: Vec<String> = cluster
        .paths()
        .into_iter()
        .filter(|path| path.ends_with("/namespaces/shop/pods"))
        .collect();
    assert_eq!(pods.len(), 1);
}

/// A pod has some ten kilobytes, and a namespace may have thousands.
#[test]
fn of_a_large_namespace_only_the_pods_of_the_service_are_read_completely() {
    let cluster = TestCluster::start(&[]);
    let mut objects = vec![namespace("shop"), node("node-1")];
    objects.push(service("shop", "web", json!({"app": "web"})));
    objects.extend((0..300).map(|n| pod("shop", &format!("api-{n}"), "api", "10.0.1.1")));
    objects.push(pod("shop", "web-1", "web", "10.0.0.1"));
    objects.push(pod("shop", "web-2", "wbe", "10.0.0.2"));
    let mut ended = pod("shop", "web-3", "wbe", "10.0.0.3");
    ended["status"]["phase"] = "Succeeded".into();
    objects.push(ended);
    cluster.add(&objects);
    let output = cluster.run(&["explain", "web", "-n", "shop", "-o", "json"]);
    has_code(&output, 1);
    let value = output.json();
    let of = |code: &str| {
        let findings = value["findings"].as_array().expect("findings");
        findings.iter().find(|one| one["code"] == code).cloned().unwrap_or_default()
    };
    assert_eq!(of("EPD103")["object"]["name"], "web-2", "{value:#}");
    assert_eq!(of("EPD103")["evidence"][1], "pods: web-2", "web-3 has ended: {value:#}");
    let late = of("EPD802")["message"].as_str().unwrap_or_default().to_owned();
    assert!(late.starts_with("web-1 has been ready"), "{value:#}");
    let reads = cluster.paths();
    let n_lists = reads.iter().filter(|path| path.ends_with("/namespaces/shop/pods")).count();
    assert_eq!(
        n_lists, 3,
        "the first page, those of the Service, and labels of the others: {reads:?}"
    );
}

const MULTICLUSTER: &str = "multicluster.x-k8s.io/v1beta1";

/// `shop/web`, which two clusters export: one does not answer, and one lacks a port.
fn cluster_set() -> Vec<Value> {
    let derived = "derived-isrlchlhrq";
    let labels = json!({"multicluster.kubernetes.io/service-name": "web"});
    let slice = |cluster: &str, is_ready: bool, ports: Value| {
        let mut labels = labels.clone();
        labels["kubernetes.io/service-name"] = derived.into();
        labels["multicluster.kubernetes.io/source-cluster"] = cluster.into();
        labels["endpointslice.kubernetes.io/managed-by"] = "endpointd-import".into();
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"namespace": "shop", "name": format!("{derived}-{cluster}"), "labels": labels},
            "addressType": "IPv4", "ports": ports,
            "endpoints": [{"addresses": ["10.1.0.1"], "conditions": {"ready": is_ready}}],
        })
    };
    let import = json!({
        "apiVersion": MULTICLUSTER, "kind": "ServiceImport",
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {
            "type": "ClusterSetIP",
            "ports": [{"name": "http", "port": 80}, {"name": "metrics", "port": 9090}],
        },
        "status": {
            "clusters": [{"cluster": "eu1"}, {"cluster": "us1"}],
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "Ready", "message": "",
                "lastTransitionTime": "2026-01-01T12:00:00Z",
            }],
        },
    });
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "namespace": "endpointd", "name": "endpointd-source-eu1",
            "labels": {"multicluster.kubernetes.io/source-cluster": "eu1"},
        },
        "spec": {"holderIdentity": "eu1", "renewTime": "2026-01-01T12:00:00.000000Z"},
    });
    let mut service = service("shop", derived, Value::Null);
    service["metadata"]["labels"] = labels.clone();
    let both = json!([{"name": "http", "port": 80}, {"name": "metrics", "port": 90}]);
    service["spec"]["ports"] = both.clone();
    let http = json!([{"name": "http", "port": 80}]);
    vec![service, import, slice("eu1", false, both), slice("us1", true, http), lease]
}

/// What is said of each cluster, without its age.
fn of_clusters(output: &CommandOutput) -> Vec<String> {
    let all = output.json();
    let findings = all["findings"].as_array().expect("findings").iter();
    let text = |one: &Value| {
        let message = one["message"].as_str().expect("a message");
        let message = message.split(" ago").next().unwrap_or_default();
        let message = message.split(", port").next().unwrap_or_default();
        let words: Vec<&str> = message.split(' ').take(8).collect();
        format!("{} {}", one["code"].as_str().expect("a code"), words.join(" "))
    };
    let mut texts: Vec<String> = findings.map(text).collect();
    texts.iter_mut().for_each(|text| {
        if let Some((before, _)) = text.split_once(" in contact ") {
            *text = format!("{before} in contact");
        }
    });
    texts
}

#[test]
fn a_service_of_several_clusters_is_explained_by_cluster() {
    let want = [
        "EPD716 cluster us1 gets no traffic for metrics (9090/TCP):",
        "EPD717 cluster eu1 was in contact",
        "EPD715 cluster eu1: 1 endpoint in 1 slice, 0",
        "EPD715 cluster us1: 1 endpoint in 1 slice, 1",
    ];
    let dump = json!({"apiVersion": "v1", "kind": "List", "items": cluster_set()}).to_string();
    let cluster = TestCluster::start(&[]);
    cluster.add(&[namespace("shop"), namespace("endpointd")]);
    cluster.add(&cluster_set());
    for service in ["web", "derived-isrlchlhrq"] {
        let args = ["explain", service, "-n", "shop", "-o", "json"];
        let live = cluster.run(&args);
        has_code(&live, 1);
        assert_eq!(of_clusters(&live), want, "{service}");
        let offline = explain_file(&dump, &args[1..]);
        has_code(&offline, 1);
        assert_eq!(of_clusters(&offline), want, "{service}");
    }
    let paths = cluster.paths();
    assert!(paths.iter().any(|path| path.ends_with("/serviceimports")), "{paths:?}");
}

#[test]
fn without_imports_nothing_is_said_about_kinds_of_several_clusters() {
    let cluster = TestCluster::start(&["/serviceexports", "/serviceimports"]);
    cluster.add(&[namespace("shop"), service("shop", "web", json!({"app": "web"}))]);
    let output = cluster.run(&["explain", "web", "-n", "shop", "-o", "json"]);
    assert!(output.json()["notRead"].is_null(), "{output:?}");
    assert!(!cluster.paths().iter().any(|path| path.contains("source-cluster")));
    cluster.add(&[namespace("endpointd")]);
    let of_import = cluster_set().into_iter().filter(|one| one["kind"] == "EndpointSlice");
    cluster.add(&of_import.collect::<Vec<_>>());
    let output = cluster.run(&["explain", "web", "-n", "shop", "-o", "json"]);
    let not_read = output.json()["notRead"].to_string();
    assert!(not_read.contains("serviceimports: not allowed"), "{not_read}");
}
