//! Steps that change pods. There is neither a scheduler nor a kubelet: a scenario sets the node and
//! the status of a pod.

use std::thread;

use serde_json::{Value, json};

use crate::convergence::Expected;
use crate::test_namespace::{Kind, TestNamespace};

/// Threads that create pods in [`TestNamespace::many_web_pods`].
const CREATE_THREADS: usize = 4;

/// A pod to create. Default: label `app=web`, node `a`, ready, port `http` 8080.
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

impl TestNamespace<'_> {
    /// Creates a running pod.
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

    /// Creates a pod without address and status.
    pub fn pending_pod(&self, pod: &Pod) {
        let container = json!({"name": "web", "image": "web", "ports": pod.ports});
        let mut spec = json!({"nodeName": self.node_name(&pod.node), "containers": [container]});
        for (field, value) in pod.more_spec.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        let metadata = json!({"name": pod.name, "labels": pod.labels});
        self.create(Kind::Pod, &json!({"metadata": metadata, "spec": spec}));
    }

    /// `web-1 … web-n` at `10.0.0.1 …`, distributed over the given nodes.
    pub fn web_pods(&self, numbers: impl IntoIterator<Item = usize>, nodes: &[&str]) {
        for n in numbers {
            self.pod(&web_pod(n, nodes));
        }
    }

    /// As [`Self::web_pods`], for a large number.
    pub fn many_web_pods(&self, numbers: &[usize], nodes: &[&str]) {
        let share = numbers.len().div_ceil(CREATE_THREADS).max(1);
        thread::scope(|scope| {
            for numbers in numbers.chunks(share) {
                scope.spawn(|| self.web_pods(numbers.iter().copied(), nodes));
            }
        });
    }

    /// Returns when the controllers know all pods created so far: pod events arrive in order, so
    /// they know them when they have published a pod that was created later.
    pub fn wait_until_pods_are_known(&self) {
        const LAST: &str = "10.9.9.9";
        self.pod(&Pod::new("last", LAST).labelled(json!({"app": "last"})));
        self.service("last", &json!({"selector": {"app": "last"}, "ports": [{"port": 80}]}));
        self.wait_for(&[Expected::slices("last", LAST), Expected::endpoints("last", LAST)]);
        self.delete(Kind::Service, "last");
        self.gone("last");
        self.wait_for(&[Expected::no_slices("last"), Expected::no_endpoints("last")]);
    }

    pub fn ready(&self, pod: &str) {
        self.merge_status(Kind::Pod, pod, &json!({"conditions": conditions(true)}));
    }

    pub fn unready(&self, pod: &str) {
        self.merge_status(Kind::Pod, pod, &json!({"conditions": conditions(false)}));
    }

    /// The pod reaches the phase `Failed` or `Succeeded`; like a kubelet, in one update with not
    /// ready.
    pub fn ended(&self, pod: &str, phase: &str) {
        let status = json!({"phase": phase, "conditions": conditions(false)});
        self.merge_status(Kind::Pod, pod, &status);
    }

    /// Deletes the pod with a grace period of ten minutes.
    pub fn terminating(&self, pod: &str) {
        self.delete(Kind::Pod, &format!("{pod}?gracePeriodSeconds=600"));
    }

    /// Deletes the pod at once.
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

/// The summary of these pods when all are ready.
pub fn web_ips(numbers: impl IntoIterator<Item = usize>) -> String {
    numbers.into_iter().map(web_ip).collect::<Vec<_>>().join(" ")
}

/// The transition time is fixed; the canonical form does not contain it.
fn conditions(is_ready: bool) -> Value {
    let status = if is_ready { "True" } else { "False" };
    json!([{"type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}])
}
