//! Decodes a list. Items are decoded one by one into the model: a malformed item does not affect
//! the others, and the wire structs of a large list never exist at the same time.

use endpointd_model::{ResourceVersion, SharedStr};
use prost::Message;
use prost::bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::decode::{
    Decoded, check_kind, from_json, from_protobuf, malformed_without_identity, read_json,
};
use crate::envelope::{Encoding, TypeMeta, Unknown};
use crate::malformed::Malformed;
use crate::meta::nonempty_text;

/// One page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The version of the whole list, from which a watch continues.
    pub resource_version: ResourceVersion,
    /// Token of the next page; none on the last page.
    pub continue_token: Option<SharedStr>,
    pub items: Vec<T>,
    pub malformed: Vec<Malformed>,
}

/// `metav1.ListMeta`.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListMeta {
    #[prost(string, tag = "2")]
    resource_version: String,
    #[prost(string, tag = "3")]
    #[serde(rename = "continue")]
    continue_: String,
}

/// Any list: metadata and items have the same tags in all list kinds.
#[derive(Clone, PartialEq, prost::Message)]
struct RawList {
    #[prost(message, required, tag = "1")]
    metadata: ListMeta,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    items: Vec<Bytes>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawJsonList<'a> {
    api_version: Option<String>,
    kind: Option<String>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

/// Decodes the body of a response that is a list of `T`.
pub fn decode_list<T: Decoded>(encoding: Encoding, body: &Bytes) -> Result<Page<T>, Malformed> {
    match encoding {
        Encoding::Json => json_list(body),
        Encoding::Protobuf => protobuf_list(body),
    }
}

fn json_list<T: Decoded>(body: &[u8]) -> Result<Page<T>, Malformed> {
    let RawJsonList { api_version, kind, metadata, items } = serde_json::from_slice(body)
        .map_err(|error| malformed_without_identity::<T>(error.to_string()))?;
    check_list::<T>(&TypeMeta {
        api_version: api_version.unwrap_or_default(),
        kind: kind.unwrap_or_default(),
    })?;
    let metadata = match metadata {
        Some(raw) => read_json(raw.get().as_bytes()).map_err(malformed_without_identity::<T>)?,
        None => ListMeta::default(),
    };
    let items = items.unwrap_or_default();
    page(metadata, items.into_iter().map(|item| from_json(item.get().as_bytes())))
}

fn protobuf_list<T: Decoded>(body: &Bytes) -> Result<Page<T>, Malformed> {
    let Unknown { type_meta, raw, .. } =
        Unknown::open(body).map_err(malformed_without_identity::<T>)?;
    check_list::<T>(&type_meta)?;
    let list =
        RawList::decode(raw).map_err(|error| malformed_without_identity::<T>(error.to_string()))?;
    page(list.metadata, list.items.iter().map(|item| from_protobuf(item)))
}

fn check_list<T: Decoded>(found: &TypeMeta) -> Result<(), Malformed> {
    check_kind::<T>(found, found.kind.strip_suffix("List").unwrap_or_default())
}

fn page<T: Decoded>(
    metadata: ListMeta,
    read: impl Iterator<Item = Result<T, Malformed>>,
) -> Result<Page<T>, Malformed> {
    let ListMeta { resource_version, continue_ } = metadata;
    let resource_version = ResourceVersion::parse(&resource_version)
        .map_err(|error| malformed_without_identity::<T>(error.to_string()))?;
    let mut items = Vec::with_capacity(read.size_hint().0);
    let mut malformed = Vec::new();
    for item in read {
        match item {
            Ok(item) => items.push(item),
            Err(error) => malformed.push(error),
        }
    }
    Ok(Page { resource_version, continue_token: nonempty_text(continue_), items, malformed })
}
