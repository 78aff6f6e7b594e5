//! The pods: where they are, what is due for each, and who waits for a place.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use endpointd_apiserver::store::{Key, Stored};

use super::act::Act;
use super::addresses::{of_node, of_pod};
use super::facts::PodFacts;
use super::houses::{Guest, Houses};
use super::kubelet::{Housed, Phase, Step, next};
use super::replicas::Member;

/// In a large cluster kubelets report in rounds, two seconds for 50,000 pods: what happens to the pods
/// of one Service then arrives together, and the machine keeps up.
const ROUND_PER_POD: Duration = Duration::from_micros(40);

#[derive(Default)]
pub struct Pods {
    by_key: BTreeMap<Key, Pod>,
    by_node: BTreeMap<String, BTreeSet<Key>>,
    by_owner: BTreeMap<String, Family>,
    timers: BTreeSet<(Duration, Key)>,
    /// To be placed; the others have been told that there is no room.
    waiting: BTreeSet<Key>,
    turned_away: BTreeSet<Key>,
    n_ever: u64,
}

/// The pods of one owner.
#[derive(Default)]
struct Family {
    keys: BTreeSet<Key>,
    n_by_zone: BTreeMap<String, usize>,
}

struct Pod {
    uid: String,
    owner: Option<String>,
    /// With its zone at the time it was placed.
    place: Option<(String, String)>,
    slot: Option<u8>,
    facts: PodFacts,
    is_deleting: bool,
    /// Counts the pods there ever were.
    ordinal: u64,
    due: Option<(Duration, Step)>,
}

impl Pod {
    fn is_active(&self) -> bool {
        !self.is_deleting && self.facts.phase != Phase::Over
    }

    fn node(&self) -> Option<&str> {
        self.place.as_ref().map(|(node, _)| node.as_str())
    }
}

impl Pods {
    /// Takes over what the API server shows; says whose pod it is and was.
    pub fn see(
        &mut self,
        key: &Key,
        object: Option<&Stored>,
        houses: &mut Houses,
    ) -> BTreeSet<String> {
        let old = self.take_out(key, houses);
        let mut owners: BTreeSet<String> = old.iter().filter_map(|pod| pod.owner.clone()).collect();
        let is_same = |pod: &Pod| object.is_some_and(|stored| stored.uid == pod.uid);
        let (same, other) = match old {
            Some(pod) if is_same(&pod) => (Some(pod), None),
            other => (None, other),
        };
        if let Some((node, _)) = other.as_ref().and_then(|pod| pod.place.as_ref()) {
            houses.free_address(node, other.as_ref().and_then(|pod| pod.slot));
        }
        let Some(stored) = object else { return owners };
        self.n_ever += 1;
        let facts = PodFacts::of(stored);
        let node = facts.node.clone();
        let pod = Pod {
            uid: stored.uid.clone(),
            owner: stored.owners.first().map(|owner| owner.uid.clone()),
            place: node.map(|node| {
                let zone = houses.zone(&node).unwrap_or_default().to_owned();
                (node, zone)
            }),
            slot: same.as_ref().and_then(|pod| pod.slot),
            is_deleting: stored.is_deleting,
            ordinal: same.as_ref().map_or(self.n_ever, |pod| pod.ordinal),
            due: None,
            facts,
        };
        owners.extend(pod.owner.clone());
        self.put_in(key, pod, houses);
        owners
    }

    fn put_in(&mut self, key: &Key, pod: Pod, houses: &mut Houses) {
        if let Some(owner) = &pod.owner {
            let family = self.by_owner.entry(owner.clone()).or_default();
            family.keys.insert(key.clone());
            if let Some((_, zone)) = &pod.place {
                *family.n_by_zone.entry(zone.clone()).or_default() += 1;
            }
        }
        match &pod.place {
            Some((node, _)) => {
                houses.move_in(node);
                self.by_node.entry(node.clone()).or_default().insert(key.clone());
            }
            None if pod.is_deleting || pod.facts.is_gated => {}
            None if pod.facts.is_told_unschedulable => {
                self.turned_away.insert(key.clone());
            }
            None => {
                self.waiting.insert(key.clone());
            }
        }
        self.by_key.insert(key.clone(), pod);
    }

    fn take_out(&mut self, key: &Key, houses: &mut Houses) -> Option<Pod> {
        let pod = self.by_key.remove(key)?;
        self.waiting.remove(key);
        self.turned_away.remove(key);
        if let Some((due, _)) = pod.due {
            self.timers.remove(&(due, key.clone()));
        }
        if let Some(family) = pod.owner.as_ref().and_then(|owner| self.by_owner.get_mut(owner)) {
            family.keys.remove(key);
            let zone = pod.place.as_ref().and_then(|(_, zone)| family.n_by_zone.get_mut(zone));
            if let Some(n) = zone {
                *n -= 1;
            }
            if family.keys.is_empty() {
                pod.owner.as_ref().map(|owner| self.by_owner.remove(owner));
            }
        }
        if let Some((node, _)) = &pod.place {
            houses.move_out(node);
            if let Some(keys) = self.by_node.get_mut(node) {
                keys.remove(key);
            }
        }
        Some(pod)
    }

    /// Sets the timer of a pod for what is due next.
    pub fn look(&mut self, key: &Key, houses: &Houses, seed: u64, now: Duration) {
        let round = ROUND_PER_POD * u32::try_from(self.by_key.len()).unwrap_or(u32::MAX);
        let Some(pod) = self.by_key.get_mut(key) else { return };
        let housed = Housed {
            name: key.name(),
            phase: pod.facts.phase,
            is_ready: pod.facts.is_ready,
            probe: pod.facts.probe,
            stopping: pod.is_deleting.then_some(pod.facts.grace),
            house: houses.house(pod.node()),
        };
        let due =
            next(&housed, seed, round).map(|(takes, step)| (rounded_up(now + takes, round), step));
        if let Some((due, _)) = std::mem::replace(&mut pod.due, due) {
            self.timers.remove(&(due, key.clone()));
        }
        if let Some((due, _)) = due {
            self.timers.insert((due, key.clone()));
        }
    }

    /// All pods of a node that has changed.
    pub fn look_again(&mut self, node: &str, houses: &Houses, seed: u64, now: Duration) {
        for key in self.by_node.get(node).cloned().unwrap_or_default() {
            self.look(&key, houses, seed, now);
        }
    }

    /// What is due on the nodes.
    pub fn steps(&mut self, houses: &mut Houses, now: Duration, max: usize, acts: &mut Vec<Act>) {
        while acts.len() < max
            && let Some((due, _)) = self.timers.first()
            && *due <= now
        {
            let (_, key) = self.timers.pop_first().expect("it was just seen");
            let pod = self.by_key.get_mut(&key).expect("timers are taken out with their pods");
            let Some((_, step)) = pod.due.take() else { continue };
            acts.extend(carried_out(&key, pod, step, houses));
        }
    }

    /// Finds places for those that wait. What is decided counts at once, so that the next one in
    /// line sees it.
    pub fn place(&mut self, houses: &mut Houses, max: usize, acts: &mut Vec<Act>) {
        if std::mem::take(&mut houses.has_news) {
            self.waiting.append(&mut self.turned_away);
        }
        while acts.len() < max
            && let Some(key) = self.waiting.pop_first()
        {
            let pod = self.by_key.get_mut(&key).expect("who waits is there");
            let owner = pod.owner.as_ref();
            let mut family = owner.and_then(|owner| self.by_owner.get_mut(owner));
            let guest = Guest {
                node_selector: &pod.facts.node_selector,
                n_siblings_by_zone: family.as_ref().map(|family| &family.n_by_zone),
            };
            let Some(node) = houses.choose(&guest).map(str::to_owned) else {
                if !pod.facts.is_told_unschedulable {
                    acts.push(Act::TellUnschedulable { pod: key.clone() });
                }
                self.turned_away.insert(key);
                continue;
            };
            let zone = houses.zone(&node).unwrap_or_default().to_owned();
            if let Some(family) = &mut family {
                *family.n_by_zone.entry(zone.clone()).or_default() += 1;
            }
            houses.move_in(&node);
            self.by_node.entry(node.clone()).or_default().insert(key.clone());
            pod.place = Some((node.clone(), zone));
            acts.push(Act::Bind { pod: key, node });
        }
    }

    pub fn wake_at(&self) -> Option<Duration> {
        self.timers.first().map(|(due, _)| *due)
    }

    pub fn is_there(&self, key: &Key) -> bool {
        self.by_key.contains_key(key)
    }

    /// The pods of an owner that are not on their way out.
    pub fn members(&self, owner: &str) -> Vec<Member<'_>> {
        let active = |key: &Key| {
            let (key, pod) = self.by_key.get_key_value(key)?;
            pod.is_active().then(|| Member {
                key,
                is_placed: pod.place.is_some(),
                is_ready: pod.facts.is_ready,
                ordinal: pod.ordinal,
            })
        };
        let keys = self.by_owner.get(owner).map(|family| &family.keys);
        keys.into_iter().flatten().filter_map(active).collect()
    }

    pub fn active_of(&self, owner: &str) -> Vec<Key> {
        self.members(owner).into_iter().map(|member| member.key.clone()).collect()
    }

    /// Including those on their way out.
    pub fn n_of(&self, owner: &str) -> usize {
        self.by_owner.get(owner).map_or(0, |family| family.keys.len())
    }
}

fn rounded_up(due: Duration, round: Duration) -> Duration {
    let n_rounds = due.as_nanos().div_ceil(round.as_nanos().max(1));
    u32::try_from(n_rounds).map_or(due, |n_rounds| round * n_rounds).max(due)
}

fn carried_out(key: &Key, pod: &mut Pod, step: Step, houses: &mut Houses) -> Option<Act> {
    match step {
        Step::Start => start(key, pod, houses, false),
        Step::StartReady => start(key, pod, houses, true),
        Step::BecomeReady => Some(Act::SetReady { pod: key.clone(), is_ready: true }),
        Step::BecomeUnready => Some(Act::SetReady { pod: key.clone(), is_ready: false }),
        Step::Remove => Some(Act::Remove { pod: key.clone(), uid: pod.uid.clone() }),
    }
}

/// A node that is out of addresses starts nothing.
fn start(key: &Key, pod: &mut Pod, houses: &mut Houses, is_ready: bool) -> Option<Act> {
    let node = pod.node()?.to_owned();
    let number = houses.number(&node);
    let host_ips = of_node(number);
    if pod.facts.is_on_host_network {
        return Some(Act::Start { pod: key.clone(), ips: host_ips, host_ips, is_ready });
    }
    let slot = match pod.slot {
        Some(slot) => slot,
        None => houses.take_address(&node)?,
    };
    pod.slot = Some(slot);
    Some(Act::Start { pod: key.clone(), ips: of_pod(number, slot), host_ips, is_ready })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_meet_at_the_end_of_a_round() {
        let millis = Duration::from_millis;
        assert_eq!(rounded_up(millis(1001), millis(500)), millis(1500));
        assert_eq!(rounded_up(millis(1500), millis(500)), millis(1500));
        assert_eq!(rounded_up(millis(1001), Duration::ZERO), millis(1001));
    }
}
