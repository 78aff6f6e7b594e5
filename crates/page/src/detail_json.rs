//! Everything about one Service, as JSON.

use std::sync::Arc;

use endpointd_engine::{RequestedImport, ServiceDetail};
use endpointd_model::{
    ClusterIp, Endpoint, EndpointPort, EndpointSlice, Key, Service, ServicePort, TargetPort,
    TopologyMode, names,
};
use endpointd_status::{Change, EndpointCondition, key_row};
use serde_json::{Map, Value, json};

use crate::{API_VERSION, change_json, import_json};

pub fn detail(key: &Key, detail: &ServiceDetail, changes: &[Arc<Change>]) -> Value {
    let ServiceDetail { service: spec, slices, keys, excluded_pods, n_planned_writes, consumers } =
        detail;
    let planned: Map<String, Value> = n_planned_writes
        .iter()
        .map(|(controller, n)| (controller.name().to_owned(), json!(n)))
        .collect();
    json!({
        "apiVersion": API_VERSION,
        "namespace": &*key.namespace,
        "name": &*key.name,
        "service": service(spec),
        "slices": slices.iter().map(slice).collect::<Vec<_>>(),
        "keys": keys.iter().map(key_row).collect::<Vec<_>>(),
        "excludedPods": excluded_pods.iter().map(|(controller, excluded)| json!({
            "controller": controller.name(),
            "pod": &*excluded.pod,
            "reason": excluded.reason.as_str(),
        })).collect::<Vec<_>>(),
        "plannedWrites": planned,
        "consumers": consumers.iter().map(import_json::consumer).collect::<Vec<_>>(),
        "changes": changes.iter().map(|one| change_json::change(one)).collect::<Vec<_>>(),
    })
}

fn service(service: &Service) -> Value {
    let selector: Map<String, Value> =
        service.selector.iter().map(|(key, value)| (key.to_string(), json!(&**value))).collect();
    json!({
        "selector": selector,
        "externalName": service.is_external_name,
        "headless": service.cluster_ip == ClusterIp::Headless,
        "deleting": service.is_deleting,
        "import": import_json::import(RequestedImport::of(service).as_ref()),
        "endpointsTo": service.cross_namespace.as_ref().and_then(|cross| cross.to.as_deref()),
        "families": service.families.iter().map(|family| family.to_string()).collect::<Vec<_>>(),
        "ports": service.ports.iter().map(service_port).collect::<Vec<_>>(),
        "publishNotReady": service.publish_not_ready,
        "topologyMode": match service.topology {
            TopologyMode::Off => None,
            TopologyMode::Auto => Some("Auto"),
        },
        "trafficDistribution": service.traffic_distribution.map(|one| one.as_str()),
    })
}

fn service_port(port: &ServicePort) -> Value {
    json!({
        "name": &*port.name,
        "port": port.number,
        "protocol": port.protocol.as_str(),
        "targetPort": match &port.target {
            TargetPort::Number(number) => json!(number),
            TargetPort::Name(name) => json!(&**name),
        },
    })
}

fn slice(slice: &EndpointSlice) -> Value {
    json!({
        "name": &*slice.meta.name,
        "cluster": slice.meta.labels.get(names::SOURCE_CLUSTER).map(|one| &**one),
        "import": slice.meta.labels.get(names::IMPORT_NAME).map(|one| &**one),
        "managedBy": slice.meta.labels.get(names::MANAGED_BY).map(|one| &**one),
        "addressType": slice.address_type.as_str(),
        "ports": slice.ports.iter().map(slice_port).collect::<Vec<_>>(),
        "triggerTime": slice.meta.annotations.get(names::TRIGGER_TIME).map(|one| &**one),
        "endpoints": slice.endpoints.iter().map(endpoint).collect::<Vec<_>>(),
    })
}

fn slice_port(port: &EndpointPort) -> Value {
    json!({
        "name": port.name.as_deref(),
        "port": port.port,
        "protocol": port.protocol.as_ref().map(|one| one.as_str()),
    })
}

fn endpoint(endpoint: &Endpoint) -> Value {
    let hints = endpoint.hints.as_ref();
    json!({
        "pod": endpoint.target_ref.as_ref().map(|target| &*target.name),
        "addresses": endpoint.addresses.iter().map(|one| &**one).collect::<Vec<_>>(),
        "node": endpoint.node_name.as_deref(),
        "zone": endpoint.zone.as_deref(),
        "condition": EndpointCondition::of(endpoint).as_str(),
        "forZones": hints.map(|hints| hints.for_zones.iter().map(|one| &**one).collect::<Vec<_>>()),
        "forNodes": hints.map(|hints| hints.for_nodes.iter().map(|one| &**one).collect::<Vec<_>>()),
    })
}
