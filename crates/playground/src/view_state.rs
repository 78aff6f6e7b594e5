//! The data that the views render.

use std::collections::BTreeMap;
use std::time::Duration;

/// Counts nodes and endpoints without a zone. Not a valid label value, and sorts last.
pub const NO_ZONE: &str = "~";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewState {
    pub elapsed: Duration,
    pub zones: BTreeMap<String, ZoneCounts>,
    pub pods: PodCounts,
    /// By namespace and name.
    pub services: Vec<ServiceView>,
    pub slices: SliceCounts,
    pub writes: WriteCounts,
    pub latency: Latency,
    pub work: Work,
    /// Oldest first.
    pub log: Vec<(Duration, String)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneCounts {
    pub n_nodes: usize,
    pub n_ready: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodCounts {
    pub n_pods: usize,
    pub n_ready: usize,
    pub n_terminating: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceView {
    pub name: String,
    pub kind: String,
    pub by_zone: BTreeMap<String, Conditions>,
    pub slices: Vec<SliceView>,
}

/// Endpoints by condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    pub n_ready: usize,
    pub n_unready: usize,
    pub n_terminating: usize,
}

impl Conditions {
    pub fn add(&mut self, other: Self) {
        let Self { n_ready, n_unready, n_terminating } = other;
        self.n_ready += n_ready;
        self.n_unready += n_unready;
        self.n_terminating += n_terminating;
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SliceView {
    /// `IPv4`, `IPv6`, `FQDN`.
    pub address_type: String,
    pub n_endpoints: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceCounts {
    pub n_slices: usize,
    pub n_endpoints: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WriteCounts {
    pub n_slice_writes: u64,
    pub n_endpoints_writes: u64,
    /// Average over the last seconds.
    pub per_second: f64,
}

/// From the change of a pod to the first slice that shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    pub n_measured: u64,
    pub median: Duration,
    pub p99: Duration,
    pub max: Duration,
}

/// The work of the controllers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub is_ready: bool,
    pub n_waiting: usize,
    pub n_in_flight: usize,
    pub n_backing_off: usize,
    pub error: Option<String>,
}

impl Work {
    pub fn is_idle(&self) -> bool {
        self.is_ready && self.n_waiting + self.n_in_flight + self.n_backing_off == 0
    }
}
