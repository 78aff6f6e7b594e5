//! EndpointSlices with all fields, because they are written. Upstream distinguishes a pointer to an
//! empty value from no pointer, so its pointer fields are `Option` here.

use endpointd_model as model;
use endpointd_model::{AddressType, Conditions, Hints, InvalidResourceVersion, ObjectRef};
use serde::{Deserialize, Serialize};

use crate::lenient::is_default;
use crate::meta::{MapEntry, ObjectMeta, ObjectReference, labels, string_map, text};

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EndpointSlice {
    #[prost(message, required, tag = "1")]
    pub metadata: ObjectMeta,
    #[prost(string, tag = "4")]
    pub address_type: String,
    #[prost(message, repeated, tag = "2")]
    pub endpoints: Vec<Endpoint>,
    #[prost(message, repeated, tag = "3")]
    pub ports: Vec<EndpointPort>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Endpoint {
    #[prost(string, repeated, tag = "1")]
    pub addresses: Vec<String>,
    #[prost(message, required, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: EndpointConditions,
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub hostname: Option<String>,
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "is_default")]
    pub target_ref: Option<ObjectReference>,
    #[prost(message, repeated, tag = "5")]
    #[serde(with = "crate::string_map", skip_serializing_if = "is_default")]
    pub deprecated_topology: Vec<MapEntry>,
    #[prost(string, optional, tag = "6")]
    #[serde(skip_serializing_if = "is_default")]
    pub node_name: Option<String>,
    #[prost(string, optional, tag = "7")]
    #[serde(skip_serializing_if = "is_default")]
    pub zone: Option<String>,
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "is_default")]
    pub hints: Option<EndpointHints>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EndpointConditions {
    #[prost(bool, optional, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub ready: Option<bool>,
    #[prost(bool, optional, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub serving: Option<bool>,
    #[prost(bool, optional, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub terminating: Option<bool>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EndpointHints {
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub for_zones: Vec<Named>,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub for_nodes: Vec<Named>,
}

/// `discoveryv1.ForZone` and `ForNode`.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Named {
    #[prost(string, tag = "1")]
    pub name: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EndpointPort {
    #[prost(string, optional, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub name: Option<String>,
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub protocol: Option<String>,
    #[prost(int32, optional, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub port: Option<i32>,
    #[prost(string, optional, tag = "4")]
    #[serde(skip_serializing_if = "is_default")]
    pub app_protocol: Option<String>,
}

impl TryFrom<EndpointSlice> for model::EndpointSlice {
    type Error = InvalidResourceVersion;

    fn try_from(slice: EndpointSlice) -> Result<Self, Self::Error> {
        let EndpointSlice { metadata, address_type, endpoints, ports } = slice;
        Ok(Self {
            meta: metadata.try_into()?,
            address_type: AddressType::from(address_type.as_str()),
            endpoints: endpoints.into_iter().map(model::Endpoint::from).collect(),
            ports: ports.into_iter().map(model::EndpointPort::from).collect(),
        })
    }
}

impl From<&model::EndpointSlice> for EndpointSlice {
    fn from(slice: &model::EndpointSlice) -> Self {
        let model::EndpointSlice { meta, address_type, endpoints, ports } = slice;
        Self {
            metadata: meta.into(),
            address_type: address_type.as_str().to_owned(),
            endpoints: endpoints.iter().map(Endpoint::from).collect(),
            ports: ports.iter().map(EndpointPort::from).collect(),
        }
    }
}

impl From<Endpoint> for model::Endpoint {
    fn from(endpoint: Endpoint) -> Self {
        let Endpoint {
            addresses,
            conditions: EndpointConditions { ready, serving, terminating },
            hostname,
            target_ref,
            deprecated_topology,
            node_name,
            zone,
            hints,
        } = endpoint;
        Self {
            addresses: addresses.into_iter().map(text).collect(),
            conditions: Conditions { ready, serving, terminating },
            hostname: hostname.map(text),
            node_name: node_name.map(text),
            target_ref: target_ref.map(ObjectRef::from),
            zone: zone.map(text),
            hints: hints.map(Hints::from),
            deprecated_topology: labels(deprecated_topology),
        }
    }
}

impl From<&model::Endpoint> for Endpoint {
    fn from(endpoint: &model::Endpoint) -> Self {
        let model::Endpoint {
            addresses,
            conditions: Conditions { ready, serving, terminating },
            hostname,
            node_name,
            target_ref,
            zone,
            hints,
            deprecated_topology,
        } = endpoint;
        Self {
            addresses: addresses.iter().map(ToString::to_string).collect(),
            conditions: EndpointConditions {
                ready: *ready,
                serving: *serving,
                terminating: *terminating,
            },
            hostname: hostname.as_deref().map(str::to_owned),
            target_ref: target_ref.as_ref().map(ObjectReference::from),
            deprecated_topology: string_map(deprecated_topology),
            node_name: node_name.as_deref().map(str::to_owned),
            zone: zone.as_deref().map(str::to_owned),
            hints: hints.as_ref().map(EndpointHints::from),
        }
    }
}

impl From<EndpointHints> for Hints {
    fn from(hints: EndpointHints) -> Self {
        let EndpointHints { for_zones, for_nodes } = hints;
        Self {
            for_zones: for_zones.into_iter().map(|zone| text(zone.name)).collect(),
            for_nodes: for_nodes.into_iter().map(|node| text(node.name)).collect(),
        }
    }
}

impl From<&Hints> for EndpointHints {
    fn from(hints: &Hints) -> Self {
        let Hints { for_zones, for_nodes } = hints;
        Self {
            for_zones: for_zones.iter().map(|zone| Named { name: zone.to_string() }).collect(),
            for_nodes: for_nodes.iter().map(|node| Named { name: node.to_string() }).collect(),
        }
    }
}

impl From<EndpointPort> for model::EndpointPort {
    fn from(port: EndpointPort) -> Self {
        let EndpointPort { name, protocol, port, app_protocol } = port;
        Self {
            name: name.map(text),
            port,
            protocol: protocol.map(|protocol| protocol.as_str().into()),
            app_protocol: app_protocol.map(text),
        }
    }
}

impl From<&model::EndpointPort> for EndpointPort {
    fn from(port: &model::EndpointPort) -> Self {
        let model::EndpointPort { name, port, protocol, app_protocol } = port;
        Self {
            name: name.as_deref().map(str::to_owned),
            protocol: protocol.as_ref().map(|protocol| protocol.as_str().to_owned()),
            port: *port,
            app_protocol: app_protocol.as_deref().map(str::to_owned),
        }
    }
}
