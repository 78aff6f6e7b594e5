//! The start of each controller, as soon as the resources that it reads are listed. A resource that
//! cannot be listed stops only the controllers that need it. Upstream: `WaitForNamedCacheSync` in
//! the `Run` of each controller.

use std::collections::BTreeSet;

use endpointd_model::{Controller, Key, WatchedResource};

use super::{ControllerState, Controllers};
use crate::MonotonicTime;
use crate::observed::Observed;
use crate::settings::needs;

impl Controllers {
    /// Some controller has started.
    pub fn is_started(&self) -> bool {
        self.states.iter().any(|state| state.is_started)
    }

    /// Starts each controller whose resources are listed: all its keys are enqueued. Returns which.
    pub fn start_synced(&mut self, observed: &Observed, now: MonotonicTime) -> Vec<Controller> {
        let mut started = Vec::new();
        for state in &mut self.states {
            if !state.is_started && state.waits_for(observed).is_empty() {
                state.is_started = true;
                started.push(state.settings.controller);
            }
        }
        if !started.is_empty() {
            let mut dirty = observed.cache().all_keys();
            dirty.0.retain(|one| started.contains(&one.controller));
            self.enqueue(dirty, now);
        }
        started
    }

    /// What these keys wait for has happened.
    pub fn expedite(&mut self, controller: Controller, keys: &BTreeSet<Key>, now: MonotonicTime) {
        let Some(state) = self.get_mut(controller) else { return };
        for key in keys {
            state.queue.expedite(key, now.max(state.keys.throttled_until(key)));
        }
    }
}

impl ControllerState {
    /// Resources that this controller reads and that are not listed yet.
    pub fn waits_for(&self, observed: &Observed) -> Vec<WatchedResource> {
        let needs = needs(self.settings.controller).iter().copied();
        needs.filter(|resource| !observed.is_synced(*resource)).collect()
    }
}
