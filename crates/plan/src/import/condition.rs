//! The condition of a consumer (N9). It is written when it says something else than before; the
//! numbers of endpoints and slices are not part of it, or every change of the source would be a write.

use endpointd_model::{
    Condition, ConditionStatus, CrossNamespace, Meta, Object, Service, ServiceStatus, SharedStr,
    Write, names,
};

use super::ImportState;

/// The write that makes the condition of the Service say this. None if it does, and for a Service
/// that is being deleted.
pub fn condition_write(service: &Service, state: &ImportState) -> Option<Write> {
    let observed = service.cross_namespace.as_deref().and_then(CrossNamespace::condition);
    let wanted = wanted(state);
    let is_current = match (observed, &wanted) {
        (None, None) => true,
        (Some(observed), Some(wanted)) => same_content(observed, wanted),
        (Some(_), None) | (None, Some(_)) => false,
    };
    if is_current || service.is_deleting {
        return None;
    }
    let condition = wanted.map(|wanted| Condition {
        // The status is what a transition is about: another reason alone is none.
        last_transition: observed
            .filter(|one| one.status == wanted.status)
            .and_then(|one| one.last_transition),
        ..wanted
    });
    let meta = Meta {
        namespace: service.namespace.clone(),
        name: service.name.clone(),
        uid: service.uid.clone(),
        resource_version: service.resource_version,
        ..Meta::default()
    };
    Some(Write::Update(Object::ServiceStatus(ServiceStatus { meta, condition })))
}

fn wanted(state: &ImportState) -> Option<Condition> {
    let reason = state.reason()?;
    Some(Condition {
        condition_type: SharedStr::from(names::SOURCE_CONDITION),
        status: if state.is_true()? { ConditionStatus::True } else { ConditionStatus::False },
        reason: SharedStr::from(reason.as_str()),
        message: state.condition_message().into(),
        ..Condition::default()
    })
}

fn same_content(observed: &Condition, wanted: &Condition) -> bool {
    let same_texts = observed.reason == wanted.reason && observed.message == wanted.message;
    same_texts && observed.status == wanted.status
}
