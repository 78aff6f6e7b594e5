//! Which Services select which pods, within one namespace.
//!
//! Pods are grouped by their exact label set; all pods of one ReplicaSet have the same. Selectors
//! are compared with label sets, not with pods: when a Service is added, and when a label set is.

use endpointd_model::{Labels, SharedStr};
use hashbrown::HashMap;
use slab::Slab;

use super::pods::PodId;

#[derive(Debug, Default)]
pub struct SelectorIndex {
    sets: Slab<LabelSet>,
    set_by_labels: HashMap<Labels, SetId>,
    sets_by_service: HashMap<SharedStr, Vec<SetId>>,
    by_pair: HashMap<(SharedStr, SharedStr), Pair>,
}

#[derive(Debug)]
struct LabelSet {
    labels: Labels,
    pods: Vec<PodId>,
    /// Names of the Services that select it, sorted.
    services: Vec<SharedStr>,
}

/// The label sets and Services with one label, a key and a value.
#[derive(Debug, Default)]
struct Pair {
    sets: Vec<SetId>,
    /// Services whose selector is found by this label: the rarest of the selector.
    anchored: Vec<(SharedStr, Labels)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SetId(u32);

/// Position of a pod in the list of its label set; makes removal constant-time.
#[derive(Clone, Copy, Debug)]
pub struct IndexSlot {
    pub set: SetId,
    pub position: u32,
}

impl SelectorIndex {
    pub fn insert(&mut self, labels: &Labels, pod: PodId) -> IndexSlot {
        let set = match self.set_by_labels.get(labels) {
            Some(set) => *set,
            None => self.add_set(labels),
        };
        let pods = &mut self.sets[set.index()].pods;
        pods.push(pod);
        IndexSlot { set, position: (pods.len() - 1) as u32 }
    }

    /// Frees the slot. Returns the pod that has moved into it, if one has.
    pub fn remove(&mut self, slot: IndexSlot) -> Option<PodId> {
        let pods = &mut self.sets[slot.set.index()].pods;
        pods.swap_remove(slot.position as usize);
        let moved = pods.get(slot.position as usize).copied();
        if pods.is_empty() {
            self.remove_set(slot.set);
        }
        moved
    }

    pub fn labels(&self, set: SetId) -> &Labels {
        &self.sets[set.index()].labels
    }

    /// Names of the Services that select this label set, sorted.
    pub fn services(&self, set: SetId) -> &[SharedStr] {
        &self.sets[set.index()].services
    }

    /// Names of the Services that select pods with these labels, sorted.
    pub fn selecting(&self, labels: &Labels) -> Vec<SharedStr> {
        if let Some(set) = self.set_by_labels.get(labels) {
            return self.services(*set).to_vec();
        }
        let mut names = Vec::new();
        for (key, value) in labels.iter() {
            let pair = self.by_pair.get(&(key.clone(), value.clone()));
            let anchored = pair.into_iter().flat_map(|pair| &pair.anchored);
            names.extend(anchored.filter(|(_, one)| one.selects(labels)).map(|(name, _)| name));
        }
        let mut names: Vec<SharedStr> = names.into_iter().cloned().collect();
        names.sort_unstable();
        names
    }

    /// The pods a Service selects, in no particular order.
    pub fn pods(&self, service: &str) -> impl Iterator<Item = PodId> {
        self.pods_by_set(service).flat_map(|pods| pods.iter().copied())
    }

    pub fn n_pods(&self, service: &str) -> usize {
        self.pods_by_set(service).map(<[PodId]>::len).sum()
    }

    fn pods_by_set(&self, service: &str) -> impl Iterator<Item = &[PodId]> {
        let sets = self.sets_by_service.get(service).into_iter().flatten();
        sets.map(|set| &*self.sets[set.index()].pods)
    }

    /// An empty selector selects nothing.
    pub fn add_service(&mut self, name: &SharedStr, selector: &Labels) {
        let rarity = |pair: &(SharedStr, SharedStr)| {
            self.by_pair.get(pair).map_or((0, 0), |pair| (pair.sets.len(), pair.anchored.len()))
        };
        let pairs = selector.iter().map(|(key, value)| (key.clone(), value.clone()));
        let Some(rarest) = pairs.min_by_key(rarity) else { return };
        let pair = self.by_pair.entry(rarest).or_default();
        push_exact(&mut pair.anchored, (name.clone(), selector.clone()));
        let mut matched = Vec::new();
        for &set in &pair.sets {
            let LabelSet { labels, services, .. } = &mut self.sets[set.index()];
            if selector.selects(labels) {
                insert_sorted(services, name);
                push_exact(&mut matched, set);
            }
        }
        self.sets_by_service.insert(name.clone(), matched);
    }

    pub fn remove_service(&mut self, name: &SharedStr, selector: &Labels) {
        for set in self.sets_by_service.remove(name).unwrap_or_default() {
            self.sets[set.index()].services.retain(|service| service != name);
        }
        for (key, value) in selector.iter() {
            self.update_pair((key.clone(), value.clone()), |pair| {
                pair.anchored.retain(|(service, _)| service != name);
            });
        }
    }

    pub fn n_sets(&self) -> usize {
        self.sets.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.sets_by_service.is_empty()
    }

    fn add_set(&mut self, labels: &Labels) -> SetId {
        let entry = LabelSet { labels: labels.clone(), pods: Vec::new(), services: Vec::new() };
        let set = SetId(self.sets.insert(entry) as u32);
        self.set_by_labels.insert(labels.clone(), set);
        for (key, value) in labels.iter() {
            let pair = self.by_pair.entry((key.clone(), value.clone())).or_default();
            push_exact(&mut pair.sets, set);
            for (service, selector) in &pair.anchored {
                if selector.selects(labels) {
                    insert_sorted(&mut self.sets[set.index()].services, service);
                    push_exact(self.sets_by_service.entry(service.clone()).or_default(), set);
                }
            }
        }
        set
    }

    fn remove_set(&mut self, set: SetId) {
        let LabelSet { labels, services, .. } = self.sets.remove(set.index());
        self.set_by_labels.remove(&labels);
        for service in services {
            if let Some(sets) = self.sets_by_service.get_mut(&service) {
                sets.retain(|other| *other != set);
            }
        }
        for (key, value) in labels.iter() {
            self.update_pair((key.clone(), value.clone()), |pair| {
                pair.sets.retain(|other| *other != set);
            });
        }
    }

    fn update_pair(&mut self, at: (SharedStr, SharedStr), change: impl FnOnce(&mut Pair)) {
        let Some(pair) = self.by_pair.get_mut(&at) else { return };
        change(pair);
        if pair.sets.is_empty() && pair.anchored.is_empty() {
            self.by_pair.remove(&at);
        }
    }
}

impl SetId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Most of these lists have one member, and an ordinary push would allocate room for four.
pub fn push_exact<T>(list: &mut Vec<T>, member: T) {
    reserve_one(list);
    list.push(member);
}

fn reserve_one<T>(list: &mut Vec<T>) {
    if list.is_empty() {
        list.reserve_exact(1);
    }
}

fn insert_sorted(names: &mut Vec<SharedStr>, name: &SharedStr) {
    if let Err(at) = names.binary_search(name) {
        reserve_one(names);
        names.insert(at, name.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    /// Changes of pods and Services, with few labels so that selectors match.
    #[derive(Clone, Debug)]
    enum Step {
        Pod(u32, Labels),
        PodGone(u32),
        Service(u8, Labels),
        ServiceGone(u8),
    }

    fn labels(len: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Labels> {
        prop::collection::btree_map(0..3u8, 0..2u8, len).prop_map(|pairs| {
            let text = |n: u8| SharedStr::from(n.to_string());
            pairs.into_iter().map(|(key, value)| (text(key), text(value))).collect()
        })
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..8u32, labels(0..4)).prop_map(|(pod, labels)| Step::Pod(pod, labels)),
            (0..8u32).prop_map(Step::PodGone),
            (0..4u8, labels(1..3)).prop_map(|(service, selector)| Step::Service(service, selector)),
            (0..4u8).prop_map(Step::ServiceGone),
        ]
    }

    /// The index, and plain maps with the same content.
    #[derive(Default)]
    struct Checked {
        selectors: SelectorIndex,
        pods: BTreeMap<u32, (Labels, IndexSlot)>,
        services: BTreeMap<u8, Labels>,
    }

    impl Checked {
        fn apply(&mut self, step: Step) {
            match step {
                Step::Pod(pod, labels) => {
                    self.remove_pod(pod);
                    let slot = self.selectors.insert(&labels, PodId(pod));
                    self.pods.insert(pod, (labels, slot));
                }
                Step::PodGone(pod) => self.remove_pod(pod),
                Step::Service(service, selector) => {
                    self.remove_service(service);
                    self.selectors.add_service(&name(service), &selector);
                    self.services.insert(service, selector);
                }
                Step::ServiceGone(service) => self.remove_service(service),
            }
        }

        fn remove_pod(&mut self, pod: u32) {
            let Some((_, slot)) = self.pods.remove(&pod) else { return };
            if let Some(PodId(moved)) = self.selectors.remove(slot) {
                self.pods.get_mut(&moved).expect("the moved pod exists").1.position = slot.position;
            }
        }

        fn remove_service(&mut self, service: u8) {
            if let Some(selector) = self.services.remove(&service) {
                self.selectors.remove_service(&name(service), &selector);
            }
        }

        fn check(&self) {
            for (service, selector) in &self.services {
                let want: BTreeSet<u32> = self
                    .pods
                    .iter()
                    .filter(|(_, (labels, _))| selector.selects(labels))
                    .map(|(pod, _)| *pod)
                    .collect();
                let got: Vec<u32> = self.selectors.pods(&name(*service)).map(|pod| pod.0).collect();
                assert_eq!(got.len(), want.len(), "each pod once");
                assert_eq!(got.into_iter().collect::<BTreeSet<_>>(), want);
            }
            for (labels, slot) in self.pods.values() {
                let of_service = self.services.iter().filter(|(_, one)| one.selects(labels));
                let want: Vec<SharedStr> = of_service.map(|(service, _)| name(*service)).collect();
                assert_eq!(self.selectors.services(slot.set), want);
                assert_eq!(self.selectors.labels(slot.set), labels);
            }
        }
    }

    fn name(service: u8) -> SharedStr {
        service.to_string().into()
    }

    proptest! {
        #[test]
        fn index_equals_a_full_scan(steps in prop::collection::vec(step(), 1..60)) {
            let mut checked = Checked::default();
            for step in steps {
                checked.apply(step);
                checked.check();
            }
            for pod in 0..8 {
                checked.apply(Step::PodGone(pod));
            }
            for service in 0..4 {
                checked.apply(Step::ServiceGone(service));
            }
            prop_assert!(checked.selectors.is_empty());
            prop_assert!(checked.selectors.by_pair.is_empty(), "nothing leaks");
        }
    }
}
