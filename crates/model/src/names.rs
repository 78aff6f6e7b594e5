//! Label and annotation keys and values (docs/spec.md, section 1).

/// Value of [`MANAGED_BY`] on slices of the endpointslice controller.
pub const MANAGED_BY_SLICES: &str = "endpointslice-controller.k8s.io";
/// Value of [`MANAGED_BY`] on slices of the mirroring controller.
pub const MANAGED_BY_MIRROR: &str = "endpointslicemirroring-controller.k8s.io";
/// Value of [`MANAGED_BY`] on slices with the endpoints of another namespace.
pub const MANAGED_BY_IMPORT: &str = "endpointd-mirror";
/// The controller that manages a slice (label).
pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// The Service of a slice (label).
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The Service has no ClusterIP (label, empty value).
pub const HEADLESS: &str = "service.kubernetes.io/headless";

/// The controller that manages an Endpoints object (label).
pub const ENDPOINTS_MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
/// Value of [`ENDPOINTS_MANAGED_BY`].
pub const MANAGED_BY_ENDPOINTS: &str = "endpoint-controller";

/// `true` on Endpoints keeps them from being mirrored (label).
pub const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Marks Endpoints that are a leader election lock (annotation).
pub const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// The time of the change that caused the write (annotation).
pub const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// `truncated` on Endpoints with only the first 1000 addresses (annotation).
pub const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
/// Value of [`OVER_CAPACITY`].
pub const TRUNCATED: &str = "truncated";
/// kubectl's copy of the applied object; never mirrored (annotation).
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The older topology annotation; it wins if both are set.
pub const TOPOLOGY_AWARE_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
/// The newer topology annotation.
pub const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

/// What `publishNotReadyAddresses` replaced; Kubernetes ignores it today (annotation).
pub const TOLERATE_UNREADY: &str = "service.alpha.kubernetes.io/tolerate-unready-endpoints";

/// Zone of a node (label).
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Marks nodes whose CPU does not count for topology hints (label).
pub const CONTROL_PLANE_NODE: &str = "node-role.kubernetes.io/control-plane";
/// The older spelling of [`CONTROL_PLANE_NODE`].
pub const MASTER_NODE: &str = "node-role.kubernetes.io/master";

/// On the Lease of an instance that does not look at everything: its scope (annotation).
pub const SCOPE: &str = "endpointd/scope";
/// On the Lease of an instance with a name of its own: the name (annotation).
pub const CONTROLLER_NAME: &str = "endpointd/controller-name";

/// On a Service without selector: publish the endpoints of `NAMESPACE/NAME` (annotation).
pub const ENDPOINTS_FROM: &str = "endpointd/endpoints-from";
/// On a Service: the namespaces that may publish its endpoints, or `*` (annotation).
pub const ENDPOINTS_TO: &str = "endpointd/endpoints-to";
/// Whether a Service with [`ENDPOINTS_FROM`] has endpoints of its source, and why not (type of a
/// condition in its status).
pub const SOURCE_CONDITION: &str = "endpointd/EndpointsFrom";

/// The import of a slice, or of a derived Service (label).
pub const IMPORT_NAME: &str = "multicluster.kubernetes.io/service-name";
/// The cluster whose endpoints an imported slice has (label).
pub const SOURCE_CLUSTER: &str = "multicluster.kubernetes.io/source-cluster";
/// Value of [`MANAGED_BY`] on slices with the endpoints of a cluster.
pub const MANAGED_BY_CLUSTER_IMPORT: &str = "endpointd-import";
/// On a ServiceImport: the name of its derived Service (annotation).
pub const DERIVED_SERVICE: &str = "multicluster.kubernetes.io/derived-service";
/// On a ServiceImport: the keys of the annotations that were exported, so that they can be removed.
pub const EXPORTED_ANNOTATIONS: &str = "endpointd/exported-annotations";
/// On an imported slice: the slice that it was copied from. Another namespace is part of it.
pub const SOURCE_SLICE: &str = "endpointd/source-slice";
/// The program that manages an object (label).
pub const APP_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`APP_MANAGED_BY`].
pub const ENDPOINTD: &str = "endpointd";
