//! Pods, Deployments, ReplicaSets.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{AGE, Columns, NAME, age, int, name, number, or, text, wide};
use crate::selectors::selector_text;

pub(crate) static PODS: Columns = Columns {
    columns: &[
        NAME,
        text("Ready"),
        text("Status"),
        text("Restarts"),
        AGE,
        wide("IP"),
        wide("Node"),
        wide("Nominated Node"),
        wide("Readiness Gates"),
    ],
    cells: pod,
};

fn pod(it: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&it["spec"], &it["status"]);
    let containers = status["containerStatuses"].as_array().map(Vec::as_slice).unwrap_or_default();
    let n_containers = spec["containers"].as_array().map_or(0, Vec::len);
    let runs = |one: &&Value| one["ready"] == true && one["state"]["running"].is_object();
    let n_ready = containers.iter().filter(runs).count();
    let n_restarts: i64 = containers.iter().map(|one| int(&one["restartCount"])).sum();
    let ended = |one: &Value| {
        let ended = &one["lastState"]["terminated"]["finishedAt"];
        ended.as_str().map(str::to_owned)
    };
    let restarts = match (n_restarts, containers.iter().filter_map(ended).max()) {
        (0, _) | (_, None) => n_restarts.to_string(),
        (n, Some(last)) => format!("{n} ({} ago)", super::age::since(&json!(last), now)),
    };
    vec![
        name(it),
        json!(format!("{n_ready}/{n_containers}")),
        json!(pod_status(it, containers)),
        json!(restarts),
        age(it, now),
        or(&status["podIPs"][0]["ip"], "<none>"),
        or(&spec["nodeName"], "<none>"),
        or(&status["nominatedNodeName"], "<none>"),
        json!(gates(it)),
    ]
}

/// The column `STATUS`. Upstream: `printPod`; of init containers only the count.
fn pod_status(it: &Value, containers: &[Value]) -> String {
    let status = &it["status"];
    let phase = status["phase"].as_str().unwrap_or_default();
    let mut word = status["reason"].as_str().unwrap_or(phase).to_owned();
    let condition = |of: &str| {
        let all = status["conditions"].as_array().into_iter().flatten();
        all.into_iter().find(|one| one["type"] == of)
    };
    if condition("PodScheduled").is_some_and(|one| one["reason"] == "SchedulingGated") {
        word = "SchedulingGated".to_owned();
    }
    let inits = status["initContainerStatuses"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_done = |one: &Value| one["state"]["terminated"]["exitCode"] == 0;
    let waiting = inits.iter().position(|one| !is_done(one));
    let initialized = condition("Initialized").is_some_and(|one| one["status"] == "True");
    if let Some(index) = waiting.filter(|_| !initialized) {
        word = format!("Init:{index}/{}", inits.len());
    } else {
        for container in containers.iter().rev() {
            word = container_reason(container).unwrap_or(word);
        }
        let is_running = containers.iter().any(|one| one["state"]["running"].is_object());
        if word == "Completed" && is_running {
            word = "Running".to_owned();
        }
    }
    let is_over = ["Failed", "Succeeded"].contains(&phase);
    if it["metadata"]["deletionTimestamp"].is_string() {
        if status["reason"] == "NodeLost" {
            return "Unknown".to_owned();
        }
        if !is_over {
            return "Terminating".to_owned();
        }
    }
    word
}

fn container_reason(container: &Value) -> Option<String> {
    let state = &container["state"];
    if let Some(reason) = state["waiting"]["reason"].as_str() {
        return Some(reason.to_owned());
    }
    let ended = state["terminated"].as_object()?;
    match (ended.get("reason").and_then(Value::as_str), ended.get("signal")) {
        (Some(reason), _) => Some(reason.to_owned()),
        (None, Some(signal)) => Some(format!("Signal:{signal}")),
        (None, None) => Some(format!("ExitCode:{}", int(&state["terminated"]["exitCode"]))),
    }
}

fn gates(it: &Value) -> String {
    let Some(gates) = it["spec"]["readinessGates"].as_array() else { return "<none>".to_owned() };
    let holds = |gate: &&Value| {
        let all = it["status"]["conditions"].as_array().into_iter().flatten();
        let mut all = all.into_iter();
        all.any(|one| one["type"] == gate["conditionType"] && one["status"] == "True")
    };
    format!("{}/{}", gates.iter().filter(holds).count(), gates.len())
}

pub(crate) static DEPLOYMENTS: Columns = Columns {
    columns: &[
        NAME,
        text("Ready"),
        text("Up-to-date"),
        text("Available"),
        AGE,
        wide("Containers"),
        wide("Images"),
        wide("Selector"),
    ],
    cells: |it, now| {
        let (spec, status) = (&it["spec"], &it["status"]);
        let ready = format!("{}/{}", int(&status["readyReplicas"]), int(&spec["replicas"]));
        let mut cells = vec![
            name(it),
            json!(ready),
            json!(int(&status["updatedReplicas"])),
            json!(int(&status["availableReplicas"])),
            age(it, now),
        ];
        cells.extend(template(spec));
        cells
    },
};

pub(crate) static REPLICA_SETS: Columns = Columns {
    columns: &[
        NAME,
        number("Desired"),
        number("Current"),
        number("Ready"),
        AGE,
        wide("Containers"),
        wide("Images"),
        wide("Selector"),
    ],
    cells: |it, now| {
        let (spec, status) = (&it["spec"], &it["status"]);
        let mut cells = vec![
            name(it),
            json!(int(&spec["replicas"])),
            json!(int(&status["replicas"])),
            json!(int(&status["readyReplicas"])),
            age(it, now),
        ];
        cells.extend(template(spec));
        cells
    },
};

fn template(spec: &Value) -> [Value; 3] {
    let containers = spec["template"]["spec"]["containers"].as_array();
    let containers = containers.map(Vec::as_slice).unwrap_or_default();
    let all = |field: &str| {
        let texts: Vec<&str> =
            containers.iter().map(|one| one[field].as_str().unwrap_or_default()).collect();
        json!(texts.join(","))
    };
    [all("name"), all("image"), json!(selector_text(&spec["selector"]))]
}
