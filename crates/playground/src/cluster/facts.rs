//! The fields of objects that the fake controllers read.

use std::collections::BTreeMap;
use std::time::Duration;

use endpointd_apiserver::store::Stored;
use serde::Deserialize;
use serde_json::Value;

use super::kubelet::{Phase, Probe};
use super::rollout::Amount;

/// Set to `false` on a pod, it makes the readiness probe fail.
pub const READY_ANNOTATION: &str = "endpointd-playground/ready";
pub const HASH_LABEL: &str = "pod-template-hash";
pub const REVISION_ANNOTATION: &str = "deployment.kubernetes.io/revision";
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

type Texts = BTreeMap<String, String>;

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct Meta {
    pub annotations: Texts,
    pub generation: i64,
    deletion_grace_period_seconds: u64,
}

impl Meta {
    /// The revision of the rollout; zero: none yet.
    pub fn revision(&self) -> u64 {
        let text = self.annotations.get(REVISION_ANNOTATION);
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

/// The fields of a pod that are kept; compact, because there may be 50,000 pods.
pub struct PodFacts {
    pub node: Option<String>,
    pub node_selector: Texts,
    pub phase: Phase,
    pub is_ready: bool,
    pub has_address: bool,
    pub is_on_host_network: bool,
    /// The pod has scheduling gates.
    pub is_gated: bool,
    /// The pod has `PodScheduled: False`.
    pub is_marked_unschedulable: bool,
    pub probe: Probe,
    pub grace: Duration,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Pod {
    metadata: Meta,
    spec: PodSpec,
    status: PodStatus,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    node_name: Option<String>,
    host_network: bool,
    node_selector: Texts,
    scheduling_gates: Vec<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PodStatus {
    phase: String,
    #[serde(rename = "podIP")]
    pod_ip: String,
    conditions: Vec<Condition>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

fn condition(all: &[Condition], kind: &str) -> Option<bool> {
    all.iter().find(|one| one.kind == kind).map(|one| one.status == "True")
}

impl PodFacts {
    pub fn of(stored: &Stored) -> Self {
        let Pod { metadata, spec, status } = read(stored);
        let probe = match metadata.annotations.get(READY_ANNOTATION).map(String::as_str) {
            Some("false") => Probe::Fails,
            _ => Probe::Passes,
        };
        let phase = match status.phase.as_str() {
            "Running" => Phase::Running,
            "Succeeded" | "Failed" => Phase::Over,
            _ => Phase::Pending,
        };
        Self {
            node: spec.node_name.filter(|name| !name.is_empty()),
            node_selector: spec.node_selector,
            phase,
            is_ready: condition(&status.conditions, "Ready") == Some(true),
            has_address: !status.pod_ip.is_empty(),
            is_on_host_network: spec.host_network,
            is_gated: !spec.scheduling_gates.is_empty(),
            is_marked_unschedulable: condition(&status.conditions, "PodScheduled") == Some(false),
            probe,
            grace: Duration::from_secs(metadata.deletion_grace_period_seconds),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct NodeFacts {
    spec: NodeSpec,
    status: NodeStatus,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NodeSpec {
    unschedulable: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NodeStatus {
    conditions: Vec<Condition>,
    capacity: BTreeMap<String, String>,
}

impl NodeFacts {
    pub fn is_cordoned(&self) -> bool {
        self.spec.unschedulable
    }

    /// `None`: there is no `Ready` condition.
    pub fn is_ready(&self) -> Option<bool> {
        condition(&self.status.conditions, "Ready")
    }

    pub fn n_pods_max(&self) -> Option<usize> {
        self.status.capacity.get("pods")?.parse().ok()
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct ReplicaSetFacts {
    pub metadata: Meta,
    pub spec: ReplicaSetSpec,
    pub status: SetStatus,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct ReplicaSetSpec {
    pub replicas: usize,
}

/// The status fields of ReplicaSets and Deployments; `updated_replicas` is for Deployments only.
#[derive(Clone, Copy, Debug, Deserialize, Default, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct SetStatus {
    pub observed_generation: i64,
    pub replicas: usize,
    pub updated_replicas: usize,
    pub ready_replicas: usize,
    pub available_replicas: usize,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct DeploymentFacts {
    pub metadata: Meta,
    pub spec: DeploymentSpec,
    pub status: SetStatus,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct DeploymentSpec {
    pub replicas: usize,
    pub paused: bool,
    pub template: Value,
    pub strategy: StrategyFacts,
    pub revision_history_limit: usize,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct StrategyFacts {
    #[serde(rename = "type")]
    pub kind: String,
    pub rolling_update: RollingFacts,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct RollingFacts {
    pub max_surge: Value,
    pub max_unavailable: Value,
}

/// `3` or `25%`; the API server rejects other values.
pub fn amount(value: &Value) -> Amount {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')?.parse().ok());
    match (percent, value.as_u64().and_then(|n| usize::try_from(n).ok())) {
        (Some(percent), _) => Amount::Percent(percent),
        (None, Some(n)) => Amount::Pods(n),
        (None, None) => Amount::Pods(0),
    }
}

/// Decodes the fields of a stored object; defaults if it cannot be decoded.
pub fn read<'a, T: Deserialize<'a> + Default>(stored: &'a Stored) -> T {
    serde_json::from_slice(stored.bytes()).unwrap_or_default()
}
