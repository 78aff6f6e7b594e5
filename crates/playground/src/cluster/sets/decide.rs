//! Reconciles a ReplicaSet or a Deployment.

use std::time::Duration;

use endpointd_apiserver::store::Key;

use super::{Deployment, ReplicaSet, Sets};
use crate::cluster::action::ControllerAction;
use crate::cluster::facts::{SetStatus, amount};
use crate::cluster::pods::Pods;
use crate::cluster::replicas::{self, Change};
use crate::cluster::rollout::{self, ReplicaSetCounts, RolloutSpec, Strategy, Targets};
use crate::seeded::suffix;

/// Pods that a ReplicaSet creates at once. Upstream: `burstReplicas`.
const BURST_MAX: usize = 500;
/// Large ReplicaSets are reconciled less often: every 100 ms with 50,000 pods.
const CHECK_INTERVAL_PER_POD: Duration = Duration::from_micros(2);

impl Sets {
    pub fn next_dirty(&mut self, now: Duration) -> Option<String> {
        let due = self.dirty.iter().find(|(_, at)| **at <= now);
        let uid = due.map(|(uid, _)| uid.clone())?;
        self.dirty.remove(&uid);
        Some(uid)
    }

    pub fn decide(
        &mut self,
        uid: &str,
        pods: &Pods,
        seed: u64,
        now: Duration,
    ) -> Vec<ControllerAction> {
        if let Some(set) = self.replica_sets.get_mut(uid) {
            let n_pods = u32::try_from(pods.n_of(uid)).unwrap_or(u32::MAX);
            set.next_check_at = now + CHECK_INTERVAL_PER_POD * n_pods;
            return replica_set(uid, set, pods, seed);
        }
        match self.deployments.get(uid) {
            Some(deployment) if !deployment.is_deleting => self.deployment(uid, deployment, pods),
            Some(_) | None => Vec::new(),
        }
    }

    fn deployment(&self, uid: &str, deployment: &Deployment, pods: &Pods) -> Vec<ControllerAction> {
        let all = self.owned_by(uid);
        let revision = all.iter().map(|(_, set)| set.revision).max().unwrap_or(0);
        let (new, old): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(_, set)| set.hash == deployment.hash);
        let new = new.last().copied();
        let mut actions = vec![];
        if !deployment.facts.spec.paused {
            actions.extend(rollout_actions(deployment, new, &old, pods, revision));
        }
        let revision = new.map(|(_, set)| set.revision).filter(|n| *n != deployment.revision());
        actions.extend(revision.map(|revision| {
            let deployment = deployment.key.clone();
            ControllerAction::SetDeploymentRevision { deployment, revision }
        }));
        let status = deployment_status(deployment, new, &old, pods);
        if status != deployment.facts.status {
            let is_available =
                status.available_replicas >= n_available_min(rollout_spec(deployment));
            let deployment = deployment.key.clone();
            actions.push(ControllerAction::UpdateDeploymentStatus {
                deployment,
                status,
                is_available,
            });
        }
        actions
    }
}

type Owned<'a> = (&'a str, &'a ReplicaSet);

fn replica_set(uid: &str, set: &mut ReplicaSet, pods: &Pods, seed: u64) -> Vec<ControllerAction> {
    if set.is_deleting {
        return Vec::new();
    }
    let members = pods.members(uid);
    let n_ready = members.iter().filter(|one| one.is_ready).count();
    let status = SetStatus {
        observed_generation: set.generation,
        replicas: members.len(),
        updated_replicas: 0,
        ready_replicas: n_ready,
        available_replicas: n_ready,
    };
    let mut actions = match replicas::change(set.n_replicas, members) {
        Change::Enough => Vec::new(),
        Change::Create(n) => {
            let names = (0..n.min(BURST_MAX)).map(|_| free_name(set, pods, seed));
            let names: Vec<String> = names.collect();
            let create = |name| ControllerAction::CreatePod { replica_set: set.key.clone(), name };
            names.into_iter().map(create).collect()
        }
        Change::Delete(keys) => {
            keys.into_iter().map(|pod| ControllerAction::DeletePod { pod }).collect()
        }
    };
    if status != set.status {
        actions.push(ControllerAction::UpdateReplicaSetStatus {
            replica_set: set.key.clone(),
            status,
        });
    }
    actions
}

fn free_name(set: &mut ReplicaSet, pods: &Pods, seed: u64) -> String {
    loop {
        set.n_named += 1;
        let end = suffix(seed, &[set.key.name()], set.n_named);
        let name = format!("{}-{end}", set.key.name());
        if !pods.is_there(&Key::new(set.key.namespace(), &name)) {
            return name;
        }
    }
}

/// The next step of a rollout; also scales a Deployment.
fn rollout_actions(
    deployment: &Deployment,
    new: Option<Owned<'_>>,
    old: &[Owned<'_>],
    pods: &Pods,
    revision: u64,
) -> Vec<ControllerAction> {
    let counted = |(uid, set): Owned<'_>| ReplicaSetCounts {
        n_replicas: set.n_replicas,
        n_pods: pods.n_of(uid),
        n_available: pods.members(uid).iter().filter(|one| one.is_ready).count(),
    };
    let generations: Vec<ReplicaSetCounts> = old.iter().map(|one| counted(*one)).collect();
    let Targets { new: n_new, old: n_old } =
        rollout::step(rollout_spec(deployment), new.map(counted).unwrap_or_default(), &generations);
    let mut actions: Vec<ControllerAction> = match new {
        None => vec![ControllerAction::CreateReplicaSet {
            deployment: deployment.key.clone(),
            hash: deployment.hash.clone(),
            n_replicas: n_new,
            revision: revision + 1,
        }],
        Some((_, set)) => {
            let is_latest = set.revision == revision;
            let replica_set = set.key.clone();
            let renumbered =
                ControllerAction::SetReplicaSetRevision { replica_set, revision: revision + 1 };
            let scaled = scale_action(set, n_new);
            scaled.into_iter().chain((!is_latest).then_some(renumbered)).collect()
        }
    };
    actions.extend(old.iter().zip(n_old).filter_map(|((_, set), n)| scale_action(set, n)));
    actions.extend(excess_history(deployment, old, pods));
    actions
}

fn scale_action(set: &ReplicaSet, n_replicas: usize) -> Option<ControllerAction> {
    let replica_set = set.key.clone();
    (set.n_replicas != n_replicas)
        .then_some(ControllerAction::ScaleReplicaSet { replica_set, n_replicas })
}

/// Empty ReplicaSets beyond `revisionHistoryLimit`. Upstream: `cleanupDeployment`.
fn excess_history(
    deployment: &Deployment,
    old: &[Owned<'_>],
    pods: &Pods,
) -> Vec<ControllerAction> {
    let is_empty = |(uid, set): &&Owned<'_>| set.n_replicas == 0 && pods.n_of(uid) == 0;
    let empty: Vec<&Owned<'_>> = old.iter().filter(is_empty).collect();
    let n_beyond = empty.len().saturating_sub(deployment.facts.spec.revision_history_limit);
    let delete =
        |(_, set): &Owned<'_>| ControllerAction::DeleteReplicaSet { replica_set: set.key.clone() };
    empty.into_iter().take(n_beyond).map(delete).collect()
}

fn rollout_spec(deployment: &Deployment) -> RolloutSpec {
    let spec = &deployment.facts.spec;
    let rolling = &spec.strategy.rolling_update;
    let (surge, unavailable) = (amount(&rolling.max_surge), amount(&rolling.max_unavailable));
    let strategy = match spec.strategy.kind.as_str() {
        "Recreate" => Strategy::Recreate,
        _ => rollout::strategy(spec.replicas, surge, unavailable),
    };
    RolloutSpec { n_replicas: spec.replicas, strategy }
}

fn n_available_min(wanted: RolloutSpec) -> usize {
    match wanted.strategy {
        Strategy::Recreate => wanted.n_replicas,
        Strategy::Rolling { max_unavailable, .. } => {
            wanted.n_replicas.saturating_sub(max_unavailable)
        }
    }
}

fn deployment_status(
    deployment: &Deployment,
    new: Option<Owned<'_>>,
    old: &[Owned<'_>],
    pods: &Pods,
) -> SetStatus {
    let mut status = SetStatus {
        observed_generation: deployment.facts.metadata.generation,
        ..SetStatus::default()
    };
    for (uid, set) in old.iter().copied().chain(new) {
        let members = pods.members(uid);
        status.replicas += members.len();
        status.ready_replicas += members.iter().filter(|one| one.is_ready).count();
        if set.hash == deployment.hash {
            status.updated_replicas += members.len();
        }
    }
    status.available_replicas = status.ready_replicas;
    status
}
