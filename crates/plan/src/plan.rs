//! The result of planning one key, as a plain value.

use std::collections::BTreeSet;
use std::fmt;

use endpointd_model::{BadAddress, EventRecord, Family, SharedStr, Write};

use crate::{CarriedHints, CarriedTrigger};

/// The writes for one key, and what else planning found out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Creates, then updates, then deletes. Each can fail without invalidating the others.
    pub writes: Vec<Write>,
    pub event_records: Vec<EventRecord>,
    /// Pods that the selector matches and that are not published, sorted by name (B15).
    pub excluded_pods: Vec<ExcludedPod>,
    /// Set if the plan is incomplete. For tables and parity tests: upstream retries the key, the
    /// engine reads the missing node instead (B10).
    pub retry: Option<Retry>,
    pub counts: Counts,
    /// Input of the next plan of the same key and controller.
    pub carried: CarriedState,
}

/// State that one plan passes to the next plan of the same key and controller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CarriedState {
    pub trigger: Option<CarriedTrigger>,
    pub hints: CarriedHints,
    /// Pods whose invalid addresses an event has already reported.
    pub reported_invalid_pods: BTreeSet<SharedStr>,
    /// An event has reported that an annotation has an invalid value.
    pub has_reported_annotation: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExcludedPod {
    pub pod: SharedStr,
    pub reason: ExclusionReason,
}

/// Why a pod that the selector matches is not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExclusionReason {
    Failed,
    Succeeded,
    /// Neither `status.podIP` nor `status.podIPs` is set.
    NoAddress,
    /// The pod has addresses, but none of this family.
    NoAddressOfFamily(Family),
    /// The API server would reject the whole object because of this address (B9).
    InvalidAddress(BadAddress),
    /// Endpoints only: EndpointSlices publish terminating pods.
    Terminating,
    NotScheduled,
    NodeNotFound,
    /// Endpoints only: none of the Service's ports resolves on the pod.
    NoPort,
    /// Endpoints only: the Service has no ports and is not headless.
    ServiceWithoutPorts,
    /// The pods resolve the Service's ports in too many ways: [`PORTS_MAX`](crate::PORTS_MAX).
    TooManyPorts,
    /// Endpoints only: the object is truncated to 1000 addresses (3.7).
    OverCapacity,
}

impl ExclusionReason {
    /// One word for tables, JSON, and metric labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "Failed",
            Self::Succeeded => "Succeeded",
            Self::NoAddress => "NoAddress",
            Self::NoAddressOfFamily(Family::V4) => "NoIPv4Address",
            Self::NoAddressOfFamily(Family::V6) => "NoIPv6Address",
            Self::InvalidAddress(_) => "InvalidAddress",
            Self::Terminating => "Terminating",
            Self::NotScheduled => "NotScheduled",
            Self::NodeNotFound => "NodeNotFound",
            Self::NoPort => "NoPort",
            Self::ServiceWithoutPorts => "ServiceWithoutPorts",
            Self::TooManyPorts => "TooManyPorts",
            Self::OverCapacity => "OverCapacity",
        }
    }
}

impl fmt::Display for ExclusionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidAddress(bad) => write!(f, "InvalidAddress: {bad}"),
            other => f.write_str(other.as_str()),
        }
    }
}

/// Why a plan is incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Upstream's error for each pod that is excluded for its node, sorted.
    MissingNodes(Vec<String>),
}

/// Several errors are joined in brackets, as upstream's `utilerrors.Aggregate` does.
impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::MissingNodes(messages) = self;
        match messages.as_slice() {
            [message] => f.write_str(message),
            messages => write!(f, "[{}]", messages.join(", ")),
        }
    }
}

/// The numbers that metrics show, summed over address types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub n_added: usize,
    pub n_updated: usize,
    pub n_removed: usize,
    /// Endpoints (or addresses) to publish.
    pub n_desired: usize,
    /// Those that get traffic; of a Service that publishes pods only.
    pub n_ready: usize,
    /// Slices that exist after the writes.
    pub n_slices: usize,
    /// Slices that an ideal packing needs, at least one.
    pub n_slices_desired: usize,
    /// Addresses that are not mirrored because they are invalid or over the limit.
    pub n_skipped: usize,
}

impl Plan {
    /// No writes; the carried state is unchanged.
    pub(crate) fn nothing(carried: &CarriedState) -> Self {
        Self { carried: carried.clone(), ..Self::default() }
    }
}
