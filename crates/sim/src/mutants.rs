//! The hunt for deliberate bugs: each must be caught by a seed, a plan, or a search.

use endpointd_mutants::{Mutant, switch};

use crate::census::Rule;
use crate::generate::script_of;
use crate::plans::Plan;
use crate::play::{play, play_with};

/// Steps of each random run.
const STEPS: usize = 2000;
/// Seeds tried before the plans, and in all.
const SEEDS_FIRST: u64 = 60;
const SEEDS_MAX: u64 = 1000;

/// How a mutant was caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kill {
    pub how: String,
    pub rule: Rule,
    pub n_runs: usize,
}

/// Switches the bug on, for this thread, until it is caught or everything was tried.
pub fn hunt(mutant: Mutant, plans: &[Plan]) -> Option<Kill> {
    switch(Some(mutant));
    let kill = try_all(plans);
    switch(None);
    kill
}

fn try_all(plans: &[Plan]) -> Option<Kill> {
    let mut n_runs = 0;
    let try_seed = |seed: u64, n_runs: &mut usize| {
        *n_runs += 1;
        let violation = play(&script_of(seed, STEPS)).violation?;
        Some(Kill { how: format!("seed {seed}"), rule: violation.rule, n_runs: *n_runs })
    };
    for seed in 0..SEEDS_FIRST {
        if let Some(kill) = try_seed(seed, &mut n_runs) {
            return Some(kill);
        }
    }
    for plan in plans {
        n_runs += 1;
        if let Some(violation) = play_with(&plan.script, plan.manner).violation {
            return Some(Kill { how: plan.name.clone(), rule: violation.rule, n_runs });
        }
    }
    (SEEDS_FIRST..SEEDS_MAX).find_map(|seed| try_seed(seed, &mut n_runs))
}
