//! The fields of a Service that decide what is published.

use endpointd_model as model;
use endpointd_model::{
    ClusterIp, CrossNamespace, Family, InvalidResourceVersion, Protocol, ResourceVersion,
    ServiceTraffic, TargetPort, TolerateUnready, TopologyMode,
};
use serde::Deserialize;

use crate::int_or_string::IntOrString;
use crate::meta::{MapEntry, ObjectMeta, labels, text};
use crate::service_status::ServiceStatus;
use crate::service_traffic::{self, SessionAffinityConfig, distribution, read_families};
use crate::time::Time;

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Service {
    #[prost(message, required, tag = "1")]
    pub metadata: ObjectMeta,
    #[prost(message, required, tag = "2")]
    pub spec: ServiceSpec,
    #[prost(message, optional, tag = "3")]
    pub status: Option<ServiceStatus>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceSpec {
    #[prost(message, repeated, tag = "1")]
    pub ports: Vec<ServicePort>,
    #[prost(message, repeated, tag = "2")]
    #[serde(with = "crate::string_map")]
    pub selector: Vec<MapEntry>,
    #[prost(string, tag = "3")]
    #[serde(rename = "clusterIP")]
    pub cluster_ip: String,
    #[prost(string, tag = "4")]
    #[serde(rename = "type")]
    pub type_: String,
    #[prost(string, tag = "7")]
    pub session_affinity: String,
    #[prost(bool, tag = "13")]
    pub publish_not_ready_addresses: bool,
    #[prost(message, optional, tag = "14")]
    pub session_affinity_config: Option<SessionAffinityConfig>,
    #[prost(string, repeated, tag = "19")]
    pub ip_families: Vec<String>,
    #[prost(string, optional, tag = "22")]
    pub internal_traffic_policy: Option<String>,
    #[prost(string, optional, tag = "23")]
    pub traffic_distribution: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServicePort {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub protocol: String,
    #[prost(int32, tag = "3")]
    pub port: i32,
    #[prost(message, optional, tag = "4")]
    pub target_port: Option<IntOrString>,
    #[prost(string, optional, tag = "6")]
    pub app_protocol: Option<String>,
}

impl TryFrom<Service> for model::Service {
    type Error = InvalidResourceVersion;

    fn try_from(service: Service) -> Result<Self, Self::Error> {
        let Service { metadata, spec, status } = service;
        let ServiceSpec {
            ports,
            selector,
            cluster_ip,
            type_,
            session_affinity,
            publish_not_ready_addresses,
            session_affinity_config,
            ip_families,
            internal_traffic_policy,
            traffic_distribution,
        } = spec;
        let traffic = service_traffic::read(
            &session_affinity,
            session_affinity_config,
            internal_traffic_policy.as_deref(),
        );
        let annotations = labels(metadata.annotations);
        let condition = status.and_then(ServiceStatus::source_condition);
        Ok(Self {
            namespace: text(metadata.namespace),
            name: text(metadata.name),
            uid: metadata.uid.as_str().into(),
            resource_version: ResourceVersion::parse(&metadata.resource_version)?,
            labels: labels(metadata.labels),
            created: metadata.creation_timestamp.and_then(Time::when),
            is_deleting: metadata.deletion_timestamp.is_some(),
            is_external_name: type_ == "ExternalName",
            selector: labels(selector),
            cluster_ip: read_cluster_ip(&cluster_ip),
            families: read_families(&ip_families),
            ports: ports.into_iter().map(model::ServicePort::from).collect(),
            publish_not_ready: publish_not_ready_addresses,
            tolerate_unready: TolerateUnready::of(&annotations),
            topology: TopologyMode::of(&annotations),
            cross_namespace: CrossNamespace::of(&annotations, condition).map(Box::new),
            traffic_distribution: distribution(traffic_distribution.as_deref()),
            traffic: (traffic != ServiceTraffic::default()).then(|| Box::new(traffic)),
        })
    }
}

impl From<ServicePort> for model::ServicePort {
    fn from(port: ServicePort) -> Self {
        let ServicePort { name, protocol, port, target_port, app_protocol } = port;
        Self {
            name: text(name),
            protocol: read_protocol(&protocol),
            number: port,
            app_protocol: app_protocol.map(text),
            target: match target_port {
                Some(target) if target.is_text() => TargetPort::Name(text(target.text)),
                Some(target) => TargetPort::Number(target.number),
                // The API server's default. Only objects from files lack a targetPort.
                None => TargetPort::Number(port),
            },
        }
    }
}

/// The API server's default for all ports is TCP.
pub(crate) fn read_protocol(text: &str) -> Protocol {
    if text.is_empty() { Protocol::Tcp } else { text.into() }
}

/// A text that is not an IP address counts as IPv4, as in upstream's `IsIPv6String`.
fn read_cluster_ip(text: &str) -> ClusterIp {
    match text {
        "" => ClusterIp::Unset,
        "None" => ClusterIp::Headless,
        ip => ClusterIp::Ip(model::parse_ip(ip).map_or(Family::V4, Family::of)),
    }
}
