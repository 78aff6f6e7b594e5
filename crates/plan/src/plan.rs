//! A decision as a value: print it, compare it, show it, throw it away.

use std::collections::BTreeSet;
use std::fmt;

use endpointd_model::{BadAddress, EventRecord, Family, SharedStr, Write};

use crate::{CarriedHints, CarriedTrigger};

/// What to write for one key, and why.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Creates, then updates, then deletes; each stands on its own.
    pub writes: Vec<Write>,
    pub event_records: Vec<EventRecord>,
    /// Pods the selector matches that are not published, by name.
    pub excluded_pods: Vec<ExcludedPod>,
    /// Set when the plan is incomplete and the key must be planned again.
    pub retry: Option<Retry>,
    pub counts: Counts,
    /// To be handed to the next plan of the same key and controller.
    pub carried: CarriedState,
}

/// What a controller remembers of a key between two plans.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CarriedState {
    pub trigger: Option<CarriedTrigger>,
    pub hints: CarriedHints,
    /// Pods whose bad addresses people have been told about.
    pub told_bad: BTreeSet<SharedStr>,
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
    /// It has addresses, but none of this family.
    NoAddressOfFamily(Family),
    /// Its address would make the API server refuse the whole object.
    InvalidAddress(BadAddress),
    /// Terminating pods are in slices, but not in Endpoints.
    Terminating,
    NotScheduled,
    NodeNotFound,
    /// Endpoints only: none of the Service's ports is found on the pod.
    NoPort,
    /// Endpoints only: the Service has no ports and is not headless.
    ServiceWithoutPorts,
    /// Endpoints only: beyond the first thousand addresses.
    OverCapacity,
}

impl ExclusionReason {
    /// One word for tables, JSON, and metrics.
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

/// Why a key must be planned again even if nothing changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Pods whose node is not known; each message is upstream's, sorted.
    MissingNodes(Vec<String>),
}

/// Upstream joins several errors in brackets: `utilerrors.Aggregate`.
impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::MissingNodes(messages) = self;
        match messages.as_slice() {
            [message] => f.write_str(message),
            messages => write!(f, "[{}]", messages.join(", ")),
        }
    }
}

/// The numbers behind the metrics, summed over address types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub n_added: usize,
    pub n_updated: usize,
    pub n_removed: usize,
    /// Endpoints (or addresses) that should be published.
    pub n_desired: usize,
    /// Slices there will be after the writes.
    pub n_slices: usize,
    /// Slices an ideal packing would need, at least one.
    pub n_slices_desired: usize,
    /// Addresses not mirrored: invalid, or over the limit.
    pub n_skipped: usize,
}

impl Plan {
    /// Nothing to do, and nothing learned.
    pub(crate) fn nothing(carried: &CarriedState) -> Self {
        Self { carried: carried.clone(), ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }
}
