//! resourceVersions that go backwards, as after etcd was restored from a backup. Nothing that is
//! cached can be compared with what the API server has now, so everything is listed again, as at the
//! start. Nothing is unpublished meanwhile: no controller plans before its lists are complete.

use endpointd_model::WriteResult;

use super::Engine;
use crate::{Effect, MonotonicTime, RequestId};

impl Engine {
    /// Drops the cache and everything that was planned from it.
    pub(super) fn on_rollback(&mut self, now: MonotonicTime) {
        if !self.observed.accepts_signals() {
            // Everything will be listed again already.
            return;
        }
        self.stop(now);
        self.syncs.requests_mut().outdate_all();
        self.observed.reset();
        self.syncs.push_effect(Effect::RelistAll);
    }

    /// What the response to a write says if it was sent before a rollback: the object in it may not
    /// exist any more.
    pub(super) fn result_after_rollback(&self, id: RequestId, result: WriteResult) -> WriteResult {
        match result {
            WriteResult::Stored(_) | WriteResult::Deleted
                if self.syncs.requests().is_outdated(id) =>
            {
                WriteResult::Conflict("resourceVersions went backwards".into())
            }
            other => other,
        }
    }
}
