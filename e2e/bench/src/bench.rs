//! What every scenario needs, and the records they leave. Start at [`Bench::run`].

use anyhow::{Context, Result};
use endpointd_control_plane::Binaries;
use tokio::runtime::Runtime;

use crate::contender::Contender;
use crate::progress::Progress;
use crate::record::{Measure, Record, Scenario};
use crate::scale::Scale;
use crate::scenarios;
use crate::stage::Worlds;

pub struct Bench<'a> {
    pub scale: &'a Scale,
    pub runtime: &'a Runtime,
    pub progress: &'a Progress,
    pub worlds: Worlds<'a>,
    /// What will be measured, earlier or later.
    pub wanted: &'a [Scenario],
    pub records: Vec<Record>,
}

/// How many runs there will be, for the progress bar.
pub fn n_steps(scale: &Scale, wanted: &[Scenario]) -> usize {
    let all = scale.n_rounds * scale.contenders.len();
    let cold = all * scale.cold.len();
    let of = |scenario: &Scenario| match scenario {
        Scenario::ColdStart => cold,
        Scenario::Restart | Scenario::Churn | Scenario::Rollout | Scenario::Idle => all,
        Scenario::Crowded => all * scale.crowds.len(),
        Scenario::Floor => {
            let cold_starts = if wanted.contains(&Scenario::ColdStart) { 0 } else { cold };
            scale.n_rounds * scale.cold.len() + cold_starts
        }
        Scenario::Engine => scale.n_rounds,
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
        let worlds = Worlds::new(binaries, runtime, progress);
        Self { scale, runtime, progress, worlds, wanted, records: Vec::new() }
    }

    pub fn run(&mut self, scenario: Scenario) -> Result<()> {
        let done = match scenario {
            Scenario::ColdStart => scenarios::cold_start::run(self),
            Scenario::Restart => scenarios::restart::run(self),
            Scenario::Churn => scenarios::churn::run(self),
            Scenario::Rollout => scenarios::rollout::run(self),
            Scenario::Crowded => scenarios::crowded::run(self),
            Scenario::Idle => scenarios::idle::run(self),
            Scenario::Floor => scenarios::floor::run(self),
            Scenario::Engine => scenarios::engine::run(self),
        };
        done.with_context(|| format!("{scenario} failed"))
    }

    /// Tells the progress bar of the next run.
    pub fn step(&self, scenario: Scenario, case: &str, round: usize, who: Contender) {
        let n_rounds = self.scale.n_rounds;
        self.progress
            .step(&format!("{scenario}, {case}, round {} of {n_rounds}: {who}", round + 1));
    }

    /// Of a run of minutes, what it found can be read at once.
    pub fn keep(&mut self, scenario: Scenario, case: &str, who: Contender, measures: Vec<Measure>) {
        let found = |one: &Measure| format!("{} {}", one.name, one.unit.show(one.value));
        let found: Vec<String> = measures.iter().map(found).collect();
        self.progress.note(&format!("{scenario}, {case}, {who}: {}", found.join("; ")));
        self.records.push(Record { scenario, case: case.to_owned(), who, measures });
    }
}
