//! Edits of observed slices by users, other controllers, and older versions.

use endpointd_model::names;
use serde_json::{Value, json};

use super::service::delete;
use super::{NAMESPACE, Rng, set_first};

/// The owner of the slices.
#[derive(Clone, Copy)]
pub struct Owner<'a> {
    pub name: &'a str,
    pub manager: &'a str,
    /// The ownerReference.
    pub reference: &'a Value,
}

/// Applies several edits.
pub fn edit(rng: &mut Rng, slices: &mut Vec<Value>, owner: Owner) {
    let n_edits = rng.weighted(&[(40, 1), (25, 2), (15, 3), (10, 5)]);
    for _ in 0..n_edits {
        match rng.below(10) {
            0..2 => add(rng, slices, owner),
            2 => rearrange(rng, slices),
            3..6 => edit_meta(rng, slices, owner),
            6 => edit_group(rng, slices),
            _ => edit_endpoints(rng, slices),
        }
    }
}

fn blank(rng: &mut Rng, owner: Owner, at: usize) -> Value {
    let address_type = rng.weighted(&[(6, "IPv4"), (4, "IPv6"), (1, "FQDN")]);
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": format!("{}-old{at}", owner.name), "namespace": NAMESPACE,
            "generateName": format!("{}-", owner.name), "generation": 1,
            "uid": format!("es-{at}"), "resourceVersion": format!("{}", 5000 + at),
            "labels": {names::SERVICE_NAME: owner.name, names::MANAGED_BY: owner.manager},
            "ownerReferences": [owner.reference],
        },
        "addressType": address_type, "endpoints": [], "ports": [],
    })
}

/// An additional slice: a correct or wrong placeholder, one of another manager, or one for other
/// ports.
fn add(rng: &mut Rng, slices: &mut Vec<Value>, owner: Owner) {
    let mut slice = blank(rng, owner, slices.len());
    let model =
        if slices.is_empty() { None } else { Some(slices[rng.below(slices.len())].clone()) };
    if let Some(model) = &model
        && rng.percent(60)
    {
        // The labels of a placeholder of this Service.
        slice["metadata"]["labels"] = model["metadata"]["labels"].clone();
        slice["addressType"] = model["addressType"].clone();
    }
    match (rng.below(10), model) {
        (0..3, _) => {}
        (3, _) => slice["metadata"]["labels"][names::HEADLESS] = "".into(),
        (4, _) => slice["metadata"]["ownerReferences"] = Value::Null,
        (5..7, Some(model)) => slice["ports"] = model["ports"].clone(),
        (7, Some(model)) => {
            slice["ports"] = model["ports"].clone();
            slice["endpoints"] = model["endpoints"].clone();
        }
        (8, _) => slice["metadata"]["namespace"] = "ns2".into(),
        _ => {
            slice["ports"] = json!([{"name": "gone", "port": 1, "protocol": "TCP"}]);
            slice["endpoints"] = json!([ghost(rng)]);
        }
    }
    let is_taken = |name: &Value| slices.iter().any(|slice| slice["metadata"]["name"] == *name);
    if !is_taken(&slice["metadata"]["name"]) {
        slices.push(slice);
    }
}

fn ghost(rng: &mut Rng) -> Value {
    let at = rng.below(5);
    json!({
        "addresses": [format!("10.9.9.{}", at + 1)], "conditions": {"ready": rng.percent(50)},
        "targetRef": {"kind": "Pod", "namespace": NAMESPACE, "name": format!("ghost-{at}"),
                      "uid": "pu-ghost"},
    })
}

/// Moves endpoints between slices.
fn rearrange(rng: &mut Rng, slices: &mut Vec<Value>) {
    if slices.is_empty() {
        return;
    }
    let (from, to) = (rng.below(slices.len()), rng.below(slices.len()));
    let endpoints = slices[from]["endpoints"].as_array().cloned().unwrap_or_default();
    match rng.below(5) {
        // Merged, possibly above the maximum.
        0..2 if from != to => {
            let mut both = slices[to]["endpoints"].as_array().cloned().unwrap_or_default();
            both.extend(endpoints);
            slices[to]["endpoints"] = both.into();
            slices.remove(from);
        }
        // Duplicated into both slices.
        2 if from != to => slices[to]["endpoints"] = endpoints.into(),
        // Split into two slices.
        _ if endpoints.len() > 1 => {
            let mut second = slices[from].clone();
            let name = format!("{}-b", second["metadata"]["name"].as_str().unwrap_or("x"));
            if slices.iter().any(|slice| slice["metadata"]["name"] == name.as_str()) {
                return;
            }
            let (left, right) = endpoints.split_at(rng.between(1, endpoints.len() - 1));
            second["metadata"]["uid"] = format!("es-{name}").into();
            second["metadata"]["name"] = name.into();
            second["endpoints"] = right.into();
            slices[from]["endpoints"] = left.into();
            slices.push(second);
        }
        _ => {}
    }
}

fn edit_meta(rng: &mut Rng, slices: &mut [Value], owner: Owner) {
    let Some(slice) = rng.one_of(slices) else { return };
    let meta = &mut slice["metadata"];
    let mut stranger = owner.reference.clone();
    stranger["uid"] = "uid-stranger".into();
    match rng.below(22) {
        0..2 => meta["ownerReferences"] = json!([stranger]),
        2 => meta["ownerReferences"] = Value::Null,
        3 => {
            stranger["controller"] = false.into();
            let mut both = vec![owner.reference.clone(), stranger];
            rng.shuffle(&mut both);
            meta["ownerReferences"] = both.into();
        }
        4 => set_first(meta, "ownerReferences", "kind", "ConfigMap"),
        5 => set_first(meta, "ownerReferences", "apiVersion", "v2"),
        6 => set_first(meta, "ownerReferences", "name", "other"),
        7..9 => delete(rng, slice),
        9 => meta["labels"][names::MANAGED_BY] = "someone-else".into(),
        10 => drop(meta["labels"].as_object_mut().and_then(|map| map.remove(names::MANAGED_BY))),
        11 => meta["labels"][names::SERVICE_NAME] = "other".into(),
        12 => meta["labels"][names::HEADLESS] = rng.pick(&["", "x"]).into(),
        13 => drop(meta["labels"].as_object_mut().and_then(|map| map.remove(names::HEADLESS))),
        14 => meta["labels"]["extra"] = "e".into(),
        15 => drop(meta["labels"].as_object_mut().and_then(|map| map.remove("team"))),
        16 => meta["annotations"][names::TRIGGER_TIME] = rng.time().into(),
        17 => meta["annotations"]["foreign"] = "kept".into(),
        18 => meta["generateName"] = Value::Null,
        19 => meta["finalizers"] = json!(["example.com/hold"]),
        20 => meta["annotations"] = Value::Null,
        _ => meta["labels"]["team"] = rng.pick(&["x", "z", ""]).into(),
    }
}

/// Address type and ports.
fn edit_group(rng: &mut Rng, slices: &mut [Value]) {
    let Some(slice) = rng.one_of(slices) else { return };
    match rng.below(9) {
        0 => slice["addressType"] = "IPv6".into(),
        1 => slice["addressType"] = "IPv4".into(),
        2 => {
            slice["addressType"] = "FQDN".into();
            slice["endpoints"] = json!([{"addresses": ["example.com"]}]);
        }
        3 => slice["ports"] = json!([{"name": "x", "port": 1, "protocol": "UDP"}]),
        4 => slice["ports"] = json!([]),
        kind => {
            let Some(ports) = slice["ports"].as_array_mut() else { return };
            match kind {
                5 => ports.reverse(),
                6 => drop(ports.pop()),
                7 => ports.iter_mut().for_each(|port| port["port"] = 8081.into()),
                _ => ports.iter_mut().for_each(|port| port["appProtocol"] = "http".into()),
            }
        }
    }
}

fn edit_endpoints(rng: &mut Rng, slices: &mut [Value]) {
    let Some(slice) = rng.one_of(slices) else { return };
    // An edit needs its list; an absent list stays absent.
    let Some(endpoints) = slice["endpoints"].as_array_mut() else { return };
    match rng.below(12) {
        0 => rng.shuffle(endpoints),
        1 => {
            if let Some(one) = rng.one_of(endpoints).cloned() {
                endpoints.push(one);
            }
        }
        2 => endpoints.clear(),
        3 => drop(endpoints.pop()),
        4 => endpoints.push(ghost(rng)),
        5 => endpoints.iter_mut().for_each(|one| one["hints"] = Value::Null),
        6 => {
            let zone = rng.pick(&["za", "zb", "zgone"]);
            for one in endpoints {
                one["hints"] = json!({"forZones": [{"name": zone}]});
            }
        }
        _ => {
            if let Some(one) = rng.one_of(endpoints) {
                edit_endpoint(rng, one);
            }
        }
    }
}

fn edit_endpoint(rng: &mut Rng, one: &mut Value) {
    match rng.below(16) {
        0 => one["conditions"]["ready"] = rng.percent(50).into(),
        1 => one["conditions"]["serving"] = rng.percent(50).into(),
        2 => one["conditions"] = json!({}),
        3 => one["nodeName"] = rng.pick(&["node-0", "node-x", ""]).into(),
        4 => one["nodeName"] = Value::Null,
        5 => one["zone"] = rng.pick(&["za", "zb", "zx", ""]).into(),
        6 => one["hostname"] = "renamed".into(),
        7 => one["targetRef"]["resourceVersion"] = "77".into(),
        8 => one["targetRef"]["uid"] = "pu-older".into(),
        9 => one["targetRef"] = Value::Null,
        10 => one["hints"] = json!({}),
        11 => one["hints"] = json!({"forZones": [{"name": "zb"}, {"name": "za"}]}),
        12 => one["hints"] = json!({"forNodes": [{"name": "node-0"}]}),
        13 => one["hints"] = json!({"forZones": [{"name": one["zone"].as_str().unwrap_or("za")}]}),
        14 => one["deprecatedTopology"] = json!({"kubernetes.io/hostname": "node-0"}),
        _ => {
            let twice = one["addresses"].as_array().cloned().unwrap_or_default();
            one["addresses"] = twice.iter().cloned().chain(["10.8.8.8".into()]).collect();
        }
    }
}
