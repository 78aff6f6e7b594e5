//! The summary of a run, for scripts.

use std::time::Duration;

use serde_json::{Value, json};

use crate::observer::Milestones;
use crate::view_state::{Conditions, ViewState};

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Summary {
    pub scenario: &'static str,
    pub seed: u64,
    pub view_state: ViewState,
    pub milestones: Milestones,
    /// Of this process: at the end, and its peak; `None` if there is no `/proc`.
    pub memory: Option<Memory>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub resident_kib: u64,
    pub peak_kib: u64,
}

impl Memory {
    pub fn of_this_process() -> Option<Self> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        Some(Self { resident_kib: kib(&status, "VmRSS:")?, peak_kib: kib(&status, "VmHWM:")? })
    }
}

fn kib(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

impl Summary {
    pub fn endpoints(&self) -> Conditions {
        let mut all = Conditions::default();
        let zones = self.view_state.services.iter().flat_map(|service| service.by_zone.values());
        zones.for_each(|conditions| all.add(*conditions));
        all
    }

    pub fn to_json(&self) -> Value {
        let ViewState { elapsed, zones, pods, services, slices, writes, latency, work, log } =
            &self.view_state;
        let endpoints = self.endpoints();
        json!({
            "scenario": self.scenario,
            "seed": self.seed,
            "elapsed_ms": millis(*elapsed),
            "first_slice_ms": self.milestones.first_slice.map(millis),
            "complete_ms": self.milestones.complete.map(millis),
            "is_idle": work.is_idle(),
            "nodes": {
                "all": zones.values().map(|zone| zone.n_nodes).sum::<usize>(),
                "ready": zones.values().map(|zone| zone.n_ready).sum::<usize>(),
            },
            "services": services.len(),
            "pods": {
                "all": pods.n_pods, "ready": pods.n_ready, "terminating": pods.n_terminating,
            },
            "slices": slices.n_slices,
            "endpoints": {
                "all": slices.n_endpoints,
                "ready": endpoints.n_ready,
                "not_ready": endpoints.n_unready,
                "terminating": endpoints.n_terminating,
            },
            "writes": {
                "endpointslices": writes.n_slice_writes, "endpoints": writes.n_endpoints_writes,
            },
            "latency_ms": {
                "measured": latency.n_measured,
                "p50": millis(latency.median),
                "p99": millis(latency.p99),
                "max": millis(latency.max),
            },
            "failing_keys": work.n_backing_off,
            "steps": log.iter().map(|(_, text)| text).collect::<Vec<_>>(),
            "memory_kib": self.memory.map(|memory| {
                json!({"resident": memory.resident_kib, "peak": memory.peak_kib})
            }),
        })
    }
}

/// Rounded to 0.01 ms.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 100_000.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_proc() {
        let status = "Name:\tx\nVmHWM:\t   2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(kib(status, "VmRSS:"), Some(1024));
        assert_eq!(kib(status, "VmHWM:"), Some(2048));
        assert_eq!(kib(status, "VmSwap:"), None);
    }

    #[test]
    fn durations_are_in_milliseconds() {
        assert_eq!(millis(Duration::from_micros(1234)), 1.23);
    }
}
