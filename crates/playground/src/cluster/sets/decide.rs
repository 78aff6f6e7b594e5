//! What a ReplicaSet or a Deployment needs, decided on what was seen of it and of its pods.

use std::time::Duration;

use endpointd_apiserver::store::Key;

use super::{Deployment, ReplicaSet, Sets};
use crate::chance::suffix;
use crate::cluster::act::Act;
use crate::cluster::facts::{SetStatus, amount};
use crate::cluster::pods::Pods;
use crate::cluster::replicas::{self, Change};
use crate::cluster::rollout::{self, Generation, Strategy, Targets, Wanted};

/// Pods a ReplicaSet asks for at once; the rest with its next turn. Upstream: `burstReplicas`.
const BURST_MAX: usize = 500;
/// A set of many pods is counted less often: a tenth of a second for 50,000.
const REST_PER_POD: Duration = Duration::from_micros(2);

impl Sets {
    pub fn next_soiled(&mut self, now: Duration) -> Option<String> {
        let due = self.soiled.iter().find(|(_, at)| **at <= now);
        let uid = due.map(|(uid, _)| uid.clone())?;
        self.soiled.remove(&uid);
        Some(uid)
    }

    pub fn decide(&mut self, uid: &str, pods: &Pods, seed: u64, now: Duration) -> Vec<Act> {
        if let Some(set) = self.replica_sets.get_mut(uid) {
            let n_pods = u32::try_from(pods.n_of(uid)).unwrap_or(u32::MAX);
            set.rested_at = now + REST_PER_POD * n_pods;
            return replica_set(uid, set, pods, seed);
        }
        match self.deployments.get(uid) {
            Some(deployment) if !deployment.is_deleting => self.deployment(uid, deployment, pods),
            Some(_) | None => Vec::new(),
        }
    }

    fn deployment(&self, uid: &str, deployment: &Deployment, pods: &Pods) -> Vec<Act> {
        let all = self.owned_by(uid);
        let revision = all.iter().map(|(_, set)| set.revision).max().unwrap_or(0);
        let (new, old): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(_, set)| set.hash == deployment.hash);
        let new = new.last().copied();
        let mut acts = vec![];
        if !deployment.facts.spec.paused {
            acts.extend(rolled_out(deployment, new, &old, pods, revision));
        }
        let revision = new.map(|(_, set)| set.revision).filter(|n| *n != deployment.revision());
        acts.extend(revision.map(|revision| {
            let deployment = deployment.key.clone();
            Act::NumberDeployment { deployment, revision }
        }));
        let status = told(deployment, new, &old, pods);
        if status != deployment.facts.status {
            let is_available = status.available_replicas >= least_available(wanted(deployment));
            let deployment = deployment.key.clone();
            acts.push(Act::TellDeployment { deployment, status, is_available });
        }
        acts
    }
}

type Owned<'a> = (&'a str, &'a ReplicaSet);

fn replica_set(uid: &str, set: &mut ReplicaSet, pods: &Pods, seed: u64) -> Vec<Act> {
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
    let mut acts = match replicas::change(set.n_replicas, members) {
        Change::Enough => Vec::new(),
        Change::Create(n) => {
            let names = (0..n.min(BURST_MAX)).map(|_| free_name(set, pods, seed));
            let names: Vec<String> = names.collect();
            let create = |name| Act::CreatePod { replica_set: set.key.clone(), name };
            names.into_iter().map(create).collect()
        }
        Change::Delete(keys) => keys.into_iter().map(|pod| Act::DeletePod { pod }).collect(),
    };
    if status != set.status {
        acts.push(Act::TellReplicaSet { replica_set: set.key.clone(), status });
    }
    acts
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

/// The next step of a rollout, which is also how a Deployment is scaled.
fn rolled_out(
    deployment: &Deployment,
    new: Option<Owned<'_>>,
    old: &[Owned<'_>],
    pods: &Pods,
    revision: u64,
) -> Vec<Act> {
    let counted = |(uid, set): Owned<'_>| Generation {
        n_replicas: set.n_replicas,
        n_pods: pods.n_of(uid),
        n_available: pods.members(uid).iter().filter(|one| one.is_ready).count(),
    };
    let generations: Vec<Generation> = old.iter().map(|one| counted(*one)).collect();
    let Targets { new: n_new, old: n_old } =
        rollout::step(wanted(deployment), new.map(counted).unwrap_or_default(), &generations);
    let mut acts: Vec<Act> = match new {
        None => vec![Act::CreateReplicaSet {
            deployment: deployment.key.clone(),
            hash: deployment.hash.clone(),
            n_replicas: n_new,
            revision: revision + 1,
        }],
        Some((_, set)) => {
            let is_latest = set.revision == revision;
            let replica_set = set.key.clone();
            let renumbered = Act::NumberReplicaSet { replica_set, revision: revision + 1 };
            let scaled = scaled(set, n_new);
            scaled.into_iter().chain((!is_latest).then_some(renumbered)).collect()
        }
    };
    acts.extend(old.iter().zip(n_old).filter_map(|((_, set), n)| scaled(set, n)));
    acts.extend(outlived(deployment, old, pods));
    acts
}

fn scaled(set: &ReplicaSet, n_replicas: usize) -> Option<Act> {
    let replica_set = set.key.clone();
    (set.n_replicas != n_replicas).then_some(Act::ScaleReplicaSet { replica_set, n_replicas })
}

/// Empty ReplicaSets beyond those kept for a way back. Upstream: `cleanupDeployment`.
fn outlived(deployment: &Deployment, old: &[Owned<'_>], pods: &Pods) -> Vec<Act> {
    let is_empty = |(uid, set): &&Owned<'_>| set.n_replicas == 0 && pods.n_of(uid) == 0;
    let empty: Vec<&Owned<'_>> = old.iter().filter(is_empty).collect();
    let n_beyond = empty.len().saturating_sub(deployment.facts.spec.revision_history_limit);
    let delete = |(_, set): &Owned<'_>| Act::DeleteReplicaSet { replica_set: set.key.clone() };
    empty.into_iter().take(n_beyond).map(delete).collect()
}

fn wanted(deployment: &Deployment) -> Wanted {
    let spec = &deployment.facts.spec;
    let rolling = &spec.strategy.rolling_update;
    let (surge, unavailable) = (amount(&rolling.max_surge), amount(&rolling.max_unavailable));
    let strategy = match spec.strategy.kind.as_str() {
        "Recreate" => Strategy::Recreate,
        _ => rollout::strategy(spec.replicas, surge, unavailable),
    };
    Wanted { n_replicas: spec.replicas, strategy }
}

fn least_available(wanted: Wanted) -> usize {
    match wanted.strategy {
        Strategy::Recreate => wanted.n_replicas,
        Strategy::Rolling { max_unavailable, .. } => {
            wanted.n_replicas.saturating_sub(max_unavailable)
        }
    }
}

fn told(
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
