//! The fields of a node that zones and topology hints need.

use std::collections::BTreeMap;

use endpointd_model as model;
use endpointd_model::{InvalidResourceVersion, ResourceVersion, names};
use serde::Deserialize;

use crate::meta::{PartialObjectMeta, labels, text};
use crate::pod::{Condition, readiness};
use crate::quantity::Quantity;

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Node {
    #[prost(message, required, tag = "1")]
    pub metadata: PartialObjectMeta,
    #[prost(message, required, tag = "3")]
    pub status: NodeStatus,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeStatus {
    #[prost(btree_map = "string, message", tag = "2")]
    pub allocatable: BTreeMap<String, Quantity>,
    #[prost(message, repeated, tag = "4")]
    pub conditions: Vec<Condition>,
}

impl TryFrom<Node> for model::Node {
    type Error = InvalidResourceVersion;

    fn try_from(node: Node) -> Result<Self, Self::Error> {
        let Node { metadata, status: NodeStatus { allocatable, conditions } } = node;
        let labels = labels(metadata.labels);
        Ok(Self {
            name: text(metadata.name),
            resource_version: ResourceVersion::parse(&metadata.resource_version)?,
            zone: labels.get(names::ZONE).filter(|zone| !zone.is_empty()).cloned(),
            is_ready: readiness(&conditions).is_some_and(|readiness| readiness.is_ready),
            is_control_plane: labels.contains_key(names::CONTROL_PLANE_NODE)
                || labels.contains_key(names::MASTER_NODE),
            cpu_nanos: allocatable.get("cpu").map_or(0, Quantity::nanos),
        })
    }
}
