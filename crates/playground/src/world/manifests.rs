//! The world's objects as they are sent to the API server.

use serde_json::{Value, json};

use super::{Flavour, NAMESPACE, NodePlan, PODS_PER_NODE, ServicePlan};

/// Pods of our own Deployments stop within this, so that stories do not drag.
const GRACE_SECS: u64 = 5;

pub fn namespace() -> Value {
    json!({"metadata": {"name": NAMESPACE}})
}

/// Without a status: the stand-in for the kubelet reports it.
pub fn node(plan: &NodePlan) -> Value {
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

pub fn service(plan: &ServicePlan) -> Value {
    let mut annotations = json!({});
    let mut spec = json!({
        "selector": {"app": plan.name},
        "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
    });
    match plan.flavour {
        Flavour::Plain => {}
        Flavour::Headless => spec["clusterIP"] = json!("None"),
        Flavour::DualStack => spec["ipFamilyPolicy"] = json!("PreferDualStack"),
        Flavour::NamedPorts => {
            spec["ports"] = json!([
                {"name": "http", "port": 80, "targetPort": "http"},
                {"name": "metrics", "port": 9090, "targetPort": "metrics"},
            ]);
        }
        Flavour::TopologyAware => {
            annotations = json!({"service.kubernetes.io/topology-mode": "Auto"});
        }
        Flavour::SameZone => spec["trafficDistribution"] = json!("PreferSameZone"),
        Flavour::Manual => {
            spec = json!({"ports": [{"name": "http", "port": 80, "targetPort": 8080}]});
        }
        Flavour::ExternalName => {
            spec = json!({"type": "ExternalName", "externalName": "payments.example.com"});
        }
    }
    let labels = json!({"app": plan.name});
    json!({
        "metadata": {"name": plan.name, "labels": labels, "annotations": annotations},
        "spec": spec,
    })
}

/// Of a Service without a selector: machines outside the cluster (RFC 5737 addresses).
pub fn manual_endpoints(plan: &ServicePlan) -> Value {
    json!({
        "metadata": {"name": plan.name},
        "subsets": [{
            "addresses": [{"ip": "198.51.100.10"}, {"ip": "198.51.100.11"}],
            "notReadyAddresses": [{"ip": "198.51.100.12"}],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }],
    })
}

pub fn deployment(plan: &ServicePlan) -> Value {
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

/// Nobody pulls it.
pub(crate) fn image(name: &str, version: u64) -> String {
    format!("playground.example/{name}:v{version}")
}
