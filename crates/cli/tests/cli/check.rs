//! `endpointd check` as a process, against the embedded API server.

use serde_json::Value;

use crate::test_cluster::{TestCluster, node};

fn results(output: &Value) -> Vec<String> {
    let checks = output["checks"].as_array().expect("checks");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    checks.iter().map(|one| format!("{} {}", text(&one["name"]), text(&one["result"]))).collect()
}

#[test]
fn a_cluster_is_checked_before_the_installation() {
    let cluster = TestCluster::start(&[]);
    let mut without_zone = node("node-2");
    without_zone["metadata"]["labels"] = Value::Null;
    cluster.add(&[node("node-1"), without_zone]);
    let output = cluster.run(&["check", "--pre", "-o", "json"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let found = results(&output.json());
    for want in ["discovery ok", "writers ok", "zones warning", "permissions skipped"] {
        assert!(found.contains(&want.to_owned()), "{want}: {found:?}");
    }
    let text = cluster.run(&["check", "--pre"]).out;
    assert!(text.contains("! 1 of 2 nodes have no zone: node-2\n    hint: "), "{text}");
    assert!(text.starts_with("√ API server ") || text.starts_with("! API server "), "{text}");
}

#[test]
fn an_installed_endpointd_must_lead() {
    let cluster = TestCluster::start(&[]);
    let output = cluster.run(&["check"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.out.contains("× there is no Lease endpointd/endpointd"), "{}", output.out);
    assert!(output.out.contains("1 check failed"), "{}", output.out);
}

#[test]
fn an_unreachable_server_is_one_sentence_and_a_hint() {
    let output = crate::run::run(&[], &["check", "--server", "http://127.0.0.1:1"], b"");
    output.fails_with("cannot read from the API server at http://127.0.0.1:1", "cluster-info");
}
