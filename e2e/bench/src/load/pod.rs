//! A typical pod: an application and a sidecar, with probes, environment variables, and volumes.

use serde_json::{Value, json};

use super::template::Readiness;

/// The fields that differ between pods.
pub struct Names {
    pub namespace: String,
    pub service: String,
    pub pod: String,
    pub node: String,
    pub ip: String,
}

/// Environment variables per container; they make a pod about as large as in real clusters.
const N_SETTINGS: usize = 3;
const SINCE: &str = "2026-01-01T00:00:00Z";

pub fn json(names: &Names, readiness: Readiness) -> Value {
    let Names { namespace, service, pod, node, ip: _ } = names;
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": namespace,
            "name": pod,
            "generateName": format!("{service}-7c9d8b6f5-"),
            "labels": {
                "app.kubernetes.io/name": service,
                "app.kubernetes.io/part-of": "shop",
                "pod-template-hash": "7c9d8b6f5",
                "tier": "frontend",
            },
            "annotations": {
                "checksum/config": "b1946ac92492d2347c6235b4d2611184b1946ac92492d2347c6235b4d26111",
                "kubectl.kubernetes.io/default-container": "app",
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": format!("{service}-7c9d8b6f5"),
                "uid": "5f0f8f60-5a0e-4a52-9f6e-0c8f5f1a2b3c",
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "nodeName": node,
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 30,
            "containers": [container("app", 8080), container("proxy", 15001)],
            "volumes": [
                {"name": "config", "configMap": {"name": "shop-config"}},
            ],
        },
        "status": status(names, readiness),
    })
}

fn container(name: &str, port: u16) -> Value {
    let probe = |path: &str, period: u32| {
        json!({
            "httpGet": {"path": path, "port": "http", "scheme": "HTTP"},
            "periodSeconds": period,
        })
    };
    let mut settings: Vec<Value> = (0..N_SETTINGS)
        .map(|number| {
            json!({
                "name": format!("SHOP_SETTING_{number:02}"),
                "value": format!("https://setting-{number:02}.shop.svc:8443"),
            })
        })
        .collect();
    let own_address = json!({"fieldRef": {"fieldPath": "status.podIP"}});
    settings.push(json!({"name": "POD_IP", "valueFrom": own_address}));
    json!({
        "name": name,
        "image": image(name),
        "args": ["--config=/etc/shop/config.yaml", "--log-format=json"],
        "ports": [
            {"name": "http", "containerPort": port, "protocol": "TCP"},
            {"name": "metrics", "containerPort": port + 1000, "protocol": "TCP"},
        ],
        "env": settings,
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "readinessProbe": probe("/ready", 5),
        "livenessProbe": probe("/live", 10),
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/shop", "readOnly": true},
        ],
    })
}

fn image(name: &str) -> String {
    format!("registry.example.com/shop/{name}:4.17.2")
}

fn status(names: &Names, readiness: Readiness) -> Value {
    let (ready, is_ready) = match readiness {
        Readiness::Ready => ("True", true),
        Readiness::Unready => ("False", false),
    };
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status,
            "lastProbeTime": null, "lastTransitionTime": SINCE,
        })
    };
    let container = |name: &str| {
        json!({
            "name": name,
            "image": image(name),
            "imageID": format!("{}@sha256:{}", image(name), "ab12".repeat(16)),
            "containerID": format!("containerd://{}", "cd34".repeat(16)),
            "ready": is_ready,
            "started": true,
            "restartCount": 0,
            "state": {"running": {"startedAt": SINCE}},
            "lastState": {},
        })
    };
    json!({
        "phase": "Running",
        "hostIP": "192.168.0.10",
        "hostIPs": [{"ip": "192.168.0.10"}],
        "podIP": names.ip,
        "podIPs": [{"ip": names.ip}],
        "startTime": SINCE,
        "qosClass": "Burstable",
        "conditions": [
            condition("PodReadyToStartContainers", "True"),
            condition("Initialized", "True"),
            condition("Ready", ready),
            condition("ContainersReady", ready),
            condition("PodScheduled", "True"),
        ],
        "containerStatuses": [container("app"), container("proxy")],
    })
}
