//! The fields of a namespace that decide whether something can be imported into it.

use endpointd_model as model;
use endpointd_model::{InvalidResourceVersion, ResourceVersion};
use serde::Deserialize;

use crate::meta::{PartialObjectMeta, text};

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Namespace {
    #[prost(message, required, tag = "1")]
    pub metadata: PartialObjectMeta,
}

impl TryFrom<Namespace> for model::Namespace {
    type Error = InvalidResourceVersion;

    fn try_from(namespace: Namespace) -> Result<Self, Self::Error> {
        let Namespace { metadata } = namespace;
        Ok(Self {
            name: text(metadata.name),
            resource_version: ResourceVersion::parse(&metadata.resource_version)?,
            is_terminating: metadata.deletion_timestamp.is_some(),
        })
    }
}
