//! The Service that is derived from a ServiceImport, with all fields that are written.

use endpointd_model as model;
use endpointd_model::InvalidResourceVersion;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decode::{Decoded, FromWire};
use crate::lenient::is_default;
use crate::meta::{ObjectMeta, text};
use crate::multicluster::{ImportPort, as_text, to_value};
use crate::service_traffic::{
    SessionAffinityConfig, affinity_config, distribution, families, read, read_families, texts,
};

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DerivedService {
    #[prost(message, required, tag = "1")]
    pub metadata: ObjectMeta,
    #[prost(message, required, tag = "2")]
    pub spec: DerivedServiceSpec,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DerivedServiceSpec {
    #[prost(message, repeated, tag = "1")]
    pub ports: Vec<ImportPort>,
    #[prost(string, tag = "3")]
    #[serde(rename = "clusterIP", skip_serializing_if = "is_default")]
    pub cluster_ip: String,
    #[prost(string, tag = "4")]
    #[serde(rename = "type")]
    pub type_: String,
    #[prost(string, tag = "7")]
    pub session_affinity: String,
    #[prost(message, optional, tag = "14")]
    #[serde(skip_serializing_if = "is_default")]
    pub session_affinity_config: Option<SessionAffinityConfig>,
    #[prost(string, optional, tag = "17")]
    #[serde(skip_serializing_if = "is_default")]
    pub ip_family_policy: Option<String>,
    #[prost(string, repeated, tag = "18")]
    #[serde(rename = "clusterIPs", skip_serializing_if = "is_default")]
    pub cluster_ips: Vec<String>,
    #[prost(string, repeated, tag = "19")]
    #[serde(skip_serializing_if = "is_default")]
    pub ip_families: Vec<String>,
    #[prost(string, optional, tag = "22")]
    pub internal_traffic_policy: Option<String>,
    #[prost(string, optional, tag = "23")]
    #[serde(skip_serializing_if = "is_default")]
    pub traffic_distribution: Option<String>,
}

impl FromWire for model::DerivedService {
    type Wire = DerivedService;
}

impl Decoded for model::DerivedService {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Service";
}

/// The Service as JSON, for a request or for people.
pub fn derived_service_to_json(service: &model::DerivedService) -> Value {
    to_value("v1", "Service", &DerivedService::from(service))
}

impl TryFrom<DerivedService> for model::DerivedService {
    type Error = InvalidResourceVersion;

    fn try_from(service: DerivedService) -> Result<Self, Self::Error> {
        let DerivedService { metadata, spec } = service;
        let cluster_ips = match spec.cluster_ips.is_empty() {
            true => vec![spec.cluster_ip],
            false => spec.cluster_ips,
        };
        let is_address = |ip: &String| !ip.is_empty() && ip != "None";
        Ok(Self {
            meta: metadata.try_into()?,
            ports: spec.ports.into_iter().map(model::ImportPort::from).collect(),
            families: read_families(&spec.ip_families),
            cluster_ips: cluster_ips.into_iter().filter(is_address).map(text).collect(),
            traffic: read(
                &spec.session_affinity,
                spec.session_affinity_config,
                spec.internal_traffic_policy.as_deref(),
            ),
            traffic_distribution: distribution(spec.traffic_distribution.as_deref()),
        })
    }
}

impl From<&model::DerivedService> for DerivedService {
    fn from(service: &model::DerivedService) -> Self {
        let model::DerivedService {
            meta,
            ports,
            families: of_service,
            cluster_ips,
            traffic,
            traffic_distribution,
        } = service;
        let policy = match of_service.len() {
            0 => None,
            1 => Some("SingleStack"),
            _ => Some("PreferDualStack"),
        };
        Self {
            metadata: meta.into(),
            spec: DerivedServiceSpec {
                ports: ports.iter().map(ImportPort::from).collect(),
                cluster_ip: cluster_ips.first().map_or_else(String::new, ToString::to_string),
                type_: "ClusterIP".to_owned(),
                session_affinity: traffic.session_affinity.as_str().to_owned(),
                session_affinity_config: affinity_config(traffic.session_affinity),
                ip_family_policy: policy.map(str::to_owned),
                cluster_ips: texts(cluster_ips),
                ip_families: families(of_service),
                internal_traffic_policy: Some(traffic.internal_policy.as_str().to_owned()),
                traffic_distribution: traffic_distribution.map(as_text),
            },
        }
    }
}
