//! Endpoints with all fields, because they are written.

use endpointd_model as model;
use endpointd_model::{InvalidResourceVersion, ObjectRef, Subset, SubsetPort};
use serde::{Deserialize, Serialize};

use crate::lenient::is_default;
use crate::meta::{ObjectMeta, ObjectReference, nonempty_text, text};
use crate::service::read_protocol;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Endpoints {
    #[prost(message, required, tag = "1")]
    pub metadata: ObjectMeta,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub subsets: Vec<EndpointSubset>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EndpointSubset {
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub addresses: Vec<EndpointAddress>,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub not_ready_addresses: Vec<EndpointAddress>,
    #[prost(message, repeated, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub ports: Vec<EndpointPort>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EndpointAddress {
    #[prost(string, tag = "1")]
    pub ip: String,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub target_ref: Option<ObjectReference>,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub hostname: String,
    #[prost(string, optional, tag = "4")]
    #[serde(skip_serializing_if = "is_default")]
    pub node_name: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EndpointPort {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    #[prost(int32, tag = "2")]
    pub port: i32,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub protocol: String,
    #[prost(string, optional, tag = "4")]
    #[serde(skip_serializing_if = "is_default")]
    pub app_protocol: Option<String>,
}

impl TryFrom<Endpoints> for model::Endpoints {
    type Error = InvalidResourceVersion;

    fn try_from(endpoints: Endpoints) -> Result<Self, Self::Error> {
        let Endpoints { metadata, subsets } = endpoints;
        let subsets = subsets.into_iter().map(Subset::from).collect();
        Ok(Self { meta: metadata.try_into()?, subsets })
    }
}

impl From<&model::Endpoints> for Endpoints {
    fn from(endpoints: &model::Endpoints) -> Self {
        let model::Endpoints { meta, subsets } = endpoints;
        Self { metadata: meta.into(), subsets: subsets.iter().map(EndpointSubset::from).collect() }
    }
}

impl From<EndpointSubset> for Subset {
    fn from(subset: EndpointSubset) -> Self {
        let EndpointSubset { addresses, not_ready_addresses, ports } = subset;
        let read = |addresses: Vec<EndpointAddress>| {
            addresses.into_iter().map(model::EndpointAddress::from).collect()
        };
        Self {
            addresses: read(addresses),
            not_ready_addresses: read(not_ready_addresses),
            ports: ports.into_iter().map(SubsetPort::from).collect(),
        }
    }
}

impl From<&Subset> for EndpointSubset {
    fn from(subset: &Subset) -> Self {
        let Subset { addresses, not_ready_addresses, ports } = subset;
        Self {
            addresses: addresses.iter().map(EndpointAddress::from).collect(),
            not_ready_addresses: not_ready_addresses.iter().map(EndpointAddress::from).collect(),
            ports: ports.iter().map(EndpointPort::from).collect(),
        }
    }
}

impl From<EndpointAddress> for model::EndpointAddress {
    fn from(address: EndpointAddress) -> Self {
        let EndpointAddress { ip, target_ref, hostname, node_name } = address;
        Self {
            ip: text(ip),
            hostname: nonempty_text(hostname),
            node_name: node_name.map(text),
            target_ref: target_ref.map(ObjectRef::from),
        }
    }
}

impl From<&model::EndpointAddress> for EndpointAddress {
    fn from(address: &model::EndpointAddress) -> Self {
        let model::EndpointAddress { ip, hostname, node_name, target_ref } = address;
        Self {
            ip: ip.to_string(),
            target_ref: target_ref.as_ref().map(ObjectReference::from),
            hostname: hostname.as_deref().unwrap_or_default().to_owned(),
            node_name: node_name.as_deref().map(str::to_owned),
        }
    }
}

impl From<EndpointPort> for SubsetPort {
    fn from(port: EndpointPort) -> Self {
        let EndpointPort { name, port, protocol, app_protocol } = port;
        Self {
            name: text(name),
            port,
            protocol: read_protocol(&protocol),
            app_protocol: app_protocol.map(text),
        }
    }
}

impl From<&SubsetPort> for EndpointPort {
    fn from(port: &SubsetPort) -> Self {
        let SubsetPort { name, port, protocol, app_protocol } = port;
        Self {
            name: name.to_string(),
            port: *port,
            protocol: protocol.as_str().to_owned(),
            app_protocol: app_protocol.as_deref().map(str::to_owned),
        }
    }
}
