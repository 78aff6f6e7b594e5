//! A Kubernetes `Event` we record for people.

/// Worded as upstream words it, so that alerts on events keep working.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notice {
    pub reason: NoticeReason,
    pub message: String,
    pub regarding: Regarding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeType {
    Normal,
    Warning,
}

impl NoticeType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The object of the key the notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Regarding {
    Service,
    Endpoints,
}

impl Regarding {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Service => "Service",
            Self::Endpoints => "Endpoints",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeReason {
    FailedToCreateEndpoint,
    FailedToUpdateEndpoint,
    FailedToUpdateEndpointSlices,
    InvalidIPAddress,
    TooManyAddressesToMirror,
    TopologyAwareHintsDisabled,
    TopologyAwareHintsEnabled,
}

impl NoticeReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FailedToCreateEndpoint => "FailedToCreateEndpoint",
            Self::FailedToUpdateEndpoint => "FailedToUpdateEndpoint",
            Self::FailedToUpdateEndpointSlices => "FailedToUpdateEndpointSlices",
            Self::InvalidIPAddress => "InvalidIPAddress",
            Self::TooManyAddressesToMirror => "TooManyAddressesToMirror",
            Self::TopologyAwareHintsDisabled => "TopologyAwareHintsDisabled",
            Self::TopologyAwareHintsEnabled => "TopologyAwareHintsEnabled",
        }
    }
}

impl Notice {
    pub fn notice_type(&self) -> NoticeType {
        match self.reason {
            NoticeReason::TopologyAwareHintsEnabled => NoticeType::Normal,
            NoticeReason::FailedToCreateEndpoint
            | NoticeReason::FailedToUpdateEndpoint
            | NoticeReason::FailedToUpdateEndpointSlices
            | NoticeReason::InvalidIPAddress
            | NoticeReason::TooManyAddressesToMirror
            | NoticeReason::TopologyAwareHintsDisabled => NoticeType::Warning,
        }
    }
}
