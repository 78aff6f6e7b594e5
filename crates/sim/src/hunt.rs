//! Looks for a violation: seeds, then fault schedules, then further seeds. For the check that a
//! deliberate bug is detected.

use crate::client_bug::ClientBug;
use crate::coverage::Rule;
use crate::fault_schedules::fault_schedules;
use crate::generate::script_of;
use crate::run::{RunOptions, run_with};
use crate::script::Script;

/// Actions of each random run.
const ACTIONS: usize = 2000;
/// Seeds tried before the fault schedules, and in total.
const SEEDS_FIRST: u64 = 60;
const SEEDS_MAX: u64 = 2000;

/// The first run that broke a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    pub by: String,
    pub rule: Rule,
    pub n_runs: usize,
}

/// Runs until a rule is broken; `None` if no run breaks one.
pub fn hunt(client_bug: Option<ClientBug>) -> Option<Detection> {
    let mut hunt = Hunt { client_bug, n_runs: 0 };
    let first = (0..SEEDS_FIRST).find_map(|seed| hunt.seed(seed));
    let first = first.or_else(|| {
        fault_schedules()
            .into_iter()
            .find_map(|schedule| hunt.run(&schedule.script, schedule.options, &schedule.name))
    });
    first.or_else(|| (SEEDS_FIRST..SEEDS_MAX).find_map(|seed| hunt.seed(seed)))
}

struct Hunt {
    client_bug: Option<ClientBug>,
    n_runs: usize,
}

impl Hunt {
    fn seed(&mut self, seed: u64) -> Option<Detection> {
        self.run(&script_of(seed, ACTIONS), RunOptions::default(), &format!("seed {seed}"))
    }

    fn run(&mut self, script: &Script, options: RunOptions, name: &str) -> Option<Detection> {
        self.n_runs += 1;
        let options = RunOptions { client_bug: self.client_bug, ..options };
        let violation = run_with(script, options).violation?;
        Some(Detection { by: name.to_owned(), rule: violation.rule, n_runs: self.n_runs })
    }
}
