//! Shortens a failing script as long as it still breaks the same rule.

use crate::coverage::{Rule, Violation};
use crate::run::{RunOptions, run_with};
use crate::script::{Action, Script, Setup};

/// Limit of runs for one script.
const RUNS_MAX: usize = 4000;

/// Removes steps in ever smaller pieces, then simplifies settings, then removes pauses.
pub fn shrink(script: &Script, options: RunOptions) -> Script {
    let Some(violation) = run_with(script, options).violation else { return script.clone() };
    let mut shrinker = Shrinker { rule: violation.rule, options, n_runs: 0 };
    let mut best = script.clone();
    loop {
        let before = best.steps.len();
        best = shrinker.without_steps(best);
        if best.steps.len() == before || shrinker.n_runs >= RUNS_MAX {
            break;
        }
    }
    best = shrinker.simpler_setup(best);
    shrinker.without_pauses(best)
}

struct Shrinker {
    rule: Rule,
    options: RunOptions,
    n_runs: usize,
}

impl Shrinker {
    fn still_fails(&mut self, script: &Script) -> bool {
        self.n_runs += 1;
        let violation: Option<Violation> = run_with(script, self.options).violation;
        self.n_runs <= RUNS_MAX && violation.is_some_and(|found| found.rule == self.rule)
    }

    fn without_steps(&mut self, mut best: Script) -> Script {
        let mut piece = (best.steps.len() / 2).max(1);
        loop {
            let mut end = best.steps.len();
            while end > 0 && self.n_runs < RUNS_MAX {
                let start = end.saturating_sub(piece);
                let mut shorter = best.clone();
                shorter.steps.drain(start..end);
                if self.still_fails(&shorter) {
                    best = shorter;
                }
                end = start.min(best.steps.len());
            }
            if piece == 1 || self.n_runs >= RUNS_MAX {
                return best;
            }
            piece = (piece / 2).max(1);
        }
    }

    fn simpler_setup(&mut self, mut best: Script) -> Script {
        let default = Setup::default();
        let setup = best.setup;
        for simpler in [
            Setup { n_processes: default.n_processes, ..setup },
            Setup { batch_period: default.batch_period, ..setup },
            Setup { addition_delay: default.addition_delay, ..setup },
            Setup { mirrored_per_subset_max: default.mirrored_per_subset_max, ..setup },
        ] {
            let candidate = Script { setup: simpler, ..best.clone() };
            if self.still_fails(&candidate) {
                best = candidate;
            }
        }
        best
    }

    fn without_pauses(&mut self, mut best: Script) -> Script {
        for at in 0..best.steps.len() {
            let mut candidate = best.clone();
            candidate.steps[at].pause = std::time::Duration::ZERO;
            if best.steps[at].pause > std::time::Duration::ZERO
                && best.steps[at].action != Action::Quiesce
                && self.still_fails(&candidate)
            {
                best = candidate;
            }
        }
        best
    }
}
