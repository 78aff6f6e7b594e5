//! The lives of pods. There is neither scheduler nor kubelet: a history says itself where a pod is and
//! how it fares.

use std::thread;

use serde_json::{Value, json};

use crate::stage::{Kind, Stage};

/// Who creates many pods at once does it with so many hands.
const HANDS: usize = 4;

/// A pod to create: by default labelled `app=web`, on node `a`, ready, with port `http` 8080.
#[derive(Clone, Debug)]
pub struct Pod {
    name: String,
    ips: Vec<String>,
    labels: Value,
    node: String,
    is_ready: bool,
    ports: Value,
    more_spec: Value,
}

impl Pod {
    pub fn new(name: &str, ip: &str) -> Self {
        Self {
            name: name.to_owned(),
            ips: ip.split(',').map(str::to_owned).collect(),
            labels: json!({"app": "web"}),
            node: "a".to_owned(),
            is_ready: true,
            ports: json!([{"name": "http", "containerPort": 8080}]),
            more_spec: json!({}),
        }
    }

    pub fn labelled(self, labels: Value) -> Self {
        Self { labels, ..self }
    }

    pub fn on(self, node: &str) -> Self {
        Self { node: node.to_owned(), ..self }
    }

    pub fn unready(self) -> Self {
        Self { is_ready: false, ..self }
    }

    pub fn ports(self, ports: Value) -> Self {
        Self { ports, ..self }
    }

    pub fn spec(self, more_spec: Value) -> Self {
        Self { more_spec, ..self }
    }
}

impl Stage<'_> {
    /// Creates a pod that is running at once.
    pub fn pod(&self, pod: &Pod) {
        self.pending_pod(pod);
        let addresses: Vec<Value> = pod.ips.iter().map(|ip| json!({ "ip": ip })).collect();
        let status = json!({
            "phase": "Running",
            "podIP": pod.ips[0],
            "podIPs": addresses,
            "conditions": conditions(pod.is_ready),
        });
        self.merge_status(Kind::Pod, &pod.name, &status);
    }

    /// Creates a pod that nobody has started: without address and status.
    pub fn pending_pod(&self, pod: &Pod) {
        let container = json!({"name": "web", "image": "web", "ports": pod.ports});
        let mut spec = json!({"nodeName": self.node_name(&pod.node), "containers": [container]});
        for (field, value) in pod.more_spec.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        let metadata = json!({"name": pod.name, "labels": pod.labels});
        self.create(Kind::Pod, &json!({"metadata": metadata, "spec": spec}));
    }

    /// `web-1 … web-n` at `10.0.0.1 …`, on the given nodes in turn.
    pub fn web_pods(&self, numbers: impl IntoIterator<Item = usize>, nodes: &[&str]) {
        for n in numbers {
            self.pod(&web_pod(n, nodes));
        }
    }

    /// The same, for very many.
    pub fn many_web_pods(&self, numbers: &[usize], nodes: &[&str]) {
        let share = numbers.len().div_ceil(HANDS).max(1);
        thread::scope(|scope| {
            for numbers in numbers.chunks(share) {
                scope.spawn(|| self.web_pods(numbers.iter().copied(), nodes));
            }
        });
    }

    pub fn ready(&self, pod: &str) {
        self.merge_status(Kind::Pod, pod, &json!({"conditions": conditions(true)}));
    }

    pub fn unready(&self, pod: &str) {
        self.merge_status(Kind::Pod, pod, &json!({"conditions": conditions(false)}));
    }

    /// It ends, `Failed` or `Succeeded`; the kubelet says in the same breath that it is not ready.
    pub fn ended(&self, pod: &str, phase: &str) {
        let status = json!({"phase": phase, "conditions": conditions(false)});
        self.merge_status(Kind::Pod, pod, &status);
    }

    /// Somebody deletes it: it has its grace period, and nobody ends it.
    pub fn terminating(&self, pod: &str) {
        self.delete(Kind::Pod, &format!("{pod}?gracePeriodSeconds=600"));
    }

    /// It is no more.
    pub fn gone(&self, pod: &str) {
        self.delete(Kind::Pod, &format!("{pod}?gracePeriodSeconds=0"));
    }
}

pub fn web_pod(n: usize, nodes: &[&str]) -> Pod {
    Pod::new(&format!("web-{n}"), &web_ip(n)).on(nodes[n % nodes.len()])
}

pub fn web_ip(n: usize) -> String {
    format!("10.0.{}.{}", n / 250, n % 250 + 1)
}

/// What a view shows of them when all are ready.
pub fn web_ips(numbers: impl IntoIterator<Item = usize>) -> String {
    numbers.into_iter().map(web_ip).collect::<Vec<_>>().join(" ")
}

/// A fixed time: when it happened is masked anyway.
fn conditions(is_ready: bool) -> Value {
    let status = if is_ready { "True" } else { "False" };
    json!([{"type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}])
}
