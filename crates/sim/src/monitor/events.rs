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
    /// Writes of a sync in flight that failed and that no Event has reported.
    unreported: BTreeMap<(Controller, Key), Vec<Unreported>>,
    /// The last Event by controller, key, and reason, and how much the process had received then.
    last: BTreeMap<(Controller, Key, EventReason), (String, u64)>,
    /// Inputs of the engine, except responses to its writes.
    n_received: u64,
    pub n_recorded: u64,
}

#[derive(Clone, Debug)]
struct SentWrite {
    controller: Controller,
    key: Key,
    reason: EventReason,
    /// The object of an update or a delete, in the version that the write was computed from.
    base: Option<ObjectVersion>,
}

type ObjectVersion = (PublishedResource, Key, ResourceVersion);

#[derive(Clone, Debug)]
struct Unreported {
    reason: EventReason,
    obligation: Obligation,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
        let key = self.service_of(write).or_else(|| self.service_of_deleted_slice(write));
        if let Some((key, reason)) = key.zip(failure_reason(controller, write)) {
            let version = match write {
                Write::Create(_) => None,
                Write::Update(object) => Some(object.meta().resource_version),
                Write::Delete(target) => Some(target.resource_version),
            };
            let base = version.map(|version| (write.resource(), write.key(), version));
            let sent = SentWrite { controller, key, reason, base };
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
        let Some(SentWrite { controller, key, reason, base }) = events.sent.remove(id) else {
            return;
        };
        let obligation = match result {
            WriteResult::Failed(_) => Obligation::Required,
            WriteResult::NoResponse(_) => base.map_or(Obligation::Allowed, Obligation::IfUnchanged),
            WriteResult::Conflict(_) => Obligation::Allowed,
            WriteResult::Stored(_)
            | WriteResult::Deleted
            | WriteResult::NamespaceTerminating(_)
            | WriteResult::Throttled { .. }
            | WriteResult::NotLeader => return,
        };
        let unreported = events.unreported.entry((controller, key)).or_default();
        unreported.push(Unreported { reason, obligation });
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
        let owner = (controller, key.clone());
        let unreported = self.processes[process].events.unreported.remove(&owner);
        let mut unreported = unreported.unwrap_or_default();
        // The obligation that is hardest to meet is met first.
        unreported.sort_by_key(|one| (!self.is_required(one), one.obligation.clone()));
        let is_met = match unreported.iter().position(|one| one.reason == record.reason) {
            Some(at) => {
                unreported.remove(at);
                true
            }
            None => false,
        };
        self.processes[process].events.unreported.insert(owner, unreported);
        if !is_met {
            let text = format!("{} of {key} without a failed write", record.reason.as_str());
            self.violate(Rule::Events, || text);
        }
    }

    fn is_required(&self, one: &Unreported) -> bool {
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
        let unreported = self.processes[process].events.unreported.remove(&owner);
        if let Some(missing) =
            unreported.unwrap_or_default().into_iter().find(|one| self.is_required(one))
        {
            let text = format!("a failed write of {} without {:?}", owner.1, missing.reason);
            self.violate(Rule::Events, || text);
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
        (Controller::Endpoints, Write::Delete(_)) | (Controller::Mirror, _) => None,
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
