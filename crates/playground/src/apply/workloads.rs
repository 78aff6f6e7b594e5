//! Writes of the Deployment and ReplicaSet controllers.

use endpointd_apiserver::store::Key;
use endpointd_apiserver::{Server, StatusError, Target};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{create, edit, edit_status, target, written};
use crate::cluster::facts::{HASH_LABEL, REVISION_ANNOTATION, SetStatus};

pub(super) fn create_pod(
    server: &mut Server,
    replica_set: &Key,
    name: &str,
) -> Result<(), StatusError> {
    let owner = server.get(&target("apps", "replicasets", replica_set))?.value();
    let template = &owner["spec"]["template"];
    let mut meta = template["metadata"].clone();
    meta["name"] = json!(name);
    meta["ownerReferences"] = json!([owner_reference("ReplicaSet", &owner)]);
    let pod = json!({"metadata": meta, "spec": template["spec"]});
    create(server, "", "pods", replica_set.namespace(), pod)
}

fn owner_reference(kind: &str, owner: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "controller": true, "blockOwnerDeletion": true,
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    })
}

pub(super) fn update_replica_set_status(
    server: &mut Server,
    replica_set: &Key,
    status: SetStatus,
) -> Result<(), StatusError> {
    edit_status(server, &target("apps", "replicasets", replica_set), |set| {
        set["status"] = json!({
            "observedGeneration": status.observed_generation,
            "replicas": status.replicas,
            "fullyLabeledReplicas": status.replicas,
            "readyReplicas": status.ready_replicas,
            "availableReplicas": status.available_replicas,
        });
    })
}

pub(super) fn create_replica_set(
    server: &mut Server,
    deployment: &Key,
    hash: &str,
    n_replicas: usize,
    revision: u64,
) -> Result<(), StatusError> {
    let owner = server.get(&target("apps", "deployments", deployment))?.value();
    let mut spec = json!({
        "replicas": n_replicas,
        "selector": owner["spec"]["selector"],
        "template": owner["spec"]["template"],
    });
    spec["selector"]["matchLabels"][HASH_LABEL] = json!(hash);
    spec["template"]["metadata"]["labels"][HASH_LABEL] = json!(hash);
    let set = json!({
        "metadata": {
            "name": format!("{}-{hash}", deployment.name()),
            "labels": spec["template"]["metadata"]["labels"],
            "annotations": {REVISION_ANNOTATION: revision.to_string()},
            "ownerReferences": [owner_reference("Deployment", &owner)],
        },
        "spec": spec,
    });
    create(server, "apps", "replicasets", deployment.namespace(), set)
}

/// `kubectl rollout history` reads this annotation.
pub(super) fn set_revision(
    server: &mut Server,
    target: &Target,
    revision: u64,
) -> Result<(), StatusError> {
    edit(server, target, |set| {
        set["metadata"]["annotations"][REVISION_ANNOTATION] = json!(revision.to_string());
    })
}

pub(super) fn update_deployment_status(
    server: &mut Server,
    deployment: &Key,
    status: SetStatus,
    is_available: bool,
    now: Timestamp,
) -> Result<(), StatusError> {
    edit_status(server, &target("apps", "deployments", deployment), |object| {
        let n_wanted = object["spec"]["replicas"].as_u64().unwrap_or(0);
        let n_wanted = usize::try_from(n_wanted).unwrap_or(usize::MAX);
        let is_complete = [status.updated_replicas, status.replicas, status.available_replicas]
            .iter()
            .all(|n| *n == n_wanted);
        let available = match is_available {
            true => ("Available", "True", "MinimumReplicasAvailable"),
            false => ("Available", "False", "MinimumReplicasUnavailable"),
        };
        let progress = match is_complete {
            true => ("Progressing", "True", "NewReplicaSetAvailable"),
            false => ("Progressing", "True", "ReplicaSetUpdated"),
        };
        let condition = |(kind, word, reason): (&str, &str, &str)| {
            json!({
                "type": kind, "status": word, "reason": reason,
                "lastUpdateTime": written(now), "lastTransitionTime": written(now),
            })
        };
        object["status"] = json!({
            "observedGeneration": status.observed_generation,
            "replicas": status.replicas,
            "updatedReplicas": status.updated_replicas,
            "readyReplicas": status.ready_replicas,
            "availableReplicas": status.available_replicas,
            "unavailableReplicas": n_wanted.saturating_sub(status.available_replicas),
            "conditions": [condition(available), condition(progress)],
        });
    })
}
