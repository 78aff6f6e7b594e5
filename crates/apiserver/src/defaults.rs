//! Fields that the server sets or removes: upstream's `SetDefaults_*`, `PrepareFor*`, and mutating
//! admission plugins.

pub(crate) mod allocation;
pub(crate) mod endpoints;
pub(crate) mod events;
pub(crate) mod node;
pub(crate) mod pod;
pub(crate) mod service;
pub(crate) mod workload;

use serde_json::{Value, json};

/// Sets a field that is absent, null, or an empty string.
pub(crate) fn fill(object: &mut Value, field: &str, value: Value) {
    if object[field].is_null() || object[field] == "" {
        object[field] = value;
    }
}

/// Copies a field of `old` to `new`, or removes it if `old` has none.
pub(crate) fn copy_field(new: &mut Value, old: &Value, field: &str) {
    match old.get(field) {
        Some(value) => new[field] = value.clone(),
        None => remove(new, field),
    }
}

pub(crate) fn remove(object: &mut Value, field: &str) {
    if let Value::Object(fields) = object {
        fields.remove(field);
    }
}

pub(crate) fn keep_old_status(new: &mut Value, old: &Value) {
    copy_field(new, old, "status");
}

pub(crate) fn keep_old_spec(new: &mut Value, old: &Value) {
    copy_field(new, old, "spec");
}

pub(crate) fn first_generation(object: &mut Value) {
    object["metadata"]["generation"] = json!(1);
}

pub(crate) fn next_generation(new: &mut Value, old: &Value) {
    let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
    new["metadata"]["generation"] = json!(generation + 1);
}

/// A new custom resource has no status: only writes of the status change it.
pub(crate) fn prepare_custom_resource(object: &mut Value) {
    first_generation(object);
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
}

pub(crate) fn prepare_custom_resource_update(new: &mut Value, old: &Value) {
    keep_old_status(new, old);
    match new["spec"] == old["spec"] {
        true => new["metadata"]["generation"] = old["metadata"]["generation"].clone(),
        false => next_generation(new, old),
    }
}

/// Every namespace has its name as a label.
pub(crate) fn namespace(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    if name.as_str().is_some_and(|name| !name.is_empty()) {
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
    }
}

pub(crate) fn prepare_namespace(object: &mut Value) {
    object["status"] = json!({"phase": "Active"});
    let finalizers = object["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.contains(&json!("kubernetes")) {
        let all: Vec<Value> = finalizers.into_iter().chain([json!("kubernetes")]).collect();
        object["spec"]["finalizers"] = Value::Array(all);
    }
    namespace(object); // A generated name is known only now.
}

pub(crate) fn prepare_namespace_update(new: &mut Value, old: &Value) {
    new["spec"] = old["spec"].clone();
    keep_old_status(new, old);
}

/// Fields of a feature that is off by default. Upstream: `CoordinatedLeaderElection`.
pub(crate) fn prepare_lease(object: &mut Value) {
    remove(&mut object["spec"], "strategy");
    remove(&mut object["spec"], "preferredHolder");
}
