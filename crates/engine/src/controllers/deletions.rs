//! What the deletion of a Service or of Endpoints means for the keys of the controllers.

use endpointd_model::{Controller, Key, LiveRead};

use super::Controllers;
use crate::MonotonicTime;
use crate::cache::{Cache, DirtyKeys, ObjectChange};

impl Controllers {
    /// An object was deleted: records what the next plans of its key, which is enqueued by now, must
    /// know of it.
    pub fn record_deletion(&mut self, change: &ObjectChange, cache: &Cache) {
        let (ObjectChange::ServiceDeleted(key, _) | ObjectChange::EndpointsDeleted(key, _)) =
            change
        else {
            return;
        };
        for state in &mut self.states {
            // The plan of a consumer rests on its source.
            let consumers = match state.settings.controller {
                Controller::Import => cache.consumers_of(key).collect(),
                Controller::Slices
                | Controller::Endpoints
                | Controller::Mirror
                | Controller::MultiCluster => Vec::new(),
            };
            for key in consumers.into_iter().chain([key]) {
                if state.queue.phase(key).is_some() {
                    state.keys.entry(key).reported_deletions.record(change);
                }
            }
        }
    }

    /// These keys have lost pods that the watch has not reported as deleted.
    pub fn note_lost_pods(&mut self, dirty: &DirtyKeys) {
        for one in &dirty.0 {
            if let Some(state) = self.get_mut(one.controller)
                && state.is_started()
            {
                state.keys.entry(&one.key).has_lost_pods = true;
            }
        }
    }

    /// The Endpoints of a Service are gone. The API server deletes them together with the Service,
    /// and their deletion may be reported first: a live read shows whether to create them again.
    pub fn require_live_service(&mut self, key: &Key) {
        if let Some(state) = self.get_mut(Controller::Endpoints)
            && state.queue.phase(key).is_some()
        {
            let reads = &mut state.keys.failure_entry(key).reads_required;
            reads.insert(LiveRead::Service(key.clone()));
        }
    }

    /// Drops the entries of a key with neither a Service nor Endpoints, unless it is still queued.
    pub fn drop_key_if_idle(&mut self, key: &Key, now: MonotonicTime) {
        for state in &mut self.states {
            if state.queue.phase(key).is_none() {
                state.keys.remove(key, now);
            }
        }
    }
}
