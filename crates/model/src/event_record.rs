//! A Kubernetes `Event` that endpointd records.

use crate::SourceReason;

/// The reason has upstream's text where upstream has it, so that alerts on events keep working.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventRecord {
    pub reason: EventReason,
    pub message: String,
    pub involved_kind: InvolvedKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    Normal,
    Warning,
}

impl EventType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The object of the key the record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InvolvedKind {
    Service,
    Endpoints,
}

impl InvolvedKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Service => "Service",
            Self::Endpoints => "Endpoints",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventReason {
    DeletedLeftBehind,
    FailedToCreateEndpoint,
    FailedToUpdateEndpoint,
    FailedToUpdateEndpointSlices,
    InvalidAnnotation,
    InvalidIPAddress,
    TooManyAddressesToMirror,
    TopologyAwareHintsDisabled,
    TopologyAwareHintsEnabled,
    /// The condition about the source of a Service has changed.
    Source(SourceReason),
    FailedToImportEndpoints,
}

impl EventReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DeletedLeftBehind => "DeletedLeftBehind",
            Self::FailedToCreateEndpoint => "FailedToCreateEndpoint",
            Self::FailedToUpdateEndpoint => "FailedToUpdateEndpoint",
            Self::FailedToUpdateEndpointSlices => "FailedToUpdateEndpointSlices",
            Self::InvalidAnnotation => "InvalidAnnotation",
            Self::InvalidIPAddress => "InvalidIPAddress",
            Self::TooManyAddressesToMirror => "TooManyAddressesToMirror",
            Self::TopologyAwareHintsDisabled => "TopologyAwareHintsDisabled",
            Self::TopologyAwareHintsEnabled => "TopologyAwareHintsEnabled",
            Self::Source(reason) => reason.as_str(),
            Self::FailedToImportEndpoints => "FailedToImportEndpoints",
        }
    }
}

impl EventRecord {
    pub fn event_type(&self) -> EventType {
        match self.reason {
            EventReason::DeletedLeftBehind
            | EventReason::TopologyAwareHintsEnabled
            | EventReason::Source(SourceReason::Mirrored) => EventType::Normal,
            EventReason::Source(
                SourceReason::InvalidReference
                | SourceReason::HasSelector
                | SourceReason::ExternalName
                | SourceReason::RefNotPermitted
                | SourceReason::SourceNotFound
                | SourceReason::ChainNotAllowed
                | SourceReason::PortNotFound,
            )
            | EventReason::FailedToImportEndpoints
            | EventReason::FailedToCreateEndpoint
            | EventReason::FailedToUpdateEndpoint
            | EventReason::FailedToUpdateEndpointSlices
            | EventReason::InvalidAnnotation
            | EventReason::InvalidIPAddress
            | EventReason::TooManyAddressesToMirror
            | EventReason::TopologyAwareHintsDisabled => EventType::Warning,
        }
    }
}
