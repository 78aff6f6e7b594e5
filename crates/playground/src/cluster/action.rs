//! The actions of the fake controllers.

use std::net::IpAddr;

use endpointd_apiserver::store::Key;

use super::facts::SetStatus;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerAction {
    /// The first report of a kubelet; `number` determines the addresses of the node.
    ReportNode {
        node: String,
        number: u16,
    },
    Bind {
        pod: Key,
        node: String,
    },
    MarkUnschedulable {
        pod: Key,
    },
    Start {
        pod: Key,
        ips: [IpAddr; 2],
        host_ips: [IpAddr; 2],
        is_ready: bool,
    },
    SetReady {
        pod: Key,
        is_ready: bool,
    },
    /// The containers of the pod have stopped.
    Remove {
        pod: Key,
        uid: String,
    },
    /// Scales a ReplicaSet down by one pod.
    DeletePod {
        pod: Key,
    },
    CreatePod {
        replica_set: Key,
        name: String,
    },
    UpdateReplicaSetStatus {
        replica_set: Key,
        status: SetStatus,
    },
    CreateReplicaSet {
        deployment: Key,
        hash: String,
        n_replicas: usize,
        revision: u64,
    },
    ScaleReplicaSet {
        replica_set: Key,
        n_replicas: usize,
    },
    SetReplicaSetRevision {
        replica_set: Key,
        revision: u64,
    },
    DeleteReplicaSet {
        replica_set: Key,
    },
    SetDeploymentRevision {
        deployment: Key,
        revision: u64,
    },
    UpdateDeploymentStatus {
        deployment: Key,
        status: SetStatus,
        is_available: bool,
    },
}

impl ControllerAction {
    /// The object to read again if the action failed.
    pub fn target(&self) -> (&'static str, Key) {
        match self {
            Self::ReportNode { node, .. } => ("nodes", Key::new("", node)),
            Self::Bind { pod, .. }
            | Self::MarkUnschedulable { pod }
            | Self::Start { pod, .. }
            | Self::SetReady { pod, .. }
            | Self::Remove { pod, .. }
            | Self::DeletePod { pod } => ("pods", pod.clone()),
            Self::CreatePod { replica_set, .. }
            | Self::UpdateReplicaSetStatus { replica_set, .. }
            | Self::ScaleReplicaSet { replica_set, .. }
            | Self::SetReplicaSetRevision { replica_set, .. }
            | Self::DeleteReplicaSet { replica_set } => ("replicasets", replica_set.clone()),
            Self::CreateReplicaSet { deployment, .. }
            | Self::SetDeploymentRevision { deployment, .. }
            | Self::UpdateDeploymentStatus { deployment, .. } => {
                ("deployments", deployment.clone())
            }
        }
    }
}
