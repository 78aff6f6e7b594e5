//! Slices of another namespace (docs/spec.md, section 10). The consumer is `shop/db`, the source
//! `data/postgres`.

use std::path::Path;

use endpointd_model::{EndpointSlice, Object, Service, Write, names};
use endpointd_plan::{CarriedState, ImportSnapshot, Settings, Topology, import};
use endpointd_wire::{decode_value, to_json_value};
use serde_json::{Value, json};

use super::judge::{Reached, ask, program, reached};

/// Name, node, zone, and the conditions ready, serving, terminating.
type Pod = (&'static str, &'static str, &'static str, [bool; 3]);

const READY: [bool; 3] = [true, true, false];
const UNREADY: [bool; 3] = [false, false, false];
const ENDING: [bool; 3] = [false, true, true];

const PODS: [Pod; 4] = [
    ("10.0.0.1", "n1", "za", READY),
    ("10.0.0.2", "n2", "zb", READY),
    ("10.0.0.3", "n3", "za", UNREADY),
    ("10.0.0.4", "n1", "zb", ENDING),
];

const ALL: &[&str] = &["10.0.0.1", "10.0.0.2"];

/// The consumer asks; the port has the number of the source's, and another name.
fn consumer(fields: &Value) -> Value {
    let mut spec = json!({
        "type": "ClusterIP",
        "clusterIP": "10.96.0.7",
        "clusterIPs": ["10.96.0.7"],
        "ipFamilies": ["IPv4"],
        "ports": [{"name": "db", "port": 5432, "protocol": "TCP"}],
    });
    for (name, value) in fields.as_object().expect("fields") {
        spec[name] = value.clone();
    }
    let annotations = json!({names::ENDPOINTS_FROM: "data/postgres"});
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": "shop", "name": "db", "uid": "u1", "annotations": annotations},
        "spec": spec,
    })
}

fn source(consent: &str) -> Service {
    let annotations = json!({names::ENDPOINTS_TO: consent});
    let service = json!({
        "metadata": {"namespace": "data", "name": "postgres", "annotations": annotations},
        "spec": {
            "selector": {"app": "postgres"},
            "clusterIP": "10.96.0.8",
            "ports": [{"name": "pg", "port": 5432}, {"name": "metrics", "port": 9100}],
        },
    });
    decode_value(&service).expect("a Service")
}

/// As upstream's controller writes it, with hints for the clients of the source.
fn source_slice(name: &str, pods: &[Pod]) -> EndpointSlice {
    let endpoints = pods.iter().map(|(address, node, zone, [ready, serving, terminating])| {
        json!({
            "addresses": [address],
            "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
            "nodeName": node,
            "zone": zone,
            "hints": {"forZones": [{"name": zone}]},
        })
    });
    let slice = json!({
        "metadata": {
            "namespace": "data",
            "name": name,
            "labels": {
                names::SERVICE_NAME: "postgres",
                names::MANAGED_BY: names::MANAGED_BY_SLICES,
            },
        },
        "addressType": "IPv4",
        "endpoints": endpoints.collect::<Vec<_>>(),
        "ports": [
            {"name": "pg", "port": 8080, "protocol": "TCP"},
            {"name": "metrics", "port": 9100, "protocol": "TCP"},
        ],
    });
    decode_value(&slice).expect("a slice")
}

/// What kube-proxy on a node does with what the controller writes.
fn clients_reach(program: &Path, fields: &Value, consent: &str, node: (&str, &str)) -> Reached {
    let consumer = consumer(fields);
    let service: Service = decode_value(&consumer).expect("a Service");
    let source = source(consent);
    // Two slices, as a Service with many pods has.
    let slices = [source_slice("postgres-a", &PODS[..1]), source_slice("postgres-b", &PODS[1..])];
    let snapshot = ImportSnapshot {
        service: Some(&service),
        source: Some(&source),
        source_slices: slices.iter().collect(),
        grants: Vec::new(),
        slices: Vec::new(),
        topology: &Topology::default(),
        carried: &CarriedState::default(),
    };
    let planned = import(&snapshot, &Settings::default());
    let created = planned.plan.writes.iter().map(|write| match write {
        Write::Create(object @ Object::Slice(_)) => to_json_value(object),
        other => panic!("{other:?} is no new slice"),
    });
    let slices: Vec<Value> = created.collect();
    let (node, zone) = node;
    ask(program, &json!({"service": consumer, "slices": slices, "node": node, "zone": zone}))
}

#[test]
fn clients_of_the_consumer_reach_the_ready_endpoints_of_the_source() {
    let Some(program) = program() else { return };
    let all = clients_reach(program, &json!({}), "shop", ("n1", "za"));
    // Only the consumer's port, under its name, at the number of the pods, and in all zones: the
    // hints of the source are not the consumer's.
    assert_eq!(all, reached(&[("db", ALL)]));
    assert_eq!(clients_reach(program, &json!({}), "shop", ("n9", "zc")), all);
}

#[test]
fn without_consent_they_reach_nothing() {
    let Some(program) = program() else { return };
    let nothing = clients_reach(program, &json!({}), "other", ("n1", "za"));
    assert_eq!(nothing, reached(&[("db", &[])]));
}

#[test]
fn the_consumer_decides_about_zones() {
    let Some(program) = program() else { return };
    let fields = json!({"trafficDistribution": "PreferSameZone"});
    let in_zone = |zone| clients_reach(program, &fields, "shop", ("n9", zone));
    assert_eq!(in_zone("za"), reached(&[("db", &["10.0.0.1"])]));
    assert_eq!(in_zone("zb"), reached(&[("db", &["10.0.0.2"])]));
    assert_eq!(in_zone("zc"), reached(&[("db", ALL)]), "no endpoint there");
}

#[test]
fn the_consumer_decides_about_nodes() {
    let Some(program) = program() else { return };
    let same_node = json!({"trafficDistribution": "PreferSameNode"});
    let on = |fields: &Value, node, zone| clients_reach(program, fields, "shop", (node, zone));
    assert_eq!(on(&same_node, "n1", "zb"), reached(&[("db", &["10.0.0.1"])]));
    assert_eq!(on(&same_node, "n9", "zb"), reached(&[("db", &["10.0.0.2"])]));
    let local = json!({"internalTrafficPolicy": "Local"});
    assert_eq!(on(&local, "n2", "za"), reached(&[("db", &["10.0.0.2"])]));
    assert_eq!(on(&local, "n9", "za"), reached(&[("db", &[])]));
}
