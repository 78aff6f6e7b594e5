//! ReferenceGrants of the Gateway API: consent to references from other namespaces.

use crate::{Key, ResourceVersion, SharedStr};

/// `gateway.networking.k8s.io`, v1 or v1beta1. It lies in the namespace of the objects that may be
/// referenced. Grants add up, and so do their entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReferenceGrant {
    pub namespace: SharedStr,
    pub name: SharedStr,
    pub resource_version: ResourceVersion,
    pub from: Vec<GrantedFrom>,
    pub to: Vec<GrantedTo>,
}

/// The objects that may refer. The core group is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantedFrom {
    pub group: SharedStr,
    pub kind: SharedStr,
    pub namespace: SharedStr,
}

/// The objects that may be referred to: one, or all of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantedTo {
    pub group: SharedStr,
    pub kind: SharedStr,
    pub name: Option<SharedStr>,
}

impl ReferenceGrant {
    pub fn key(&self) -> Key {
        Key { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// Whether Services of `namespace` may refer to the Service `name` of the grant's namespace.
    pub fn permits_service(&self, namespace: &str, name: &str) -> bool {
        let is_service = |group: &str, kind: &str| group.is_empty() && kind == "Service";
        let from = |from: &GrantedFrom| {
            is_service(&from.group, &from.kind) && from.namespace.as_ref() == namespace
        };
        let to = |to: &GrantedTo| {
            let is_name = to.name.as_deref().is_none_or(|one| one == name);
            is_service(&to.group, &to.kind) && is_name
        };
        self.from.iter().any(from) && self.to.iter().any(to)
    }
}
