//! ReferenceGrants of the Gateway API. They are custom resources, which the API server sends only as
//! JSON; the tags exist because one set of structs is decoded from both encodings.

use endpointd_model as model;
use endpointd_model::{InvalidResourceVersion, ResourceVersion};
use serde::Deserialize;

use crate::decode::{Decoded, FromWire};
use crate::meta::{PartialObjectMeta, nonempty_text, text};

const GROUP: &str = "gateway.networking.k8s.io/";

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReferenceGrant {
    #[prost(message, required, tag = "1")]
    pub metadata: PartialObjectMeta,
    #[prost(message, required, tag = "2")]
    pub spec: ReferenceGrantSpec,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReferenceGrantSpec {
    #[prost(message, repeated, tag = "1")]
    pub from: Vec<From>,
    #[prost(message, repeated, tag = "2")]
    pub to: Vec<To>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct From {
    #[prost(string, tag = "1")]
    pub group: String,
    #[prost(string, tag = "2")]
    pub kind: String,
    #[prost(string, tag = "3")]
    pub namespace: String,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct To {
    #[prost(string, tag = "1")]
    pub group: String,
    #[prost(string, tag = "2")]
    pub kind: String,
    #[prost(string, tag = "3")]
    pub name: String,
}

impl FromWire for model::ReferenceGrant {
    type Wire = ReferenceGrant;
}

impl Decoded for model::ReferenceGrant {
    /// The newest version; all versions have the same fields.
    const API_VERSION: &'static str = "gateway.networking.k8s.io/v1";
    const KIND: &'static str = "ReferenceGrant";

    fn has_api_version(found: &str) -> bool {
        found.starts_with(GROUP)
    }
}

impl TryFrom<ReferenceGrant> for model::ReferenceGrant {
    type Error = InvalidResourceVersion;

    fn try_from(grant: ReferenceGrant) -> Result<Self, Self::Error> {
        let ReferenceGrant { metadata, spec: ReferenceGrantSpec { from, to } } = grant;
        let from = from.into_iter().map(|From { group, kind, namespace }| model::GrantedFrom {
            group: text(group),
            kind: text(kind),
            namespace: text(namespace),
        });
        let to = to.into_iter().map(|To { group, kind, name }| model::GrantedTo {
            group: text(group),
            kind: text(kind),
            name: nonempty_text(name),
        });
        Ok(Self {
            namespace: text(metadata.namespace),
            name: text(metadata.name),
            resource_version: ResourceVersion::parse(&metadata.resource_version)?,
            from: from.collect(),
            to: to.collect(),
        })
    }
}
