//! Changes that another client makes again and again to what we publish: whom to blame for them.

use endpointd_model::{Key, LiveRead, LiveReadResult, PublishedResource};

use super::Engine;
use crate::MonotonicTime;
use crate::controllers::Work;
use crate::in_flight::Owner;
use crate::queue::Priority;
use crate::refused_writes::Permitted;

impl Engine {
    pub(super) fn record_repair(&mut self, work: &Work, writes: &Permitted, now: MonotonicTime) {
        match work.priority {
            Priority::Repair => {
                let n_writes = writes.writes.iter().count();
                let keys = &mut self.controllers.of_mut(&work.owner).keys;
                keys.repairs.record(&work.owner.key, n_writes, now);
            }
            Priority::Removal | Priority::Live | Priority::Background => {}
        }
    }

    /// The watch, or a live read, has found an object that is not as we wrote it.
    pub(super) fn note_edit(
        &mut self,
        resource: PublishedResource,
        object: &Key,
        now: MonotonicTime,
    ) {
        let publisher = self.observed.cache().publisher(resource, object);
        let Some(owner) = publisher.map(|(controller, key)| Owner { controller, key }) else {
            return;
        };
        if let Some(state) = self.controllers.get_mut(owner.controller) {
            state.keys.repairs.note_edit(&owner.key, resource, object);
            self.ask_who_edits(&owner, now);
        }
    }

    /// Asks the API server who changed an object whose repair has to wait.
    pub(super) fn ask_who_edits(&mut self, owner: &Owner, now: MonotonicTime) {
        let repairs = &mut self.controllers.of_mut(owner).keys.repairs;
        if let Some((resource, object)) = repairs.take_question(&owner.key, now) {
            self.syncs.read_shared(LiveRead::FieldManager(resource, object));
        }
    }

    pub(super) fn on_field_manager(
        &mut self,
        resource: PublishedResource,
        object: &Key,
        result: LiveReadResult,
    ) {
        if let LiveReadResult::FieldManager(Some(manager)) = result
            && let Some((controller, key)) = self.observed.cache().publisher(resource, object)
            && let Some(state) = self.controllers.get_mut(controller)
        {
            state.keys.repairs.set_manager(&key, manager);
        }
    }
}
