//! A stored object: its JSON bytes, shared by all readers, and the few fields the server needs
//! without parsing them. No parsed copy is kept, because it takes five times the memory of the
//! text.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use super::Key;

/// One version of one object, immutable.
#[derive(Debug)]
pub struct Stored {
    pub key: Key,
    pub revision: u64,
    pub uid: String,
    pub labels: BTreeMap<String, String>,
    pub owners: Vec<OwnerRef>,
    pub is_deleting: bool,
    pub has_finalizers: bool,
    /// JSON without `kind` and `apiVersion`, as list items are sent.
    bytes: Bytes,
}

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerRef {
    pub uid: String,
    pub kind: String,
    pub api_version: String,
    pub name: String,
    pub blocks_deletion: bool,
}

impl Stored {
    pub(super) fn new(key: Key, revision: u64, mut object: Value) -> Self {
        object["metadata"]["resourceVersion"] = json!(revision.to_string());
        if let Value::Object(fields) = &mut object {
            fields.remove("kind");
            fields.remove("apiVersion");
        }
        let meta = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let labels = meta["labels"].as_object().into_iter().flatten();
        let owners = meta["ownerReferences"].as_array().into_iter().flatten();
        Self {
            key,
            revision,
            uid: text(&meta["uid"]),
            labels: labels.map(|(name, value)| (name.clone(), text(value))).collect(),
            owners: owners
                .map(|owner| OwnerRef {
                    uid: text(&owner["uid"]),
                    kind: text(&owner["kind"]),
                    api_version: text(&owner["apiVersion"]),
                    name: text(&owner["name"]),
                    blocks_deletion: owner["blockOwnerDeletion"] == true,
                })
                .collect(),
            is_deleting: meta["deletionTimestamp"].is_string(),
            has_finalizers: meta["finalizers"].as_array().is_some_and(|all| !all.is_empty()),
            bytes: serde_json::to_vec(&object).expect("JSON values can be written").into(),
        }
    }

    /// JSON without `kind` and `apiVersion`, as list items are sent.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Parses the bytes on every call.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.bytes).expect("we wrote these bytes ourselves")
    }
}
