//! Generates Endpoints: manual ones to mirror, and edits of those that the controller manages.

use endpointd_model::names;
use serde_json::{Value, json};

use super::service::delete;
use super::{NAMESPACE, Rng, set_first};

/// Manual Endpoints.
pub fn endpoints(rng: &mut Rng, name: &str) -> Value {
    let mut endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": "ep-uid-1",
                     "resourceVersion": "6001"},
    });
    set_labels(rng, &mut endpoints);
    set_annotations(rng, &mut endpoints);
    if rng.percent(4) {
        delete(rng, &mut endpoints);
    }
    let n_subsets = rng.weighted(&[(6, 0), (45, 1), (30, 2), (19, 3)]);
    let subsets: Vec<Value> = (0..n_subsets).map(|_| subset(rng)).collect();
    endpoints["subsets"] = subsets.into();
    // Port 0 counts as no port. Only in a single subset: next to a subset without ports a hash
    // would decide between the two, and the API server would reject the object.
    if n_subsets == 1 && rng.percent(5) {
        endpoints["subsets"][0]["ports"] = json!([{"name": "zero", "port": 0, "protocol": "TCP"}]);
    }
    endpoints
}

/// Removes port 0 if there are several subsets.
pub fn drop_port_zero(endpoints: &mut Value) {
    let Some(subsets) = endpoints["subsets"].as_array_mut() else { return };
    if subsets.len() > 1 {
        let ports = subsets.iter_mut().filter_map(|subset| subset["ports"].as_array_mut());
        for port in ports.flatten().filter(|port| port["port"] == 0) {
            port["port"] = 8080.into();
        }
    }
}

fn set_labels(rng: &mut Rng, endpoints: &mut Value) {
    let mut labels = json!({});
    for key in ["team", "tier"] {
        if rng.percent(35) {
            labels[key] = rng.pick(&["x", "y", ""]).into();
        }
    }
    match rng.below(40) {
        0 => labels[names::SKIP_MIRROR] = "true".into(),
        1 => labels[names::SKIP_MIRROR] = "false".into(),
        2 => labels[names::MANAGED_BY] = "someone".into(),
        3 => labels[names::SERVICE_NAME] = "other".into(),
        4 => labels[names::HEADLESS] = "".into(),
        _ => {}
    }
    endpoints["metadata"]["labels"] = labels;
}

fn set_annotations(rng: &mut Rng, endpoints: &mut Value) {
    let mut annotations = json!({});
    if rng.percent(3) {
        annotations[names::LEADER] = "{}".into();
    }
    if rng.percent(15) {
        annotations[names::TRIGGER_TIME] = rng.time().into();
    }
    if rng.percent(12) {
        annotations[names::LAST_APPLIED] = "{}".into();
    }
    if rng.percent(20) {
        annotations["note"] = rng.pick(&["x", "y", ""]).into();
    }
    endpoints["metadata"]["annotations"] = annotations;
}

/// Addresses and ports come from small pools, so that subsets overlap.
fn subset(rng: &mut Rng) -> Value {
    let n_ready = rng.weighted(&[(10, 0), (30, 1), (30, 2), (15, 4), (5, 7)]);
    let n_not_ready = rng.weighted(&[(55, 0), (25, 1), (15, 2), (5, 4)]);
    let n_ports = rng.weighted(&[(8, 0), (55, 1), (28, 2), (9, 3)]);
    let ready: Vec<Value> = (0..n_ready).map(|_| address(rng)).collect();
    let not_ready: Vec<Value> = (0..n_not_ready).map(|_| address(rng)).collect();
    let ports: Vec<Value> = (0..n_ports).map(|at| port(rng, at)).collect();
    json!({"addresses": ready, "notReadyAddresses": not_ready, "ports": ports})
}

fn port(rng: &mut Rng, at: usize) -> Value {
    let mut port = json!({
        "name": rng.weighted(&[(6, ["http", "metrics", "third"][at]), (1, "")]),
        "port": rng.weighted(&[(60, 8080 + at), (20, 9090)]),
        "protocol": rng.weighted(&[(8, "TCP"), (1, "UDP")]),
    });
    if rng.percent(10) {
        port["appProtocol"] = rng.pick(&["http", "h2c"]).into();
    }
    port
}

pub fn address(rng: &mut Rng) -> Value {
    let n = rng.between(1, 8);
    let ip = match rng.below(100) {
        0..60 => format!("10.1.0.{n}"),
        60..82 => format!("fd00:2::{n:x}"),
        82..86 => format!("010.001.000.{n:03}"),
        86..88 => format!("::ffff:10.1.0.{n}"),
        88..91 => format!("FD00:2:0::{n:X}"),
        91..95 => rng.pick(&["nonsense", "10.1.0.256", "example.com", "0x7f.1", ""]).to_owned(),
        95..97 => rng.pick(&["127.0.0.1", "169.254.3.4", "ff02::1", "0.0.0.0"]).to_owned(),
        _ => format!("10.1.{n}.1"),
    };
    let mut address = json!({"ip": ip});
    if rng.percent(20) {
        address["nodeName"] = rng.weighted(&[(5, "node-0"), (3, "node-1"), (1, "")]).into();
    }
    if rng.percent(15) {
        address["hostname"] = rng.pick(&["h1", "h2"]).into();
    }
    if rng.percent(20) {
        address["targetRef"] = json!({
            "kind": "Pod", "namespace": NAMESPACE, "name": format!("pod-{n}"),
            "uid": format!("pu-{}", rng.between(1, 3)), "resourceVersion": "3001",
        });
    }
    address
}

/// Makes one change that a user could make to manual Endpoints.
pub fn change(rng: &mut Rng, endpoints: &mut Value) {
    match rng.below(14) {
        0 => return set_labels(rng, endpoints),
        1 => return set_annotations(rng, endpoints),
        2 => return delete(rng, endpoints),
        3 => return endpoints["metadata"]["uid"] = "ep-uid-2".into(),
        _ => {}
    }
    let Some(subsets) = endpoints["subsets"].as_array_mut() else { return };
    if subsets.is_empty() || rng.percent(10) {
        return subsets.push(subset(rng));
    }
    if rng.percent(10) {
        return drop(subsets.pop());
    }
    let Some(one) = rng.one_of(subsets) else { return };
    let list = rng.pick(&["addresses", "notReadyAddresses"]);
    let new = address(rng);
    match (rng.below(4), one[list].as_array_mut()) {
        (0, Some(addresses)) => drop(addresses.pop()),
        (1..3, Some(addresses)) => addresses.push(new),
        _ => one["ports"] = json!([port(rng, 0)]),
    }
}

/// Edits by other clients of Endpoints that the controller manages.
pub fn edit(rng: &mut Rng, endpoints: &mut Value) {
    let meta = &mut endpoints["metadata"];
    match rng.below(30) {
        0 => meta["annotations"][names::OVER_CAPACITY] = "truncated".into(),
        1 => meta["annotations"]["foreign"] = "kept".into(),
        2 => meta["annotations"][names::LEADER] = "{}".into(),
        3 => meta["annotations"][names::TRIGGER_TIME] = rng.time().into(),
        4 => meta["labels"]["foreign"] = "dropped".into(),
        5 => meta["labels"][names::HEADLESS] = "".into(),
        6 => drop(meta["labels"].as_object_mut().and_then(|map| map.remove(names::HEADLESS))),
        7 => meta["labels"] = Value::Null,
        8 => meta["labels"][names::SKIP_MIRROR] = "true".into(),
        9 => delete(rng, endpoints),
        10 => meta["finalizers"] = json!(["example.com/hold"]),
        11..18 => edit_layout(rng, endpoints),
        _ => {
            let Some(subsets) = endpoints["subsets"].as_array_mut() else { return };
            if let Some(subset) = rng.one_of(subsets) {
                edit_subset(rng, subset);
            }
        }
    }
}

/// The same content in another order or layout.
fn edit_layout(rng: &mut Rng, endpoints: &mut Value) {
    let Some(subsets) = endpoints["subsets"].as_array_mut() else { return };
    match rng.below(5) {
        0 => subsets.reverse(),
        1 => subsets.clear(),
        2 => {
            for subset in subsets.iter_mut() {
                for list in ["addresses", "notReadyAddresses", "ports"] {
                    if let Some(list) = subset[list].as_array_mut() {
                        list.reverse();
                    }
                }
            }
        }
        // One port per subset.
        3 => {
            let single = |subset: &Value| {
                let ports = subset["ports"].as_array().cloned().unwrap_or_default();
                let with = |port: Value| {
                    let mut one = subset.clone();
                    one["ports"] = json!([port]);
                    one
                };
                ports.into_iter().map(with).collect::<Vec<_>>()
            };
            *subsets = subsets.iter().flat_map(single).collect();
        }
        // One address per subset.
        _ => {
            let single = |subset: &Value| {
                let with = |list: &str| {
                    let all = subset[list].as_array().cloned().unwrap_or_default();
                    let one = |address: Value| json!({list: [address], "ports": subset["ports"]});
                    all.into_iter().map(one).collect::<Vec<_>>()
                };
                [with("addresses"), with("notReadyAddresses")].concat()
            };
            *subsets = subsets.iter().flat_map(single).collect();
        }
    }
}

fn edit_subset(rng: &mut Rng, subset: &mut Value) {
    let list = rng.pick(&["addresses", "notReadyAddresses"]);
    match rng.below(12) {
        0 => {
            let ready = subset["addresses"].take();
            subset["addresses"] = subset["notReadyAddresses"].take();
            subset["notReadyAddresses"] = ready;
        }
        1 => set_first(subset, "ports", "appProtocol", "http"),
        2 => set_first(subset, "ports", "port", 8081),
        3 => subset["ports"] = json!([]),
        4 => {
            let new = address(rng);
            if let Some(addresses) = subset[list].as_array_mut() {
                addresses.push(new);
            }
        }
        5 => {
            if let Some(addresses) = subset[list].as_array_mut() {
                addresses.pop();
            }
        }
        kind => {
            let Some(addresses) = subset[list].as_array_mut() else { return };
            let Some(one) = rng.one_of(addresses) else { return };
            match kind {
                6 => one["nodeName"] = Value::Null,
                7 => one["targetRef"]["resourceVersion"] = "77".into(),
                8 => one["hostname"] = "renamed".into(),
                9 => one["targetRef"] = Value::Null,
                10 => one["targetRef"]["uid"] = "pu-older".into(),
                _ => one["nodeName"] = "node-x".into(),
            }
        }
    }
}
