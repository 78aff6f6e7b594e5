//! Creates all objects of a layout, and single pods.

use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};

use super::layout::{self, Layout, PodNumber};
use super::sender::{Encoded, IN_FLIGHT, Sender, for_each};
use super::template::{CREATOR, REPORTER, Readiness, Templates};

const NAMESPACES: &str = "/api/v1/namespaces";

/// Creates nodes, namespaces, Services, and ready pods. Calls `done` with the number of pods so
/// far.
pub async fn create_objects(
    sender: &Sender,
    templates: &Arc<Templates>,
    layout: Layout,
    done: impl Fn(usize),
) -> Result<()> {
    for number in 0..layout.n_nodes {
        sender.create("/api/v1/nodes", node(number)).await?;
    }
    for number in 0..layout.n_namespaces {
        let name = layout::namespace(number);
        sender.create(NAMESPACES, Encoded::json(&json!({"metadata": {"name": name}}))).await?;
    }
    let shared = sender.clone();
    let create_service = move |number| {
        let sender = shared.clone();
        async move {
            let path = format!("{NAMESPACES}/{}/services", layout.namespace_of(number));
            sender.create(&path, service(number)).await.map(drop)
        }
    };
    for_each((layout.n_services, IN_FLIGHT), |_| (), create_service).await?;
    let (sender, templates) = (sender.clone(), templates.clone());
    let create_pod = move |number| {
        let (sender, templates) = (sender.clone(), templates.clone());
        async move { write_pod(&sender, &templates, &layout, number).await }
    };
    for_each((layout.n_pods, IN_FLIGHT), done, create_pod).await
}

/// Creates a scheduled and ready pod.
pub async fn write_pod(
    sender: &Sender,
    templates: &Templates,
    layout: &Layout,
    pod: PodNumber,
) -> Result<()> {
    let path = format!("{}?{CREATOR}", pods_path(layout, pod));
    sender.create(&path, templates.pod(layout, pod, Readiness::Ready)).await?;
    report_pod(sender, templates, layout, (pod, Readiness::Ready)).await
}

/// Updates the status of a pod, like a kubelet.
pub async fn report_pod(
    sender: &Sender,
    templates: &Templates,
    layout: &Layout,
    (pod, readiness): (PodNumber, Readiness),
) -> Result<()> {
    let path = format!("{}/status?{REPORTER}", pod_path(layout, pod));
    sender.replace(&path, templates.pod(layout, pod, readiness)).await.map(drop)
}

pub fn pod_path(layout: &Layout, pod: PodNumber) -> String {
    format!("{}/{}", pods_path(layout, pod), layout::pod(layout.service_of(pod), pod))
}

fn pods_path(layout: &Layout, pod: PodNumber) -> String {
    format!("{NAMESPACES}/{}/pods", layout.namespace_of(layout.service_of(pod)))
}

fn node(number: usize) -> Encoded {
    let name = layout::node(number);
    let labels = json!({
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": layout::zone(number),
    });
    Encoded::json(&json!({"metadata": {"name": name, "labels": labels}}))
}

/// Of every Service.
pub fn service_ports() -> Value {
    json!([
        {"name": "http", "port": 80, "targetPort": "http"},
        {"name": "metrics", "port": 9090, "targetPort": "metrics"},
    ])
}

fn service(number: usize) -> Encoded {
    let (name, ports) = (layout::service(number), service_ports());
    Encoded::json(&json!({
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": name, "tier": "frontend"}},
        "spec": {"selector": {"app.kubernetes.io/name": name}, "ports": ports},
    }))
}
