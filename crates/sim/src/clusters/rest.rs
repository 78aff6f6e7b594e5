//! Quiescent phases: the faults end, and then what is published is what is exported, and stays.

use std::time::Duration;

use super::ClusterSet;
use super::site::{HOME, resources};
use crate::clock::{monotonic, secs};
use crate::coverage::Rule;

/// For links to come back, for lists, and for the longest back-off of a key.
const CONVERGENCE: Duration = Duration::from_secs(120);
const QUIET: Duration = Duration::from_secs(120);
/// Less than the time after which a cluster is demoted.
const FLAP: Duration = Duration::from_secs(200);

impl ClusterSet {
    pub(super) fn rest(&mut self) {
        if self.violation.is_some() {
            return;
        }
        self.end_faults();
        self.advance(CONVERGENCE);
        self.check_converged();
        self.expect_no_write(Rule::Quiescent, "nothing changes", |_| {});
        for site in 1..self.sites.len() {
            self.expect_no_write(Rule::NoWriteForFlap, "a link is cut off", |set| {
                set.cut(site, FLAP);
            });
            self.expect_no_write(Rule::NoWriteForFlap, "watches begin again", |set| {
                set.cut(site, FLAP);
                for resource in resources(site) {
                    set.sites[site].api.compact(*resource);
                }
            });
        }
        self.expect_no_write(Rule::QuiescentAfterRestart, "the process starts again", |set| {
            set.crash(secs(1));
        });
        self.check_converged();
        self.is_quiescent = false;
    }

    fn expect_no_write(&mut self, rule: Rule, when: &str, change: impl FnOnce(&mut Self)) {
        if self.violation.is_some() {
            return;
        }
        self.coverage.count_rule(rule);
        self.trace(|| format!("-- {when}"));
        let before = self.n_sent;
        change(self);
        self.advance(FLAP + QUIET);
        let n = self.n_sent - before;
        if n > 0 {
            self.violate(rule, || format!("{n} writes, although only {when}"));
        }
    }

    fn check_converged(&mut self) {
        if self.violation.is_some() {
            return;
        }
        self.coverage.count_rule(Rule::Converges);
        let differences = super::oracle::compare(&self.sites);
        if let Some(first) = differences.into_iter().next() {
            return self.violate(Rule::Converges, || first);
        }
        let Some(engine) = &self.engine else { return };
        let report = engine.report(monotonic(self.now));
        self.coverage.count_rule(Rule::NoLeftovers);
        if !report.keys.is_empty() {
            self.violate(Rule::NoLeftovers, || format!("keys not done: {:?}", report.keys));
        }
        debug_assert!(self.sites[HOME].is_live(), "nothing fails at home");
    }
}
