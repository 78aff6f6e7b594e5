//! The faults of a soak, one per round.

use std::fmt;
use std::thread;
use std::time::Duration;

use endpointd_control_plane::{Program, SpaceAlarm, Stop};
use endpointd_fault_proxy::{Answer, Fault, Requests, Verb};
use serde_json::json;

use super::changes::Changes;
use crate::proxied_cluster::ProxiedCluster;

const DURATION: Duration = Duration::from_secs(15);
const SHORT: Duration = Duration::from_secs(4);
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/endpointd";
/// Longer than a Lease lasts, so that the other replica acquires it within the round.
const TERM: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoakFault {
    ServerErrors,
    CutWatches,
    ServerKilled,
    Throttled,
    LeaderChange,
    LostAnswers,
    NoSpace,
    RefusedConnections,
    SlowAnswers,
    EtcdPaused,
    ServerRestarted,
    SilentWatch,
}

impl SoakFault {
    pub const ROTATION: [Self; 12] = [
        Self::ServerErrors,
        Self::CutWatches,
        Self::ServerKilled,
        Self::Throttled,
        Self::LeaderChange,
        Self::LostAnswers,
        Self::NoSpace,
        Self::RefusedConnections,
        Self::SlowAnswers,
        Self::EtcdPaused,
        Self::ServerRestarted,
        Self::SilentWatch,
    ];

    /// Time until everything is published after the fault. Back-off takes at most 30 seconds; a
    /// silent watch is opened again after 90.
    pub fn recovery_max(self) -> Duration {
        match self {
            Self::SilentWatch => Duration::from_secs(130),
            _ => Duration::from_secs(60),
        }
    }

    /// Makes changes while the fault is active. Returns how often it fired.
    pub fn run(self, cluster: &ProxiedCluster, changes: &mut Changes<'_>) -> usize {
        let writes = Requests::writes_of_endpoints;
        let watches = || Requests::all().verbs(&[Verb::Watch]);
        match self {
            Self::ServerErrors => {
                let applied = Fault::ApplyAndAnswer(Answer::error(504));
                let faults =
                    [(writes().every(3), Fault::status(500)), (writes().every(4), applied)];
                injected(cluster, changes, faults)
            }
            Self::LostAnswers => {
                let faults = [
                    (writes().every(3), Fault::LoseResponse),
                    (writes().every(4), Fault::LoseRequest),
                ];
                injected(cluster, changes, faults)
            }
            Self::Throttled => {
                let answer = Answer::error(429).retry_after("1");
                injected(cluster, changes, [(writes().every(4), Fault::Answer(answer))])
            }
            Self::SlowAnswers => {
                let slow = Fault::DelayResponse(Duration::from_secs(1));
                injected(cluster, changes, [(writes().every(2), slow)])
            }
            Self::CutWatches => injected(cluster, changes, [(watches().every(7), Fault::CutBody)]),
            Self::SilentWatch => {
                let both = watches().resources(&["pods"]).occurrences(0..2);
                injected(cluster, changes, [(both, Fault::StallBody)])
            }
            Self::RefusedConnections => {
                let resets = cluster.proxy.reset_connections();
                changes.make_for(SHORT);
                resets.n_reset()
            }
            Self::ServerKilled => restarted(cluster, changes, Stop::Kill),
            Self::ServerRestarted => restarted(cluster, changes, Stop::Terminate),
            Self::LeaderChange => leader_change(cluster, changes),
            Self::NoSpace => no_space(cluster, changes),
            Self::EtcdPaused => {
                let programs = &cluster.under_test.cluster;
                programs.pause(Program::Etcd).expect("it can be signalled");
                thread::sleep(SHORT);
                programs.resume(Program::Etcd).expect("it can be signalled");
                changes.make_for(DURATION);
                1
            }
        }
    }
}

fn injected<const N: usize>(
    cluster: &ProxiedCluster,
    changes: &mut Changes<'_>,
    faults: [(Requests, Fault); N],
) -> usize {
    let active = faults.map(|(requests, fault)| cluster.proxy.inject(requests, fault));
    changes.make_for(DURATION);
    for fault in &active {
        // Changes are random: they may not have reached the fault yet.
        while fault.n_fired() == 0 {
            changes.make_for(Duration::from_secs(1));
        }
    }
    active.iter().map(endpointd_fault_proxy::Injected::n_fired).sum()
}

fn restarted(cluster: &ProxiedCluster, changes: &mut Changes<'_>, how: Stop) -> usize {
    let programs = &cluster.under_test.cluster;
    programs.stop(Program::ApiServer, how).expect("it can be signalled");
    thread::sleep(SHORT);
    programs.start_apiserver().expect("it starts again");
    changes.make_for(DURATION);
    1
}

/// A third process takes the Lease and never renews it, so one of the replicas acquires it again.
fn leader_change(cluster: &ProxiedCluster, changes: &mut Changes<'_>) -> usize {
    let api = cluster.under_test.cluster.api();
    let taken = json!({"spec": {"holderIdentity": "soak", "leaseDurationSeconds": 15}});
    api.merge(LEASE, &taken).expect("the Lease can be edited");
    changes.make_for(TERM);
    1
}

fn no_space(cluster: &ProxiedCluster, changes: &mut Changes<'_>) -> usize {
    let programs = &cluster.under_test.cluster;
    programs.set_space_alarm(SpaceAlarm::Raised).expect("etcd answers");
    changes.make_for(DURATION);
    programs.set_space_alarm(SpaceAlarm::Cleared).expect("etcd answers");
    1
}

impl fmt::Display for SoakFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ServerErrors => "500 and 504",
            Self::CutWatches => "cut watches",
            Self::ServerKilled => "kube-apiserver killed",
            Self::Throttled => "429",
            Self::LeaderChange => "leader change",
            Self::LostAnswers => "lost requests and responses",
            Self::NoSpace => "etcd without space",
            Self::RefusedConnections => "refused connections",
            Self::SlowAnswers => "slow writes",
            Self::EtcdPaused => "etcd paused",
            Self::ServerRestarted => "kube-apiserver restarted",
            Self::SilentWatch => "silent watches",
        })
    }
}
