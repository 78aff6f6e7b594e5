//! Nodes.

use serde_json::{Value, json};

pub(crate) fn default_node(object: &mut Value) {
    let status = &mut object["status"];
    if status["allocatable"].is_null() && !status["capacity"].is_null() {
        status["allocatable"] = status["capacity"].clone();
    }
}

/// A new node has the not-ready taint. Upstream: admission plugin
/// `TaintNodesByCondition`.
pub(crate) fn prepare_create(object: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let mut taints = object["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let is_there = |one: &Value| one["key"] == taint["key"] && one["effect"] == taint["effect"];
    if !taints.iter().any(is_there) {
        taints.push(taint);
    }
    object["spec"]["taints"] = Value::Array(taints);
}
