//! Liveness: after the faults end, the cluster converges, matches the oracle, and stays so.

use std::time::Duration;

use endpointd_engine::{EngineStatus, Sizes};

use crate::clock::{Time, monotonic, secs};
use crate::coverage::Rule;
use crate::instances::Instances;
use crate::oracle;
use crate::script::Check;
use crate::simulation::Simulation;

/// For what no request has failed for.
const CONVERGENCE_MAX: Duration = Duration::from_secs(5);
/// After failed requests: 10 s until the last one of before times out, and then 30 s for the longest
/// back-off. Also long enough for a change of the lease holder.
const CONVERGENCE_AFTER_OUTAGE_MAX: Duration = Duration::from_secs(45);
/// Repairs that need not wait.
const REPAIRS_IN_A_ROW: u64 = 8;
/// For the lists of a new process and its lease.
const RESTART: Duration = Duration::from_secs(60);
const QUIESCENCE: Duration = Duration::from_secs(60);
const FINAL_QUIESCENCE: Duration = Duration::from_secs(600);

impl Simulation {
    pub(crate) fn quiesce(&mut self) {
        self.converge();
        self.check_quiescence(QUIESCENCE);
        self.resume_faults();
    }

    /// The end of a run: a long quiescent phase, and a second one after a restart.
    pub fn finish(&mut self) {
        self.converge();
        self.check_quiescence(FINAL_QUIESCENCE);
        let before = self.sizes();
        self.check_memory(before);
        self.restart();
        let after = self.sizes();
        let n_sets = |sizes: Option<Sizes>| sizes.map(|sizes| sizes.n_label_sets);
        if self.violation.is_none() && n_sets(before) != n_sets(after) {
            let text = format!("{before:?} before a restart, {after:?} after it");
            self.violate(Rule::NoLeftovers, || text);
        }
    }

    /// No state remains for a key without objects.
    fn check_memory(&mut self, sizes: Option<Sizes>) {
        let mut keys = self.api.services.keys();
        keys.extend(self.api.endpoints.keys());
        keys.sort_unstable();
        keys.dedup();
        let most = keys.len() * self.setup.controllers().len();
        if sizes.is_some_and(|sizes| sizes.n_tracked_keys > most) {
            let text = format!("{sizes:?} for {} keys", keys.len());
            self.violate(Rule::NoLeftovers, || text);
        }
    }

    fn converge(&mut self) {
        if self.violation.is_some() {
            return;
        }
        let awake = self.processes.iter().map(|one| one.asleep_until).max();
        let sleep = awake.unwrap_or(Time::START).since(self.now);
        self.advance(sleep);
        self.end_faults();
        let had_outage = std::mem::take(&mut self.had_outage) || self.fault_point.is_some();
        let base = if had_outage { CONVERGENCE_AFTER_OUTAGE_MAX } else { CONVERGENCE_MAX };
        self.advance(base + self.setup.convergence_extra);
        if self.check_contested(had_outage) && !had_outage {
            self.advance(CONVERGENCE_AFTER_OUTAGE_MAX - base);
        }
        if self.violation.is_some() {
            return;
        }
        self.check_limiter();
        self.check_writers();
        self.check_converged();
    }

    /// Whether repairs have to wait, as they may after many writes by other clients.
    fn check_contested(&mut self, had_outage: bool) -> bool {
        let reports = self.reports();
        let mut controllers = reports.iter().flat_map(|report| &report.controllers);
        let is_contested = controllers.any(|one| one.n_contested > 0);
        let n = self.api.n_external_writes;
        if is_contested && !had_outage && n < REPAIRS_IN_A_ROW {
            let text = format!("repairs wait after {n} writes by other clients");
            self.violate(Rule::BoundedWrites, || text);
        }
        is_contested
    }

    fn check_converged(&mut self) {
        self.coverage.count_rule(Rule::Converges);
        let differences = oracle::compare(&self.api, &self.setup);
        if let Some(first) = differences.first() {
            let text = format!("{} differences, first: {first}", differences.len());
            self.violate(Rule::Converges, || text);
        }
    }

    fn n_requests(&self) -> u64 {
        self.n_sent + self.n_reads
    }

    fn n_events_recorded(&self) -> u64 {
        self.processes.iter().map(|one| one.events.n_recorded).sum()
    }

    /// A check of the script.
    pub(crate) fn run_check(&mut self, check: Check) {
        match check {
            Check::CountRequests => self.n_requests_at_mark = self.n_requests(),
            Check::RequestsAtMost(most) => {
                self.coverage.count_rule(Rule::BoundedWrites);
                let n = self.n_requests() - self.n_requests_at_mark;
                if n > most {
                    self.violate(Rule::BoundedWrites, || format!("{n} requests, not {most}"));
                }
            }
            Check::RequestsAtLeast(least) => {
                self.coverage.count_rule(Rule::RetryAfter);
                let n = self.n_requests() - self.n_requests_at_mark;
                if n < least {
                    self.violate(Rule::RetryAfter, || format!("{n} requests, not {least}"));
                }
            }
            Check::Converged => self.check_converged(),
            Check::NoUnwantedEndpoint => {
                let unwanted = oracle::unwanted(&self.api);
                if let Some(first) = unwanted.first() {
                    self.violate(Rule::Converges, || first.clone());
                }
            }
        }
    }

    fn check_quiescence(&mut self, time: Duration) {
        let before = (self.n_requests(), self.n_events_recorded());
        self.advance(time);
        self.coverage.count_rule(Rule::Quiescent);
        let after = (self.n_requests(), self.n_events_recorded());
        if after != before {
            let (requests, events) = (after.0 - before.0, after.1 - before.1);
            let text = format!("{requests} requests and {events} Events without a change");
            self.violate(Rule::Quiescent, || text);
        }
        for report in self.reports() {
            self.coverage.count_rule(Rule::NoLeftovers);
            if !report.is_ready() {
                self.violate(Rule::AccurateReadiness, || {
                    format!("not ready: {:?}", report.watches)
                });
            }
            if report.is_leading && !report.keys.is_empty() {
                self.violate(Rule::NoLeftovers, || format!("keys not done: {:?}", report.keys));
            }
        }
    }

    /// New processes on a converged cluster send no write except one: the deletion of Endpoints
    /// that users left without a Service, which only a start visits.
    fn restart(&mut self) {
        if self.violation.is_some() {
            return;
        }
        let is_orphan = |key: &endpointd_model::Key, one: &endpointd_model::Endpoints| {
            !self.api.services.contains(key) && !oracle::endpoints::is_lock(one)
        };
        let n_orphans = match self.setup.instances {
            // Whose Service may belong to another instance.
            Instances::Selectors => 0,
            Instances::One | Instances::Namespaces | Instances::Shards | Instances::HandOver => {
                self.api.endpoints.iter().filter(|(key, one)| is_orphan(key, one)).count() as u64
            }
        };
        let before = self.n_sent;
        self.restart_all();
        self.advance(RESTART);
        self.coverage.count_rule(Rule::QuiescentAfterRestart);
        let n = self.n_sent - before;
        if n != n_orphans {
            let text = format!("{n} writes after a restart, {n_orphans} orphans");
            self.violate(Rule::QuiescentAfterRestart, || text);
        }
        self.advance(secs(1));
    }

    fn reports(&self) -> Vec<EngineStatus> {
        let now = monotonic(self.now);
        self.processes.iter().filter_map(|one| Some(one.engine.as_ref()?.report(now))).collect()
    }

    /// Of the leader.
    fn sizes(&self) -> Option<Sizes> {
        self.reports().into_iter().find(|report| report.is_leading).map(|report| report.sizes)
    }
}
