//! From a history that fails to the shortest one found that still fails in the same way.

use crate::census::{Rule, Violation};
use crate::play::{Manner, play_with};
use crate::script::{Act, Script, Setup};

/// Runs spent on one history at most.
const RUNS_MAX: usize = 4000;

/// Leaves out as many steps as it can, in ever smaller pieces, then pauses, then settings.
pub fn shrink(script: &Script, manner: Manner) -> Script {
    let Some(violation) = play_with(script, manner).violation else { return script.clone() };
    let mut shrinker = Shrinker { rule: violation.rule, manner, n_runs: 0 };
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
    manner: Manner,
    n_runs: usize,
}

impl Shrinker {
    fn still_fails(&mut self, script: &Script) -> bool {
        self.n_runs += 1;
        let violation: Option<Violation> = play_with(script, self.manner).violation;
        self.n_runs <= RUNS_MAX && violation.is_some_and(|found| found.rule == self.rule)
    }

    fn without_steps(&mut self, mut best: Script) -> Script {
        let mut piece = (best.steps.len() / 2).max(1);
        loop {
            let mut end = best.steps.len();
            while end > 0 && self.n_runs < RUNS_MAX {
                let begin = end.saturating_sub(piece);
                let mut shorter = best.clone();
                shorter.steps.drain(begin..end);
                if self.still_fails(&shorter) {
                    best = shorter;
                }
                end = begin.min(best.steps.len());
            }
            if piece == 1 || self.n_runs >= RUNS_MAX {
                return best;
            }
            piece = (piece / 2).max(1);
        }
    }

    fn simpler_setup(&mut self, mut best: Script) -> Script {
        let usual = Setup::default();
        let setup = best.setup;
        for simpler in [
            Setup { n_processes: usual.n_processes, ..setup },
            Setup { batch_period: usual.batch_period, ..setup },
            Setup { mirrored_per_subset_max: usual.mirrored_per_subset_max, ..setup },
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
                && best.steps[at].act != Act::Calm
                && self.still_fails(&candidate)
            {
                best = candidate;
            }
        }
        best
    }
}
