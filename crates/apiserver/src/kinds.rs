//! What the server must know about a kind, and how to look one up. The table of kinds is in
//! [`registry`].

mod registry;

use serde_json::Value;

/// The group of the Multi-Cluster Services API (KEP-1645), which real clusters serve if its
/// definitions are installed.
pub(crate) const MULTICLUSTER: &str = "multicluster.x-k8s.io";

pub use registry::{KINDS, NAMESPACES, PODS, SERVICES};

use crate::defaults;
use crate::table::Columns;
use crate::validation::{self, Causes};

/// One row: what the server must know about a kind.
pub struct Kind {
    pub group: &'static str,
    /// In the path: `pods`.
    pub resource: &'static str,
    pub singular: &'static str,
    pub kind: &'static str,
    pub short_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub scope: Scope,
    pub subresources: &'static [Subresource],
    /// The store table that holds the objects; two kinds may serve the same objects.
    pub storage: &'static str,
    /// The Go type in `schema/types.json`.
    pub(crate) schema: &'static str,
    pub(crate) names: validation::names::Rule,
    pub(crate) updates: Updates,
    /// What a DELETE that removed the object answers with.
    pub(crate) deleted: Deleted,
    /// Field selectors beyond `metadata.name` and `metadata.namespace`.
    pub(crate) selectable: &'static [&'static str],
    pub(crate) rules: Rules,
    pub(crate) columns: &'static Columns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Namespaced,
    Cluster,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    Status,
    Scale,
    /// Pods: `POST` a `Binding` to schedule it.
    Binding,
    /// Namespaces: `PUT` the finalizers of the spec.
    Finalize,
}

/// What a `PUT` does if the object does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Updates {
    /// Updates an existing object; a `resourceVersion` is optional.
    Existing,
    /// Creates a missing object.
    OrCreate,
    /// Creates a missing object; replacing an existing one needs its `resourceVersion`.
    OrCreateConditional,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deleted {
    Status,
    Object,
}

/// What upstream calls a strategy: the parts of a verb that differ by kind.
pub(crate) struct Rules {
    /// Fills in what the client left out. Upstream: `SetDefaults_*`.
    pub default: fn(&mut Value),
    /// Upstream: `PrepareForCreate` and the admission plugins that are on by default.
    pub prepare_create: fn(&mut Value),
    /// Upstream: `PrepareForUpdate`; new, old.
    pub prepare_update: fn(&mut Value, &Value),
    /// Upstream: `PrepareForUpdate` of the status strategy; new, old.
    pub prepare_status: fn(&mut Value, &Value),
    pub validate: fn(&Value, &mut Causes),
    /// Validates a write of the status.
    pub validate_status: fn(&Value, &mut Causes),
    /// Validates an update, after `validate`; new, old.
    pub validate_update: fn(&Value, &Value, &mut Causes),
}

impl Rules {
    const NONE: Self = Self {
        default: |_| {},
        prepare_create: |_| {},
        prepare_update: |_, _| {},
        prepare_status: defaults::keep_old_spec,
        validate: |_, _| {},
        validate_status: |_, _| {},
        validate_update: |_, _, _| {},
    };
}

impl Subresource {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Binding => "binding",
            Self::Finalize => "finalize",
        }
    }
}

impl Kind {
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version().to_owned(),
            group => format!("{group}/{}", self.version()),
        }
    }

    pub(crate) fn version(&self) -> &'static str {
        version_of(self.group)
    }

    /// `deployments.apps`, as messages name it.
    pub(crate) fn qualified_resource(&self) -> String {
        qualified(self.resource, self.group)
    }

    pub(crate) fn qualified_kind(&self) -> String {
        qualified(self.kind, self.group)
    }

    pub(crate) fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }
}

/// The only version of a group that is served here.
pub(crate) fn version_of(group: &str) -> &'static str {
    match group {
        MULTICLUSTER => "v1beta1",
        _ => "v1",
    }
}

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// The row of a resource in a group.
pub fn find(group: &str, resource: &str) -> Option<&'static Kind> {
    KINDS.iter().copied().find(|kind| kind.group == group && kind.resource == resource)
}

/// The row that owns a store table: the first that names it.
pub(crate) fn of_storage(storage: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.storage == storage).expect("every store table belongs to a kind")
}

/// The namespaced rows, one for each store table.
pub(crate) fn stored_namespaced() -> impl Iterator<Item = &'static Kind> {
    let first = |kind: &Kind| std::ptr::eq(of_storage(kind.storage), kind);
    KINDS.iter().copied().filter(move |kind| kind.is_namespaced() && first(kind))
}
