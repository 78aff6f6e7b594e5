//! `cargo xtask bench` builds this with the profile `dist` and runs it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use endpointd_bench::bench::{Bench, n_steps};
use endpointd_bench::machine;
use endpointd_bench::progress::Progress;
use endpointd_bench::record::Scenario;
use endpointd_bench::report::Report;
use endpointd_bench::scale::Scale;
use endpointd_bench::scenarios::engine;
use endpointd_bench::subject::Subject;
use endpointd_control_plane::Binaries;
use endpointd_scenarios::daemon;

/// The scenario `engine` uses the allocator of the shipped daemon.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Compares endpointd with kube-controller-manager on the same API server
#[derive(Parser)]
#[command(name = "bench", bin_name = "cargo xtask bench")]
struct Cli {
    /// Scenarios to run; default: all
    scenarios: Vec<Scenario>,
    /// Small clusters and short runs, as a smoke test
    #[arg(long, conflicts_with = "large")]
    quick: bool,
    /// Also run with 10,000 Services and 150,000 pods
    #[arg(long)]
    large: bool,
    /// Smaller than quick, for the tests of the bench
    #[arg(long, hide = true, conflicts_with_all = ["quick", "large"])]
    tiny: bool,
    /// Skip cold starts with more pods
    #[arg(long, value_name = "N")]
    pods_max: Option<usize>,
    /// Number of rounds; default: 3
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// Run only these subjects
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SUBJECT")]
    only: Vec<Subject>,
    /// Rates of `churn`, in readiness toggles per second
    #[arg(long, value_delimiter = ',', value_name = "RATE")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    rates: Vec<u32>,
    /// Directory for charts and tables; default: `docs/bench`, and none with --quick
    #[arg(long, value_name = "DIRECTORY")]
    charts: Option<PathBuf>,
    /// Print one JSON object as the last line
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [first, part, n_pods] if first == engine::ARGUMENT => {
            engine::run_process(part, n_pods.parse().expect("the parent process passes a number"))
        }
        _ => run(&Cli::parse()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    let mut scale = match cli {
        Cli { tiny: true, .. } => Scale::tiny(),
        Cli { quick: true, .. } => Scale::quick(),
        Cli { large: true, .. } => Scale::large(),
        Cli { .. } => Scale::full(),
    };
    if let Some(rounds) = cli.rounds {
        scale.n_rounds = usize::from(rounds);
    }
    if let Some(most) = cli.pods_max {
        scale.cold.retain(|layout| layout.n_pods <= most);
    }
    if !cli.only.is_empty() {
        scale.subjects.retain(|subject| cli.only.contains(subject));
    }
    if !cli.rates.is_empty() {
        scale.rates.clone_from(&cli.rates);
    }
    let wanted =
        if cli.scenarios.is_empty() { Scenario::ALL.to_vec() } else { cli.scenarios.clone() };
    if !cli.tiny {
        daemon::use_dist_profile();
    }
    let binaries = Binaries::find().context("no control plane")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let progress = Progress::new(n_steps(&scale, &wanted));
    let (scale, command) = (&scale, &command());
    let origin = &machine::describe(command, scale);
    let mut bench = Bench::new(scale, &wanted, &binaries, &runtime, &progress);
    let directory = cli.directory();
    for scenario in &wanted {
        bench.run(*scenario)?;
        // After each scenario, so that an interrupted run keeps its results.
        if let Some(directory) = &directory {
            let report = Report { records: &bench.records, scale, command, origin };
            for path in report.write(*scenario, directory)? {
                progress.note(&format!("written: {}", path.display()));
            }
        }
    }
    progress.end();
    let report = Report { records: &bench.records, scale, command, origin };
    println!("{}", report.text());
    if cli.json {
        println!("{}", report.json());
    }
    Ok(())
}

impl Cli {
    /// The directory for charts. Short runs write charts only if `--charts` names a directory.
    fn directory(&self) -> Option<PathBuf> {
        let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench");
        let is_short = self.quick || self.tiny || !self.only.is_empty() || !self.rates.is_empty();
        self.charts.clone().or_else(|| (!is_short).then_some(documents))
    }
}

/// The command line, as a user types it.
fn command() -> String {
    let mut command = "cargo xtask bench".to_owned();
    for argument in std::env::args().skip(1) {
        command = format!("{command} {argument}");
    }
    command
}
