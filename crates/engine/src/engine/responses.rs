//! What the responses to writes and live reads change.

use std::time::Duration;

use endpointd_model::{
    Controller, Failure, FailureKind, Key, LiveRead, LiveReadResult, Object, PublishedResource,
    Selection, Service, WatchedResource, WriteResult,
};

use super::Engine;
use crate::in_flight::{Owner, ReadOutcome};
use crate::observed::version_of;
use crate::requests::{PendingRead, PendingRequest, Verb};
use crate::retry::NODE_RETRY;
use crate::throttling::Waits;
use crate::write_events::{condition_event, write_failure_event};
use crate::{MonotonicTime, RequestId};

impl Engine {
    pub(super) fn on_write_result(
        &mut self,
        id: RequestId,
        result: WriteResult,
        now: MonotonicTime,
    ) {
        let result = self.result_after_rollback(id, result);
        let Some(request) = self.syncs.on_write_result(id, &result) else { return };
        self.record_repair(&request.owner, &result, now);
        if let WriteResult::Failed(failure) = &result {
            self.sources.note_refusal(request.resource, failure);
            let write = (request.verb, request.resource, &request.key);
            self.record_write_failure(&request.owner, write, failure, now);
        }
        if matches!(result, WriteResult::Stored(_) | WriteResult::Deleted) {
            self.controllers.of_mut(&request.owner).record_accepted(&request);
        }
        if let WriteResult::Stored(object) = &result
            && let Object::ServiceStatus(status) = &**object
            && let Some(record) = condition_event(status)
        {
            self.record_event(&request.owner, record);
        }
        if let WriteResult::Throttled { after_secs } = &result {
            self.throttle(&request.owner, *after_secs, now);
        }
        let is_outage_over = self.outage.on_write_result(&result, now);
        let dirty = self.observed.apply_write_result(&request, result);
        if is_outage_over {
            self.expedite_unanswered(now);
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
        let is_outdated = self.syncs.requests().is_outdated(id);
        match self.syncs.complete(id) {
            Some(PendingRequest::SharedRead(LiveRead::FieldManager(resource, object))) => {
                self.on_field_manager(resource, &object, result);
            }
            Some(PendingRequest::SharedRead(LiveRead::Pods(namespace))) => {
                self.on_pods_read(&namespace, result, now);
            }
            Some(PendingRequest::SharedRead(LiveRead::Source(cluster, read))) => {
                self.on_source_read(&cluster, *read, result, now);
            }
            Some(PendingRequest::SharedRead(read)) => {
                let is_failed = matches!(result, LiveReadResult::Failed(_));
                let changes = self.observed.apply_read(&read, result);
                let due = if is_failed { now + NODE_RETRY } else { now };
                self.controllers.enqueue(changes.dirty, due);
            }
            Some(PendingRequest::Read(request)) => {
                let outcome = match is_outdated {
                    true => ReadOutcome::Superseded,
                    false => self.apply_live_read(&request, result, now),
                };
                if let Some(unanswered) = self.syncs.on_read(&request, outcome)
                    && let Some((resource, key)) = written(&request.read)
                {
                    let write = (unanswered.verb, resource, key);
                    self.record_write_failure(&request.owner, write, &unanswered.failure, now);
                }
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
        let PendingRead { owner, read, baseline, sent_at } = request;
        if self.observed.is_superseded(read, &result, baseline) {
            return ReadOutcome::Superseded;
        }
        if baseline.is_contradicted_by(&result) {
            self.on_rollback(now);
            return ReadOutcome::Superseded;
        }
        if let LiveReadResult::Failed(failure) = result {
            self.outage.record_failure(failure.kind, now);
            return ReadOutcome::Failed(failure);
        }
        self.end_outage(now);
        self.controllers.of_mut(owner).keys.record_read(&owner.key, read, &result, *sent_at);
        let is_gone = owner.controller == Controller::Endpoints
            && matches!(read, LiveRead::Object(..))
            && result == LiveReadResult::Absent;
        if matches!(result, LiveReadResult::Object(_)) {
            self.compare_again(owner);
        }
        let found = version_of(&result);
        let changes = self.observed.apply_read(read, result);
        self.apply_changes(changes, now);
        if is_gone {
            self.on_endpoints_gone(&owner.key);
        }
        ReadOutcome::Applied(found)
    }

    /// Without a Service and Endpoints there is nothing that this key could be about.
    pub(super) fn drop_key_if_gone(&mut self, key: &Key, now: MonotonicTime) {
        let cache = self.observed.cache();
        if !cache.contains(WatchedResource::Services, key)
            && cache.import(key).is_none()
            && !cache.contains(WatchedResource::Endpoints, key)
        {
            self.controllers.drop_key_if_idle(key, now);
        }
    }

    /// They may have to be created again.
    pub(super) fn on_endpoints_gone(&mut self, key: &Key) {
        let publishes = |service: &Service| matches!(service.selection(), Selection::Pods(_));
        if self.observed.cache().service(key).is_some_and(publishes) {
            self.controllers.require_live_service(key);
        }
    }

    /// What was not sent of this key waits, too: it is planned again.
    fn throttle(&mut self, owner: &Owner, after_secs: u32, now: MonotonicTime) {
        let after = Duration::from_secs(after_secs.into());
        let Waits { key_until, all_until } = self.throttling.record(&owner.key, after, now);
        self.controllers.of_mut(owner).keys.failure_entry(&owner.key).throttled_until = key_until;
        if let Some(until) = all_until {
            self.outage.pause_until(until);
        }
        for id in self.syncs.take_unsent_writes_of(owner) {
            self.syncs.on_write_result(id, &WriteResult::Throttled { after_secs });
        }
    }

    fn record_write_failure(
        &mut self,
        owner: &Owner,
        write: (Verb, PublishedResource, &Key),
        failure: &Failure,
        now: MonotonicTime,
    ) {
        self.controllers.of_mut(owner).record_refused(&owner.key, write, failure, now);
        let (verb, ..) = write;
        if let Some(record) = write_failure_event(owner, verb, failure) {
            self.record_event(owner, record);
        }
    }

    pub(super) fn end_outage(&mut self, now: MonotonicTime) {
        if self.outage.record_success() {
            self.expedite_unanswered(now);
        }
    }

    /// The API server answers again. That says nothing about server errors: reads and other writes
    /// may succeed while a webhook, or etcd, refuses these.
    fn expedite_unanswered(&mut self, now: MonotonicTime) {
        let is_over = |kind| match kind {
            FailureKind::Unreachable | FailureKind::Unauthorized => true,
            FailureKind::ServerError
            | FailureKind::Forbidden
            | FailureKind::Invalid
            | FailureKind::Unreadable => false,
        };
        self.controllers.expedite_failed(is_over, now, &mut self.jitter);
    }

    /// Writes of a key succeed that got server errors before: so may those of the others.
    pub(super) fn expedite_server_errors(&mut self, now: MonotonicTime) {
        let is_over = |kind| kind == FailureKind::ServerError;
        self.controllers.expedite_failed(is_over, now, &mut self.jitter);
    }
}

/// What the write changes whose outcome this read shows.
fn written(read: &LiveRead) -> Option<(PublishedResource, &Key)> {
    match read {
        LiveRead::Object(resource, key) => Some((*resource, key)),
        LiveRead::Service(key) => Some((PublishedResource::ServiceStatus, key)),
        LiveRead::Node(_)
        | LiveRead::FieldManager(..)
        | LiveRead::Pods(_)
        | LiveRead::Source(..) => None,
    }
}
