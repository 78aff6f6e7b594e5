//! The kinds this server has: one table. To add a kind, add its Go type to
//! `schema/generate/main.go`, run that program, and add a row here.

use serde_json::Value;

use crate::defaults::{self, endpoints, events, node, pod, service, workload};
use crate::table::{self, Columns};
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
    /// Where objects are stored; two kinds may show the same objects.
    pub shelf: &'static str,
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

/// What a `PUT` may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Updates {
    /// Only of what is there; a `resourceVersion` is optional.
    Existing,
    /// Creates what is not there.
    OrCreate,
    /// The same, but what is there is only replaced with its `resourceVersion`.
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
    /// What a status must get right.
    pub validate_status: fn(&Value, &mut Causes),
    /// What must also hold for an update; new, old.
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
    pub fn word(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Binding => "binding",
            Self::Finalize => "finalize",
        }
    }
}

impl Kind {
    pub const VERSION: &'static str = "v1";

    pub fn api_version(&self) -> String {
        match self.group {
            "" => Self::VERSION.to_owned(),
            group => format!("{group}/{}", Self::VERSION),
        }
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

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// The row of a resource in a group.
pub fn find(group: &str, resource: &str) -> Option<&'static Kind> {
    KINDS.iter().copied().find(|kind| kind.group == group && kind.resource == resource)
}

/// The row that stores a shelf: the first that names it.
pub(crate) fn of_shelf(shelf: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.shelf == shelf).expect("only kinds put objects on shelves")
}

/// The rows that store objects in namespaces, each shelf once.
pub(crate) fn stored_namespaced() -> impl Iterator<Item = &'static Kind> {
    let first = |kind: &Kind| std::ptr::eq(of_shelf(kind.shelf), kind);
    KINDS.iter().copied().filter(move |kind| kind.is_namespaced() && first(kind))
}

/// What most rows share: a namespaced kind of the core group that needs no rules.
const PLAIN: Kind = Kind {
    group: "",
    resource: "",
    singular: "",
    kind: "",
    short_names: &[],
    categories: &[],
    scope: Scope::Namespaced,
    subresources: &[],
    shelf: "",
    schema: "",
    names: validation::names::Rule::Subdomain,
    updates: Updates::Existing,
    deleted: Deleted::Status,
    selectable: &[],
    rules: Rules::NONE,
    columns: &table::NAME_AND_AGE,
};

pub static NAMESPACES: Kind = Kind {
    resource: "namespaces",
    singular: "namespace",
    kind: "Namespace",
    short_names: &["ns"],
    scope: Scope::Cluster,
    subresources: &[Subresource::Status, Subresource::Finalize],
    shelf: "namespaces",
    schema: "io.k8s.api.core.v1.Namespace",
    names: validation::names::Rule::Label,
    deleted: Deleted::Object,
    selectable: &["status.phase"],
    rules: Rules {
        default: defaults::namespace,
        prepare_create: defaults::prepare_namespace,
        prepare_update: defaults::prepare_namespace_update,
        ..Rules::NONE
    },
    columns: &table::cluster::NAMESPACES,
    ..PLAIN
};

pub static PODS: Kind = Kind {
    resource: "pods",
    singular: "pod",
    kind: "Pod",
    short_names: &["po"],
    categories: &["all"],
    subresources: &[Subresource::Status, Subresource::Binding],
    shelf: "pods",
    schema: "io.k8s.api.core.v1.Pod",
    deleted: Deleted::Object,
    selectable: &[
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ],
    rules: Rules {
        default: pod::default_pod,
        prepare_create: pod::prepare_create,
        prepare_update: pod::prepare_update,
        prepare_status: pod::prepare_status,
        validate: validation::pod::validate,
        validate_update: validation::pod::validate_update,
        ..Rules::NONE
    },
    columns: &table::workloads::PODS,
    ..PLAIN
};

pub static SERVICES: Kind = Kind {
    resource: "services",
    singular: "service",
    kind: "Service",
    short_names: &["svc"],
    categories: &["all"],
    subresources: &[Subresource::Status],
    shelf: "services",
    schema: "io.k8s.api.core.v1.Service",
    names: validation::names::Rule::Label,
    updates: Updates::OrCreate,
    deleted: Deleted::Object,
    selectable: &["spec.clusterIP", "spec.type"],
    rules: Rules {
        default: service::default_service,
        prepare_create: service::prepare_create,
        prepare_update: service::prepare_update,
        validate: validation::service::validate,
        validate_status: validation::service::validate_status,
        validate_update: validation::service::validate_update,
        ..Rules::NONE
    },
    columns: &table::network::SERVICES,
    ..PLAIN
};

pub static KINDS: &[&Kind] = &[
    &NAMESPACES,
    &PODS,
    &SERVICES,
    &Kind {
        resource: "nodes",
        singular: "node",
        kind: "Node",
        short_names: &["no"],
        scope: Scope::Cluster,
        subresources: &[Subresource::Status],
        shelf: "nodes",
        schema: "io.k8s.api.core.v1.Node",
        selectable: &["spec.unschedulable"],
        rules: Rules {
            default: node::default_node,
            prepare_create: node::prepare_create,
            prepare_update: defaults::keep_old_status,
            ..Rules::NONE
        },
        columns: &table::cluster::NODES,
        ..PLAIN
    },
    &Kind {
        resource: "endpoints",
        singular: "endpoints",
        kind: "Endpoints",
        short_names: &["ep"],
        shelf: "endpoints",
        schema: "io.k8s.api.core.v1.Endpoints",
        updates: Updates::OrCreate,
        rules: Rules {
            default: endpoints::default_endpoints,
            validate: validation::endpoints::validate,
            validate_update: validation::endpoints::validate_update,
            ..Rules::NONE
        },
        columns: &table::network::ENDPOINTS,
        ..PLAIN
    },
    &Kind {
        resource: "events",
        singular: "event",
        kind: "Event",
        short_names: &["ev"],
        shelf: "events",
        schema: "io.k8s.api.core.v1.Event",
        updates: Updates::OrCreate,
        selectable: events::SELECTABLE,
        rules: Rules { validate: validation::events::validate_core, ..Rules::NONE },
        columns: &table::cluster::EVENTS,
        ..PLAIN
    },
    &Kind {
        resource: "configmaps",
        singular: "configmap",
        kind: "ConfigMap",
        short_names: &["cm"],
        shelf: "configmaps",
        schema: "io.k8s.api.core.v1.ConfigMap",
        rules: Rules {
            validate: validation::config_map,
            validate_update: validation::config_map_update,
            ..Rules::NONE
        },
        columns: &table::cluster::CONFIG_MAPS,
        ..PLAIN
    },
    &Kind {
        resource: "serviceaccounts",
        singular: "serviceaccount",
        kind: "ServiceAccount",
        short_names: &["sa"],
        shelf: "serviceaccounts",
        schema: "io.k8s.api.core.v1.ServiceAccount",
        deleted: Deleted::Object,
        columns: &table::cluster::SERVICE_ACCOUNTS,
        ..PLAIN
    },
    &Kind {
        group: "discovery.k8s.io",
        resource: "endpointslices",
        singular: "endpointslice",
        kind: "EndpointSlice",
        shelf: "endpointslices",
        schema: "io.k8s.api.discovery.v1.EndpointSlice",
        rules: Rules {
            default: endpoints::default_slice,
            prepare_create: defaults::first_generation,
            prepare_update: endpoints::prepare_slice_update,
            validate: validation::slices::validate,
            validate_update: validation::slices::validate_update,
            ..Rules::NONE
        },
        columns: &table::network::SLICES,
        ..PLAIN
    },
    &Kind {
        group: "events.k8s.io",
        resource: "events",
        singular: "event",
        kind: "Event",
        short_names: &["ev"],
        shelf: "events",
        schema: "io.k8s.api.events.v1.Event",
        updates: Updates::OrCreate,
        selectable: events::SELECTABLE,
        rules: Rules { validate: validation::events::validate_new, ..Rules::NONE },
        columns: &table::cluster::EVENTS,
        ..PLAIN
    },
    &Kind {
        group: "coordination.k8s.io",
        resource: "leases",
        singular: "lease",
        kind: "Lease",
        shelf: "leases",
        schema: "io.k8s.api.coordination.v1.Lease",
        updates: Updates::OrCreateConditional,
        rules: Rules {
            prepare_create: defaults::prepare_lease,
            prepare_update: |new, _| defaults::prepare_lease(new),
            validate: validation::lease,
            ..Rules::NONE
        },
        columns: &table::cluster::LEASES,
        ..PLAIN
    },
    &Kind {
        group: "apps",
        resource: "deployments",
        singular: "deployment",
        kind: "Deployment",
        short_names: &["deploy"],
        categories: &["all"],
        subresources: &[Subresource::Status, Subresource::Scale],
        shelf: "deployments",
        schema: "io.k8s.api.apps.v1.Deployment",
        rules: Rules {
            default: workload::default_deployment,
            prepare_create: workload::prepare_create,
            prepare_update: workload::prepare_deployment_update,
            prepare_status: workload::prepare_deployment_status,
            validate: validation::workload::validate_deployment,
            validate_update: validation::workload::validate_update,
            ..Rules::NONE
        },
        columns: &table::workloads::DEPLOYMENTS,
        ..PLAIN
    },
    &Kind {
        group: "apps",
        resource: "replicasets",
        singular: "replicaset",
        kind: "ReplicaSet",
        short_names: &["rs"],
        categories: &["all"],
        subresources: &[Subresource::Status, Subresource::Scale],
        shelf: "replicasets",
        schema: "io.k8s.api.apps.v1.ReplicaSet",
        selectable: &["status.replicas"],
        rules: Rules {
            default: workload::default_replica_set,
            prepare_create: workload::prepare_create,
            prepare_update: workload::prepare_replica_set_update,
            validate: validation::workload::validate_replica_set,
            validate_update: validation::workload::validate_update,
            ..Rules::NONE
        },
        columns: &table::workloads::REPLICA_SETS,
        ..PLAIN
    },
];
