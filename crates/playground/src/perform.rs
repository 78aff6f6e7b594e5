//! Carries out on the API server what the stand-ins decided, and what a story asks for.

mod nodes;
mod pods;
mod workloads;

use endpointd_apiserver::store::Key;
use endpointd_apiserver::{
    DeleteOptions, Kind, Propagation, Refusal, Server, Target, WriteOptions, kinds,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::{Act, Cluster};
use crate::story::Move;
use crate::world::{self, NAMESPACE, World};

/// One of the kinds the playground writes.
fn kind(group: &str, resource: &str) -> &'static Kind {
    kinds::find(group, resource).expect("the API server has this kind")
}

fn target(group: &str, resource: &str, key: &Key) -> Target {
    Target::object(kind(group, resource), key.namespace(), key.name())
}

pub fn act(server: &mut Server, act: &Act, now: Timestamp) -> Result<(), Refusal> {
    match act {
        Act::ReportNode { node, number } => nodes::report(server, node, *number, now),
        Act::Bind { pod, node } => pods::bind(server, pod, node),
        Act::TellUnschedulable { pod } => pods::tell_unschedulable(server, pod, now),
        Act::Start { pod, ips, host_ips, is_ready } => {
            let started = pods::Started { ips, host_ips, is_ready: *is_ready };
            pods::start(server, pod, &started, now)
        }
        Act::SetReady { pod, is_ready } => pods::set_ready(server, pod, *is_ready, now),
        Act::Remove { pod, uid } => {
            let uid = Some(uid.clone());
            let options = DeleteOptions { grace_secs: Some(0), uid, ..DeleteOptions::default() };
            delete(server, &target("", "pods", pod), &options)
        }
        Act::DeletePod { pod } => {
            delete(server, &target("", "pods", pod), &DeleteOptions::default())
        }
        Act::CreatePod { replica_set, name } => workloads::create_pod(server, replica_set, name),
        Act::TellReplicaSet { replica_set, status } => {
            workloads::tell_replica_set(server, replica_set, *status)
        }
        Act::CreateReplicaSet { deployment, hash, n_replicas, revision } => {
            workloads::create_replica_set(server, deployment, hash, *n_replicas, *revision)
        }
        Act::ScaleReplicaSet { replica_set, n_replicas } => {
            let target = target("apps", "replicasets", replica_set);
            edit(server, &target, |set| set["spec"]["replicas"] = json!(n_replicas))
        }
        Act::NumberReplicaSet { replica_set, revision } => {
            workloads::number(server, &target("apps", "replicasets", replica_set), *revision)
        }
        Act::NumberDeployment { deployment, revision } => {
            workloads::number(server, &target("apps", "deployments", deployment), *revision)
        }
        Act::DeleteReplicaSet { replica_set } => {
            let propagation = Some(Propagation::Background);
            let options = DeleteOptions { propagation, ..DeleteOptions::default() };
            delete(server, &target("apps", "replicasets", replica_set), &options)
        }
        Act::TellDeployment { deployment, status, is_available } => {
            workloads::tell_deployment(server, deployment, *status, *is_available, now)
        }
    }
}

/// What the world begins with.
pub fn create_world(server: &mut Server, world: &World) -> Result<(), Refusal> {
    create(server, "", "namespaces", "", world::namespace())?;
    for node in &world.nodes {
        create(server, "", "nodes", "", world::node(node))?;
    }
    for plan in &world.services {
        create(server, "", "services", NAMESPACE, world::service(plan))?;
        if plan.flavour == world::Flavour::Manual {
            create(server, "", "endpoints", NAMESPACE, world::manual_endpoints(plan))?;
        }
        if plan.n_replicas > 0 {
            create(server, "apps", "deployments", NAMESPACE, world::deployment(plan))?;
        }
    }
    Ok(())
}

/// What a story asks for, as a person would do it with kubectl.
pub fn make(server: &mut Server, cluster: &Cluster, made: &Move) -> Result<(), Refusal> {
    let key = |name: &str| Key::new(NAMESPACE, name);
    let deployment = |name: &str| target("apps", "deployments", &key(name));
    match made {
        Move::Scale { deployment: name, n_replicas } => {
            edit(server, &deployment(name), |it| it["spec"]["replicas"] = json!(n_replicas))
        }
        Move::NewImage { deployment: name, version } => {
            let image = json!(world::image(name, *version));
            edit(server, &deployment(name), |it| {
                it["spec"]["template"]["spec"]["containers"][0]["image"] = image;
            })
        }
        Move::FailProbes { deployment: name, n_pods } => {
            let pods = cluster.pods_of(&key(name));
            pods::fail_probes(server, &pods, *n_pods)
        }
        Move::StopNode { node } => nodes::set_ready(server, node, false),
        Move::StartNode { node } => nodes::set_ready(server, node, true),
        Move::DeleteNode { node } => {
            delete(server, &target("", "nodes", &Key::new("", node)), &DeleteOptions::default())
        }
        Move::AddNode(plan) => create(server, "", "nodes", "", world::node(plan)),
    }
}

fn create(
    server: &mut Server,
    group: &str,
    resource: &str,
    namespace: &str,
    object: Value,
) -> Result<(), Refusal> {
    let target = Target::collection(kind(group, resource), namespace);
    server.create(&target, object, &WriteOptions::default()).map(drop)
}

fn edit(
    server: &mut Server,
    target: &Target,
    change: impl FnOnce(&mut Value),
) -> Result<(), Refusal> {
    let mut object = server.get(target)?.value();
    change(&mut object);
    server.update(target, object, &WriteOptions::default()).map(drop)
}

fn edit_status(
    server: &mut Server,
    target: &Target,
    change: impl FnOnce(&mut Value),
) -> Result<(), Refusal> {
    let mut object = server.get(target)?.value();
    change(&mut object);
    server.update_status(target, object, &WriteOptions::default()).map(drop)
}

/// What is gone already is as good as deleted.
fn delete(server: &mut Server, target: &Target, options: &DeleteOptions) -> Result<(), Refusal> {
    match server.delete(target, options) {
        Ok(_) => Ok(()),
        Err(refusal) if refusal.code == 404 => Ok(()),
        Err(refusal) => Err(refusal),
    }
}

/// As the API writes times: to the second.
fn written(now: Timestamp) -> Value {
    json!(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Sets a condition; its time moves only when its status does.
fn set_condition(status: &mut Value, kind: &str, holds: bool, now: Timestamp) {
    let word = if holds { "True" } else { "False" };
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let all = status["conditions"].as_array_mut().expect("it was just made one");
    let new = json!({
        "type": kind, "status": word, "lastProbeTime": null, "lastTransitionTime": written(now),
    });
    match all.iter_mut().find(|one| one["type"] == kind) {
        Some(one) if one["status"] == word => {}
        Some(one) => *one = new,
        None => all.push(new),
    }
}
