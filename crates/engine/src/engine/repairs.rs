//! Changes that another client makes again and again to what we publish: whom to blame for them.

use endpointd_model::{Key, LiveRead, LiveReadResult, PublishedResource, WriteResult};

use super::Engine;
use crate::MonotonicTime;
use crate::in_flight::Owner;
use crate::queue::Priority;

impl Engine {
    /// A repair is what another client can undo: not a write that was refused, or not answered.
    pub(super) fn record_repair(
        &mut self,
        owner: &Owner,
        result: &WriteResult,
        now: MonotonicTime,
    ) {
        let is_stored = match result {
            WriteResult::Stored(_) | WriteResult::Deleted => true,
            WriteResult::Conflict(_)
            | WriteResult::NoResponse(_)
            | WriteResult::Throttled { .. }
            | WriteResult::NamespaceTerminating(_)
            | WriteResult::Failed(_)
            | WriteResult::NotLeader => false,
        };
        if is_stored && self.syncs.priority_of(owner) == Some(Priority::Repair) {
            self.controllers.of_mut(owner).keys.repairs.record(&owner.key, now);
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
            self.compare_again(&owner);
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
