//! The pods: assignments to nodes, timers, and the queue of the scheduler.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use endpointd_apiserver::store::{Key, Stored};

use super::action::ControllerAction;
use super::addresses::{of_node, of_pod};
use super::facts::PodFacts;
use super::kubelet::{KubeletPod, Phase, Step, next};
use super::nodes::{NodeTable, PodPlacement};
use super::replicas::ActivePod;

/// In a large cluster kubelets report in rounds, every two seconds with 50,000 pods. Changes of one
/// Service then arrive together, which limits the load.
const ROUND_PER_POD: Duration = Duration::from_micros(40);

#[derive(Default)]
pub struct Pods {
    by_key: BTreeMap<Key, Pod>,
    by_node: BTreeMap<String, BTreeSet<Key>>,
    by_owner: BTreeMap<String, OwnedPods>,
    timers: BTreeSet<(Duration, Key)>,
    /// Pods to schedule. `unschedulable` ones wait until `NodeTable::may_have_room`.
    pending: BTreeSet<Key>,
    unschedulable: BTreeSet<Key>,
    n_ever: u64,
}

/// The pods of one owner.
#[derive(Default)]
struct OwnedPods {
    keys: BTreeSet<Key>,
    n_by_zone: BTreeMap<String, usize>,
}

struct Pod {
    uid: String,
    owner: Option<String>,
    /// Node, and its zone at the time of the assignment.
    assignment: Option<(String, String)>,
    slot: Option<u8>,
    facts: PodFacts,
    is_deleting: bool,
    /// The number of the pod in order of creation.
    ordinal: u64,
    due: Option<(Duration, Step)>,
}

impl Pod {
    fn is_active(&self) -> bool {
        !self.is_deleting && self.facts.phase != Phase::Over
    }

    fn node(&self) -> Option<&str> {
        self.assignment.as_ref().map(|(node, _)| node.as_str())
    }
}

impl Pods {
    /// Applies an object; returns the uids of its old and new owner.
    pub fn apply(
        &mut self,
        key: &Key,
        object: Option<&Stored>,
        nodes: &mut NodeTable,
    ) -> BTreeSet<String> {
        let old = self.unindex(key, nodes);
        let mut owners: BTreeSet<String> = old.iter().filter_map(|pod| pod.owner.clone()).collect();
        let is_same = |pod: &Pod| object.is_some_and(|stored| stored.uid == pod.uid);
        let (same, other) = match old {
            Some(pod) if is_same(&pod) => (Some(pod), None),
            other => (None, other),
        };
        if let Some((node, _)) = other.as_ref().and_then(|pod| pod.assignment.as_ref()) {
            nodes.free_address(node, other.as_ref().and_then(|pod| pod.slot));
        }
        let Some(stored) = object else { return owners };
        self.n_ever += 1;
        let facts = PodFacts::of(stored);
        let node = facts.node.clone();
        let pod = Pod {
            uid: stored.uid.clone(),
            owner: stored.owners.first().map(|owner| owner.uid.clone()),
            assignment: node.map(|node| {
                let zone = nodes.zone(&node).unwrap_or_default().to_owned();
                (node, zone)
            }),
            slot: same.as_ref().and_then(|pod| pod.slot),
            is_deleting: stored.is_deleting,
            ordinal: same.as_ref().map_or(self.n_ever, |pod| pod.ordinal),
            due: None,
            facts,
        };
        owners.extend(pod.owner.clone());
        self.index(key, pod, nodes);
        owners
    }

    fn index(&mut self, key: &Key, pod: Pod, nodes: &mut NodeTable) {
        if let Some(owner) = &pod.owner {
            let owned = self.by_owner.entry(owner.clone()).or_default();
            owned.keys.insert(key.clone());
            if let Some((_, zone)) = &pod.assignment {
                *owned.n_by_zone.entry(zone.clone()).or_default() += 1;
            }
        }
        match &pod.assignment {
            Some((node, _)) => {
                nodes.add_pod(node);
                self.by_node.entry(node.clone()).or_default().insert(key.clone());
            }
            None if pod.is_deleting || pod.facts.is_gated => {}
            None if pod.facts.is_marked_unschedulable => {
                self.unschedulable.insert(key.clone());
            }
            None => {
                self.pending.insert(key.clone());
            }
        }
        self.by_key.insert(key.clone(), pod);
    }

    fn unindex(&mut self, key: &Key, nodes: &mut NodeTable) -> Option<Pod> {
        let pod = self.by_key.remove(key)?;
        self.pending.remove(key);
        self.unschedulable.remove(key);
        if let Some((due, _)) = pod.due {
            self.timers.remove(&(due, key.clone()));
        }
        if let Some(owned) = pod.owner.as_ref().and_then(|owner| self.by_owner.get_mut(owner)) {
            owned.keys.remove(key);
            let zone = pod.assignment.as_ref().and_then(|(_, zone)| owned.n_by_zone.get_mut(zone));
            if let Some(n) = zone {
                *n -= 1;
            }
            if owned.keys.is_empty() {
                pod.owner.as_ref().map(|owner| self.by_owner.remove(owner));
            }
        }
        if let Some((node, _)) = &pod.assignment {
            nodes.remove_pod(node);
            if let Some(keys) = self.by_node.get_mut(node) {
                keys.remove(key);
            }
        }
        Some(pod)
    }

    /// Sets the timer of a pod to its next step.
    pub fn schedule_next_step(&mut self, key: &Key, nodes: &NodeTable, seed: u64, now: Duration) {
        let round = ROUND_PER_POD * u32::try_from(self.by_key.len()).unwrap_or(u32::MAX);
        let Some(pod) = self.by_key.get_mut(key) else { return };
        let kubelet_pod = KubeletPod {
            name: key.name(),
            phase: pod.facts.phase,
            is_ready: pod.facts.is_ready,
            probe: pod.facts.probe,
            stopping: pod.is_deleting.then_some(pod.facts.grace),
            node: nodes.pod_node(pod.node()),
        };
        let due = next(&kubelet_pod, seed, round)
            .map(|(takes, step)| (rounded_up(now + takes, round), step));
        if let Some((due, _)) = std::mem::replace(&mut pod.due, due) {
            self.timers.remove(&(due, key.clone()));
        }
        if let Some((due, _)) = due {
            self.timers.insert((due, key.clone()));
        }
    }

    /// Sets the timers of all pods on a node.
    pub fn reschedule_node(&mut self, node: &str, nodes: &NodeTable, seed: u64, now: Duration) {
        for key in self.by_node.get(node).cloned().unwrap_or_default() {
            self.schedule_next_step(&key, nodes, seed, now);
        }
    }

    /// Runs the steps that are due.
    pub fn run_due_steps(
        &mut self,
        nodes: &mut NodeTable,
        now: Duration,
        max: usize,
        actions: &mut Vec<ControllerAction>,
    ) {
        while actions.len() < max
            && let Some((due, _)) = self.timers.first()
            && *due <= now
        {
            let (_, key) = self.timers.pop_first().expect("it was just seen");
            let pod = self.by_key.get_mut(&key).expect("timers are removed with their pods");
            let Some((_, step)) = pod.due.take() else { continue };
            actions.extend(action_for(&key, pod, step, nodes));
        }
    }

    /// Assigns nodes to pending pods. An assignment counts for the following decisions before it is
    /// written.
    pub fn schedule(
        &mut self,
        nodes: &mut NodeTable,
        max: usize,
        actions: &mut Vec<ControllerAction>,
    ) {
        if std::mem::take(&mut nodes.may_have_room) {
            self.pending.append(&mut self.unschedulable);
        }
        while actions.len() < max
            && let Some(key) = self.pending.pop_first()
        {
            let pod = self.by_key.get_mut(&key).expect("pending pods exist");
            let owner = pod.owner.as_ref();
            let mut owned = owner.and_then(|owner| self.by_owner.get_mut(owner));
            let placement = PodPlacement {
                node_selector: &pod.facts.node_selector,
                n_siblings_by_zone: owned.as_ref().map(|owned| &owned.n_by_zone),
            };
            let Some(node) = nodes.choose(&placement).map(str::to_owned) else {
                if !pod.facts.is_marked_unschedulable {
                    actions.push(ControllerAction::MarkUnschedulable { pod: key.clone() });
                }
                self.unschedulable.insert(key);
                continue;
            };
            let zone = nodes.zone(&node).unwrap_or_default().to_owned();
            if let Some(owned) = &mut owned {
                *owned.n_by_zone.entry(zone.clone()).or_default() += 1;
            }
            nodes.add_pod(&node);
            self.by_node.entry(node.clone()).or_default().insert(key.clone());
            pod.assignment = Some((node.clone(), zone));
            actions.push(ControllerAction::Bind { pod: key, node });
        }
    }

    pub fn wake_at(&self) -> Option<Duration> {
        self.timers.first().map(|(due, _)| *due)
    }

    pub fn is_there(&self, key: &Key) -> bool {
        self.by_key.contains_key(key)
    }

    /// The active pods of an owner.
    pub fn members(&self, owner: &str) -> Vec<ActivePod<'_>> {
        let active = |key: &Key| {
            let (key, pod) = self.by_key.get_key_value(key)?;
            pod.is_active().then(|| ActivePod {
                key,
                is_assigned: pod.assignment.is_some(),
                is_ready: pod.facts.is_ready,
                ordinal: pod.ordinal,
            })
        };
        let keys = self.by_owner.get(owner).map(|owned| &owned.keys);
        keys.into_iter().flatten().filter_map(active).collect()
    }

    pub fn active_of(&self, owner: &str) -> Vec<Key> {
        self.members(owner).into_iter().map(|member| member.key.clone()).collect()
    }

    /// Including pods in deletion.
    pub fn n_of(&self, owner: &str) -> usize {
        self.by_owner.get(owner).map_or(0, |owned| owned.keys.len())
    }
}

fn rounded_up(due: Duration, round: Duration) -> Duration {
    let n_rounds = due.as_nanos().div_ceil(round.as_nanos().max(1));
    u32::try_from(n_rounds).map_or(due, |n_rounds| round * n_rounds).max(due)
}

fn action_for(
    key: &Key,
    pod: &mut Pod,
    step: Step,
    nodes: &mut NodeTable,
) -> Option<ControllerAction> {
    match step {
        Step::Start => start(key, pod, nodes, false),
        Step::StartReady => start(key, pod, nodes, true),
        Step::BecomeReady => Some(ControllerAction::SetReady { pod: key.clone(), is_ready: true }),
        Step::BecomeUnready => {
            Some(ControllerAction::SetReady { pod: key.clone(), is_ready: false })
        }
        Step::Remove => Some(ControllerAction::Remove { pod: key.clone(), uid: pod.uid.clone() }),
    }
}

/// Returns `None` if the node has no free address.
fn start(
    key: &Key,
    pod: &mut Pod,
    nodes: &mut NodeTable,
    is_ready: bool,
) -> Option<ControllerAction> {
    let node = pod.node()?.to_owned();
    let number = nodes.number(&node);
    let host_ips = of_node(number);
    if pod.facts.is_on_host_network {
        return Some(ControllerAction::Start {
            pod: key.clone(),
            ips: host_ips,
            host_ips,
            is_ready,
        });
    }
    let slot = match pod.slot {
        Some(slot) => slot,
        None => nodes.allocate_address(&node)?,
    };
    pod.slot = Some(slot);
    Some(ControllerAction::Start {
        pod: key.clone(),
        ips: of_pod(number, slot),
        host_ips,
        is_ready,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_are_rounded_up_to_a_round() {
        let millis = Duration::from_millis;
        assert_eq!(rounded_up(millis(1001), millis(500)), millis(1500));
        assert_eq!(rounded_up(millis(1500), millis(500)), millis(1500));
        assert_eq!(rounded_up(millis(1001), Duration::ZERO), millis(1001));
    }
}
