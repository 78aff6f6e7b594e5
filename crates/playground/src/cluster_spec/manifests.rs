//! The initial objects as JSON for the API server.

use serde_json::{Value, json};

use super::{
    CONSUMER, CONSUMER_NAMESPACE, NAMESPACE, NodeSpec, PODS_PER_NODE, SOURCE, ServiceKind,
    ServiceSpec,
};

/// A short grace period, so that scenarios proceed quickly.
const GRACE_SECS: u64 = 5;

pub fn namespace() -> Value {
    json!({"metadata": {"name": NAMESPACE}})
}

pub fn consumer_namespace() -> Value {
    json!({"metadata": {"name": CONSUMER_NAMESPACE}})
}

/// A Service without selector that publishes the endpoints of [`SOURCE`].
pub fn consumer() -> Value {
    let annotations = json!({"endpointd/endpoints-from": format!("{NAMESPACE}/{SOURCE}")});
    json!({
        "metadata": {"name": CONSUMER, "annotations": annotations},
        "spec": {"ports": [{"name": "http", "port": 80}]},
    })
}

/// Without conditions: the fake kubelet reports them.
pub fn node(plan: &NodeSpec) -> Value {
    let resources = json!({
        "cpu": plan.cpus.to_string(),
        "memory": format!("{}Gi", plan.cpus * 4),
        "pods": PODS_PER_NODE.to_string(),
    });
    json!({
        "metadata": {
            "name": plan.name,
            "labels": {
                "kubernetes.io/hostname": plan.name,
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/region": "playground",
                "topology.kubernetes.io/zone": plan.zone,
            },
        },
        "status": {"capacity": resources},
    })
}

pub fn service(plan: &ServiceSpec) -> Value {
    let mut annotations = json!({});
    let mut spec = json!({
        "selector": {"app": plan.name},
        "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
    });
    match plan.kind {
        ServiceKind::Plain if plan.name == SOURCE => {
            annotations = json!({"endpointd/endpoints-to": CONSUMER_NAMESPACE});
        }
        ServiceKind::Plain => {}
        ServiceKind::Headless => spec["clusterIP"] = json!("None"),
        ServiceKind::DualStack => spec["ipFamilyPolicy"] = json!("PreferDualStack"),
        ServiceKind::NamedPorts => {
            spec["ports"] = json!([
                {"name": "http", "port": 80, "targetPort": "http"},
                {"name": "metrics", "port": 9090, "targetPort": "metrics"},
            ]);
        }
        ServiceKind::TopologyAware => {
            annotations = json!({"service.kubernetes.io/topology-mode": "Auto"});
        }
        ServiceKind::SameZone => spec["trafficDistribution"] = json!("PreferSameZone"),
        ServiceKind::Manual => {
            spec = json!({"ports": [{"name": "http", "port": 80, "targetPort": 8080}]});
        }
        ServiceKind::ExternalName => {
            spec = json!({"type": "ExternalName", "externalName": "payments.example.com"});
        }
    }
    let labels = json!({"app": plan.name});
    json!({
        "metadata": {"name": plan.name, "labels": labels, "annotations": annotations},
        "spec": spec,
    })
}

/// Endpoints of a Service without a selector, with documentation addresses (RFC 5737).
pub fn manual_endpoints(plan: &ServiceSpec) -> Value {
    json!({
        "metadata": {"name": plan.name},
        "subsets": [{
            "addresses": [{"ip": "198.51.100.10"}, {"ip": "198.51.100.11"}],
            "notReadyAddresses": [{"ip": "198.51.100.12"}],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }],
    })
}

pub fn deployment(plan: &ServiceSpec) -> Value {
    let labels = json!({"app": plan.name});
    let container = json!({
        "name": "app",
        "image": image(&plan.name, 1),
        "ports": [
            {"name": "http", "containerPort": 8080},
            {"name": "metrics", "containerPort": 9090},
        ],
    });
    json!({
        "metadata": {"name": plan.name, "labels": labels},
        "spec": {
            "replicas": plan.n_replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [container],
                    "terminationGracePeriodSeconds": GRACE_SECS,
                },
            },
        },
    })
}

/// Images are never pulled.
pub(crate) fn image(name: &str, version: u64) -> String {
    format!("playground.example/{name}:v{version}")
}
