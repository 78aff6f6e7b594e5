//! Pods and pod templates.

use serde_json::{Value, json};

use super::{copy_field, fill, first_generation, keep_old_status, next_generation, remove};

const GRACE_SECS: i64 = 30;
const FILE_MODE: i64 = 0o644;

/// Defaults of pods that templates do not get.
pub(crate) fn default_pod(object: &mut Value) {
    let spec = &mut object["spec"];
    if !spec.is_object() {
        return;
    }
    default_spec(spec);
    for field in ["containers", "initContainers"] {
        for container in spec[field].as_array_mut().into_iter().flatten() {
            requests_from_limits(&mut container["resources"]);
        }
    }
    if spec["enableServiceLinks"].is_null() {
        spec["enableServiceLinks"] = json!(true);
    }
    if spec["hostNetwork"] == true {
        host_ports(spec);
    }
}

fn requests_from_limits(resources: &mut Value) {
    let limits = resources["limits"].as_object().cloned().unwrap_or_default();
    for (name, amount) in limits {
        if resources["requests"][&name].is_null() {
            resources["requests"][name] = amount;
        }
    }
    // Indexing a missing field of a mutable `Value` inserts a null.
    for field in ["limits", "requests"] {
        if resources[field].is_null() {
            remove(resources, field);
        }
    }
    if resources.is_null() {
        *resources = json!({});
    }
}

fn host_ports(spec: &mut Value) {
    for field in ["containers", "initContainers"] {
        for container in spec[field].as_array_mut().into_iter().flatten() {
            for port in container["ports"].as_array_mut().into_iter().flatten() {
                if port["hostPort"].is_null() {
                    port["hostPort"] = port["containerPort"].clone();
                }
            }
        }
    }
}

/// Upstream: `SetDefaults_PodSpec` and those of its parts.
pub(crate) fn default_spec(spec: &mut Value) {
    fill(spec, "dnsPolicy", json!("ClusterFirst"));
    fill(spec, "restartPolicy", json!("Always"));
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", json!(GRACE_SECS));
    fill(spec, "schedulerName", json!("default-scheduler"));
    let account = spec["serviceAccountName"].as_str().or(spec["serviceAccount"].as_str());
    if let Some(account) = account.map(str::to_owned) {
        spec["serviceAccountName"] = json!(account);
        spec["serviceAccount"] = json!(account);
    }
    for field in ["containers", "initContainers"] {
        for container in spec[field].as_array_mut().into_iter().flatten() {
            default_container(container);
        }
    }
    for volume in spec["volumes"].as_array_mut().into_iter().flatten() {
        default_volume(volume);
    }
}

fn default_container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let policy = if tag_of(image) == "latest" { "Always" } else { "IfNotPresent" };
    fill(container, "imagePullPolicy", json!(policy));
    fill(container, "terminationMessagePath", json!("/dev/termination-log"));
    fill(container, "terminationMessagePolicy", json!("File"));
    for port in container["ports"].as_array_mut().into_iter().flatten() {
        fill(port, "protocol", json!("TCP"));
    }
    for variable in container["env"].as_array_mut().into_iter().flatten() {
        if variable["valueFrom"]["fieldRef"].is_object() {
            fill(&mut variable["valueFrom"]["fieldRef"], "apiVersion", json!("v1"));
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[probe].is_object() {
            default_probe(&mut container[probe]);
        }
    }
    for hook in ["postStart", "preStop"] {
        if container["lifecycle"][hook]["httpGet"].is_object() {
            default_http_get(&mut container["lifecycle"][hook]["httpGet"]);
        }
    }
}

fn default_probe(probe: &mut Value) {
    fill(probe, "timeoutSeconds", json!(1));
    fill(probe, "periodSeconds", json!(10));
    fill(probe, "successThreshold", json!(1));
    fill(probe, "failureThreshold", json!(3));
    if probe["httpGet"].is_object() {
        default_http_get(&mut probe["httpGet"]);
    }
    if probe["grpc"].is_object() && probe["grpc"]["service"].is_null() {
        probe["grpc"]["service"] = json!("");
    }
}

fn default_http_get(action: &mut Value) {
    fill(action, "path", json!("/"));
    fill(action, "scheme", json!("HTTP"));
}

fn default_volume(volume: &mut Value) {
    let n_sources = volume.as_object().map_or(0, |fields| fields.len() - 1);
    if n_sources == 0 {
        volume["emptyDir"] = json!({});
    }
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        if volume[source].is_object() {
            fill(&mut volume[source], "defaultMode", json!(FILE_MODE));
        }
    }
    if volume["hostPath"].is_object() && volume["hostPath"]["type"].is_null() {
        volume["hostPath"]["type"] = json!("");
    }
    let projected = volume.get_mut("projected").and_then(|one| one.get_mut("sources"));
    let sources = projected.and_then(Value::as_array_mut);
    for source in sources.into_iter().flatten() {
        if source["serviceAccountToken"].is_object() {
            fill(&mut source["serviceAccountToken"], "expirationSeconds", json!(3600));
        }
    }
    if let Value::Object(fields) = volume {
        fields.retain(|_, value| !value.is_null());
    }
}

fn tag_of(image: &str) -> &str {
    let (name, digest) = image.split_once('@').map_or((image, ""), |(name, it)| (name, it));
    let last = name.rsplit('/').next().unwrap_or(name);
    match (last.split_once(':'), digest) {
        (Some((_, tag)), _) => tag,
        (None, "") => "latest",
        (None, _) => "",
    }
}

pub(crate) fn prepare_create(object: &mut Value) {
    first_generation(object);
    admit(&mut object["spec"]);
    object["status"] = json!({"phase": "Pending", "qosClass": qos_class(&object["spec"])});
    if object["spec"]["schedulingGates"].is_array() {
        object["status"]["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null,
            "lastTransitionTime": null,
        }]);
    }
}

/// Upstream: the admission plugins `Priority` and `DefaultTolerationSeconds`.
fn admit(spec: &mut Value) {
    fill(spec, "priority", json!(0));
    fill(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerates = |one: &Value| {
            (one["key"] == key || one["key"].is_null())
                && (one["effect"] == "NoExecute" || one["effect"].is_null())
        };
        if !tolerations.iter().any(tolerates) {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
    spec["tolerations"] = Value::Array(tolerations);
}

/// Upstream: `GetPodQOS`, for cpu and memory of containers.
fn qos_class(spec: &Value) -> &'static str {
    let containers = ["containers", "initContainers"]
        .iter()
        .flat_map(|field| spec[field].as_array().into_iter().flatten());
    let (mut any, mut all_limited) = (false, true);
    for container in containers {
        for name in ["cpu", "memory"] {
            let amount = |kind: &str| container["resources"][kind][name].clone();
            let (limit, request) = (amount("limits"), amount("requests"));
            any |= !limit.is_null() || !request.is_null();
            all_limited &= !limit.is_null() && limit == request;
        }
    }
    match (any, all_limited) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

pub(crate) fn prepare_update(new: &mut Value, old: &Value) {
    keep_old_status(new, old);
    if new["spec"] != old["spec"] {
        next_generation(new, old);
    }
}

pub(crate) fn prepare_status(new: &mut Value, old: &Value) {
    copy_field(new, old, "spec");
    copy_field(&mut new["metadata"], &old["metadata"], "ownerReferences");
    if new["status"]["qosClass"].is_null() {
        copy_field(&mut new["status"], &old["status"], "qosClass");
    }
}
