//! Objects of any kind, as files contain them.

use endpointd_model::{
    EndpointSlice, Endpoints, Node, Pod, ReferenceGrant, Service, ServiceExport, ServiceImport,
};
use serde_json::Value;

use crate::decode::{Decoded, from_json_value};
use crate::malformed::{Identity, Malformed};

/// An object of one of the kinds that are read.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyObject {
    Service(Service),
    Pod(Pod),
    Node(Node),
    Endpoints(Endpoints),
    EndpointSlice(EndpointSlice),
    ReferenceGrant(ReferenceGrant),
}

/// Kind of the list; apiVersion and kind of its items.
const LISTS: [(&str, &str, &str); 11] = [
    ("ServiceList", Service::API_VERSION, Service::KIND),
    ("PodList", Pod::API_VERSION, Pod::KIND),
    ("NodeList", Node::API_VERSION, Node::KIND),
    ("EndpointsList", Endpoints::API_VERSION, Endpoints::KIND),
    ("EndpointSliceList", EndpointSlice::API_VERSION, EndpointSlice::KIND),
    ("ServiceExportList", ServiceExport::API_VERSION, ServiceExport::KIND),
    ("ServiceExportList", "multicluster.x-k8s.io/v1alpha1", ServiceExport::KIND),
    ("ServiceImportList", ServiceImport::API_VERSION, ServiceImport::KIND),
    ("ServiceImportList", "multicluster.x-k8s.io/v1alpha1", ServiceImport::KIND),
    ("ReferenceGrantList", ReferenceGrant::API_VERSION, ReferenceGrant::KIND),
    ("ReferenceGrantList", "gateway.networking.k8s.io/v1beta1", ReferenceGrant::KIND),
];

impl AnyObject {
    /// `None` for an object of any other kind.
    pub fn from_value(value: &Value) -> Result<Option<Self>, Malformed> {
        let malformed = |path: &str, reason: &str| Malformed {
            identity: Identity::of(value).into(),
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        if !value.is_object() {
            return Err(malformed("", "not a Kubernetes object"));
        }
        let text = |field: &str| value[field].as_str().filter(|text| !text.is_empty());
        let api_version =
            text("apiVersion").ok_or_else(|| malformed("apiVersion", "missing or not a string"))?;
        let kind = text("kind").ok_or_else(|| malformed("kind", "missing or not a string"))?;
        let object = match (api_version, kind) {
            (Service::API_VERSION, Service::KIND) => Self::Service(from_json_value(value)?),
            (Pod::API_VERSION, Pod::KIND) => Self::Pod(from_json_value(value)?),
            (Node::API_VERSION, Node::KIND) => Self::Node(from_json_value(value)?),
            (Endpoints::API_VERSION, Endpoints::KIND) => Self::Endpoints(from_json_value(value)?),
            (EndpointSlice::API_VERSION, EndpointSlice::KIND) => {
                Self::EndpointSlice(from_json_value(value)?)
            }
            (version, ReferenceGrant::KIND) if ReferenceGrant::has_api_version(version) => {
                Self::ReferenceGrant(from_json_value(value)?)
            }
            // `flatten` leaves only malformed lists.
            (_, _) if item_type(value).is_some() => return Err(malformed("items", "not a list")),
            (_, _) => return Ok(None),
        };
        Ok(Some(object))
    }
}

/// Replaces lists, also nested ones, by their items, in order. Items of a typed list that have no
/// apiVersion and kind get them.
pub fn flatten(value: Value) -> Vec<Value> {
    let mut flat = Vec::new();
    let mut waiting = vec![value];
    while let Some(mut value) = waiting.pop() {
        let Some(item_type) = item_type(&value) else {
            flat.push(value);
            continue;
        };
        let items = match value.get_mut("items").map(Value::take) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(items)) => items,
            Some(other) => {
                value["items"] = other;
                flat.push(value);
                continue;
            }
        };
        waiting.extend(items.into_iter().rev().map(|item| with_type(item, &item_type)));
    }
    flat
}

/// The apiVersion and kind of a list's items.
enum ItemType {
    Said,
    Known { api_version: &'static str, kind: &'static str },
}

fn item_type(value: &Value) -> Option<ItemType> {
    let list_kind = value.get("kind")?.as_str()?;
    let list_version = value.get("apiVersion")?.as_str()?;
    if (list_version, list_kind) == ("v1", "List") {
        return Some(ItemType::Said);
    }
    let &(_, api_version, kind) =
        LISTS.iter().find(|(list, version, _)| (*list, *version) == (list_kind, list_version))?;
    Some(ItemType::Known { api_version, kind })
}

fn with_type(mut item: Value, item_type: &ItemType) -> Value {
    if let (ItemType::Known { api_version, kind }, Some(fields)) = (item_type, item.as_object_mut())
    {
        fields.entry("apiVersion").or_insert_with(|| (*api_version).into());
        fields.entry("kind").or_insert_with(|| (*kind).into());
    }
    item
}
