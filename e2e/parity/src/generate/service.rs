//! Services: every kind of selector, family, cluster IP, port, and wish for hints.

use endpointd_model::names;
use serde_json::{Value, json};

use super::{Dice, NAMESPACE, set_first};

pub fn service(dice: &mut Dice) -> Value {
    let name = dice.pick(&["web", "db-0", "a"]);
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE, "resourceVersion": "1001",
                     "uid": "svc-uid-1"},
        "spec": {"type": dice.weighted(&[(8, "ClusterIP"), (1, "NodePort"), (1, "LoadBalancer")])},
    });
    if dice.percent(85) {
        service["metadata"]["creationTimestamp"] = dice.time().into();
    }
    if dice.percent(3) {
        service["spec"]["type"] = "ExternalName".into();
        service["spec"]["externalName"] = "example.com".into();
    }
    if dice.percent(4) {
        delete(dice, &mut service);
    }
    set_selector(dice, &mut service);
    set_labels(dice, &mut service);
    set_families(dice, &mut service);
    set_ports(dice, &mut service);
    set_publish(dice, &mut service);
    set_hints(dice, &mut service);
    service
}

/// A few pods match all of these, some only one.
fn set_selector(dice: &mut Dice, service: &mut Value) {
    let spec = &mut service["spec"];
    match dice.below(100) {
        0..4 => spec["selector"] = Value::Null,
        4..30 => spec["selector"] = json!({"app": "web", "role": "front"}),
        30..34 => spec["selector"] = json!({"app": ""}),
        _ => spec["selector"] = json!({"app": "web"}),
    }
}

/// Removes what was said about selection; used to turn a Service into a manual one.
pub fn drop_selector(service: &mut Value) {
    service["spec"]["selector"] = Value::Null;
}

pub fn set_labels(dice: &mut Dice, service: &mut Value) {
    let mut labels = json!({});
    for key in ["team", "tier", "env"] {
        if dice.percent(30) {
            labels[key] = dice.pick(&["x", "y", ""]).into();
        }
    }
    if dice.percent(5) {
        let key = dice.pick(&[names::SERVICE_NAME, names::MANAGED_BY, names::HEADLESS]);
        labels[key] = dice.pick(&["", "other", names::MANAGED_BY_SLICES]).into();
    }
    if dice.percent(2) {
        labels[names::ENDPOINTS_MANAGED_BY] = dice.pick(&["other", "endpoint-controller"]).into();
    }
    service["metadata"]["labels"] = labels;
}

pub fn set_families(dice: &mut Dice, service: &mut Value) {
    let families = dice.weighted::<&[&str]>(&[
        (10, &["IPv4"]),
        (3, &["IPv6"]),
        (4, &["IPv4", "IPv6"]),
        (3, &["IPv6", "IPv4"]),
        (4, &[]),
    ]);
    let cluster_ip = match (families.first(), dice.below(20)) {
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

pub fn set_ports(dice: &mut Dice, service: &mut Value) {
    let n_ports = dice.weighted(&[(8, 0), (50, 1), (30, 2), (12, 3)]);
    let ports: Vec<Value> = (0..n_ports).map(|at| port(dice, at, n_ports)).collect();
    service["spec"]["ports"] = ports.into();
}

fn port(dice: &mut Dice, at: usize, n_ports: usize) -> Value {
    let name = if n_ports == 1 && dice.percent(60) { String::new() } else { format!("p{at}") };
    let mut port = json!({
        "name": name, "port": 80 + at,
        "protocol": dice.weighted(&[(8, "TCP"), (1, "UDP"), (1, "SCTP")]),
    });
    match dice.below(100) {
        0..45 => port["targetPort"] = dice.pick(&[8080, 8080, 9090]).into(),
        45..80 => port["targetPort"] = dice.pick(&["http", "http", "metrics"]).into(),
        80..86 => port["targetPort"] = dice.pick(&["side", "init"]).into(),
        86..90 => port["targetPort"] = "nowhere".into(),
        90..93 => port["targetPort"] = "8080".into(),
        93..96 => port["targetPort"] = 0.into(),
        // What the API server makes of none.
        _ => port["targetPort"] = port["port"].clone(),
    }
    if dice.percent(20) {
        port["appProtocol"] = dice.weighted(&[(6, "http"), (3, "h2c"), (1, "")]).into();
    }
    port
}

pub fn set_publish(dice: &mut Dice, service: &mut Value) {
    service["spec"]["publishNotReadyAddresses"] = dice.percent(18).into();
}

/// The two annotations and the field, alone and together.
pub fn set_hints(dice: &mut Dice, service: &mut Value) {
    let mode = |dice: &mut Dice| dice.weighted(&[(6, "Auto"), (2, "auto"), (1, "Off"), (1, "")]);
    let mut annotations = json!({"note": "not copied"});
    let kind = dice.below(100);
    if kind < 32 {
        annotations[names::TOPOLOGY_MODE] = mode(dice).into();
    }
    if (26..38).contains(&kind) {
        annotations[names::TOPOLOGY_AWARE_HINTS] = mode(dice).into();
    }
    service["metadata"]["annotations"] = annotations;
    let wish = dice.weighted(&[
        (12, None),
        (2, Some("PreferClose")),
        (2, Some("PreferSameZone")),
        (2, Some("PreferSameNode")),
        (1, Some("PreferNothing")),
    ]);
    service["spec"]["trafficDistribution"] = wish.into();
}

/// Whether one of the topology annotations asks for hints.
pub fn is_auto(service: &Value) -> bool {
    let annotations = &service["metadata"]["annotations"];
    let is_on = |key: &str| annotations[key] == "Auto" || annotations[key] == "auto";
    is_on(names::TOPOLOGY_MODE) || is_on(names::TOPOLOGY_AWARE_HINTS)
}

/// No topology annotation any more.
pub fn turn_off(service: &mut Value) {
    service["metadata"]["annotations"] = Value::Null;
}

/// One that publishes whatever there is: a crowd is there for its size.
pub fn make_plain(service: &mut Value) {
    let spec = &mut service["spec"];
    spec["type"] = "ClusterIP".into();
    spec["selector"] = json!({"app": "web"});
    if spec["ports"].as_array().is_none_or(Vec::is_empty) {
        spec["ports"] = json!([{"name": "", "port": 80, "protocol": "TCP"}]);
    }
    set_first(spec, "ports", "targetPort", 8080);
}

/// On its way out, held by a finalizer.
pub fn delete(dice: &mut Dice, object: &mut Value) {
    let meta = &mut object["metadata"];
    meta["deletionTimestamp"] = dice.time().into();
    meta["finalizers"] = json!(["example.com/hold"]);
}

/// Any one change a person could make to it.
pub fn change(dice: &mut Dice, service: &mut Value) {
    match dice.below(20) {
        0..4 => set_labels(dice, service),
        4..6 => set_families(dice, service),
        6..9 => set_ports(dice, service),
        9..11 => set_publish(dice, service),
        11..16 => set_hints(dice, service),
        16 => set_selector(dice, service),
        17 => delete(dice, service),
        // Recreated under the same name.
        18 => service["metadata"]["uid"] = "svc-uid-2".into(),
        _ => service["metadata"]["creationTimestamp"] = dice.time().into(),
    }
}
