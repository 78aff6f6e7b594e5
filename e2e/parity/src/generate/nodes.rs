//! Generates nodes: mostly two to four zones with complete information.

use endpointd_model::names;
use serde_json::{Value, json};

use super::Rng;

const ZONES: [&str; 4] = ["za", "zb", "zc", "zd"];
const CPUS_SOUND: &[&str] = &["4", "4", "2", "8", "1500m", "3920m", "16"];
const CPUS_ODD: &[&str] = &["100m", "1e1", "0.5", "2k", "1500000u", "1Ki", "1", "12E-1", "1n"];

pub fn nodes(rng: &mut Rng) -> Vec<Value> {
    let n_nodes = rng.weighted(&[(4, 0), (10, 1), (20, 2), (30, 3), (20, 4), (10, 6)]);
    let is_sound = rng.percent(65);
    let mut nodes: Vec<Value> = (0..n_nodes).map(|at| sound(rng, at)).collect();
    // A control-plane node without a zone: it does not count for hints, and its pods have no zone.
    if let (true, Some(node)) = (rng.percent(10), nodes.last_mut()) {
        node["metadata"]["labels"] = json!({names::CONTROL_PLANE_NODE: ""});
    }
    if !is_sound {
        let n_changes = rng.between(1, 3);
        (0..n_changes).for_each(|_| change(rng, &mut nodes));
    }
    nodes
}

fn sound(rng: &mut Rng, at: usize) -> Value {
    let zone = if rng.percent(70) { ZONES[at % 3] } else { rng.pick(&ZONES) };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": format!("node-{at}"), "labels": {names::ZONE: zone}},
        "status": {
            "allocatable": {"cpu": rng.pick(CPUS_SOUND)},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

/// Makes one change to the nodes.
pub fn change(rng: &mut Rng, nodes: &mut Vec<Value>) {
    if rng.percent(10) {
        let at = nodes.len();
        // Names stay unique after a removal.
        if nodes.iter().all(|node| node["metadata"]["name"] != format!("node-{at}")) {
            nodes.push(sound(rng, at));
        }
        return;
    }
    if rng.percent(12) && !nodes.is_empty() {
        let at = rng.below(nodes.len());
        nodes.remove(at);
        return;
    }
    let Some(node) = rng.one_of(nodes) else { return };
    let labels = &mut node["metadata"]["labels"];
    match rng.below(12) {
        0..3 => labels[names::ZONE] = rng.pick(&ZONES).into(),
        3 => *labels = json!({}),
        4 => labels[names::ZONE] = "".into(),
        5 => labels[names::CONTROL_PLANE_NODE] = "".into(),
        6 => labels[names::MASTER_NODE] = rng.pick(&["", "true"]).into(),
        7 => node["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]),
        8 => node["status"]["conditions"] = json!([{"type": "DiskPressure", "status": "True"}]),
        9 => node["status"]["allocatable"]["cpu"] = rng.pick(CPUS_ODD).into(),
        10 => node["status"]["allocatable"]["cpu"] = "0".into(),
        _ => node["status"]["allocatable"] = json!({"carried": "1Gi"}),
    }
}
