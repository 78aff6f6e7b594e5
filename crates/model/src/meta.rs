//! Metadata of the objects we write, complete, so that a write loses nothing that was there.

use crate::{Annotations, Key, Labels, Text, Timestamp, Uid};

/// Everything a written object's metadata can carry, except `managedFields`: the API server
/// keeps those by itself when an update leaves them out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    pub namespace: Text,
    pub name: Text,
    pub generate_name: Option<Text>,
    pub uid: Uid,
    /// Empty for an object that does not exist yet.
    pub resource_version: Text,
    pub generation: Option<i64>,
    pub created: Option<Timestamp>,
    pub deleted: Option<Timestamp>,
    pub deletion_grace_secs: Option<i64>,
    pub labels: Labels,
    pub annotations: Annotations,
    pub owners: Vec<OwnerRef>,
    pub finalizers: Vec<Text>,
}

impl Meta {
    pub fn key(&self) -> Key {
        Key { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// Asked to go, and held only by a finalizer or a grace period.
    pub fn is_deleting(&self) -> bool {
        self.deleted.is_some()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerRef {
    pub api_version: Text,
    pub kind: Text,
    pub name: Text,
    pub uid: Uid,
    pub controller: Option<bool>,
    pub block_owner_deletion: Option<bool>,
}

/// What an endpoint stands for. Absent fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    pub kind: Text,
    pub namespace: Text,
    pub name: Text,
    pub uid: Uid,
    pub api_version: Text,
    pub resource_version: Text,
    pub field_path: Text,
}

impl ObjectRef {
    /// Equal but for the resourceVersion, which moves with every unrelated change of the pod.
    /// Upstream: `semanticIgnoreResourceVersion`.
    pub fn same_object(&self, other: &Self) -> bool {
        let Self { kind, namespace, name, uid, api_version, resource_version: _, field_path } =
            self;
        (kind, namespace, name, uid) == (&other.kind, &other.namespace, &other.name, &other.uid)
            && (api_version, field_path) == (&other.api_version, &other.field_path)
    }
}
