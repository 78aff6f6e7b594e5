//! The subresources with types of their own: `scale` and `binding`.

use serde_json::{Value, json};

use super::create::{invalid_if_any, text};
use super::patch::PatchType;
use super::{ResponseObject, Target, WriteOptions, WriteOutcome};
use crate::patch;
use crate::schema::read::{read, seconds};
use crate::selectors::selector_text;
use crate::server::Server;
use crate::status_error::StatusError;
use crate::validation::{Causes, workload};

const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

impl Server {
    pub fn scale(&self, target: &Target) -> Result<Value, StatusError> {
        Ok(scale_of(&self.get(target)?.value()))
    }

    pub fn update_scale(
        &mut self,
        target: &Target,
        given: Value,
        options: &WriteOptions,
    ) -> Result<Value, StatusError> {
        let cannot = |why| {
            let sentence = "Scale in version \"v1\" cannot be handled as a Scale";
            StatusError::bad_request(format!("{sentence}: {why}"))
        };
        let scale = read(SCALE, given).map_err(cannot)?.object;
        let mut causes = Causes::default();
        workload::validate_scale(&scale, &mut causes);
        invalid_if_any(target.kind, &scale, causes)
            .map_err(|error| error.naming("autoscaling", "Scale"))?;
        let mut object = self.get(target)?.value();
        let version = text(&scale["metadata"]["resourceVersion"]);
        if !version.is_empty() && version != text(&object["metadata"]["resourceVersion"]) {
            return Err(StatusError::modified_since_read(target.kind, &target.name));
        }
        let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
        object["spec"]["replicas"] = json!(replicas);
        let outcome = self.update(target, object, options)?;
        Ok(scale_of(&outcome.object.value()))
    }

    pub fn patch_scale(
        &mut self,
        target: &Target,
        patch_type: PatchType,
        given: &Value,
        options: &WriteOptions,
    ) -> Result<Value, StatusError> {
        let changed = patch::apply(patch_type, self.scale(target)?, given, SCALE)?;
        self.update_scale(target, changed, options)
    }

    /// Assigns a pod to a node. Upstream: `assignPod` in core/pod/storage.
    pub fn bind(
        &mut self,
        target: &Target,
        binding: &Value,
        options: &WriteOptions,
    ) -> Result<WriteOutcome, StatusError> {
        let node = text(&binding["target"]["name"]);
        if node.is_empty() {
            let mut causes = Causes::default();
            causes.required("target.name", "");
            return Err(StatusError::invalid(target.kind, &target.name, causes.into_vec()));
        }
        let mut pod = self.get(target)?.value();
        if let Some(bound) = pod["spec"]["nodeName"].as_str() {
            let why = format!("pod {} is already assigned to node \"{bound}\"", target.name);
            return Err(
                StatusError::conflict(target.kind, &target.name, &why).naming("", "pods/binding")
            );
        }
        if pod["metadata"]["deletionTimestamp"].is_string() {
            let why = format!("pod {} is being deleted, cannot be assigned to a host", target.name);
            return Err(StatusError::conflict(target.kind, &target.name, &why));
        }
        pod["spec"]["nodeName"] = json!(node);
        let now = seconds(self.clock_and_ids.now());
        let scheduled = json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": now,
        });
        let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.retain(|one| one["type"] != "PodScheduled");
        conditions.push(scheduled);
        pod["status"]["conditions"] = Value::Array(conditions);
        if !options.dry_run {
            self.rewrite(target.kind, &target.key(), pod);
        }
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
        });
        Ok(WriteOutcome {
            object: ResponseObject::Value(status),
            is_new: true,
            warnings: Vec::new(),
        })
    }
}

/// Upstream: `scaleFromDeployment`.
fn scale_of(object: &Value) -> Value {
    let meta = &object["metadata"];
    let mut shown = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {},
        "spec": {},
        "status": {
            "replicas": object["status"]["replicas"].as_i64().unwrap_or(0),
            "selector": selector_text(&object["spec"]["selector"]),
        },
    });
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        shown["metadata"][field] = meta[field].clone();
    }
    let replicas = object["spec"]["replicas"].as_i64().unwrap_or(0);
    if replicas != 0 {
        shown["spec"]["replicas"] = json!(replicas);
    }
    shown
}
