//! Endpoints and EndpointSlices.

use serde_json::{Value, json};

use super::{fill, next_generation};

pub(crate) fn default_endpoints(object: &mut Value) {
    for subset in object["subsets"].as_array_mut().into_iter().flatten() {
        for port in subset["ports"].as_array_mut().into_iter().flatten() {
            fill(port, "protocol", json!("TCP"));
        }
    }
}

pub(crate) fn default_slice(object: &mut Value) {
    for port in object["ports"].as_array_mut().into_iter().flatten() {
        if port["name"].is_null() {
            port["name"] = json!("");
        }
        if port["protocol"].is_null() {
            port["protocol"] = json!("TCP");
        }
    }
}

/// A new generation when anything but metadata changed, or labels did.
pub(crate) fn prepare_slice_update(new: &mut Value, old: &Value) {
    let content =
        |object: &Value| ["addressType", "endpoints", "ports"].map(|field| object[field].clone());
    let labels = |object: &Value| object["metadata"]["labels"].clone();
    if content(new) != content(old) || labels(new) != labels(old) {
        next_generation(new, old);
    }
}
