//! Writes of the scheduler and of kubelets about pods.

use std::net::IpAddr;

use endpointd_apiserver::store::Key;
use endpointd_apiserver::{Server, StatusError, WriteOptions};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{edit, edit_status, set_condition, target, written};
use crate::cluster::facts::READY_ANNOTATION;

pub(super) fn bind(server: &mut Server, pod: &Key, node: &str) -> Result<(), StatusError> {
    let binding = json!({"target": {"kind": "Node", "name": node}});
    server.bind(&target("", "pods", pod), &binding, &WriteOptions::default()).map(drop)
}

pub(super) fn mark_unschedulable(
    server: &mut Server,
    pod: &Key,
    now: Timestamp,
) -> Result<(), StatusError> {
    edit_status(server, &target("", "pods", pod), |object| {
        let status = &mut object["status"];
        set_condition(status, "PodScheduled", false, now);
        let all = status["conditions"].as_array_mut().into_iter().flatten();
        for one in all.filter(|one| one["type"] == "PodScheduled") {
            one["reason"] = json!("Unschedulable");
            one["message"] = json!("no node is ready, selected, and has room for another pod");
        }
    })
}

/// The status that a kubelet reports for a started pod.
pub(super) struct Started<'a> {
    pub ips: &'a [IpAddr; 2],
    pub host_ips: &'a [IpAddr; 2],
    pub is_ready: bool,
}

pub(super) fn start(
    server: &mut Server,
    pod: &Key,
    started: &Started<'_>,
    now: Timestamp,
) -> Result<(), StatusError> {
    let Started { ips, host_ips, is_ready } = *started;
    edit_status(server, &target("", "pods", pod), |object| {
        let containers = object["spec"]["containers"].as_array().cloned().unwrap_or_default();
        let listed = |ips: &[IpAddr]| ips.iter().map(|ip| json!({"ip": ip})).collect::<Vec<_>>();
        let status = &mut object["status"];
        status["phase"] = json!("Running");
        status["startTime"] = written(now);
        status["hostIP"] = json!(host_ips[0]);
        status["hostIPs"] = json!(listed(host_ips));
        status["podIP"] = json!(ips[0]);
        status["podIPs"] = json!(listed(ips));
        let runs = |container: &Value| running(container, is_ready, now);
        status["containerStatuses"] = containers.iter().map(runs).collect();
        set_condition(status, "Initialized", true, now);
        set_condition(status, "ContainersReady", is_ready, now);
        set_condition(status, "Ready", is_ready, now);
    })
}

fn running(container: &Value, is_ready: bool, now: Timestamp) -> Value {
    json!({
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": is_ready,
        "started": true,
        "restartCount": 0,
        "state": {"running": {"startedAt": written(now)}},
        "lastState": {},
    })
}

pub(super) fn set_ready(
    server: &mut Server,
    pod: &Key,
    is_ready: bool,
    now: Timestamp,
) -> Result<(), StatusError> {
    edit_status(server, &target("", "pods", pod), |object| {
        let status = &mut object["status"];
        set_condition(status, "ContainersReady", is_ready, now);
        set_condition(status, "Ready", is_ready, now);
        for container in status["containerStatuses"].as_array_mut().into_iter().flatten() {
            container["ready"] = json!(is_ready);
        }
    })
}

/// Makes the probes of the first `n_failing` pods fail and those of the others pass.
pub(super) fn fail_probes(
    server: &mut Server,
    pods: &[Key],
    n_failing: usize,
) -> Result<(), StatusError> {
    for (n, pod) in pods.iter().enumerate() {
        edit(server, &target("", "pods", pod), |object| {
            let annotations = &mut object["metadata"]["annotations"];
            if n < n_failing {
                annotations[READY_ANNOTATION] = json!("false");
            } else if let Value::Object(fields) = annotations {
                fields.remove(READY_ANNOTATION);
            }
        })?;
    }
    Ok(())
}
