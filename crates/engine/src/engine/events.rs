//! The Kubernetes Events that the engine records.

use endpointd_model::EventRecord;

use super::Engine;
use crate::in_flight::{Owner, SyncEnd};
use crate::write_events::left_behind_event;
use crate::{Effect, planning};

impl Engine {
    /// After a sync that deleted what was left of a time when its Service had a selector.
    pub(super) fn record_left_behind(&mut self, owner: &Owner, end: &SyncEnd) {
        let deleted = end.summary.as_ref().filter(|_| end.has_stored_writes());
        if let Some(summary) = deleted
            && planning::is_left_behind(self.observed.cache(), owner.controller, &owner.key)
        {
            self.record_event(owner, left_behind_event(owner, summary.n_deletes));
        }
    }

    pub(super) fn record_event(&mut self, owner: &Owner, record: EventRecord) {
        let Owner { controller, key } = owner.clone();
        let uid = self.observed.cache().involved_uid(record.involved_kind, &key);
        self.syncs.push_effect(Effect::RecordEvent { controller, key, uid, record });
    }
}
