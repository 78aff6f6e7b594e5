//! `endpointd endpoints` as a process, against the embedded API server, which runs no controllers.

use serde_json::{Value, json};

use crate::test_cluster::{TestCluster, service};

const LABEL: &str = "endpoints.kubernetes.io/managed-by";

fn endpoints(name: &str, labels: &Value, annotations: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"namespace": "shop", "name": name, "labels": labels, "annotations": annotations},
        "subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}],
    })
}

/// One of each purpose.
fn cluster() -> TestCluster {
    let cluster = TestCluster::start(&[]);
    let ours = json!({LABEL: "endpoint-controller"});
    let truncated = json!({"endpoints.kubernetes.io/over-capacity": "truncated"});
    let lock = json!({"control-plane.alpha.kubernetes.io/leader": "{}"});
    cluster.add(&[
        crate::test_cluster::namespace("shop"),
        service("shop", "web", json!({"app": "web"})),
        service("shop", "old", Value::Null),
        service("shop", "db", Value::Null),
        endpoints("web", &ours, &truncated),
        endpoints("old", &ours, &Value::Null),
        endpoints("db", &Value::Null, &Value::Null),
        endpoints("gone", &ours, &Value::Null),
        endpoints("lock", &ours, &lock),
    ]);
    cluster
}

fn names(cluster: &TestCluster) -> Vec<String> {
    let args = ["endpoints", "report", "-n", "shop", "-o", "json"];
    let report = cluster.run(&args).succeeded().json();
    let all = report["endpoints"].as_array().expect("endpoints");
    all.iter().map(|one| one["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn the_report_says_what_endpoints_are_for() {
    let cluster = cluster();
    let report = cluster.run(&["endpoints", "report", "-n", "shop", "-o", "json"]).succeeded();
    let purposes = &report.json()["purposes"];
    for (purpose, n) in [
        ("published", 1),
        ("leftBehind", 1),
        ("withoutService", 1),
        ("manual", 1),
        ("leaderElectionLock", 1),
        ("unknown", 0),
    ] {
        assert_eq!(purposes[purpose]["objects"], n, "{purpose}: {purposes:#}");
    }
    let text = cluster.run(&["endpoints", "report", "-A"]).succeeded().out;
    assert!(text.contains("stale: shop/gone, shop/old\n"), "{text}");
    assert!(text.contains("truncated to 1000 addresses: shop/web\n"), "{text}");
    assert!(text.contains("read by\n  not known: `--audit-log FILE`"), "{text}");
}

#[test]
fn an_audit_log_says_who_reads() {
    let cluster = cluster();
    let event = json!({
        "stage": "ResponseComplete", "verb": "list", "user": {"username": "ingress"},
        "userAgent": "nginx/1", "objectRef": {"resource": "endpoints"},
    });
    let log = std::env::temp_dir().join(format!("endpointd-audit-{}.log", std::process::id()));
    std::fs::write(&log, format!("{event}\n{event}\n")).expect("a temporary file");
    let path = log.to_str().expect("UTF-8");
    let text = cluster.run(&["endpoints", "report", "-A", "--audit-log", path]).succeeded().out;
    std::fs::remove_file(&log).expect("the file is ours");
    assert!(text.contains("read by\n  ingress (nginx/1): list 2\n"), "{text}");
    let missing = cluster.run(&["endpoints", "report", "-A", "--audit-log", "nowhere.log"]);
    missing.fails_with("cannot read the audit log `nowhere.log`", "--audit-log-path");
}

#[test]
fn prune_is_dry_by_default_and_deletes_only_what_a_controller_published() {
    let cluster = cluster();
    let dry = cluster.run(&["endpoints", "prune", "-A"]).succeeded();
    assert!(dry.out.starts_with("shop/web\n\nWould delete 1 Endpoints with "), "{}", dry.out);
    assert_eq!(cluster.n_writes(), 0);
    let args = ["endpoints", "prune", "-A", "--confirm", "--probe-time", "300ms"];
    let pruned = cluster.run(&args).succeeded();
    assert_eq!(pruned.out, "shop/web deleted\n\n1 Endpoints: 1 deleted.\n");
    assert_eq!(names(&cluster), ["db", "gone", "lock", "old"]);
    let left = cluster.run(&["endpoints", "report", "-A", "-o", "json"]).succeeded().json();
    assert_eq!(left["purposes"]["unlabelled"]["objects"], 0, "the probe is gone");
    let again = cluster.run(&args).succeeded();
    assert_eq!(again.out, "There is nothing to delete.\n");
}

#[test]
fn wrong_values_are_one_sentence() {
    let cluster = TestCluster::start(&["/endpoints"]);
    let bad = cluster.run(&["endpoints", "prune", "--probe-time", "soon"]);
    bad.fails_with("`--probe-time` must be a duration: `soon`", "10s");
    let forbidden = cluster.run(&["endpoints", "report", "-A"]);
    forbidden.fails_with("cannot list endpoints: ", "kubectl auth can-i list endpoints");
}
