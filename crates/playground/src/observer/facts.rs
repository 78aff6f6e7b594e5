//! The fields of objects that the observer reads.

use std::collections::BTreeMap;

use endpointd_apiserver::store::Stored;
use serde::Deserialize;
use serde_json::Value;

use super::latency::PodState;
use crate::cluster::facts::PodFacts;
use crate::view_state::{Conditions, NO_ZONE};

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct ServiceFacts {
    metadata: ServiceMeta,
    spec: ServiceSpec,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ServiceMeta {
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ServiceSpec {
    #[serde(rename = "type")]
    kind: String,
    #[serde(rename = "clusterIP")]
    cluster_ip: String,
    selector: BTreeMap<String, String>,
    ip_families: Vec<String>,
    traffic_distribution: Option<String>,
    ports: Vec<ServicePort>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ServicePort {
    target_port: Value,
}

const TOPOLOGY: [&str; 2] =
    ["service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"];

impl ServiceFacts {
    /// The most specific property of a Service, in at most two words.
    pub fn kind(&self) -> String {
        let spec = &self.spec;
        let annotated = |name: &str| self.metadata.annotations.contains_key(name);
        if spec.kind == "ExternalName" {
            return "external".to_owned();
        }
        if spec.selector.is_empty() {
            return "manual".to_owned();
        }
        if spec.cluster_ip == "None" {
            return "headless".to_owned();
        }
        if TOPOLOGY.iter().any(|name| annotated(name)) {
            return "topology".to_owned();
        }
        if let Some(distribution) = &spec.traffic_distribution {
            return match distribution.as_str() {
                "PreferSameZone" | "PreferClose" => "same zone".to_owned(),
                "PreferSameNode" => "same node".to_owned(),
                other => other.to_owned(),
            };
        }
        if spec.ip_families.len() > 1 {
            return "dual stack".to_owned();
        }
        if spec.ports.iter().any(|port| port.target_port.is_string()) {
            return "named ports".to_owned();
        }
        "plain".to_owned()
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct SliceFacts {
    pub address_type: String,
    endpoints: Vec<Endpoint>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Endpoint {
    conditions: EndpointConditions,
    target_ref: Option<TargetRef>,
    zone: Option<String>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct EndpointConditions {
    ready: Option<bool>,
    serving: Option<bool>,
    terminating: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TargetRef {
    kind: String,
    name: String,
}

impl SliceFacts {
    pub fn n_endpoints(&self) -> usize {
        self.endpoints.len()
    }

    /// The pods in the slice and their published states.
    pub fn pods(&self) -> impl Iterator<Item = (&str, PodState)> {
        self.endpoints.iter().filter_map(|endpoint| {
            let target = endpoint.target_ref.as_ref().filter(|target| target.kind == "Pod")?;
            let EndpointConditions { ready: _, serving, terminating } = endpoint.conditions;
            let state = PodState {
                has_address: true,
                is_ready: serving == Some(true),
                is_terminating: terminating == Some(true),
            };
            Some((target.name.as_str(), state))
        })
    }

    /// Endpoints without a zone are counted under [`NO_ZONE`].
    pub fn by_zone(&self) -> BTreeMap<String, Conditions> {
        let mut by_zone: BTreeMap<String, Conditions> = BTreeMap::new();
        for endpoint in &self.endpoints {
            let zone = endpoint.zone.clone().unwrap_or_else(|| NO_ZONE.to_owned());
            let counts = by_zone.entry(zone).or_default();
            let EndpointConditions { ready, serving: _, terminating } = endpoint.conditions;
            // Without a `ready` condition an endpoint is ready.
            match (terminating == Some(true), ready != Some(false)) {
                (true, _) => counts.n_terminating += 1,
                (false, true) => counts.n_ready += 1,
                (false, false) => counts.n_unready += 1,
            }
        }
        by_zone
    }
}

pub fn pod_state(stored: &Stored) -> PodState {
    let facts = PodFacts::of(stored);
    PodState {
        has_address: facts.has_address,
        is_ready: facts.is_ready,
        is_terminating: stored.is_deleting,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_is_described_by_its_most_specific_property() {
        let kind = |spec: Value, annotations: Value| {
            let object = json!({"metadata": {"annotations": annotations}, "spec": spec});
            serde_json::from_value::<ServiceFacts>(object).expect("it reads").kind()
        };
        let plain = json!({"selector": {"a": "b"}, "clusterIP": "10.0.0.1"});
        let with = |field: &str, value: Value| {
            let mut spec = plain.clone();
            spec[field] = value;
            spec
        };
        assert_eq!(kind(plain.clone(), json!({})), "plain");
        assert_eq!(kind(with("clusterIP", json!("None")), json!({})), "headless");
        assert_eq!(kind(with("ipFamilies", json!(["IPv4", "IPv6"])), json!({})), "dual stack");
        assert_eq!(kind(with("ports", json!([{"targetPort": "http"}])), json!({})), "named ports");
        let distribution = json!("PreferSameZone");
        assert_eq!(kind(with("trafficDistribution", distribution), json!({})), "same zone");
        assert_eq!(kind(plain, json!({TOPOLOGY[0]: "Auto"})), "topology");
        assert_eq!(kind(json!({}), json!({})), "manual");
        assert_eq!(kind(json!({"type": "ExternalName"}), json!({})), "external");
    }

    #[test]
    fn endpoints_are_counted_by_zone_and_condition() {
        let endpoint = |zone: &str, ready: bool, terminating: bool| {
            let conditions = json!({"ready": ready, "serving": true, "terminating": terminating});
            json!({"zone": zone, "conditions": conditions})
        };
        let slice = json!({"endpoints": [
            endpoint("a", true, false), endpoint("a", false, false), endpoint("b", false, true),
            {"addresses": ["10.0.0.1"]},
        ]});
        let facts: SliceFacts = serde_json::from_value(slice).expect("it reads");
        let counts =
            |n_ready, n_unready, n_terminating| Conditions { n_ready, n_unready, n_terminating };
        let by_zone = [(NO_ZONE, counts(1, 0, 0)), ("a", counts(1, 1, 0)), ("b", counts(0, 0, 1))];
        assert_eq!(facts.by_zone(), by_zone.map(|(zone, n)| (zone.to_owned(), n)).into());
    }
}
