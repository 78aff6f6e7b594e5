//! The workloads that create pods.

use endpointd_model::Labels;
use serde_json::Value;

use crate::fields::{self, text};
use crate::finding::ObjectName;
use crate::objects::Objects;

/// Kinds with a pod template.
pub const WORKLOADS: &[&str] =
    &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"];

const TEMPLATE_HASH: &str = "pod-template-hash";

/// The workload that a person edits: the Deployment of a pod's ReplicaSet, the CronJob of its Job.
pub fn owner(objects: &Objects, pod: &Value) -> Option<ObjectName> {
    let namespace = text(pod, "/metadata/namespace");
    let (kind, name) = controller_of(pod)?;
    let of_owner =
        objects.get(kind, namespace, name).and_then(controller_of).filter(|(kind, _)| {
            // Further owners, such as Rollouts, are named as they are.
            !kind.is_empty()
        });
    if let Some((kind, name)) = of_owner {
        return Some(ObjectName::new(kind, namespace, name));
    }
    // ReplicaSets of Deployments may not have been read; their names end with the hash.
    let labels = fields::labels(pod, "/metadata/labels");
    let deployment = labels
        .get(TEMPLATE_HASH)
        .filter(|_| kind == "ReplicaSet" && objects.get(kind, namespace, name).is_none())
        .and_then(|hash| name.strip_suffix(hash.as_ref())?.strip_suffix('-'));
    Some(match deployment {
        Some(deployment) => ObjectName::new("Deployment", namespace, deployment),
        None => ObjectName::new(kind, namespace, name),
    })
}

/// Kind and name of the owner that is marked as the controller.
fn controller_of(object: &Value) -> Option<(&str, &str)> {
    let owners = fields::list(object, "/metadata/ownerReferences");
    let owner = owners.iter().find(|owner| fields::is_true(owner, "/controller"))?;
    Some((text(owner, "/kind"), text(owner, "/name")))
}

/// Where a workload keeps the labels of its pods.
fn template_pointer(kind: &str) -> &'static str {
    match kind {
        "CronJob" => "/spec/jobTemplate/spec/template/metadata/labels",
        _ => "/spec/template/metadata/labels",
    }
}

pub fn template_labels(workload: &Value) -> Labels {
    fields::labels(workload, template_pointer(fields::kind(workload)))
}

/// The workloads of a namespace that no other workload controls.
pub fn workloads<'a>(
    objects: &'a Objects,
    namespace: &'a str,
) -> impl Iterator<Item = (ObjectName, &'a Value)> {
    WORKLOADS.iter().flat_map(move |kind| {
        let top = objects.of_kind(kind, namespace).filter(|one| controller_of(one).is_none());
        top.map(|one| (ObjectName::new(kind, namespace, fields::name(one)), one))
    })
}

/// What decides the number of a workload's pods, if it is not a person: an autoscaler.
pub fn autoscaler(objects: &Objects, workload: &ObjectName) -> Option<String> {
    let mut scalers = objects.of_kind("HorizontalPodAutoscaler", &workload.namespace);
    let scaler = scalers.find(|one| {
        let target = &one["spec"]["scaleTargetRef"];
        text(target, "/kind") == workload.kind && text(target, "/name") == workload.name
    })?;
    Some(format!("HorizontalPodAutoscaler {}", fields::name(scaler)))
}
