//! Compares our plans with upstream's on generated cases.

use std::io::{IsTerminal, Write, stderr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Parser, ValueEnum};
use endpointd_model::Controller;
use endpointd_parity::{Oracle, RunSpec, RunSummary, Scope, report, run, shrink};

#[derive(Parser)]
#[command(name = "parity", about = "Compares our plans with upstream's on generated cases")]
struct Cli {
    /// Path of the oracle
    #[arg(long)]
    oracle: PathBuf,
    /// Number of cases
    #[arg(long, default_value_t = 4000)]
    cases: u64,
    /// Seed of the cases
    #[arg(long)]
    seed: u64,
    /// Only cases of this controller
    #[arg(long)]
    controller: Option<Which>,
    /// Only the case of this index
    #[arg(long)]
    case: Option<u64>,
    /// Number of differing cases to shrink and print
    #[arg(long, default_value_t = 5)]
    show: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Which {
    Endpoints,
    Endpointslice,
    Mirroring,
}

/// How often progress is printed: on a terminal, and elsewhere.
const TERMINAL_EVERY: Duration = Duration::from_millis(200);
const PLAIN_EVERY: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    match compare(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn compare(cli: Cli) -> Result<ExitCode> {
    let Cli { oracle, cases, seed, controller, case, show } = cli;
    let scope = match controller {
        None => Scope::All,
        Some(Which::Endpoints) => Scope::One(Controller::Endpoints),
        Some(Which::Endpointslice) => Scope::One(Controller::Slices),
        Some(Which::Mirroring) => Scope::One(Controller::Mirror),
    };
    let indexes = case.map_or(0..cases, |index| index..index + 1);
    let n_workers = std::thread::available_parallelism().map_or(1, usize::from);
    let spec = RunSpec { seed, indexes, scope, oracle, n_workers, shown_max: show };
    println!("seed: {seed}");
    let mut progress = Progress::new(spec.indexes.end - spec.indexes.start);
    let summary = run(&spec, |summary| progress.show(summary))?;
    progress.end(&summary);
    if !summary.differing.is_empty() {
        eprintln!(
            "shrinking {} of {} differing cases",
            summary.differing.len(),
            summary.n_different
        );
        let mut oracle = Oracle::start(&spec.oracle)?;
        for one in &summary.differing {
            let (case, differences) = shrink(one, &mut oracle)?;
            report::print_case(one.index, &case, &differences);
        }
    }
    let is_good = report::print(&summary, scope);
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

struct Progress {
    n: u64,
    start: Instant,
    shown: Instant,
    is_terminal: bool,
}

impl Progress {
    fn new(n: u64) -> Self {
        let now = Instant::now();
        Self { n, start: now, shown: now, is_terminal: stderr().is_terminal() }
    }

    fn rate(&self, summary: &RunSummary) -> f64 {
        summary.n_cases as f64 / self.start.elapsed().as_secs_f64().max(0.001)
    }

    fn show(&mut self, summary: &RunSummary) {
        let every = if self.is_terminal { TERMINAL_EVERY } else { PLAIN_EVERY };
        if self.shown.elapsed() < every {
            return;
        }
        self.shown = Instant::now();
        let rate = self.rate(summary);
        let left_secs = (self.n - summary.n_cases) as f64 / rate.max(1.0);
        let line = format!(
            "{}/{} cases, {rate:.0}/s, {left_secs:.0} s left, {} differences",
            summary.n_cases, self.n, summary.n_different
        );
        if self.is_terminal {
            const BAR: usize = 30;
            let n_done = (summary.n_cases * BAR as u64 / self.n.max(1)) as usize;
            eprint!("\r\x1b[K[{}{}] {line}", "#".repeat(n_done), ".".repeat(BAR - n_done));
            drop(stderr().flush());
        } else {
            eprintln!("{line}");
        }
    }

    fn end(&self, summary: &RunSummary) {
        let start = if self.is_terminal { "\r\x1b[K" } else { "" };
        let secs = self.start.elapsed().as_secs_f64();
        eprintln!("{start}{} cases in {secs:.1} s, {:.0}/s", summary.n_cases, self.rate(summary));
    }
}
