//! The runs, and what became of them.

use std::sync::Arc;

use endpointd_sim::{Census, Manner, Plan, Script, Search, Verdict, plans, play_with, script_of};
use endpointd_sim::{Violation, searches};

use super::on_all_cores;

const KEPT_SEEDS: &str = include_str!("../../kept-seeds.txt");

/// One run.
pub enum Job {
    Seed { seed: u64, n_steps: usize },
    Plan(Plan),
    Search { search: Arc<Search>, number: usize },
}

/// Every run of a full simulation: the kept seeds, the exhaustive plans, the searches, new seeds.
pub fn all(n_seeds: u64, n_steps: usize) -> Vec<Job> {
    let kept = KEPT_SEEDS.lines().filter_map(|line| line.split(' ').next()?.parse().ok());
    let mut jobs: Vec<Job> = kept.map(|seed| Job::Seed { seed, n_steps }).collect();
    jobs.extend(plans().into_iter().map(Job::Plan));
    for search in searches().into_iter().map(Arc::new) {
        let numbers = 0..search.len();
        jobs.extend(numbers.map(|number| Job::Search { search: search.clone(), number }));
    }
    jobs.extend((0..n_seeds).map(|seed| Job::Seed { seed, n_steps }));
    jobs
}

impl Job {
    pub fn name(&self) -> String {
        match self {
            Self::Seed { seed, .. } => format!("seed {seed}"),
            Self::Plan(plan) => plan.name.clone(),
            Self::Search { search, number } => search.plan(*number).name,
        }
    }

    pub fn script(&self) -> (Script, Manner) {
        match self {
            Self::Seed { seed, n_steps } => (script_of(*seed, *n_steps), Manner::default()),
            Self::Plan(plan) => (plan.script.clone(), plan.manner),
            Self::Search { search, number } => {
                let plan = search.plan(*number);
                (plan.script, plan.manner)
            }
        }
    }

    fn play(&self) -> Verdict {
        let (script, manner) = self.script();
        play_with(&script, manner)
    }
}

/// What all runs came to.
#[derive(Default)]
pub struct Tally {
    pub census: Census,
    pub n_seeds: usize,
    /// By the number of the job.
    pub failed: Vec<(usize, Violation)>,
}

impl Tally {
    pub fn of(jobs: &[Job]) -> Self {
        let mut tally = Self::default();
        on_all_cores(
            jobs.len(),
            |number| jobs[number].play(),
            |number, verdict| {
                tally.census.add(&verdict.census);
                tally.n_seeds += usize::from(matches!(jobs[number], Job::Seed { .. }));
                tally.failed.extend(verdict.violation.map(|violation| (number, violation)));
            },
        );
        tally.failed.sort_by_key(|(number, _)| *number);
        tally
    }
}
