//! What the engine may ask of the API server: requests in flight, and attempts of a key that fails.

use std::time::Duration;

use endpointd_engine::{SyncResult, SyncSummary};

use crate::clock::secs;
use crate::coverage::Rule;
use crate::simulation::Simulation;

/// Of each process: writes, and live reads.
const WRITES_IN_FLIGHT_MAX: usize = 64;
const READS_IN_FLIGHT_MAX: usize = 64;
/// Of one key and controller, without a success in between.
const FAILED_SYNCS_MAX: usize = 10;
const WINDOW: Duration = Duration::from_secs(60);

impl Simulation {
    /// Called when the engine sends a request.
    pub(crate) fn check_in_flight(&mut self, process: usize) {
        self.coverage.count_rule(Rule::RequestsInFlight);
        let one = &self.processes[process];
        let (n_writes, n_reads) = (one.n_in_flight, one.n_reads_in_flight);
        if n_writes > WRITES_IN_FLIGHT_MAX || n_reads > READS_IN_FLIGHT_MAX {
            let text = format!("{n_writes} writes and {n_reads} live reads in flight");
            self.violate(Rule::RequestsInFlight, || text);
        }
    }

    /// Called when a sync has ended.
    pub(crate) fn check_failed_syncs(&mut self, process: usize, summary: &SyncSummary) {
        let now = self.now;
        let failed_syncs = &mut self.processes[process].failed_syncs;
        let owner = (summary.controller, summary.key.clone());
        match &summary.result {
            SyncResult::Failed(_) => {}
            SyncResult::Unchanged | SyncResult::Written | SyncResult::NamespaceTerminating => {
                failed_syncs.remove(&owner);
                return;
            }
            SyncResult::ConflictRetry | SyncResult::Throttled | SyncResult::LeadershipLost => {
                return;
            }
        }
        let times = failed_syncs.entry(owner).or_default();
        times.retain(|at| now.since(*at) < WINDOW);
        times.push_back(now);
        let n = times.len();
        self.coverage.count_rule(Rule::BoundedWrites);
        if n > FAILED_SYNCS_MAX {
            let key = &summary.key;
            let text = format!("{n} failed syncs of {key} in {} s", secs(60).as_secs());
            self.violate(Rule::BoundedWrites, || text);
        }
    }
}
