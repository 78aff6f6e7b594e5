//! Writes of kubelets and of the node lifecycle controller about nodes.

use endpointd_apiserver::store::Key;
use endpointd_apiserver::{Server, StatusError, Target};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{edit, target, written};
use crate::cluster::of_node;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

fn node_target(node: &str) -> Target {
    target("", "nodes", &Key::new("", node))
}

/// The first report of a kubelet: addresses, conditions, and version.
pub(super) fn report(
    server: &mut Server,
    node: &str,
    number: u16,
    now: Timestamp,
) -> Result<(), StatusError> {
    let addresses = of_node(number).map(|ip| json!({"type": "InternalIP", "address": ip}));
    let mut addresses = addresses.to_vec();
    addresses.push(json!({"type": "Hostname", "address": node}));
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind, "status": status, "reason": reason,
            "lastHeartbeatTime": written(now), "lastTransitionTime": written(now),
        })
    };
    edit_node_status(server, node, |status| {
        status["addresses"] = json!(addresses);
        status["conditions"] = json!([
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID"),
            condition("Ready", "True", "KubeletReady"),
        ]);
        status["nodeInfo"] = node_info();
    })?;
    taint(server, node, None)
}

fn node_info() -> Value {
    let mut info = json!({"kubeletVersion": "v1.36.0-playground", "osImage": "playground"});
    for field in ["architecture", "bootID", "containerRuntimeVersion", "kernelVersion"] {
        info[field] = json!("");
    }
    for field in ["kubeProxyVersion", "machineID", "operatingSystem", "systemUUID"] {
        info[field] = json!("");
    }
    info
}

/// The node lifecycle controller marks an unreachable node.
pub(super) fn set_ready(
    server: &mut Server,
    node: &str,
    is_ready: bool,
) -> Result<(), StatusError> {
    let (word, reason) =
        if is_ready { ("True", "KubeletReady") } else { ("Unknown", "NodeStatusUnknown") };
    edit_node_status(server, node, |status| {
        let all = status["conditions"].as_array_mut().into_iter().flatten();
        for one in all.filter(|one| one["type"] == "Ready") {
            one["status"] = json!(word);
            one["reason"] = json!(reason);
        }
    })?;
    taint(server, node, (!is_ready).then_some(UNREACHABLE))
}

fn edit_node_status(
    server: &mut Server,
    node: &str,
    change: impl FnOnce(&mut Value),
) -> Result<(), StatusError> {
    super::edit_status(server, &node_target(node), |object| change(&mut object["status"]))
}

fn taint(server: &mut Server, node: &str, key: Option<&str>) -> Result<(), StatusError> {
    edit(server, &node_target(node), |object| {
        let mut taints = object["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.retain(|one| one["key"] != NOT_READY && one["key"] != UNREACHABLE);
        taints.extend(key.map(|key| json!({"key": key, "effect": "NoSchedule"})));
        object["spec"]["taints"] = Value::Array(taints);
    })
}
