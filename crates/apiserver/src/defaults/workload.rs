//! Deployments and ReplicaSets.

use serde_json::{Value, json};

use super::{
    copy_field, fill, first_generation, keep_old_spec, keep_old_status, next_generation, pod,
};

pub(crate) fn default_deployment(object: &mut Value) {
    let spec = &mut object["spec"];
    default_replicas_and_template(spec);
    let strategy = &mut spec["strategy"];
    fill(strategy, "type", json!("RollingUpdate"));
    if strategy["type"] == "RollingUpdate" {
        fill(strategy, "rollingUpdate", json!({}));
        fill(&mut strategy["rollingUpdate"], "maxUnavailable", json!("25%"));
        fill(&mut strategy["rollingUpdate"], "maxSurge", json!("25%"));
    }
    fill(spec, "revisionHistoryLimit", json!(10));
    fill(spec, "progressDeadlineSeconds", json!(600));
}

pub(crate) fn default_replica_set(object: &mut Value) {
    default_replicas_and_template(&mut object["spec"]);
}

fn default_replicas_and_template(spec: &mut Value) {
    fill(spec, "replicas", json!(1));
    pod::default_spec(&mut spec["template"]["spec"]);
}

pub(crate) fn prepare_create(object: &mut Value) {
    first_generation(object);
    object["status"] = json!({});
}

pub(crate) fn prepare_deployment_update(new: &mut Value, old: &Value) {
    keep_old_status(new, old);
    let annotations = |object: &Value| object["metadata"]["annotations"].clone();
    if new["spec"] != old["spec"] || annotations(new) != annotations(old) {
        next_generation(new, old);
    }
}

pub(crate) fn prepare_replica_set_update(new: &mut Value, old: &Value) {
    keep_old_status(new, old);
    if new["spec"] != old["spec"] {
        next_generation(new, old);
    }
}

pub(crate) fn prepare_deployment_status(new: &mut Value, old: &Value) {
    keep_old_spec(new, old);
    copy_field(&mut new["metadata"], &old["metadata"], "labels");
}
