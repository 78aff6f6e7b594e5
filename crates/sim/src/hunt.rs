//! Detects mutants: tries seeds and fault schedules until a rule is broken.

use endpointd_mutants::{Mutant, switch};

use crate::coverage::Rule;
use crate::fault_schedules::Schedule;
use crate::generate::script_of;
use crate::run::{run_script, run_with};

/// Steps of each random run.
const STEPS: usize = 2000;
/// Seeds tried before the schedules, and in total.
const SEEDS_FIRST: u64 = 60;
const SEEDS_MAX: u64 = 1000;

/// How a mutant was detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    pub by: String,
    pub rule: Rule,
    pub n_runs: usize,
}

/// Enables the mutant on this thread until it is detected or everything was tried.
pub fn hunt(mutant: Mutant, schedules: &[Schedule]) -> Option<Detection> {
    switch(Some(mutant));
    let detection = try_all(schedules);
    switch(None);
    detection
}

fn try_all(schedules: &[Schedule]) -> Option<Detection> {
    let mut n_runs = 0;
    let try_seed = |seed: u64, n_runs: &mut usize| {
        *n_runs += 1;
        let violation = run_script(&script_of(seed, STEPS)).violation?;
        Some(Detection { by: format!("seed {seed}"), rule: violation.rule, n_runs: *n_runs })
    };
    for seed in 0..SEEDS_FIRST {
        if let Some(detection) = try_seed(seed, &mut n_runs) {
            return Some(detection);
        }
    }
    for plan in schedules {
        n_runs += 1;
        if let Some(violation) = run_with(&plan.script, plan.options).violation {
            return Some(Detection { by: plan.name.clone(), rule: violation.rule, n_runs });
        }
    }
    (SEEDS_FIRST..SEEDS_MAX).find_map(|seed| try_seed(seed, &mut n_runs))
}
