//! Deployments and ReplicaSets. Upstream: pkg/apis/apps/validation.

use serde_json::Value;

use super::{Causes, meta, names, pod, text, unchanged};
use crate::selectors::matches_label_selector;

pub(crate) fn validate_deployment(object: &Value, causes: &mut Causes) {
    let spec = &object["spec"];
    not_negative(spec, "replicas", causes);
    selector_and_template(spec, causes);
    strategy(&spec["strategy"], causes);
    not_negative(spec, "minReadySeconds", causes);
    not_negative(spec, "revisionHistoryLimit", causes);
    not_negative(spec, "progressDeadlineSeconds", causes);
    let secs = |field: &str| spec[field].as_i64().unwrap_or_default();
    if spec["progressDeadlineSeconds"].is_number()
        && secs("progressDeadlineSeconds") <= secs("minReadySeconds")
    {
        let path = "spec.progressDeadlineSeconds";
        let why = "must be greater than minReadySeconds";
        causes.invalid(path, &spec["progressDeadlineSeconds"], why);
    }
}

pub(crate) fn validate_replica_set(object: &Value, causes: &mut Causes) {
    let spec = &object["spec"];
    not_negative(spec, "replicas", causes);
    not_negative(spec, "minReadySeconds", causes);
    selector_and_template(spec, causes);
}

pub(crate) fn validate_update(new: &Value, old: &Value, causes: &mut Causes) {
    if new["spec"]["strategy"].is_object() {
        validate_deployment(new, causes);
    } else {
        validate_replica_set(new, causes);
    }
    unchanged(&new["spec"]["selector"], &old["spec"]["selector"], "spec.selector", causes);
}

fn not_negative(spec: &Value, field: &str, causes: &mut Causes) {
    if spec[field].as_i64().is_some_and(|n| n < 0) {
        let why = "must be greater than or equal to 0";
        causes.invalid(&format!("spec.{field}"), &spec[field], why);
    }
}

fn selector_and_template(spec: &Value, causes: &mut Causes) {
    let selector = &spec["selector"];
    let is_empty = selector["matchLabels"].is_null() && selector["matchExpressions"].is_null();
    if selector.is_null() {
        causes.required("spec.selector", "");
    } else {
        meta::labels(&selector["matchLabels"], "spec.selector.matchLabels", causes);
        if is_empty {
            let why = "empty selector is invalid for deployment";
            causes.invalid("spec.selector", selector, why);
        }
    }
    let template = &spec["template"];
    let labels = &template["metadata"]["labels"];
    // A missing selector selects nothing, an empty one everything.
    let matches = !selector.is_null() && (is_empty || matches_label_selector(selector, labels));
    if !matches {
        let why = "`selector` does not match template `labels`";
        causes.invalid("spec.template.metadata.labels", labels, why);
    }
    meta::labels(labels, "spec.template.labels", causes);
    pod::validate_spec(&template["spec"], "spec.template.spec", causes);
    let policy = &template["spec"]["restartPolicy"];
    if policy != "Always" {
        causes.not_supported("spec.template.spec.restartPolicy", policy, &["Always"]);
    }
}

fn strategy(strategy: &Value, causes: &mut Causes) {
    const TYPES: [&str; 2] = ["Recreate", "RollingUpdate"];
    let path = "spec.strategy";
    match text(&strategy["type"]) {
        "Recreate" if !strategy["rollingUpdate"].is_null() => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            causes.forbidden(&format!("{path}.rollingUpdate"), why);
        }
        "Recreate" => {}
        "RollingUpdate" => rolling_update(&strategy["rollingUpdate"], causes),
        _ => causes.not_supported(path, &strategy["type"], &TYPES),
    }
}

fn rolling_update(rolling: &Value, causes: &mut Causes) {
    let path = "spec.strategy.rollingUpdate";
    let mut is_zero = [false; 2];
    for (index, field) in ["maxUnavailable", "maxSurge"].into_iter().enumerate() {
        let value = &rolling[field];
        let field_path = format!("{path}.{field}");
        match value {
            Value::String(text) => match text.strip_suffix('%').map(str::parse::<u32>) {
                Some(Ok(percent)) => is_zero[index] = percent == 0,
                _ => {
                    let why = "a valid percent string must be a numeric string followed by an \
                        ending '%' (e.g. '1%',  or '93%', regex used for validation is \
                        '[0-9]+%')";
                    causes.invalid(&field_path, value, why);
                }
            },
            number => {
                let number = number.as_i64().unwrap_or_default();
                is_zero[index] = number == 0;
                if number < 0 {
                    causes.invalid(&field_path, value, "must be greater than or equal to 0");
                }
            }
        }
    }
    if is_zero == [true; 2] {
        let field_path = format!("{path}.maxUnavailable");
        causes.invalid(
            &field_path,
            &rolling["maxUnavailable"],
            "may not be 0 when `maxSurge` is 0",
        );
    }
}

/// The `Scale` subresource: only the number of replicas.
pub(crate) fn validate_scale(scale: &Value, causes: &mut Causes) {
    not_negative(&scale["spec"], "replicas", causes);
    for wrong in names::subdomain(text(&scale["metadata"]["name"])) {
        causes.invalid("metadata.name", &scale["metadata"]["name"], &wrong);
    }
}
