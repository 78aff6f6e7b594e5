//! The resources that explanations read.

/// A resource of the API, and the kind of its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    pub kind: &'static str,
    pub api_version: &'static str,
    pub plural: &'static str,
}

pub const SERVICES: Resource = core("Service", "services");
pub const PODS: Resource = core("Pod", "pods");
pub const ENDPOINTS: Resource = core("Endpoints", "endpoints");
pub const NODES: Resource = core("Node", "nodes");
pub const LEASES: Resource =
    Resource { kind: "Lease", api_version: "coordination.k8s.io/v1", plural: "leases" };
pub const ENDPOINT_SLICES: Resource = Resource {
    kind: "EndpointSlice",
    api_version: "discovery.k8s.io/v1",
    plural: "endpointslices",
};

pub const SERVICE_EXPORTS: Resource = multicluster("ServiceExport", "serviceexports");
pub const SERVICE_IMPORTS: Resource = multicluster("ServiceImport", "serviceimports");

/// What is read of a namespace, besides the nodes of its pods. All may be missing but the first two.
pub const OF_NAMESPACE: [Resource; 11] = [
    SERVICES,
    PODS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    core("Event", "events"),
    apps("Deployment", "deployments"),
    apps("ReplicaSet", "replicasets"),
    apps("StatefulSet", "statefulsets"),
    apps("DaemonSet", "daemonsets"),
    Resource { kind: "Job", api_version: "batch/v1", plural: "jobs" },
    Resource {
        kind: "HorizontalPodAutoscaler",
        api_version: "autoscaling/v2",
        plural: "horizontalpodautoscalers",
    },
];

const fn core(kind: &'static str, plural: &'static str) -> Resource {
    Resource { kind, api_version: "v1", plural }
}

const fn multicluster(kind: &'static str, plural: &'static str) -> Resource {
    Resource { kind, api_version: "multicluster.x-k8s.io/v1beta1", plural }
}

const fn apps(kind: &'static str, plural: &'static str) -> Resource {
    Resource { kind, api_version: "apps/v1", plural }
}

impl Resource {
    /// The path of all objects, or of those in a namespace.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let group = match self.api_version {
            "v1" => "/api/v1".to_owned(),
            group => format!("/apis/{group}"),
        };
        match namespace {
            Some(namespace) => format!("{group}/namespaces/{namespace}/{}", self.plural),
            None => format!("{group}/{}", self.plural),
        }
    }
}
