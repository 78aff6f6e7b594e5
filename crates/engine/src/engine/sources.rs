//! What the other clusters of the set change: their objects, and their states.

use std::collections::BTreeSet;

use endpointd_model::{
    ClusterId, Controller, Key, LiveRead, LiveReadResult, ResourceEvent, SharedStr, Timestamp,
    WatchSignal, WatchedResource,
};
use endpointd_plan::SourceState;

use super::Engine;
use crate::cache::{Changes, DirtyKeys};
use crate::in_flight::Owner;
use crate::observed::Reaction;
use crate::queue::Priority;
use crate::retry::NODE_RETRY;
use crate::sources::{Source, StateChange};
use crate::{Effect, Input, KeyStatus, MonotonicTime, SourceInput, SourceStatus};

impl Engine {
    pub(super) fn on_clusters(&mut self, input: Input, now: MonotonicTime) {
        match input {
            Input::Clock(time) => self.on_clock(time, now),
            Input::Source(cluster, input) => self.on_source(cluster, input, now),
            Input::SourcesListed => self.on_sources_listed(now),
            Input::Watch(..)
            | Input::WriteResult(..)
            | Input::LiveReadResult(..)
            | Input::LeadershipAcquired
            | Input::LeadershipLost
            | Input::VersionsRolledBack => {}
        }
    }

    /// The list of some resource is running.
    pub fn is_listing(&self) -> bool {
        self.observed.is_listing()
    }

    /// Writes in flight.
    pub fn n_writes(&self) -> usize {
        self.syncs.n_writes()
    }

    /// The state of one key in each controller that tracks it.
    pub fn report_key(&self, key: &Key, now: MonotonicTime) -> Vec<KeyStatus> {
        self.controllers.iter().filter_map(|one| one.key_status(key, now)).collect()
    }

    /// The states of the other clusters, sorted.
    pub fn source_statuses(&self, now: MonotonicTime) -> Vec<SourceStatus> {
        self.sources.statuses(now)
    }

    fn on_clock(&mut self, time: Timestamp, now: MonotonicTime) {
        self.sources.set_clock(now, time);
        self.refresh_sources(now);
    }

    fn on_sources_listed(&mut self, now: MonotonicTime) {
        self.sources.set_listed();
        // What clusters that nobody configures any more exported.
        let keys = self.observed.cache().imports().map(|(key, _)| key.clone()).collect();
        self.enqueue_imports(keys, Priority::Background, now);
    }

    fn on_source(&mut self, cluster: ClusterId, input: SourceInput, now: MonotonicTime) {
        if let SourceInput::Configured { limits, zones, last_contact } = input {
            self.sources.configure(cluster, limits, zones, last_contact);
            return self.refresh_sources(now);
        }
        let time = self.sources.time(now);
        let Some(source) = self.sources.get_mut(&cluster) else { return };
        match input {
            SourceInput::Watch(resource, signal) => {
                return self.on_source_signal(&cluster, resource, signal, now);
            }
            SourceInput::Kubeconfig(kubeconfig) => source.set_kubeconfig(kubeconfig),
            SourceInput::Answered => source.on_contact(time),
            SourceInput::Denied => source.on_denied(),
            SourceInput::Replaced => source.reset(),
            SourceInput::Configured { .. } => {}
        }
        self.refresh_sources(now);
    }

    fn on_source_signal(
        &mut self,
        cluster: &ClusterId,
        resource: WatchedResource,
        signal: WatchSignal,
        now: MonotonicTime,
    ) {
        let time = self.sources.time(now);
        let Some(source) = self.sources.get_mut(cluster) else { return };
        let is_event = matches!(signal, WatchSignal::Event(_) | WatchSignal::Bookmark(_));
        match source.on_signal(resource, signal, (now, time)) {
            Reaction::Nothing | Reaction::Reconnected => {}
            Reaction::Changes(changes) => self.enqueue_of_source(cluster, changes, now),
            Reaction::Relist => {
                // All of them begin again.
                source.await_lists();
                let effect =
                    Effect::RelistSource { cluster: cluster.clone(), resource: Some(resource) };
                self.syncs.push_effect(effect);
            }
            Reaction::RolledBack => {
                source.reset();
                let effect = Effect::RelistSource { cluster: cluster.clone(), resource: None };
                self.syncs.push_effect(effect);
            }
            Reaction::ListDone(held_back) => {
                self.finish_source_list(cluster, resource, held_back, now);
            }
        }
        // An event of a list says nothing before its end, and one of a cluster in sync nothing new.
        let says_nothing = match self.sources.get(cluster).map(Source::state) {
            Some(SourceState::InSync | SourceState::Unknown) | None => is_event,
            Some(
                SourceState::Lost { .. }
                | SourceState::Demoted { .. }
                | SourceState::Expired
                | SourceState::Removed,
            ) => false,
        };
        if !says_nothing {
            self.refresh_sources(now);
        }
    }

    fn finish_source_list(
        &mut self,
        cluster: &ClusterId,
        resource: WatchedResource,
        held_back: Vec<ResourceEvent>,
        now: MonotonicTime,
    ) {
        let time = self.sources.time(now);
        let Some(source) = self.sources.get_mut(cluster) else { return };
        let observed = source.observed_mut();
        let mut all: Vec<Changes> = held_back.into_iter().map(|one| observed.apply(one)).collect();
        all.push(observed.remove_missing(resource));
        source.on_contact(time);
        for changes in all {
            self.enqueue_of_source(cluster, changes, now);
        }
    }

    /// Another cluster has no say in what the other controllers do.
    fn enqueue_of_source(&mut self, cluster: &ClusterId, changes: Changes, now: MonotonicTime) {
        let Changes { mut dirty, objects: _ } = changes;
        dirty.0.retain(|one| one.controller == Controller::MultiCluster);
        let Some(source) = self.sources.get_mut(cluster) else { return };
        match source.holds_changes(now) {
            true => source.hold(dirty.0.into_iter().map(|one| one.key)),
            false => self.controllers.enqueue(dirty, now),
        }
    }

    /// Losing a cluster changes nothing yet: what is published of it stays.
    fn refresh_sources(&mut self, now: MonotonicTime) {
        let released = self.sources.release(now);
        self.enqueue_imports(released, Priority::Live, now);
        for StateChange { cluster, from, to } in self.sources.refresh(now) {
            if to == SourceState::InSync
                && let Some(source) = self.sources.get_mut(&cluster)
            {
                let waiting = source.take_waiting_for_contact();
                self.enqueue_imports(waiting, Priority::Live, now);
            }
            let is_kept = |state| matches!(state, SourceState::InSync | SourceState::Lost { .. });
            if is_kept(from) && is_kept(to) {
                continue;
            }
            let priority = match from {
                SourceState::Unknown => Priority::Background,
                SourceState::InSync
                | SourceState::Lost { .. }
                | SourceState::Demoted { .. }
                | SourceState::Expired
                | SourceState::Removed => Priority::Live,
            };
            self.enqueue_imports(self.keys_of_source(&cluster), priority, now);
            if to == SourceState::Removed
                && let Some(source) = self.sources.get_mut(&cluster)
            {
                source.reset();
            }
        }
    }

    /// The imports that this cluster has a part in, as far as is known.
    fn keys_of_source(&self, cluster: &ClusterId) -> BTreeSet<Key> {
        let names = |listed: &SharedStr| **listed == *cluster.as_str();
        let imports = self.observed.cache().imports().filter(|(_, import)| {
            let status = &import.status;
            status.slice_objects.is_none() || status.clusters.iter().any(names)
        });
        let exports = self.sources.get(cluster).into_iter().flat_map(|source| source.exports());
        imports.map(|(key, _)| key).chain(exports).cloned().collect()
    }

    pub(super) fn enqueue_namespace(&mut self, namespace: &SharedStr, now: MonotonicTime) {
        let mut keys = self.keys_of_clusters();
        keys.retain(|key| key.namespace == *namespace);
        self.enqueue_imports(keys, Priority::Live, now);
    }

    /// What the controller plans when it starts, besides its own objects.
    pub(super) fn enqueue_all_of_sources(&mut self, now: MonotonicTime) {
        let exports = self.sources.iter().flat_map(|(_, source)| source.exports());
        let keys = exports.cloned().collect();
        self.enqueue_imports(keys, Priority::Background, now);
    }

    fn keys_of_clusters(&self) -> BTreeSet<Key> {
        let cache = self.observed.cache();
        let own = cache.exports().map(|(key, _)| key).chain(cache.imports().map(|(key, _)| key));
        let others = self.sources.iter().flat_map(|(_, source)| source.exports());
        own.chain(others).cloned().collect()
    }

    fn enqueue_imports(&mut self, keys: BTreeSet<Key>, priority: Priority, now: MonotonicTime) {
        self.controllers
            .enqueue(DirtyKeys::in_turns(Controller::MultiCluster, keys, priority), now);
    }

    pub(super) fn read_shared(&mut self, owner: &Owner, read: LiveRead) {
        if let LiveRead::Source(cluster, inner) = &read
            && let Some(source) = self.sources.get_mut(cluster)
        {
            if source.state() != SourceState::InSync {
                return source.wait_for_contact(owner.key.clone());
            }
            source.wait_for((**inner).clone(), owner.key.clone());
        }
        self.syncs.read_shared(read);
    }

    /// The live read of an object that another cluster does not seem to have.
    pub(super) fn on_source_read(
        &mut self,
        cluster: &ClusterId,
        read: LiveRead,
        result: LiveReadResult,
        now: MonotonicTime,
    ) {
        let Some(source) = self.sources.get_mut(cluster) else { return };
        let waiting = source.take_waiting(&read);
        let mut due = now;
        match result {
            LiveReadResult::Absent => source.confirm_absent(read, now),
            LiveReadResult::Failed(_) => due = now + NODE_RETRY,
            found => {
                let changes = source.observed_mut().apply_read(&read, found);
                self.enqueue_of_source(cluster, changes, now);
            }
        }
        self.enqueue_imports(waiting, Priority::Live, due);
    }
}
