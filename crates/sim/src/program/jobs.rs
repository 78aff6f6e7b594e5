//! The runs of a simulation and their results.

use std::sync::Arc;

use endpointd_sim::{
    Coverage, RunOptions, RunResult, Schedule, Script, Search, fault_schedules, run_with, script_of,
};
use endpointd_sim::{Violation, searches};

use super::on_threads;

const KEPT_SEEDS: &str = include_str!("../../kept-seeds.txt");

/// One run.
pub enum Job {
    Seed { seed: u64, n_steps: usize },
    Schedule(Schedule),
    Search { search: Arc<Search>, number: usize },
}

/// A full simulation: kept seeds, fault schedules, searches, new seeds.
pub fn all(from: u64, n_seeds: u64, n_steps: usize) -> Vec<Job> {
    let kept = KEPT_SEEDS.lines().filter_map(|line| line.split(' ').next()?.parse().ok());
    let mut jobs: Vec<Job> = kept.map(|seed| Job::Seed { seed, n_steps }).collect();
    jobs.extend(schedules(None));
    for search in searches().into_iter().map(Arc::new) {
        let numbers = 0..search.len();
        jobs.extend(numbers.map(|number| Job::Search { search: search.clone(), number }));
    }
    jobs.extend(seeds(from, n_seeds, n_steps));
    jobs
}

/// The fault schedules whose names contain a text.
pub fn schedules(text: Option<&str>) -> Vec<Job> {
    let is_wanted = |one: &Schedule| text.is_none_or(|text| one.name.contains(text));
    fault_schedules().into_iter().filter(is_wanted).map(Job::Schedule).collect()
}

/// New seeds.
pub fn seeds(from: u64, n_seeds: u64, n_steps: usize) -> Vec<Job> {
    (from..from + n_seeds).map(|seed| Job::Seed { seed, n_steps }).collect()
}

impl Job {
    pub fn name(&self) -> String {
        match self {
            Self::Seed { seed, .. } => format!("seed {seed}"),
            Self::Schedule(schedule) => schedule.name.clone(),
            Self::Search { search, number } => search.schedule(*number).name,
        }
    }

    pub fn script(&self) -> (Script, RunOptions) {
        match self {
            Self::Seed { seed, n_steps } => (script_of(*seed, *n_steps), RunOptions::default()),
            Self::Schedule(schedule) => (schedule.script.clone(), schedule.options),
            Self::Search { search, number } => {
                let schedule = search.schedule(*number);
                (schedule.script, schedule.options)
            }
        }
    }

    fn run(&self) -> RunResult {
        let (script, options) = self.script();
        run_with(&script, options)
    }
}

#[derive(Default)]
pub struct Results {
    pub coverage: Coverage,
    pub n_seeds: usize,
    /// By index of the job.
    pub failed: Vec<(usize, Violation)>,
}

impl Results {
    /// Runs all jobs on so many threads, or on all cores.
    pub fn of(jobs: &[Job], n_threads: Option<usize>) -> Self {
        let mut results = Self::default();
        on_threads(
            n_threads,
            jobs.len(),
            |number| jobs[number].run(),
            |number, result| {
                results.coverage.add(&result.coverage);
                results.n_seeds += usize::from(matches!(jobs[number], Job::Seed { .. }));
                results.failed.extend(result.violation.map(|violation| (number, violation)));
            },
        );
        results.failed.sort_by_key(|(number, _)| *number);
        results
    }
}
