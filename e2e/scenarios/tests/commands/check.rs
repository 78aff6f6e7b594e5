//! `check` on a real API server: what holds, what does not, and what may not be read.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Api, Cluster};
use serde_json::{Value, json};

use crate::run;

const FLOW_SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
/// The API server looks at all schemas some seconds after a change.
const CONDITION_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(200);

pub fn says_what_holds_and_what_does_not(cluster: &Cluster) {
    let admin = &cluster.kubeconfig();
    let check = run(admin, &["check", "--pre", "-n", "kube-system", "-o", "json"]);
    assert_eq!(check.code, Some(0), "{check:?}");
    for name in ["server", "discovery", "permissions", "writers"] {
        assert_eq!(of(&check.json(), name)["result"], "ok", "{check:?}");
    }
    let check = run(admin, &["check", "--as", "nobody"]);
    assert_eq!(check.code, Some(1), "{check:?}");
    assert!(check.out.contains("× may not get, list, watch pods\n"), "{}", check.out);
    assert!(check.out.contains("? cannot read FlowSchemas: "), "{}", check.out);
    the_priority_level(admin, cluster.api());
}

fn the_priority_level(admin: &Path, api: &Api) {
    let found = || run(admin, &["check"]).out;
    let without = found();
    assert!(without.contains("! no FlowSchema is for endpointd: "), "{without}");

    let schemas = manifests();
    assert_eq!(schemas.len(), 2);
    schemas.iter().for_each(|one| drop(api.create(FLOW_SCHEMAS, one).expect("it is new")));
    let with = found();
    let levels =
        "√ requests of endpointd have the priority level `leader-election` and `workload-high`\n";
    assert!(with.contains(levels), "{with}");

    let missing = json!({"spec": {"priorityLevelConfiguration": {"name": "no-such-level"}}});
    api.merge(&format!("{FLOW_SCHEMAS}/endpointd"), &missing).expect("the server takes it");
    let started = Instant::now();
    loop {
        let check = run(admin, &["check", "-o", "json"]);
        let priority = of(&check.json(), "priority");
        if priority["result"] == "failed" {
            let message = "the FlowSchema endpointd has no effect: there is no priority level `no-such-level`";
            assert_eq!((check.code, &priority["message"]), (Some(1), &json!(message)));
            break;
        }
        assert!(started.elapsed() < CONDITION_MAX, "{priority:#}");
        thread::sleep(POLL);
    }
}

fn of(checks: &Value, name: &str) -> Value {
    let mut checks = checks["checks"].as_array().into_iter().flatten();
    checks.find(|one| one["name"] == name).cloned().unwrap_or_default()
}

/// The FlowSchemas that `deploy/` installs.
fn manifests() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/base/flow-schemas.yaml");
    let text = fs::read_to_string(path).expect("the manifest is there");
    let documents = text.split("\n---\n");
    documents.map(|one| serde_saphyr::from_str(one).expect("YAML of one object")).collect()
}
