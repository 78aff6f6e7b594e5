//! Fake scheduler, kubelets, Deployment controller, and ReplicaSet controller, without I/O and
//! without a clock: they take objects of the API server and return actions.
//!
//! Start at [`Cluster::decide`]. Decisions use the observed objects, so all changes must be applied
//! before the next decision.

mod action;
mod addresses;
pub mod facts;
mod kubelet;
mod nodes;
mod pods;
mod replicas;
mod rollout;
mod scheduler;
mod sets;

pub use action::ControllerAction;
pub use addresses::of_node;

use std::time::Duration;

use endpointd_apiserver::store::{Key, Stored};

use nodes::NodeTable;
use pods::Pods;
use sets::Sets;

/// The observed objects and the pending work.
pub struct Cluster {
    seed: u64,
    nodes: NodeTable,
    pods: Pods,
    sets: Sets,
}

impl Cluster {
    /// The addresses of nodes and pods follow from the numbers of the nodes.
    pub fn numbered_from(seed: u64, first_node: u16) -> Self {
        let (pods, sets) = (Pods::default(), Sets::default());
        Self { seed, nodes: NodeTable::numbered_from(first_node), pods, sets }
    }

    /// Applies an object; `None` means deleted. Ignores other resources.
    pub fn apply(&mut self, resource: &str, key: &Key, object: Option<&Stored>, now: Duration) {
        match resource {
            "nodes" => {
                self.nodes.apply(key.name(), object);
                self.pods.reschedule_node(key.name(), &self.nodes, self.seed, now);
            }
            "pods" => {
                let owners = self.pods.apply(key, object, &mut self.nodes);
                owners.iter().for_each(|owner| self.sets.mark_dirty(owner, now));
                self.pods.schedule_next_step(key, &self.nodes, self.seed, now);
            }
            "replicasets" => self.sets.apply_replica_set(key, object, now),
            "deployments" => self.sets.apply_deployment(key, object, now),
            _ => {}
        }
    }

    /// The actions that are due, about `max` of them.
    pub fn decide(&mut self, now: Duration, max: usize) -> Vec<ControllerAction> {
        let mut actions: Vec<ControllerAction> = self.nodes.unreported().collect();
        // Creates pods before starting any, so that the pods of a large cluster start in few
        // rounds.
        while actions.len() < max
            && let Some(uid) = self.sets.next_dirty(now)
        {
            actions.extend(self.sets.decide(&uid, &self.pods, self.seed, now));
        }
        self.pods.schedule(&mut self.nodes, max, &mut actions);
        self.pods.run_due_steps(&mut self.nodes, now, max, &mut actions);
        actions
    }

    /// When the next delayed action is due. Actions that follow from a change are due at once.
    pub fn wake_at(&self) -> Option<Duration> {
        [self.pods.wake_at(), self.sets.wake_at()].into_iter().flatten().min()
    }

    /// The active pods of a Deployment, by name.
    pub fn pods_of(&self, deployment: &Key) -> Vec<Key> {
        let sets = self.sets.replica_sets_of(deployment);
        let mut keys: Vec<Key> = sets.iter().flat_map(|uid| self.pods.active_of(uid)).collect();
        keys.sort();
        keys
    }
}

#[cfg(test)]
mod tests;
