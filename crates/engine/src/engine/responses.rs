//! What the responses to writes and live reads change.

use endpointd_model::{LiveRead, LiveReadResult, WriteResult};

use super::Engine;
use crate::failure_events::write_failure_event;
use crate::in_flight::ReadOutcome;
use crate::requests::{PendingRead, PendingRequest};
use crate::retry::NODE_RETRY;
use crate::{MonotonicTime, RequestId};

impl Engine {
    pub(super) fn on_write_result(
        &mut self,
        id: RequestId,
        result: WriteResult,
        now: MonotonicTime,
    ) {
        let Some(request) = self.syncs.on_write_result(id, &result) else { return };
        if let WriteResult::Failed(failure) = &result
            && let Some(record) = write_failure_event(&request, failure)
        {
            self.record_event(&request.owner, record);
        }
        let is_outage_over = self.outage.on_write_result(&result, now);
        let dirty = self.observed.apply_write_result(&request, result);
        if is_outage_over {
            self.controllers.expedite_after_outage(now, &mut self.jitter);
        }
        self.controllers.enqueue(dirty, now);
        self.advance(&request.owner, now);
    }

    pub(super) fn on_live_read(
        &mut self,
        id: RequestId,
        result: LiveReadResult,
        now: MonotonicTime,
    ) {
        match self.syncs.requests_mut().complete(id) {
            Some(PendingRequest::NodeRead(name)) => {
                let is_failed = matches!(result, LiveReadResult::Failed(_));
                let changes = self.observed.apply_read(&LiveRead::Node(name), result);
                let due = if is_failed { now + NODE_RETRY } else { now };
                self.controllers.enqueue(changes.dirty, due);
            }
            Some(PendingRequest::Read(request)) => {
                let outcome = self.apply_live_read(&request, result, now);
                self.syncs.on_read(&request, outcome);
                self.advance(&request.owner, now);
            }
            Some(PendingRequest::Write(_)) | None => {}
        }
    }

    fn apply_live_read(
        &mut self,
        request: &PendingRead,
        result: LiveReadResult,
        now: MonotonicTime,
    ) -> ReadOutcome {
        let PendingRead { owner, read, baseline } = request;
        if self.observed.is_superseded(read, &result, baseline) {
            return ReadOutcome::Superseded;
        }
        if let LiveReadResult::Failed(failure) = result {
            self.outage.record_failure(failure.kind, now);
            return ReadOutcome::Failed(failure);
        }
        self.end_outage(now);
        self.controllers.of_mut(owner).keys.record_read(&owner.key, read, &result);
        let changes = self.observed.apply_read(read, result);
        self.apply_changes(changes, now);
        ReadOutcome::Applied
    }

    pub(super) fn end_outage(&mut self, now: MonotonicTime) {
        if self.outage.record_success() {
            self.controllers.expedite_after_outage(now, &mut self.jitter);
        }
    }
}
