//! The optional components of `deploy/`, each switched on in a copy.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Once;

use endpointd_control_plane::{ApiError, Cluster};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{DRY_RUN, apply, cluster, container, items, object, pod_spec, root, try_pod};

#[test]
fn network_policy_selects_the_pods_and_their_port() {
    let Some(cluster) = cluster() else { return };
    let (objects, warnings) = dry_run_with_component(cluster, "network-policy");
    assert_eq!(warnings, "");
    let policy = object(&objects, "NetworkPolicy", "endpointd");
    let deployment = object(&objects, "Deployment", "endpointd");
    assert_selects(&policy["spec"]["podSelector"], deployment);
    assert_has_port(deployment, &policy["spec"]["ingress"][0]["ports"][0]["port"]);
}

#[test]
fn host_network_pods_start_before_the_network_plugin() {
    let Some(cluster) = cluster() else { return };
    let (objects, warnings) = dry_run_with_component(cluster, "host-network");
    // A dry run does not lower the level of the namespace, so the API server warns.
    let expected =
        "would violate PodSecurity \"restricted:latest\": host namespaces (hostNetwork=true)";
    assert_eq!(warnings.trim_end(), format!("Warning: {expected}"));
    let spec = pod_spec(object(&objects, "Deployment", "endpointd"));
    assert_eq!(spec["hostNetwork"], true);
    let tolerated: Vec<&Value> =
        spec["tolerations"].as_array().unwrap().iter().map(|one| &one["key"]).collect();
    for taint in ["not-ready", "network-unavailable"] {
        let taint = json!(format!("node.kubernetes.io/{taint}"));
        assert!(tolerated.contains(&&taint), "{taint} is not in {tolerated:?}");
    }
    // The restricted level forbids the host network; the component lowers the level.
    let Err(ApiError::Refused { status: 403, message }) = try_pod(cluster, spec.clone()) else {
        panic!("the restricted level allows the host network");
    };
    assert!(message.contains("hostNetwork"), "{message}");
    let namespace = object(&objects, "Namespace", "endpointd");
    let level = &namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"];
    assert_eq!(level, "privileged");
}

#[test]
fn pod_monitor_selects_the_pods_and_their_port() {
    let Some(cluster) = cluster() else { return };
    define_operator_kinds(cluster);
    let (objects, warnings) = dry_run_with_component(cluster, "monitoring");
    assert_eq!(warnings, "");
    let monitor = object(&objects, "PodMonitor", "endpointd");
    let deployment = object(&objects, "Deployment", "endpointd");
    assert_selects(&monitor["spec"]["selector"], deployment);
    assert_has_port(deployment, &monitor["spec"]["podMetricsEndpoints"][0]["port"]);
    let rule = object(&objects, "PrometheusRule", "endpointd");
    assert_eq!(rule["spec"]["groups"][0]["rules"][0]["alert"], "NoLeader");
}

/// The kinds of the Prometheus Operator that are used here. Its schemas are not checked.
pub fn define_operator_kinds(cluster: &Cluster) {
    static DEFINED: Once = Once::new();
    DEFINED.call_once(|| {
        for (kind, plural) in [("PodMonitor", "podmonitors"), ("PrometheusRule", "prometheusrules")]
        {
            define(cluster, kind, plural);
        }
    });
}

/// A kind of the Prometheus Operator, with any fields. Returns when the API server serves it.
fn define(cluster: &Cluster, kind: &str, plural: &str) {
    let group = "monitoring.coreos.com";
    let definition = json!({
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    cluster.api().create(path, &definition).expect("the definition is valid");
    let established = ["wait", "--for=condition=Established", "--timeout=60s", "crd"];
    let mut kubectl = Command::new("kubectl");
    kubectl.arg("--kubeconfig").arg(cluster.kubeconfig()).args(established);
    let output = kubectl.arg(format!("{plural}.{group}")).output().expect("kubectl starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn assert_selects(selector: &Value, deployment: &Value) {
    let labels = deployment["spec"]["template"]["metadata"]["labels"].as_object();
    let labels = labels.expect("pods have labels");
    let selected = selector["matchLabels"].as_object().expect("a selector has labels");
    assert!(selected.iter().all(|(label, value)| labels.get(label) == Some(value)), "{selector}");
}

fn assert_has_port(deployment: &Value, port: &Value) {
    let ports = container(deployment)["ports"].as_array().expect("the container has ports");
    assert!(ports.iter().any(|one| &one["name"] == port), "no port {port} in {ports:?}");
}

/// The objects of the default variant with a component switched on, and warnings of the API server.
fn dry_run_with_component(cluster: &Cluster, component: &str) -> (Vec<Value>, String) {
    let copy = with_component(component);
    let (applied, warnings) = apply(cluster, copy.path(), DRY_RUN);
    (items(&applied), warnings)
}

/// A copy of `deploy` with a component switched on as the comment in it says.
pub fn with_component(component: &str) -> TempDir {
    let copy = tempfile::tempdir().expect("a temporary directory");
    copy_folder(&root().join("deploy"), copy.path());
    let file = copy.path().join("kustomization.yaml");
    let text = fs::read_to_string(&file).expect("it was copied");
    let line = format!("#   - components/{component}\n");
    assert!(text.contains("# components:\n") && text.contains(&line), "{component}: {text}");
    let text = text.replace("# components:\n", "components:\n").replace(&line, &line[1..]);
    fs::write(&file, text).expect("the copy is ours");
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a new folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("a readable folder").path();
        let target = to.join(path.file_name().expect("an entry has a name"));
        match path.is_dir() {
            true => copy_folder(&path, &target),
            false => drop(fs::copy(&path, &target).expect("a readable file")),
        }
    }
}
