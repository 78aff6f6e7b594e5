//! Lists of a faulty API server: empty or short, although their version is current.

use std::collections::BTreeSet;

use endpointd_engine::Input;
use endpointd_model::{Key, ResourceVersion, SharedStr, WatchSignal, WatchedResource};

use super::Simulation;
use super::receive::Received;
use crate::process::UnconfirmedPods;
use crate::script::FirstPodLists;

impl Simulation {
    pub(super) fn is_first_list_empty(&self, process: usize) -> bool {
        let is_faulty = match self.setup.first_pod_lists {
            FirstPodLists::True => false,
            FirstPodLists::Empty => self.processes[process].incarnation % 4 == 3,
        };
        is_faulty && !self.faults.is_quiescent
    }

    /// Pods that were there before the list and are not in it: the engine confirms that.
    pub(super) fn note_unconfirmed_pods(&mut self, process: usize, revision: u64) {
        let since = self.processes[process].observed().of(WatchedResource::Pods);
        let watch = self.processes[process].watch(WatchedResource::Pods);
        let mut known = std::mem::take(&mut watch.begun_lists);
        // What the cache held before a false list, and what it learned from events after a list.
        known.extend([since, watch.delivered]);
        let before = self.processes[process].unconfirmed_pods.take();
        known.extend(before.into_iter().flat_map(|one| one.known_at));
        known.sort_unstable();
        known.dedup();
        let listed = self.api.pods.list_at(revision);
        let is_listed = |key: &Key| listed.iter().any(|entry| entry.key == *key);
        let known_pods = known.iter().flat_map(|at| self.api.pods.list_at(*at));
        let scope = &self.processes[process].scope;
        let is_known = |key: &Key| scope.contains(WatchedResource::Pods, &key.namespace);
        let unlisted = known_pods.map(|entry| entry.key.clone());
        let unlisted = unlisted.filter(|key| is_known(key) && !is_listed(key));
        let namespaces: BTreeSet<SharedStr> = unlisted.map(|key| key.namespace).collect();
        let is_unconfirmed = !namespaces.is_empty();
        let unconfirmed = UnconfirmedPods { since, known_at: known, namespaces };
        let process = &mut self.processes[process];
        process.unconfirmed_pods = is_unconfirmed.then_some(unconfirmed);
        // What reads from before the list find does not count.
        process.pod_reads.clear();
    }

    /// A list of the first objects at the current revision, as if there were no others.
    pub(super) fn send_false_list(
        &mut self,
        process: usize,
        resource: WatchedResource,
        n_objects: usize,
    ) {
        let revision = self.api.revision();
        let watch = self.processes[process].watch(resource);
        watch.connection += 1;
        watch.due = None;
        // A false list adds nothing to what was observed.
        watch.delivered = revision;
        watch.has_false_list = true;
        self.handle_input(process, Input::Watch(resource, WatchSignal::InitStarted));
        for signal in self.api.list_at(resource, revision).into_iter().take(n_objects) {
            self.receive(process, resource, signal, Received::InList);
        }
        self.handle_input(
            process,
            Input::Watch(resource, WatchSignal::InitDone(ResourceVersion::from(revision))),
        );
    }
}
