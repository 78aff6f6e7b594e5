//! All that the stand-ins can ask for.

use std::net::IpAddr;

use endpointd_apiserver::store::Key;

use super::facts::SetStatus;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// A kubelet reports for the first time; `number` gives it its addresses.
    ReportNode {
        node: String,
        number: u16,
    },
    Bind {
        pod: Key,
        node: String,
    },
    TellUnschedulable {
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
    /// It has stopped.
    Remove {
        pod: Key,
        uid: String,
    },
    /// Somebody wants one pod less.
    DeletePod {
        pod: Key,
    },
    CreatePod {
        replica_set: Key,
        name: String,
    },
    TellReplicaSet {
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
    NumberReplicaSet {
        replica_set: Key,
        revision: u64,
    },
    DeleteReplicaSet {
        replica_set: Key,
    },
    NumberDeployment {
        deployment: Key,
        revision: u64,
    },
    TellDeployment {
        deployment: Key,
        status: SetStatus,
        is_available: bool,
    },
}

impl Act {
    /// The object to look at again when the act was refused.
    pub fn about(&self) -> (&'static str, Key) {
        match self {
            Self::ReportNode { node, .. } => ("nodes", Key::new("", node)),
            Self::Bind { pod, .. }
            | Self::TellUnschedulable { pod }
            | Self::Start { pod, .. }
            | Self::SetReady { pod, .. }
            | Self::Remove { pod, .. }
            | Self::DeletePod { pod } => ("pods", pod.clone()),
            Self::CreatePod { replica_set, .. }
            | Self::TellReplicaSet { replica_set, .. }
            | Self::ScaleReplicaSet { replica_set, .. }
            | Self::NumberReplicaSet { replica_set, .. }
            | Self::DeleteReplicaSet { replica_set } => ("replicasets", replica_set.clone()),
            Self::CreateReplicaSet { deployment, .. }
            | Self::NumberDeployment { deployment, .. }
            | Self::TellDeployment { deployment, .. } => ("deployments", deployment.clone()),
        }
    }
}
