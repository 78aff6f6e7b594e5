//! Generates Services: every kind of selector, family, ClusterIP, port, and hint setting.

use endpointd_model::names;
use serde_json::{Value, json};

use super::{NAMESPACE, Rng, set_first};

pub fn service(rng: &mut Rng) -> Value {
    let name = rng.pick(&["web", "db-0", "a"]);
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE, "resourceVersion": "1001",
                     "uid": "svc-uid-1"},
        "spec": {"type": rng.weighted(&[(8, "ClusterIP"), (1, "NodePort"), (1, "LoadBalancer")])},
    });
    if rng.percent(85) {
        service["metadata"]["creationTimestamp"] = rng.time().into();
    }
    if rng.percent(3) {
        service["spec"]["type"] = "ExternalName".into();
        service["spec"]["externalName"] = "example.com".into();
    }
    if rng.percent(4) {
        delete(rng, &mut service);
    }
    set_selector(rng, &mut service);
    set_labels(rng, &mut service);
    set_families(rng, &mut service);
    set_ports(rng, &mut service);
    set_publish(rng, &mut service);
    set_hints(rng, &mut service);
    service
}

/// A few pods match all of these, some only one.
fn set_selector(rng: &mut Rng, service: &mut Value) {
    let spec = &mut service["spec"];
    match rng.below(100) {
        0..4 => spec["selector"] = Value::Null,
        4..30 => spec["selector"] = json!({"app": "web", "role": "front"}),
        30..34 => spec["selector"] = json!({"app": ""}),
        _ => spec["selector"] = json!({"app": "web"}),
    }
}

/// Removes the selector, which makes the Service manual.
pub fn drop_selector(service: &mut Value) {
    service["spec"]["selector"] = Value::Null;
}

pub fn set_labels(rng: &mut Rng, service: &mut Value) {
    let mut labels = json!({});
    for key in ["team", "tier", "env"] {
        if rng.percent(30) {
            labels[key] = rng.pick(&["x", "y", ""]).into();
        }
    }
    if rng.percent(5) {
        let key = rng.pick(&[names::SERVICE_NAME, names::MANAGED_BY, names::HEADLESS]);
        labels[key] = rng.pick(&["", "other", names::MANAGED_BY_SLICES]).into();
    }
    if rng.percent(2) {
        labels[names::ENDPOINTS_MANAGED_BY] = rng.pick(&["other", "endpoint-controller"]).into();
    }
    service["metadata"]["labels"] = labels;
}

pub fn set_families(rng: &mut Rng, service: &mut Value) {
    let families = rng.weighted::<&[&str]>(&[
        (10, &["IPv4"]),
        (3, &["IPv6"]),
        (4, &["IPv4", "IPv6"]),
        (3, &["IPv6", "IPv4"]),
        (4, &[]),
    ]);
    let cluster_ip = match (families.first(), rng.below(20)) {
        (_, 0..5) => Some("None"),
        (_, 5) => Some(""),
        (_, 6) => None,
        (Some(&"IPv6"), _) => Some("fd00:96::7"),
        (None, 7..12) => Some("fd00:96::7"),
        _ => Some("10.96.0.7"),
    };
    service["spec"]["ipFamilies"] = families.into();
    service["spec"]["clusterIP"] = cluster_ip.into();
}

pub fn set_ports(rng: &mut Rng, service: &mut Value) {
    let n_ports = rng.weighted(&[(8, 0), (50, 1), (30, 2), (12, 3)]);
    let ports: Vec<Value> = (0..n_ports).map(|at| port(rng, at, n_ports)).collect();
    service["spec"]["ports"] = ports.into();
}

fn port(rng: &mut Rng, at: usize, n_ports: usize) -> Value {
    let name = if n_ports == 1 && rng.percent(60) { String::new() } else { format!("p{at}") };
    let mut port = json!({
        "name": name, "port": 80 + at,
        "protocol": rng.weighted(&[(8, "TCP"), (1, "UDP"), (1, "SCTP")]),
    });
    match rng.below(100) {
        0..45 => port["targetPort"] = rng.pick(&[8080, 8080, 9090]).into(),
        45..80 => port["targetPort"] = rng.pick(&["http", "http", "metrics"]).into(),
        80..86 => port["targetPort"] = rng.pick(&["side", "init"]).into(),
        86..90 => port["targetPort"] = "nowhere".into(),
        90..93 => port["targetPort"] = "8080".into(),
        93..96 => port["targetPort"] = 0.into(),
        // The API server's default.
        _ => port["targetPort"] = port["port"].clone(),
    }
    if rng.percent(20) {
        port["appProtocol"] = rng.weighted(&[(6, "http"), (3, "h2c"), (1, "")]).into();
    }
    port
}

pub fn set_publish(rng: &mut Rng, service: &mut Value) {
    service["spec"]["publishNotReadyAddresses"] = rng.percent(18).into();
}

/// The two annotations and the field, alone and together.
pub fn set_hints(rng: &mut Rng, service: &mut Value) {
    let mode = |rng: &mut Rng| rng.weighted(&[(6, "Auto"), (2, "auto"), (1, "Off"), (1, "")]);
    let mut annotations = json!({"note": "not copied"});
    let kind = rng.below(100);
    if kind < 32 {
        annotations[names::TOPOLOGY_MODE] = mode(rng).into();
    }
    if (26..38).contains(&kind) {
        annotations[names::TOPOLOGY_AWARE_HINTS] = mode(rng).into();
    }
    service["metadata"]["annotations"] = annotations;
    let wish = rng.weighted(&[
        (12, None),
        (2, Some("PreferClose")),
        (2, Some("PreferSameZone")),
        (2, Some("PreferSameNode")),
        (1, Some("PreferNothing")),
    ]);
    service["spec"]["trafficDistribution"] = wish.into();
}

/// Whether one of the topology annotations is on.
pub fn is_auto(service: &Value) -> bool {
    let annotations = &service["metadata"]["annotations"];
    let is_on = |key: &str| annotations[key] == "Auto" || annotations[key] == "auto";
    is_on(names::TOPOLOGY_MODE) || is_on(names::TOPOLOGY_AWARE_HINTS)
}

/// Removes the topology annotations.
pub fn turn_off(service: &mut Value) {
    service["metadata"]["annotations"] = Value::Null;
}

/// A Service that publishes every pod, for large cases.
pub fn make_plain(service: &mut Value) {
    let spec = &mut service["spec"];
    spec["type"] = "ClusterIP".into();
    spec["selector"] = json!({"app": "web"});
    if spec["ports"].as_array().is_none_or(Vec::is_empty) {
        spec["ports"] = json!([{"name": "", "port": 80, "protocol": "TCP"}]);
    }
    set_first(spec, "ports", "targetPort", 8080);
}

/// Being deleted, held by a finalizer.
pub fn delete(rng: &mut Rng, object: &mut Value) {
    let meta = &mut object["metadata"];
    meta["deletionTimestamp"] = rng.time().into();
    meta["finalizers"] = json!(["example.com/hold"]);
}

/// Makes one change that a user could make.
pub fn change(rng: &mut Rng, service: &mut Value) {
    match rng.below(20) {
        0..4 => set_labels(rng, service),
        4..6 => set_families(rng, service),
        6..9 => set_ports(rng, service),
        9..11 => set_publish(rng, service),
        11..16 => set_hints(rng, service),
        16 => set_selector(rng, service),
        17 => delete(rng, service),
        // Recreated under the same name.
        18 => service["metadata"]["uid"] = "svc-uid-2".into(),
        _ => service["metadata"]["creationTimestamp"] = rng.time().into(),
    }
}
