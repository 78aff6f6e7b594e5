//! Metadata, owner references, and object references.

use endpointd_model::{
    InvalidResourceVersion, Labels, Meta, ObjectRef, OwnerRef, ResourceVersion, SharedStr,
};
use serde::{Deserialize, Serialize};

use crate::lenient::is_default;
use crate::time::Time;

/// `metav1.ObjectMeta` without `managedFields`, which the API server maintains.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectMeta {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub generate_name: String,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
    #[prost(string, tag = "5")]
    #[serde(skip_serializing_if = "is_default")]
    pub uid: String,
    #[prost(string, tag = "6")]
    #[serde(skip_serializing_if = "is_default")]
    pub resource_version: String,
    #[prost(int64, tag = "7")]
    #[serde(skip_serializing_if = "is_default")]
    pub generation: i64,
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "is_default")]
    pub creation_timestamp: Option<Time>,
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "is_default")]
    pub deletion_timestamp: Option<Time>,
    #[prost(int64, optional, tag = "10")]
    #[serde(skip_serializing_if = "is_default")]
    pub deletion_grace_period_seconds: Option<i64>,
    #[prost(message, repeated, tag = "11")]
    #[serde(with = "crate::string_map", skip_serializing_if = "is_default")]
    pub labels: Vec<MapEntry>,
    #[prost(message, repeated, tag = "12")]
    #[serde(with = "crate::string_map", skip_serializing_if = "is_default")]
    pub annotations: Vec<MapEntry>,
    #[prost(message, repeated, tag = "13")]
    #[serde(skip_serializing_if = "is_default")]
    pub owner_references: Vec<OwnerReference>,
    #[prost(string, repeated, tag = "14")]
    #[serde(skip_serializing_if = "is_default")]
    pub finalizers: Vec<String>,
}

/// The part of `metav1.ObjectMeta` that is decoded of objects that endpointd only reads.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PartialObjectMeta {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub namespace: String,
    #[prost(string, tag = "5")]
    pub uid: String,
    #[prost(string, tag = "6")]
    pub resource_version: String,
    #[prost(message, optional, tag = "9")]
    pub deletion_timestamp: Option<Time>,
    #[prost(message, repeated, tag = "11")]
    #[serde(with = "crate::string_map")]
    pub labels: Vec<MapEntry>,
}

/// `metav1.OwnerReference`.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerReference {
    #[prost(string, tag = "5")]
    pub api_version: String,
    #[prost(string, tag = "1")]
    pub kind: String,
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(string, tag = "4")]
    pub uid: String,
    #[prost(bool, optional, tag = "6")]
    #[serde(skip_serializing_if = "is_default")]
    pub controller: Option<bool>,
    #[prost(bool, optional, tag = "7")]
    #[serde(skip_serializing_if = "is_default")]
    pub block_owner_deletion: Option<bool>,
}

/// `corev1.ObjectReference`.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectReference {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub kind: String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    #[prost(string, tag = "4")]
    #[serde(skip_serializing_if = "is_default")]
    pub uid: String,
    #[prost(string, tag = "5")]
    #[serde(skip_serializing_if = "is_default")]
    pub api_version: String,
    #[prost(string, tag = "6")]
    #[serde(skip_serializing_if = "is_default")]
    pub resource_version: String,
    #[prost(string, tag = "7")]
    #[serde(skip_serializing_if = "is_default")]
    pub field_path: String,
}

/// One entry of a map of string to string. Protobuf encodes a map as a list of entries; decoding it
/// as a list avoids building a tree.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MapEntry {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

/// Empty strings share one value without an allocation.
pub(crate) fn text(text: String) -> SharedStr {
    if text.is_empty() { SharedStr::default() } else { text.into() }
}

pub(crate) fn nonempty_text(text: String) -> Option<SharedStr> {
    (!text.is_empty()).then(|| text.into())
}

pub(crate) fn labels(string_map: Vec<MapEntry>) -> Labels {
    if string_map.is_empty() {
        return Labels::default();
    }
    string_map.into_iter().map(|MapEntry { key, value }| (text(key), text(value))).collect()
}

pub(crate) fn string_map(labels: &Labels) -> Vec<MapEntry> {
    labels
        .iter()
        .map(|(key, value)| MapEntry { key: key.to_string(), value: value.to_string() })
        .collect()
}

impl TryFrom<ObjectMeta> for Meta {
    type Error = InvalidResourceVersion;

    fn try_from(meta: ObjectMeta) -> Result<Self, Self::Error> {
        let ObjectMeta {
            name,
            generate_name,
            namespace,
            uid,
            resource_version,
            generation,
            creation_timestamp,
            deletion_timestamp,
            deletion_grace_period_seconds,
            labels: label_pairs,
            annotations,
            owner_references,
            finalizers,
        } = meta;
        Ok(Self {
            namespace: text(namespace),
            name: text(name),
            generate_name: nonempty_text(generate_name),
            uid: uid.as_str().into(),
            resource_version: ResourceVersion::parse(&resource_version)?,
            generation: (generation != 0).then_some(generation),
            created: creation_timestamp.and_then(Time::when),
            deleted: deletion_timestamp.map(Time::timestamp),
            deletion_grace_secs: deletion_grace_period_seconds,
            labels: labels(label_pairs),
            annotations: labels(annotations),
            owners: owner_references.into_iter().map(OwnerRef::from).collect(),
            finalizers: finalizers.into_iter().map(text).collect(),
        })
    }
}

impl From<&Meta> for ObjectMeta {
    fn from(meta: &Meta) -> Self {
        let Meta {
            namespace,
            name,
            generate_name,
            uid,
            resource_version,
            generation,
            created,
            deleted,
            deletion_grace_secs,
            labels,
            annotations,
            owners,
            finalizers,
        } = meta;
        Self {
            name: name.to_string(),
            generate_name: generate_name.as_deref().unwrap_or_default().to_owned(),
            namespace: namespace.to_string(),
            uid: uid.to_string(),
            resource_version: resource_version.to_string(),
            generation: generation.unwrap_or_default(),
            creation_timestamp: created.map(Time::from),
            deletion_timestamp: deleted.map(Time::from),
            deletion_grace_period_seconds: *deletion_grace_secs,
            labels: string_map(labels),
            annotations: string_map(annotations),
            owner_references: owners.iter().map(OwnerReference::from).collect(),
            finalizers: finalizers.iter().map(ToString::to_string).collect(),
        }
    }
}

impl From<OwnerReference> for OwnerRef {
    fn from(owner: OwnerReference) -> Self {
        let OwnerReference { api_version, kind, name, uid, controller, block_owner_deletion } =
            owner;
        Self {
            api_version: text(api_version),
            kind: text(kind),
            name: text(name),
            uid: uid.as_str().into(),
            controller,
            block_owner_deletion,
        }
    }
}

impl From<&OwnerRef> for OwnerReference {
    fn from(owner: &OwnerRef) -> Self {
        let OwnerRef { api_version, kind, name, uid, controller, block_owner_deletion } = owner;
        Self {
            api_version: api_version.to_string(),
            kind: kind.to_string(),
            name: name.to_string(),
            uid: uid.to_string(),
            controller: *controller,
            block_owner_deletion: *block_owner_deletion,
        }
    }
}

impl From<ObjectReference> for ObjectRef {
    fn from(reference: ObjectReference) -> Self {
        let ObjectReference {
            kind,
            namespace,
            name,
            uid,
            api_version,
            resource_version,
            field_path,
        } = reference;
        Self {
            kind: text(kind),
            namespace: text(namespace),
            name: text(name),
            uid: uid.as_str().into(),
            api_version: text(api_version),
            resource_version: text(resource_version),
            field_path: text(field_path),
        }
    }
}

impl From<&ObjectRef> for ObjectReference {
    fn from(reference: &ObjectRef) -> Self {
        let ObjectRef { kind, namespace, name, uid, api_version, resource_version, field_path } =
            reference;
        Self {
            kind: kind.to_string(),
            namespace: namespace.to_string(),
            name: name.to_string(),
            uid: uid.to_string(),
            api_version: api_version.to_string(),
            resource_version: resource_version.to_string(),
            field_path: field_path.to_string(),
        }
    }
}
