//! Validation errors (422), with the messages of upstream's `pkg/apis/*/validation`.

mod causes;
pub(crate) mod endpoints;
pub(crate) mod events;
pub(crate) mod meta;
pub(crate) mod names;
pub(crate) mod pod;
pub(crate) mod service;
pub(crate) mod slices;
pub(crate) mod workload;

pub(crate) use causes::Causes;

use serde_json::Value;

const CONFIG_BYTES_MAX: usize = 1 << 20;
pub(crate) const IMMUTABLE: &str = "field is immutable";

/// The items of an array; none for other values.
pub(crate) fn items(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    value.as_array().into_iter().flatten().enumerate()
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(crate) fn unchanged(new: &Value, old: &Value, path: &str, causes: &mut Causes) {
    if new != old {
        causes.invalid(path, new, IMMUTABLE);
    }
}

/// Upstream: `ValidateConfigMap`.
pub(crate) fn config_map(object: &Value, causes: &mut Causes) {
    let mut n_bytes = 0;
    for field in ["data", "binaryData"] {
        for (key, value) in object[field].as_object().into_iter().flatten() {
            for wrong in names::config_key(key) {
                causes.invalid(&format!("{field}[{key}]"), &Value::from(key.as_str()), &wrong);
            }
            n_bytes += text(value).len();
        }
    }
    if n_bytes > CONFIG_BYTES_MAX {
        causes.too_long("", CONFIG_BYTES_MAX);
    }
}

/// Upstream: `ValidateConfigMapUpdate`.
pub(crate) fn config_map_update(new: &Value, old: &Value, causes: &mut Causes) {
    if old["immutable"] != true {
        return;
    }
    if new["immutable"] != true {
        causes.forbidden("immutable", "field is immutable when `immutable` is set");
    }
    for field in ["data", "binaryData"] {
        if new[field] != old[field] {
            causes.forbidden(field, "field is immutable when `immutable` is set");
        }
    }
}

/// Upstream: `ValidateLeaseSpec`.
pub(crate) fn lease(object: &Value, causes: &mut Causes) {
    let spec = &object["spec"];
    if spec["leaseDurationSeconds"].as_i64().is_some_and(|secs| secs <= 0) {
        causes.invalid(
            "spec.leaseDurationSeconds",
            &spec["leaseDurationSeconds"],
            "must be greater than 0",
        );
    }
    if spec["leaseTransitions"].as_i64().is_some_and(|n| n < 0) {
        causes.invalid(
            "spec.leaseTransitions",
            &spec["leaseTransitions"],
            "must be greater than or equal to 0",
        );
    }
}
