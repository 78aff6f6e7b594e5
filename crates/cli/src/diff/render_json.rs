//! The differences as JSON.

use endpointd_model::DeleteTarget;
use endpointd_wire::to_json_value;
use serde_json::{Value, json};

use super::compared::{Compared, ComparedWrite, Difference};
use super::render_text::verdict;
use crate::plan::controller_label;

/// The version of this form; a field never changes its meaning.
const FORMAT_VERSION: &str = "1.0";

pub fn value(compared: &Compared) -> Value {
    json!({
        "formatVersion": FORMAT_VERSION,
        "verdict": verdict(compared),
        "keys": compared.n_keys,
        "differences": compared.differences.iter().map(difference).collect::<Vec<_>>(),
        "leftBehind": compared.left_behind.iter().map(left_behind).collect::<Vec<_>>(),
    })
}

fn left_behind(target: &DeleteTarget) -> Value {
    let DeleteTarget { resource, key, .. } = target;
    json!({"resource": resource.as_str(), "namespace": &*key.namespace, "name": &*key.name})
}

fn difference(one: &Difference) -> Value {
    json!({
        "key": one.key.to_string(),
        "controller": controller_label(one.controller),
        "writes": one.writes.iter().map(write).collect::<Vec<_>>(),
    })
}

fn write(ComparedWrite { write, before, changes }: &ComparedWrite) -> Value {
    json!({
        "verb": write.verb(),
        "resource": write.resource().as_str(),
        "name": &*write.key().name,
        "before": before.as_ref().map(to_json_value),
        "after": write.object().map(to_json_value),
        "changes": changes.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
