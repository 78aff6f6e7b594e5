//! Metadata of the objects we write, complete, so that a write loses nothing that was there.

use crate::{Annotations, Key, Labels, ResourceVersion, SharedStr, Timestamp, Uid};

/// Everything a written object's metadata can carry, except `managedFields`: the API server
/// keeps those by itself when an update leaves them out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    pub namespace: SharedStr,
    pub name: SharedStr,
    pub generate_name: Option<SharedStr>,
    pub uid: Uid,
    /// None for an object that does not exist yet.
    pub resource_version: ResourceVersion,
    pub generation: Option<i64>,
    pub created: Option<Timestamp>,
    pub deleted: Option<Timestamp>,
    pub deletion_grace_secs: Option<i64>,
    pub labels: Labels,
    pub annotations: Annotations,
    pub owners: Vec<OwnerRef>,
    pub finalizers: Vec<SharedStr>,
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
    pub api_version: SharedStr,
    pub kind: SharedStr,
    pub name: SharedStr,
    pub uid: Uid,
    pub controller: Option<bool>,
    pub block_owner_deletion: Option<bool>,
}

/// What an endpoint stands for. Absent fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    pub kind: SharedStr,
    pub namespace: SharedStr,
    pub name: SharedStr,
    pub uid: Uid,
    pub api_version: SharedStr,
    pub resource_version: SharedStr,
    pub field_path: SharedStr,
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
