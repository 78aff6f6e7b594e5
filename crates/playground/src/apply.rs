//! Applies the actions of the fake controllers and of scenarios to the API server.

mod nodes;
mod pods;
mod workloads;

use endpointd_apiserver::store::Key;
use endpointd_apiserver::{
    DeleteOptions, Kind, Propagation, Server, StatusError, Target, WriteOptions, kinds,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::{Cluster, ControllerAction};
use crate::cluster_spec::{self, CONSUMER_NAMESPACE, ClusterSpec, NAMESPACE};
use crate::scenario::ScenarioAction;

/// A kind that the playground writes.
fn kind(group: &str, resource: &str) -> &'static Kind {
    kinds::find(group, resource).expect("the API server has this kind")
}

fn target(group: &str, resource: &str, key: &Key) -> Target {
    Target::object(kind(group, resource), key.namespace(), key.name())
}

pub fn controller_action(
    server: &mut Server,
    action: &ControllerAction,
    now: Timestamp,
) -> Result<(), StatusError> {
    match action {
        ControllerAction::ReportNode { node, number } => nodes::report(server, node, *number, now),
        ControllerAction::Bind { pod, node } => pods::bind(server, pod, node),
        ControllerAction::MarkUnschedulable { pod } => pods::mark_unschedulable(server, pod, now),
        ControllerAction::Start { pod, ips, host_ips, is_ready } => {
            let started = pods::Started { ips, host_ips, is_ready: *is_ready };
            pods::start(server, pod, &started, now)
        }
        ControllerAction::SetReady { pod, is_ready } => {
            pods::set_ready(server, pod, *is_ready, now)
        }
        ControllerAction::Remove { pod, uid } => {
            let uid = Some(uid.clone());
            let options = DeleteOptions { grace_secs: Some(0), uid, ..DeleteOptions::default() };
            delete(server, &target("", "pods", pod), &options)
        }
        ControllerAction::DeletePod { pod } => {
            delete(server, &target("", "pods", pod), &DeleteOptions::default())
        }
        ControllerAction::CreatePod { replica_set, name } => {
            workloads::create_pod(server, replica_set, name)
        }
        ControllerAction::UpdateReplicaSetStatus { replica_set, status } => {
            workloads::update_replica_set_status(server, replica_set, *status)
        }
        ControllerAction::CreateReplicaSet { deployment, hash, n_replicas, revision } => {
            workloads::create_replica_set(server, deployment, hash, *n_replicas, *revision)
        }
        ControllerAction::ScaleReplicaSet { replica_set, n_replicas } => {
            let target = target("apps", "replicasets", replica_set);
            edit(server, &target, |set| set["spec"]["replicas"] = json!(n_replicas))
        }
        ControllerAction::SetReplicaSetRevision { replica_set, revision } => {
            workloads::set_revision(server, &target("apps", "replicasets", replica_set), *revision)
        }
        ControllerAction::SetDeploymentRevision { deployment, revision } => {
            workloads::set_revision(server, &target("apps", "deployments", deployment), *revision)
        }
        ControllerAction::DeleteReplicaSet { replica_set } => {
            let propagation = Some(Propagation::Background);
            let options = DeleteOptions { propagation, ..DeleteOptions::default() };
            delete(server, &target("apps", "replicasets", replica_set), &options)
        }
        ControllerAction::UpdateDeploymentStatus { deployment, status, is_available } => {
            workloads::update_deployment_status(server, deployment, *status, *is_available, now)
        }
    }
}

/// Creates the initial objects.
pub fn create_objects(
    server: &mut Server,
    spec: &ClusterSpec,
    exports: &[&str],
) -> Result<(), StatusError> {
    create(server, "", "namespaces", "", cluster_spec::namespace())?;
    for node in &spec.nodes {
        create(server, "", "nodes", "", cluster_spec::node(node))?;
    }
    for plan in &spec.services {
        create(server, "", "services", NAMESPACE, cluster_spec::service(plan))?;
        if plan.kind == cluster_spec::ServiceKind::Manual {
            create(server, "", "endpoints", NAMESPACE, cluster_spec::manual_endpoints(plan))?;
        }
        if plan.n_replicas > 0 {
            create(server, "apps", "deployments", NAMESPACE, cluster_spec::deployment(plan))?;
        }
    }
    for plan in spec.services.iter().filter(|plan| exports.contains(&plan.name.as_str())) {
        let export = json!({"metadata": {"name": plan.name}});
        create(server, "multicluster.x-k8s.io", "serviceexports", NAMESPACE, export)?;
    }
    if spec.source().is_some() {
        create(server, "", "namespaces", "", cluster_spec::consumer_namespace())?;
        create(server, "", "services", CONSUMER_NAMESPACE, cluster_spec::consumer())?;
    }
    Ok(())
}

/// Applies an action of a scenario, as a user would with kubectl.
pub fn scenario_action(
    server: &mut Server,
    cluster: &Cluster,
    action: &ScenarioAction,
) -> Result<(), StatusError> {
    let key = |name: &str| Key::new(NAMESPACE, name);
    let deployment = |name: &str| target("apps", "deployments", &key(name));
    match action {
        ScenarioAction::Scale { deployment: name, n_replicas } => {
            edit(server, &deployment(name), |it| it["spec"]["replicas"] = json!(n_replicas))
        }
        ScenarioAction::NewImage { deployment: name, version } => {
            let image = json!(cluster_spec::image(name, *version));
            edit(server, &deployment(name), |it| {
                it["spec"]["template"]["spec"]["containers"][0]["image"] = image;
            })
        }
        ScenarioAction::FailProbes { deployment: name, n_pods } => {
            let pods = cluster.pods_of(&key(name));
            pods::fail_probes(server, &pods, *n_pods)
        }
        ScenarioAction::StopNode { node } => nodes::set_ready(server, node, false),
        ScenarioAction::StartNode { node } => nodes::set_ready(server, node, true),
        ScenarioAction::DeleteNode { node } => {
            delete(server, &target("", "nodes", &Key::new("", node)), &DeleteOptions::default())
        }
        ScenarioAction::SetConsent { service, to } => {
            let service = target("", "services", &key(service));
            edit(server, &service, |it| {
                it["metadata"]["annotations"]["endpointd/endpoints-to"] = json!(to);
            })
        }
        // The server does it, not one of its objects.
        ScenarioAction::SetOutage { .. } => Ok(()),
        ScenarioAction::AddNode(plan) => create(server, "", "nodes", "", cluster_spec::node(plan)),
    }
}

fn create(
    server: &mut Server,
    group: &str,
    resource: &str,
    namespace: &str,
    object: Value,
) -> Result<(), StatusError> {
    let target = Target::collection(kind(group, resource), namespace);
    server.create(&target, object, &WriteOptions::default()).map(drop)
}

fn edit(
    server: &mut Server,
    target: &Target,
    change: impl FnOnce(&mut Value),
) -> Result<(), StatusError> {
    let object = edited(server, target, change)?;
    server.update(target, object, &WriteOptions::default()).map(drop)
}

fn edit_status(
    server: &mut Server,
    target: &Target,
    change: impl FnOnce(&mut Value),
) -> Result<(), StatusError> {
    let object = edited(server, target, change)?;
    server.update_status(target, object, &WriteOptions::default()).map(drop)
}

fn edited(
    server: &Server,
    target: &Target,
    change: impl FnOnce(&mut Value),
) -> Result<Value, StatusError> {
    let mut object = server.get(target)?.value();
    change(&mut object);
    Ok(object)
}

/// An object that does not exist counts as deleted.
fn delete(
    server: &mut Server,
    target: &Target,
    options: &DeleteOptions,
) -> Result<(), StatusError> {
    match server.delete(target, options) {
        Ok(_) => Ok(()),
        Err(error) if error.code == 404 => Ok(()),
        Err(error) => Err(error),
    }
}

/// Times in the API have a resolution of one second.
fn written(now: Timestamp) -> Value {
    json!(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Sets a condition; `lastTransitionTime` changes only with the status.
fn set_condition(status: &mut Value, kind: &str, holds: bool, now: Timestamp) {
    let word = if holds { "True" } else { "False" };
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let all = status["conditions"].as_array_mut().expect("it is an array now");
    let new = json!({
        "type": kind, "status": word, "lastProbeTime": null, "lastTransitionTime": written(now),
    });
    match all.iter_mut().find(|one| one["type"] == kind) {
        Some(one) if one["status"] == word => {}
        Some(one) => *one = new,
        None => all.push(new),
    }
}
