//! What the stand-ins read of objects.

use std::collections::BTreeMap;
use std::time::Duration;

use endpointd_apiserver::store::Stored;
use serde::Deserialize;
use serde_json::Value;

use super::kubelet::{Phase, Probe};
use super::rollout::Amount;

/// Set it on a pod to `false`, and its readiness probe fails.
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
    /// Which rollout this was; zero: none yet.
    pub fn revision(&self) -> u64 {
        let text = self.annotations.get(REVISION_ANNOTATION);
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

/// A pod in a few words: there may be 50,000 of them.
pub struct PodFacts {
    pub node: Option<String>,
    pub node_selector: Texts,
    pub phase: Phase,
    pub is_ready: bool,
    pub has_address: bool,
    pub is_on_host_network: bool,
    /// Somebody else decides when it may be placed.
    pub is_gated: bool,
    /// The scheduler has said that there is no room.
    pub is_told_unschedulable: bool,
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
            is_told_unschedulable: condition(&status.conditions, "PodScheduled") == Some(false),
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

    /// `None`: nobody has said so far.
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

/// The numbers both kinds of set report; a Deployment's old pods are not `updated`.
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

/// `3` or `25%`; the API server lets nothing else in.
pub fn amount(value: &Value) -> Amount {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')?.parse().ok());
    match (percent, value.as_u64().and_then(|n| usize::try_from(n).ok())) {
        (Some(percent), _) => Amount::Percent(percent),
        (None, Some(n)) => Amount::Pods(n),
        (None, None) => Amount::Pods(0),
    }
}

/// What we read of a stored object; what cannot be read is taken as empty.
pub fn read<'a, T: Deserialize<'a> + Default>(stored: &'a Stored) -> T {
    serde_json::from_slice(stored.bytes()).unwrap_or_default()
}
