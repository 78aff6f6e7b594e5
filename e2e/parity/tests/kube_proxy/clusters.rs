//! Slices of several clusters (docs/spec.md, section 11: C7, U0, M7).

use std::path::Path;

use endpointd_model::{
    ClusterId, EndpointSlice, Key, MultiClusterObject, Object, ServiceExport, Timestamp, Write,
    names,
};
use endpointd_plan::{ClusterObjects, ClusterSetState, SourceState};
use endpointd_wire::{decode_value, derived_service_to_json, to_json_value};
use serde_json::{Value, json};

use super::judge::{Reached, ask, program, reached};

/// Two clusters with the Service `shop/web`; the export of `eu1` is older.
struct Clusters(ClusterSetState);

const HOME_ENDPOINTS: [(&str, &str, &str); 2] =
    [("10.0.0.1", "n1", "za"), ("10.0.0.2", "n2", "zb")];
/// Nodes of two clusters can have the same name.
const EU1_ENDPOINTS: [(&str, &str, &str); 1] = [("10.1.0.1", "n1", "zb")];

/// Both clusters with one port of this name and number, and these fields of the Service.
fn clusters(home: Value, eu1: Value, fields: &Value) -> Clusters {
    let id = |name| ClusterId::parse(name).expect("a label");
    let mut state = ClusterSetState::new(id("home"), Timestamp::UNIX_EPOCH);
    fill(&mut state.home, 20, &home, fields, &HOME_ENDPOINTS);
    let mut remote = ClusterObjects::new(id("eu1"));
    fill(&mut remote, 10, &eu1, fields, &EU1_ENDPOINTS);
    state.remotes.push(remote);
    Clusters(state)
}

fn fill(
    cluster: &mut ClusterObjects,
    created: i64,
    ports: &Value,
    fields: &Value,
    endpoints: &[(&str, &str, &str)],
) {
    let mut export = ServiceExport::default();
    export.meta.namespace = "shop".into();
    export.meta.name = "web".into();
    export.meta.created = Timestamp::from_second(created).ok();
    cluster.exports.insert(key(), export);
    let mut spec = fields.clone();
    spec["ports"] = ports.clone();
    spec["clusterIP"] = json!("10.96.0.1");
    spec["ipFamilies"] = json!(["IPv4"]);
    let service = json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": spec});
    cluster.services.insert(key(), decode_value(&service).expect("a Service"));
    let endpoints = endpoints.iter().map(|(address, node, zone)| {
        let conditions = json!({"ready": true, "serving": true, "terminating": false});
        json!({"addresses": [address], "conditions": conditions, "nodeName": node, "zone": zone})
    });
    let target = |port: &Value| json!({"name": port["name"], "port": 8080, "protocol": "TCP"});
    let ports = ports.as_array().expect("ports").iter().map(target);
    let slice = json!({
        "metadata": {"namespace": "shop", "name": "web-1", "labels": {names::SERVICE_NAME: "web"}},
        "addressType": "IPv4",
        "endpoints": endpoints.collect::<Vec<_>>(),
        "ports": ports.collect::<Vec<_>>(),
    });
    let slice: EndpointSlice = decode_value(&slice).expect("a slice");
    cluster.slices.insert(slice.meta.key(), slice);
}

fn key() -> Key {
    Key::new("shop", "web")
}

fn http() -> Value {
    json!([{"name": "http", "port": 80}])
}

impl Clusters {
    fn with(mut self, change: impl FnOnce(&mut ClusterSetState)) -> Self {
        change(&mut self.0);
        self
    }

    /// Carries out the plans; the derived Service gets an address.
    fn settled(mut self) -> Self {
        for _ in 0..8 {
            for write in self.0.plan(&key()).writes {
                self.0.apply(&write);
                if let Write::Create(Object::MultiCluster(MultiClusterObject::Derived(service))) =
                    write
                {
                    let service = self.0.derived.get_mut(&service.meta.key()).expect("just stored");
                    service.cluster_ips = vec!["10.96.0.9".into()];
                }
            }
        }
        assert_eq!(self.0.plan(&key()).writes, []);
        self
    }

    /// What kube-proxy on this node does.
    fn reached(&self, program: &Path, node: &str, zone: &str) -> Reached {
        let service = self.0.derived.values().next().expect("it is not headless");
        let is_imported =
            |slice: &&EndpointSlice| slice.meta.labels.contains_key(names::IMPORT_NAME);
        let slices = self.0.home.slices.values().filter(is_imported);
        let slices: Vec<Value> =
            slices.map(|slice| to_json_value(&Object::Slice(slice.clone()))).collect();
        let service = derived_service_to_json(service);
        ask(program, &json!({"service": service, "slices": slices, "node": node, "zone": zone}))
    }
}

const ALL: &[&str] = &["10.0.0.1", "10.0.0.2", "10.1.0.1"];
const HOME: &[&str] = &["10.0.0.1", "10.0.0.2"];

/// C7: a port of another name and the same number gets traffic.
#[test]
fn clients_reach_ports_by_number() {
    let Some(program) = program() else { return };
    let home = json!([{"name": "web", "port": 80}]);
    let clusters = clusters(home, http(), &json!({})).settled();
    assert_eq!(clusters.reached(program, "n1", "za"), reached(&[("http", ALL)]));
}

/// C7: a port whose name an older export uses otherwise gets none.
#[test]
fn a_conflicting_port_gets_traffic_only_from_clusters_that_have_it() {
    let Some(program) = program() else { return };
    let home = json!([{"name": "http", "port": 81}, {"name": "grpc", "port": 90}]);
    let clusters = clusters(home, http(), &json!({})).settled();
    let expected = reached(&[("http", &["10.1.0.1"]), ("grpc", HOME)]);
    assert_eq!(clusters.reached(program, "n1", "za"), expected);
}

/// M7: a node of the other cluster has the same name.
#[test]
fn local_traffic_stays_in_the_cluster() {
    let Some(program) = program() else { return };
    let fields = json!({"internalTrafficPolicy": "Local"});
    let clusters = clusters(http(), http(), &fields).settled();
    assert_eq!(clusters.reached(program, "n1", "za"), reached(&[("http", &["10.0.0.1"])]));
    assert_eq!(clusters.reached(program, "n9", "za"), reached(&[("http", &[])]));
}

/// M7: one endpoint without a hint would switch this off for all.
#[test]
fn clients_prefer_endpoints_on_their_node() {
    let Some(program) = program() else { return };
    let fields = json!({"trafficDistribution": "PreferSameNode"});
    let clusters = clusters(http(), http(), &fields).settled();
    assert_eq!(clusters.reached(program, "n1", "zc"), reached(&[("http", &["10.0.0.1"])]));
    // No endpoint on this node: those of the zone, in both clusters.
    let zone = reached(&[("http", &["10.0.0.2", "10.1.0.1"])]);
    assert_eq!(clusters.reached(program, "n9", "zb"), zone);
    assert_eq!(clusters.reached(program, "n9", "zc"), reached(&[("http", ALL)]));
}

#[test]
fn clients_prefer_endpoints_of_their_zone_in_all_clusters() {
    let Some(program) = program() else { return };
    let fields = json!({"trafficDistribution": "PreferSameZone"});
    let clusters = clusters(http(), http(), &fields).settled();
    assert_eq!(clusters.reached(program, "n1", "za"), reached(&[("http", &["10.0.0.1"])]));
    let zone = reached(&[("http", &["10.0.0.2", "10.1.0.1"])]);
    assert_eq!(clusters.reached(program, "n1", "zb"), zone);
}

/// U0.
#[test]
fn a_demoted_cluster_gets_traffic_only_if_nobody_else_can() {
    let Some(program) = program() else { return };
    let lose = |state: &mut ClusterSetState| {
        state.remotes[0].state = SourceState::Demoted { last_contact: None };
    };
    let lost = clusters(http(), http(), &json!({})).with(lose).settled();
    assert_eq!(lost.reached(program, "n1", "za"), reached(&[("http", HOME)]));
    let alone = lost.with(|state| state.home.slices.clear()).settled();
    assert_eq!(alone.reached(program, "n1", "za"), reached(&[("http", &["10.1.0.1"])]));
}

/// An endpoint that terminates and still serves is used while no other is ready, wherever it is.
#[test]
fn terminating_endpoints_serve_until_others_are_ready() {
    let Some(program) = program() else { return };
    let terminate = |cluster: &mut ClusterObjects| {
        for endpoint in cluster.slices.values_mut().flat_map(|slice| &mut slice.endpoints) {
            endpoint.conditions.ready = Some(false);
            endpoint.conditions.terminating = Some(true);
        }
    };
    let clusters = clusters(http(), http(), &json!({}));
    let one = clusters.with(|state| terminate(&mut state.remotes[0])).settled();
    assert_eq!(one.reached(program, "n1", "za"), reached(&[("http", HOME)]));
    let imported = |slice: &EndpointSlice| slice.meta.labels.contains_key(names::IMPORT_NAME);
    let both = one.with(|state| {
        state.home.slices.retain(|_, slice| !imported(slice));
        terminate(&mut state.home);
    });
    assert_eq!(both.settled().reached(program, "n1", "za"), reached(&[("http", ALL)]));
}
