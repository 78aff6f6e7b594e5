//! Kubernetes Events: a failed write gives the Event that upstream records, no such Event comes
//! without a failed write, and none repeats what has not changed.

use std::collections::BTreeMap;

use endpointd_engine::{Input, RequestId, SyncSummary};
use endpointd_model::{
    Controller, EventReason, EventRecord, Key, PublishedResource, ResourceVersion, Write,
    WriteResult, names,
};

use crate::coverage::Rule;
use crate::simulation::Simulation;

/// What the Events of one process are judged by.
#[derive(Debug, Default)]
pub struct EventLog {
    /// The Event that a write in flight causes if it fails.
    sent: BTreeMap<RequestId, SentWrite>,
    /// Failed writes of each sync in flight, and their Events.
    failed: BTreeMap<(Controller, Key), SyncEvents>,
    /// The last Event by controller, key, and reason, and how much the process had received then.
    last: BTreeMap<(Controller, Key, EventReason), (String, u64)>,
    /// Inputs of the engine, except responses to its writes.
    n_received: u64,
    pub n_recorded: u64,
}

#[derive(Clone, Debug)]
struct SentWrite {
    controller: Controller,
    /// One, except for the delete of a copy of which somebody edited the labels.
    keys: Vec<Key>,
    reason: EventReason,
    /// The object of an update or a delete, in the version that the write was computed from.
    base: Option<ObjectVersion>,
}

type ObjectVersion = (PublishedResource, Key, ResourceVersion);

/// An Event does not name the object of its write, so they are only counted.
#[derive(Debug, Default)]
struct SyncEvents {
    failed_writes: Vec<FailedWrite>,
    recorded: Vec<EventReason>,
}

#[derive(Clone, Debug)]
struct FailedWrite {
    reason: EventReason,
    obligation: Obligation,
}

#[derive(Clone, Debug)]
enum Obligation {
    /// The write was rejected.
    Required,
    /// It was not answered definitely: required if the object is still this one.
    IfUnchanged(ObjectVersion),
    /// It may have been applied, or another client was faster: upstream reports it, we need not.
    Allowed,
}

impl Simulation {
    pub(crate) fn log_sent(
        &mut self,
        process: usize,
        id: RequestId,
        controller: Controller,
        write: &Write,
    ) {
        let keys = match controller {
            Controller::Import => self.consumers_of(write),
            Controller::Slices
            | Controller::Endpoints
            | Controller::Mirror
            | Controller::MultiCluster => {
                let key = self.service_of(write).or_else(|| self.service_of_deleted_slice(write));
                key.into_iter().collect()
            }
        };
        if let Some(reason) = failure_reason(controller, write).filter(|_| !keys.is_empty()) {
            let version = match write {
                Write::Create(_) => None,
                Write::Update(object) => Some(object.meta().resource_version),
                Write::Delete(target) => Some(target.resource_version),
            };
            let base = version.map(|version| (write.resource(), write.key(), version));
            let sent = SentWrite { controller, keys, reason, base };
            self.processes[process].events.sent.insert(id, sent);
        }
    }

    /// The slice may be gone when its delete is sent.
    fn service_of_deleted_slice(&self, write: &Write) -> Option<Key> {
        let versions = self.api.slices.window(&write.key(), 0);
        let slice = versions.into_iter().flatten().next_back()?;
        let name = slice.meta.labels.get(names::SERVICE_NAME)?;
        Some(Key::new(slice.meta.namespace.clone(), name.clone()))
    }

    /// Called before the engine receives the input.
    pub(crate) fn log_input(&mut self, process: usize, input: &Input) {
        let events = &mut self.processes[process].events;
        let Input::WriteResult(id, result) = input else {
            events.n_received += 1;
            return;
        };
        let Some(SentWrite { controller, keys, reason, base }) = events.sent.remove(id) else {
            return;
        };
        let obligation = match result {
            WriteResult::Failed(_) | WriteResult::NoResponse(_) if keys.len() > 1 => {
                Obligation::Allowed
            }
            WriteResult::Failed(_) => Obligation::Required,
            WriteResult::NoResponse(_) => base.map_or(Obligation::Allowed, Obligation::IfUnchanged),
            WriteResult::Conflict(_) => Obligation::Allowed,
            WriteResult::Stored(_)
            | WriteResult::Deleted
            | WriteResult::NamespaceTerminating(_)
            | WriteResult::Throttled { .. }
            | WriteResult::NotLeader => return,
        };
        for key in keys {
            let failed = events.failed.entry((controller, key)).or_default();
            failed.failed_writes.push(FailedWrite { reason, obligation: obligation.clone() });
        }
    }

    pub(crate) fn check_event(
        &mut self,
        process: usize,
        controller: Controller,
        key: &Key,
        record: &EventRecord,
    ) {
        self.coverage.count_rule(Rule::Events);
        self.trace(|| format!("  p{process} records {} of {key}", record.reason.as_str()));
        self.processes[process].events.n_recorded += 1;
        if !is_write_failure(record) {
            return self.check_repetition(process, controller, key, record);
        }
        let events = &mut self.processes[process].events;
        let sync = events.failed.entry((controller, key.clone())).or_default();
        sync.recorded.push(record.reason);
        let n_recorded = sync.recorded.iter().filter(|one| **one == record.reason).count();
        let n_failed = sync.failed_writes.iter().filter(|one| one.reason == record.reason).count();
        if n_recorded > n_failed {
            let text = format!("{} of {key} without a failed write", record.reason.as_str());
            self.violate(Rule::Events, || text);
        }
    }

    fn is_required(&self, one: &FailedWrite) -> bool {
        match &one.obligation {
            Obligation::Required => true,
            Obligation::IfUnchanged((resource, key, version)) => {
                let stored = self.api.object(*resource, key);
                stored.is_some_and(|stored| stored.meta().resource_version == *version)
            }
            Obligation::Allowed => false,
        }
    }

    /// Upstream's mirroring controller records its Events at every sync, and so do we.
    fn check_repetition(
        &mut self,
        process: usize,
        controller: Controller,
        key: &Key,
        record: &EventRecord,
    ) {
        let is_once = match record.reason {
            EventReason::InvalidIPAddress => controller != Controller::Mirror,
            EventReason::InvalidAnnotation
            | EventReason::TopologyAwareHintsDisabled
            | EventReason::TopologyAwareHintsEnabled => true,
            EventReason::FailedToCreateEndpoint
            | EventReason::FailedToUpdateEndpoint
            | EventReason::FailedToUpdateEndpointSlices
            | EventReason::DeletedLeftBehind
            | EventReason::TooManyAddressesToMirror
            | EventReason::Source(_)
            | EventReason::FailedToImportEndpoints => false,
        };
        let events = &mut self.processes[process].events;
        let now = (record.message.clone(), events.n_received);
        let before = events.last.insert((controller, key.clone(), record.reason), now.clone());
        if is_once && before == Some(now) {
            let text = format!("{} of {key} again: {}", record.reason.as_str(), record.message);
            self.violate(Rule::Events, || text);
        }
    }

    pub(crate) fn check_reported(&mut self, process: usize, summary: &SyncSummary) {
        let owner = (summary.controller, summary.key.clone());
        let sync = self.processes[process].events.failed.remove(&owner).unwrap_or_default();
        let SyncEvents { failed_writes, mut recorded } = sync;
        for required in failed_writes.iter().filter(|one| self.is_required(one)) {
            if let Some(at) = recorded.iter().position(|one| *one == required.reason) {
                recorded.swap_remove(at);
            } else {
                let text = format!("a failed write of {} without {:?}", owner.1, required.reason);
                return self.violate(Rule::Events, || text);
            }
        }
    }
}

/// The Event of upstream's controllers for a failed write; none for the mirroring controller and
/// for deleted Endpoints.
fn failure_reason(controller: Controller, write: &Write) -> Option<EventReason> {
    match (controller, write) {
        (Controller::Slices, _) => Some(EventReason::FailedToUpdateEndpointSlices),
        (Controller::Endpoints, Write::Create(_)) => Some(EventReason::FailedToCreateEndpoint),
        (Controller::Endpoints, Write::Update(_)) => Some(EventReason::FailedToUpdateEndpoint),
        (Controller::Endpoints, Write::Delete(_))
        | (Controller::Mirror | Controller::MultiCluster, _) => None,
        (Controller::Import, _) => Some(EventReason::FailedToImportEndpoints),
    }
}

/// Upstream records `FailedToUpdateEndpointSlices` for missing nodes, too.
fn is_write_failure(record: &EventRecord) -> bool {
    match record.reason {
        EventReason::FailedToCreateEndpoint
        | EventReason::FailedToUpdateEndpoint
        | EventReason::FailedToImportEndpoints => true,
        EventReason::FailedToUpdateEndpointSlices => record.message.contains(": failed to "),
        EventReason::DeletedLeftBehind
        | EventReason::InvalidAnnotation
        | EventReason::InvalidIPAddress
        | EventReason::TooManyAddressesToMirror
        | EventReason::TopologyAwareHintsDisabled
        | EventReason::TopologyAwareHintsEnabled
        | EventReason::Source(_) => false,
    }
}
