//! Metadata of the objects that endpointd writes, with all fields, so that an update loses none.

use crate::{Annotations, Key, Labels, ResourceVersion, SharedStr, Timestamp, Uid};

/// All metadata except `managedFields`, which the API server keeps when an update omits them.
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

    /// The object is being deleted; a finalizer or a grace period delays its removal.
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

/// The object behind an endpoint, usually a pod. Absent fields are empty.
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
    /// Equality without the resourceVersion, which every unrelated change of the pod increases.
    /// Upstream: `semanticIgnoreResourceVersion`.
    pub fn same_object(&self, other: &Self) -> bool {
        let Self { kind, namespace, name, uid, api_version, resource_version: _, field_path } =
            self;
        (kind, namespace, name, uid) == (&other.kind, &other.namespace, &other.name, &other.uid)
            && (api_version, field_path) == (&other.api_version, &other.field_path)
    }
}
