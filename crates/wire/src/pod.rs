//! The fields of a pod that decide whether and how it is published.

use std::sync::Arc;

use endpointd_model as model;
use endpointd_model::{
    InvalidResourceVersion, NamedPort, Phase, PodIp, PodIps, Readiness, ResourceVersion,
};
use serde::Deserialize;

use crate::meta::{PartialObjectMeta, labels, nonempty_text, text};
use crate::service::read_protocol;
use crate::time::Time;

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Pod {
    #[prost(message, required, tag = "1")]
    pub metadata: PartialObjectMeta,
    #[prost(message, required, tag = "2")]
    pub spec: PodSpec,
    #[prost(message, required, tag = "3")]
    pub status: PodStatus,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    #[prost(message, repeated, tag = "2")]
    pub containers: Vec<Container>,
    #[prost(message, repeated, tag = "20")]
    pub init_containers: Vec<Container>,
    #[prost(string, tag = "10")]
    pub node_name: String,
    #[prost(string, tag = "16")]
    pub hostname: String,
    #[prost(string, tag = "17")]
    pub subdomain: String,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    #[prost(message, repeated, tag = "6")]
    pub ports: Vec<ContainerPort>,
    #[prost(string, tag = "24")]
    pub restart_policy: String,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerPort {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int32, tag = "3")]
    pub container_port: i32,
    #[prost(string, tag = "4")]
    pub protocol: String,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    #[prost(string, tag = "1")]
    pub phase: String,
    #[prost(message, repeated, tag = "2")]
    pub conditions: Vec<Condition>,
    #[prost(string, tag = "6")]
    #[serde(rename = "podIP")]
    pub pod_ip: String,
    #[prost(message, repeated, tag = "12")]
    #[serde(rename = "podIPs")]
    pub pod_ips: Vec<IpEntry>,
}

/// `corev1.PodIP`.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub struct IpEntry {
    #[prost(string, tag = "1")]
    pub ip: String,
}

/// A condition of a pod or a node; both have the same tags.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    #[prost(string, tag = "1")]
    #[serde(rename = "type")]
    pub type_: String,
    #[prost(string, tag = "2")]
    pub status: String,
    #[prost(message, optional, tag = "4")]
    pub last_transition_time: Option<Time>,
}

impl TryFrom<Pod> for model::Pod {
    type Error = InvalidResourceVersion;

    fn try_from(pod: Pod) -> Result<Self, Self::Error> {
        let Pod { metadata, spec, status } = pod;
        let PodSpec { containers, init_containers, node_name, hostname, subdomain } = spec;
        let PodStatus { phase, conditions, pod_ip, pod_ips } = status;
        Ok(Self {
            namespace: text(metadata.namespace),
            name: text(metadata.name),
            uid: metadata.uid.as_str().into(),
            resource_version: ResourceVersion::parse(&metadata.resource_version)?,
            labels: labels(metadata.labels),
            node_name: nonempty_text(node_name),
            hostname: nonempty_text(hostname),
            subdomain: nonempty_text(subdomain),
            ips: PodIps {
                primary: (!pod_ip.is_empty()).then(|| PodIp::parse(&pod_ip)),
                all: pod_ips.iter().map(|entry| PodIp::parse(&entry.ip)).collect(),
            },
            phase: read_phase(&phase),
            readiness: readiness(&conditions),
            is_terminating: metadata.deletion_timestamp.is_some(),
            named_ports: named_ports(containers, init_containers),
        })
    }
}

fn read_phase(text: &str) -> Phase {
    match text {
        "Failed" => Phase::Failed,
        "Succeeded" => Phase::Succeeded,
        _ => Phase::Active,
    }
}

/// The first condition of its type counts, as in upstream's `GetPodConditionFromList`.
pub(crate) fn readiness(conditions: &[Condition]) -> Option<Readiness> {
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    Some(Readiness {
        is_ready: ready.status == "True",
        since: ready.last_transition_time.and_then(Time::when),
    })
}

/// An init container that restarts always is a sidecar. Upstream: `FindPort`.
fn named_ports(containers: Vec<Container>, init_containers: Vec<Container>) -> Arc<[NamedPort]> {
    let sidecars =
        init_containers.into_iter().filter(|container| container.restart_policy == "Always");
    containers
        .into_iter()
        .chain(sidecars)
        .flat_map(|container| container.ports)
        .filter(|port| !port.name.is_empty())
        .map(|ContainerPort { name, container_port, protocol }| NamedPort {
            name: text(name),
            protocol: read_protocol(&protocol),
            number: container_port,
        })
        .collect()
}
