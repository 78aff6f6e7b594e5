//! The table of kinds. To add a kind, add its Go type to `schema/generate/main.go`, run that
//! program, and add a row here.

use super::{Deleted, Kind, MULTICLUSTER, Rules, Scope, Subresource, Updates};
use crate::defaults::{self, endpoints, events, node, pod, service, workload};
use crate::table;
use crate::validation;

/// Defaults for a row: a namespaced kind of the core group without rules.
const PLAIN: Kind = Kind {
    group: "",
    resource: "",
    singular: "",
    kind: "",
    short_names: &[],
    categories: &[],
    scope: Scope::Namespaced,
    subresources: &[],
    storage: "",
    schema: "",
    names: validation::names::Rule::Subdomain,
    updates: Updates::Existing,
    deleted: Deleted::Status,
    selectable: &[],
    rules: Rules::NONE,
    columns: &table::NAME_AND_AGE,
};

/// Defaults for a row: a custom resource with a status. Its schema is not validated.
const MULTICLUSTER_KIND: Kind = Kind {
    group: MULTICLUSTER,
    subresources: &[Subresource::Status],
    rules: Rules {
        prepare_create: defaults::prepare_custom_resource,
        prepare_update: defaults::prepare_custom_resource_update,
        ..Rules::NONE
    },
    ..PLAIN
};

pub static NAMESPACES: Kind = Kind {
    resource: "namespaces",
    singular: "namespace",
    kind: "Namespace",
    short_names: &["ns"],
    scope: Scope::Cluster,
    subresources: &[Subresource::Status, Subresource::Finalize],
    storage: "namespaces",
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
    storage: "pods",
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
    storage: "services",
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
        storage: "nodes",
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
        storage: "endpoints",
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
        storage: "events",
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
        storage: "configmaps",
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
        storage: "serviceaccounts",
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
        storage: "endpointslices",
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
        storage: "events",
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
        storage: "leases",
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
        storage: "deployments",
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
        storage: "replicasets",
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
    &Kind {
        resource: "serviceexports",
        singular: "serviceexport",
        kind: "ServiceExport",
        short_names: &["svcex", "svcexport"],
        storage: "serviceexports",
        schema: "io.x-k8s.multicluster.v1beta1.ServiceExport",
        ..MULTICLUSTER_KIND
    },
    &Kind {
        resource: "serviceimports",
        singular: "serviceimport",
        kind: "ServiceImport",
        short_names: &["svcim", "svcimport"],
        storage: "serviceimports",
        schema: "io.x-k8s.multicluster.v1beta1.ServiceImport",
        columns: &table::network::IMPORTS,
        ..MULTICLUSTER_KIND
    },
];
