//! The stand-ins for scheduler, kubelets, and the two workload controllers, without I/O and without
//! a clock: told what the API server shows, they say what to do next.
//!
//! Start at [`Cluster::decide`]. Decisions rest on what was seen, so all that there is to see must
//! be shown before the next decision.

mod act;
mod addresses;
pub mod facts;
mod houses;
mod kubelet;
mod pods;
mod replicas;
mod rollout;
mod scheduler;
mod sets;

pub use act::Act;
pub use addresses::of_node;

use std::time::Duration;

use endpointd_apiserver::store::{Key, Stored};

use houses::Houses;
use pods::Pods;
use sets::Sets;

/// What is known of the cluster, and what is due.
pub struct Cluster {
    seed: u64,
    houses: Houses,
    pods: Pods,
    sets: Sets,
}

impl Cluster {
    pub fn new(seed: u64) -> Self {
        let (houses, pods, sets) = (Houses::default(), Pods::default(), Sets::default());
        Self { seed, houses, pods, sets }
    }

    /// An object as it is now; `None`: it is gone. Other shelves do not matter here.
    pub fn see(&mut self, shelf: &str, key: &Key, object: Option<&Stored>, now: Duration) {
        match shelf {
            "nodes" => {
                self.houses.see(key.name(), object);
                self.pods.look_again(key.name(), &self.houses, self.seed, now);
            }
            "pods" => {
                let owners = self.pods.see(key, object, &mut self.houses);
                owners.iter().for_each(|owner| self.sets.soil(owner, now));
                self.pods.look(key, &self.houses, self.seed, now);
            }
            "replicasets" => self.sets.see_replica_set(key, object, now),
            "deployments" => self.sets.see_deployment(key, object, now),
            _ => {}
        }
    }

    /// What to do now: about `max` acts.
    pub fn decide(&mut self, now: Duration, max: usize) -> Vec<Act> {
        let mut acts: Vec<Act> = self.houses.unreported().collect();
        // Pods are made before they are started: a large world is whole before it moves, and moves in
        // few rounds.
        while acts.len() < max
            && let Some(uid) = self.sets.next_soiled(now)
        {
            acts.extend(self.sets.decide(&uid, &self.pods, self.seed, now));
        }
        self.pods.place(&mut self.houses, max, &mut acts);
        self.pods.steps(&mut self.houses, now, max, &mut acts);
        acts
    }

    /// When something is due by itself; acts that follow from what was just seen are due at once.
    pub fn wake_at(&self) -> Option<Duration> {
        [self.pods.wake_at(), self.sets.wake_at()].into_iter().flatten().min()
    }

    /// The pods of a Deployment that are not on their way out, by name.
    pub fn pods_of(&self, deployment: &Key) -> Vec<Key> {
        let sets = self.sets.replica_sets_of(deployment);
        let mut keys: Vec<Key> = sets.iter().flat_map(|uid| self.pods.active_of(uid)).collect();
        keys.sort();
        keys
    }
}

#[cfg(test)]
mod tests;
