//! Liveness: when the storm is over, everything comes to rest, is right, and stays so.

use std::time::Duration;

use endpointd_engine::{EngineStatus, Sizes};
use endpointd_model::Controller;

use crate::census::Rule;
use crate::clock::{Time, secs};
use crate::oracle;
use crate::script::Check;
use crate::world::World;

/// Long enough for every back-off, and for a lease to change hands.
const SETTLE: Duration = Duration::from_secs(60);
/// As long as the deletion_limiter holds something back.
const BRAKE_MINUTES_MAX: usize = 10;
const QUIET: Duration = Duration::from_secs(60);
const QUIET_AT_THE_END: Duration = Duration::from_secs(600);

impl World {
    pub(crate) fn calm(&mut self) {
        self.settle();
        self.stay_quiet(QUIET);
        self.resume_troubles();
    }

    /// The end of a run: calm for long, and once more after a restart.
    pub fn finish(&mut self) {
        self.settle();
        self.stay_quiet(QUIET_AT_THE_END);
        let before = self.sizes();
        self.check_memory(before);
        self.restart();
        let after = self.sizes();
        let n_sets = |sizes: Option<Sizes>| sizes.map(|sizes| sizes.n_label_sets);
        if self.violation.is_none() && n_sets(before) != n_sets(after) {
            let text = format!("remembered {before:?}, but after a restart {after:?}");
            self.violate(Rule::NoLeftovers, || text);
        }
    }

    /// No key is remembered of which nothing is left.
    fn check_memory(&mut self, sizes: Option<Sizes>) {
        let mut keys = self.api.services.keys();
        keys.extend(self.api.endpoints.keys());
        keys.sort_unstable();
        keys.dedup();
        let most = keys.len() * Controller::ALL.len();
        if sizes.is_some_and(|sizes| sizes.n_tracked_keys > most) {
            let text = format!("{sizes:?} for {} keys", keys.len());
            self.violate(Rule::NoLeftovers, || text);
        }
    }

    fn settle(&mut self) {
        if self.violation.is_some() {
            return;
        }
        let awake = self.processes.iter().map(|one| one.asleep_until).max();
        let sleep = awake.unwrap_or(Time::START).since(self.now);
        self.pass(sleep);
        self.end_troubles();
        self.pass(SETTLE);
        for _ in 0..BRAKE_MINUTES_MAX {
            if self.reports().iter().any(|report| report.deletion_limiter.is_active) {
                self.pass(SETTLE);
            }
        }
        if self.violation.is_some() {
            return;
        }
        self.census.rule(Rule::Settles);
        let complaints = oracle::judge(&self.api, &self.setup);
        if let Some(first) = complaints.first() {
            let text = format!("{} complaints, first: {first}", complaints.len());
            self.violate(Rule::Settles, || text);
        }
    }

    fn n_requests(&self) -> u64 {
        self.n_sent + self.n_looks
    }

    /// What a script asks for by itself.
    pub(crate) fn check(&mut self, check: Check) {
        match check {
            Check::Mark => self.n_marked = self.n_requests(),
            Check::FewRequests(most) => {
                self.census.rule(Rule::BoundedWrites);
                let n = self.n_requests() - self.n_marked;
                if n > most {
                    self.violate(Rule::BoundedWrites, || format!("{n} requests, not {most}"));
                }
            }
            Check::NothingUnwanted => {
                let unwanted = oracle::unwanted(&self.api);
                if let Some(first) = unwanted.first() {
                    self.violate(Rule::Settles, || first.clone());
                }
            }
        }
    }

    fn stay_quiet(&mut self, time: Duration) {
        let before = self.n_requests();
        self.pass(time);
        self.census.rule(Rule::Quiet);
        if self.n_requests() > before {
            let n = self.n_requests() - before;
            self.violate(Rule::Quiet, || format!("{n} requests although nothing changed"));
        }
        for report in self.reports() {
            self.census.rule(Rule::NoLeftovers);
            if !report.is_ready() {
                self.violate(Rule::HonestReadiness, || format!("not ready: {:?}", report.watches));
            }
            if report.is_leading && !report.keys.is_empty() {
                self.violate(Rule::NoLeftovers, || format!("still to do: {:?}", report.keys));
            }
        }
    }

    /// New processes on a settled cluster write nothing, but for what only a start visits:
    /// Endpoints that people left without a Service.
    fn restart(&mut self) {
        if self.violation.is_some() {
            return;
        }
        let is_orphan = |key: &endpointd_model::Key, one: &endpointd_model::Endpoints| {
            !self.api.services.contains(key) && !oracle::endpoints::is_lock(one)
        };
        let n_orphans =
            self.api.endpoints.iter().filter(|(key, one)| is_orphan(key, one)).count() as u64;
        let before = self.n_sent;
        self.restart_all();
        self.pass(SETTLE);
        self.census.rule(Rule::QuietAfterRestart);
        let n = self.n_sent - before;
        if n != n_orphans {
            let text = format!("{n} writes after a restart, {n_orphans} orphans");
            self.violate(Rule::QuietAfterRestart, || text);
        }
        self.pass(secs(1));
    }

    fn reports(&self) -> Vec<EngineStatus> {
        let now = self.now.moment();
        self.processes.iter().filter_map(|one| Some(one.engine.as_ref()?.report(now))).collect()
    }

    /// Of whoever leads.
    fn sizes(&self) -> Option<Sizes> {
        self.reports().into_iter().find(|report| report.is_leading).map(|report| report.sizes)
    }
}
