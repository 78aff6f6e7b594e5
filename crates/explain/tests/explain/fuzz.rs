//! Fuzz target: explanations of complete objects as a cluster or a file may contain them.

use endpointd_explain::{Context, Mode, Objects, explain};
use endpointd_fuzz::{Format, Target, fuzz};
use endpointd_model::Key;
use endpointd_plan::Settings;
use serde_json::{Value, json};

use crate::fixture::now;

fn recorded(name: &str) -> Value {
    let path = format!("{}/../wire/testdata/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a recorded object");
    serde_json::from_str(&text).expect("JSON")
}

fn world() -> Value {
    let object = |kind: &str, name: &str| {
        let metadata = json!({"namespace": "shop", "name": name, "labels": {"app": "web"}});
        json!({"apiVersion": "v1", "kind": kind, "metadata": metadata})
    };
    let owner =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u"}]);
    let container = json!({
        "name": "app",
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 10},
    });
    let waiting = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}});
    let mut service = object("Service", "web");
    service["spec"] = json!({
        "selector": {"app": "web"},
        "ports": [{"name": "a", "port": 80, "targetPort": "http", "protocol": "TCP"}],
        "ipFamilies": ["IPv4", "IPv6"],
    });
    let mut pod = object("Pod", "web-1");
    pod["metadata"]["ownerReferences"] = owner;
    pod["spec"] = json!({"nodeName": "node-a", "containers": [container]});
    pod["status"] = json!({
        "phase": "Running",
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "containerStatuses": [{"name": "app", "ready": false, "restartCount": 3, "state": waiting}],
    });
    let mut event = object("Event", "web-1.1");
    event["involvedObject"] = json!({"kind": "Pod", "namespace": "shop", "name": "web-1"});
    event["reason"] = "Unhealthy".into();
    event["message"] = "Readiness probe failed: connection refused".into();
    let recorded = ["pod", "node", "endpoints", "endpointslice"].map(recorded);
    let mut all = vec![service, pod, event, object("ReplicaSet", "web-1")];
    all.extend(recorded);
    all.into()
}

#[test]
fn fuzz_explain() {
    let recorded = vec![world().to_string().into_bytes()];
    fuzz(&Target { name: "explain", format: Format::Json, recorded }, |input| {
        let Ok(Value::Array(objects)) = serde_json::from_slice(input) else {
            return "no list".to_owned();
        };
        explained(objects)
    });
}

/// The codes of all explanations.
fn explained(list: Vec<Value>) -> String {
    let mut objects = Objects::default();
    list.into_iter().for_each(|object| objects.add(object));
    objects.complete("Pod");
    objects.assume_nodes();
    let indexed = objects.cluster().index();
    let context = Context {
        objects: &objects,
        indexed: &indexed,
        now: now(),
        settings: Settings::default(),
        controller: None,
        mode: Mode::Observed,
    };
    let key = |name| Key::new("shop", name);
    let all = [
        explain::service(&context, &key("web")),
        explain::pod(&context, &key("web-1")),
        explain::pod(&context, &key("web-a")),
        explain::endpoints(&context, &key("web")),
        explain::slice(&context, &key("web-abcde")),
    ];
    let ready: Vec<&str> = all[0].endpoints.iter().map(|one| one.pod.as_str()).collect();
    let is_ready = |pod: &str| ready.contains(&pod);
    let is_behind = all[1].endpoints.iter().any(|one| one.pod == "web-1");
    assert!(!is_ready("web-1") || is_behind, "a ready endpoint of the Service but not of the pod");
    let codes = all.iter().flat_map(|one| &one.findings).map(|finding| finding.code.to_string());
    codes.collect::<Vec<String>>().join(" ")
}
