//! The Events that writes cause: a failed one, worded as upstream words it, a stored condition, and
//! deletes of what was left behind.

use endpointd_model::{
    Controller, EventReason, EventRecord, Failure, InvolvedKind, ServiceStatus, SourceReason,
};

use crate::in_flight::Owner;
use crate::requests::Verb;

/// None where upstream records none: for the mirroring controller, and for deleted Endpoints. Services
/// of several clusters have conditions.
pub fn write_failure_event(owner: &Owner, verb: Verb, failure: &Failure) -> Option<EventRecord> {
    let key = &owner.key;
    let (reason, message, involved_kind) = match (owner.controller, verb) {
        (Controller::Mirror | Controller::MultiCluster, _)
        | (Controller::Endpoints, Verb::Delete) => return None,
        (Controller::Slices, verb) => {
            let verb = verb.as_str();
            let message = format!(
                "Error updating Endpoint Slices for Service {key}: failed to {verb} \
                 EndpointSlice for Service {key}: {failure}"
            );
            (EventReason::FailedToUpdateEndpointSlices, message, InvolvedKind::Service)
        }
        (Controller::Import, _) => {
            let message = format!("Error importing endpoints for Service {key}: {failure}");
            (EventReason::FailedToImportEndpoints, message, InvolvedKind::Service)
        }
        (Controller::Endpoints, Verb::Create) => {
            let message = format!("Failed to create endpoint for service {key}: {failure}");
            (EventReason::FailedToCreateEndpoint, message, InvolvedKind::Endpoints)
        }
        (Controller::Endpoints, Verb::Update) => {
            let message = format!("Failed to update endpoint {key}: {failure}");
            (EventReason::FailedToUpdateEndpoint, message, InvolvedKind::Endpoints)
        }
    };
    Some(EventRecord { reason, message, involved_kind })
}

/// The condition of a consumer says something else now. None if it is gone.
pub fn condition_event(status: &ServiceStatus) -> Option<EventRecord> {
    let condition = status.condition.as_ref()?;
    let reason = EventReason::Source(SourceReason::parse(&condition.reason)?);
    let message = condition.message.to_string();
    Some(EventRecord { reason, message, involved_kind: InvolvedKind::Service })
}

/// What was left of a time when the Service had a selector is deleted.
pub fn left_behind_event(owner: &Owner, n_deleted: usize) -> EventRecord {
    let what = match (owner.controller, n_deleted) {
        (Controller::Endpoints, _) => "the Endpoints".to_owned(),
        (
            Controller::Slices | Controller::Mirror | Controller::Import | Controller::MultiCluster,
            n,
        ) => match n {
            1 => "1 EndpointSlice".to_owned(),
            n => format!("{n} EndpointSlices"),
        },
    };
    let message = format!("Deleted {what} from the time when Service {} had a selector", owner.key);
    let reason = EventReason::DeletedLeftBehind;
    EventRecord { reason, message, involved_kind: InvolvedKind::Service }
}
