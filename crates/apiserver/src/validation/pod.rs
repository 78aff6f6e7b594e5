//! Pods and pod templates. Upstream validates every field; this validates names, containers, ports,
//! and the immutable fields.

use serde_json::{Value, json};

use super::{Causes, items, names, text};

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];

pub(crate) fn validate(object: &Value, causes: &mut Causes) {
    validate_spec(&object["spec"], "spec", causes);
}

pub(crate) fn validate_spec(spec: &Value, path: &str, causes: &mut Causes) {
    if spec["containers"].is_null() {
        causes.required(&format!("{path}.containers"), "");
    }
    let mut seen: Vec<&str> = Vec::new();
    for field in ["containers", "initContainers"] {
        for (index, container) in items(&spec[field]) {
            let field_path = format!("{path}.{field}[{index}]");
            let name = text(&container["name"]);
            if !name.is_empty() && seen.contains(&name) {
                causes.duplicate(&format!("{field_path}.name"), &container["name"]);
            }
            seen.push(name);
            validate_container(container, &field_path, causes);
        }
    }
    let policy = &spec["restartPolicy"];
    if !RESTART_POLICIES.contains(&text(policy)) {
        causes.not_supported(&format!("{path}.restartPolicy"), policy, &RESTART_POLICIES);
    }
    let grace = &spec["terminationGracePeriodSeconds"];
    if grace.as_i64().is_some_and(|secs| secs < 0) {
        let field_path = format!("{path}.terminationGracePeriodSeconds");
        causes.invalid(&field_path, grace, "must be greater than or equal to 0");
    }
    if let Some(node) = spec["nodeName"].as_str() {
        for wrong in names::subdomain(node) {
            causes.invalid_text(&format!("{path}.nodeName"), node, &wrong);
        }
    }
    for field in ["hostname", "subdomain"] {
        if let Some(name) = spec[field].as_str() {
            for wrong in names::label(name) {
                causes.invalid_text(&format!("{path}.{field}"), name, &wrong);
            }
        }
    }
}

fn validate_container(container: &Value, path: &str, causes: &mut Causes) {
    match text(&container["name"]) {
        "" => causes.required(&format!("{path}.name"), ""),
        name => {
            for wrong in names::label(name) {
                causes.invalid_text(&format!("{path}.name"), name, &wrong);
            }
        }
    }
    match container["image"].as_str() {
        None | Some("") => causes.required(&format!("{path}.image"), ""),
        Some(image) if image.trim() != image => {
            let why = "must not have leading or trailing whitespace";
            causes.invalid_text(&format!("{path}.image"), image, why);
        }
        Some(_) => {}
    }
    let policy = &container["imagePullPolicy"];
    if !PULL_POLICIES.contains(&text(policy)) {
        causes.not_supported(&format!("{path}.imagePullPolicy"), policy, &PULL_POLICIES);
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, port) in items(&container["ports"]) {
        let field_path = format!("{path}.ports[{index}]");
        let name = text(&port["name"]);
        if !name.is_empty() {
            for wrong in names::port_name(name) {
                causes.invalid_text(&format!("{field_path}.name"), name, wrong);
            }
            if seen.contains(&name) {
                causes.duplicate(&format!("{field_path}.name"), &port["name"]);
            }
            seen.push(name);
        }
        let number = port["containerPort"].as_i64().unwrap_or_default();
        if number == 0 {
            causes.required(&format!("{field_path}.containerPort"), "");
        } else if let Some(wrong) = names::port_number(number) {
            causes.invalid(&format!("{field_path}.containerPort"), &json!(number), wrong);
        }
        let protocol = &port["protocol"];
        if !PROTOCOLS.contains(&text(protocol)) {
            causes.not_supported(&format!("{field_path}.protocol"), protocol, &PROTOCOLS);
        }
    }
}

/// In a pod's spec only images, deadlines, tolerations, and scheduling gates may change. Upstream:
/// `ValidatePodUpdate`.
pub(crate) fn validate_update(new: &Value, old: &Value, causes: &mut Causes) {
    let mut allowed = new["spec"].clone();
    for field in ["containers", "initContainers"] {
        let n_old = items(&old["spec"][field]).count();
        if items(&new["spec"][field]).count() != n_old {
            let why = "pod updates may not add or remove containers";
            causes.forbidden(&format!("spec.{field}"), why);
            return;
        }
        for index in 0..n_old {
            if new["spec"][field][index]["image"].is_null() {
                causes.required(&format!("spec.{field}[{index}].image"), "");
            }
            allowed[field][index]["image"] = old["spec"][field][index]["image"].clone();
        }
    }
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        allowed[field] = old["spec"][field].clone();
    }
    if old["spec"]["terminationGracePeriodSeconds"].as_i64().is_some_and(|secs| secs < 0) {
        allowed["terminationGracePeriodSeconds"] = json!(1);
    }
    let mut before = old["spec"].clone();
    for spec in [&mut allowed, &mut before] {
        if let Value::Object(fields) = spec {
            fields.retain(|_, value| !value.is_null());
        }
    }
    if allowed != before {
        let why = "pod updates may not change fields other than \
            `spec.containers[*].image`,`spec.initContainers[*].image`,\
            `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
            tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
            previously negative)";
        causes.forbidden("spec", why);
    }
}
