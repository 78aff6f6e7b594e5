//! The annotation `service.alpha.kubernetes.io/tolerate-unready-endpoints` (docs/spec.md, 2).
//! Upstream: `TolerateUnreadyEndpointsAnnotation`, which v1.36 does not have any more.

use std::borrow::Cow;

use endpointd_model::{EventReason, EventRecord, InvolvedKind, Service, TolerateUnready, names};

use crate::Settings;

/// What plans make of the annotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnnotationPolicy {
    /// As upstream v1.36.
    #[default]
    Ignore,
    /// It decides instead of `publishNotReadyAddresses`.
    Honor,
}

/// Whether pods that are not ready are published as ready.
pub fn publishes_not_ready(service: &Service, settings: &Settings) -> bool {
    match (settings.tolerate_unready_annotation, &service.tolerate_unready) {
        (AnnotationPolicy::Honor, TolerateUnready::Known(tolerates)) => *tolerates,
        (AnnotationPolicy::Honor, TolerateUnready::Unset | TolerateUnready::Invalid(_))
        | (AnnotationPolicy::Ignore, _) => service.publish_not_ready,
    }
}

/// The Service with `publish_not_ready` as the settings read it.
pub fn effective<'a>(service: &'a Service, settings: &Settings) -> Cow<'a, Service> {
    let publish_not_ready = publishes_not_ready(service, settings);
    match publish_not_ready == service.publish_not_ready {
        true => Cow::Borrowed(service),
        false => Cow::Owned(Service { publish_not_ready, ..service.clone() }),
    }
}

/// An event about a value that is not a boolean, once until it is corrected.
pub fn invalid_event(
    service: &Service,
    settings: &Settings,
    is_reported: &mut bool,
) -> Option<EventRecord> {
    let was_reported = *is_reported;
    let invalid = match (settings.tolerate_unready_annotation, &service.tolerate_unready) {
        (AnnotationPolicy::Honor, TolerateUnready::Invalid(text)) => Some(text),
        (AnnotationPolicy::Honor, TolerateUnready::Unset | TolerateUnready::Known(_))
        | (AnnotationPolicy::Ignore, _) => None,
    };
    *is_reported = invalid.is_some();
    let text = invalid.filter(|_| !was_reported)?;
    Some(EventRecord {
        reason: EventReason::InvalidAnnotation,
        message: format!(
            "Ignored annotation {}: {text:?} is not a boolean",
            names::TOLERATE_UNREADY
        ),
        involved_kind: InvolvedKind::Service,
    })
}
