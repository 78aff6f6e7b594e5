//! The state that all scenarios share, and their records. Start at [`Bench::run`].

use anyhow::{Context, Result};
use endpointd_control_plane::Binaries;
use tokio::runtime::Runtime;

use crate::progress::Progress;
use crate::record::{Measure, Record, Scenario};
use crate::scale::Scale;
use crate::scenarios;
use crate::subject::Subject;
use crate::test_bed::ClusterCache;

pub struct Bench<'a> {
    pub scale: &'a Scale,
    pub runtime: &'a Runtime,
    pub progress: &'a Progress,
    pub clusters: ClusterCache<'a>,
    /// All scenarios of this invocation.
    pub wanted: &'a [Scenario],
    pub records: Vec<Record>,
}

/// The number of runs, for the progress bar.
pub fn n_steps(scale: &Scale, wanted: &[Scenario]) -> usize {
    let all = scale.n_rounds * scale.subjects.len();
    let cold = all * scale.cold.len();
    let of = |scenario: &Scenario| match scenario {
        Scenario::ColdStart => cold,
        Scenario::Restart | Scenario::Churn | Scenario::Rollout | Scenario::Idle => all,
        Scenario::ServicesPerNamespace => all * scale.service_counts.len(),
        Scenario::WriteOnly => {
            let cold_starts = if wanted.contains(&Scenario::ColdStart) { 0 } else { cold };
            scale.n_rounds * scale.cold.len() + cold_starts
        }
        Scenario::Commands => scale.n_rounds * scale.cold.len(),
        Scenario::Imports => scale.n_rounds * scale.consumer_counts.len(),
        Scenario::Scopes => scale.n_rounds * scenarios::scopes::N_SCOPES,
        Scenario::Readers | Scenario::Engine => scale.n_rounds,
    };
    wanted.iter().map(of).sum()
}

impl<'a> Bench<'a> {
    pub fn new(
        scale: &'a Scale,
        wanted: &'a [Scenario],
        binaries: &'a Binaries,
        runtime: &'a Runtime,
        progress: &'a Progress,
    ) -> Self {
        let clusters = ClusterCache::new(binaries, runtime, progress);
        Self { scale, runtime, progress, clusters, wanted, records: Vec::new() }
    }

    pub fn run(&mut self, scenario: Scenario) -> Result<()> {
        let done = match scenario {
            Scenario::ColdStart => scenarios::cold_start::run(self),
            Scenario::Restart => scenarios::restart::run(self),
            Scenario::Churn => scenarios::churn::run(self),
            Scenario::Rollout => scenarios::rollout::run(self),
            Scenario::ServicesPerNamespace => scenarios::services_per_namespace::run(self),
            Scenario::Idle => scenarios::idle::run(self),
            Scenario::Readers => scenarios::readers::run(self),
            Scenario::Commands => scenarios::commands::run(self),
            Scenario::WriteOnly => scenarios::write_only::run(self),
            Scenario::Imports => scenarios::imports::run(self),
            Scenario::Scopes => scenarios::scopes::run(self),
            Scenario::Engine => scenarios::engine::run(self),
        };
        done.with_context(|| format!("{scenario} failed"))
    }

    /// Shows the next run in the progress bar.
    pub fn step(&self, scenario: Scenario, case: &str, round: usize, who: Subject) {
        let n_rounds = self.scale.n_rounds;
        self.progress
            .step(&format!("{scenario}, {case}, round {} of {n_rounds}: {who}", round + 1));
    }

    /// Stores and prints the result of one run.
    pub fn keep(&mut self, scenario: Scenario, case: &str, who: Subject, measures: Vec<Measure>) {
        let found = |one: &Measure| format!("{} {}", one.name, one.unit.show(one.value));
        let found: Vec<String> = measures.iter().map(found).collect();
        self.progress.note(&format!("{scenario}, {case}, {who}: {}", found.join("; ")));
        self.records.push(Record { scenario, case: case.to_owned(), who, measures });
    }
}
