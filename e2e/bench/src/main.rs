//! `cargo xtask bench` starts this, built as it is shipped.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use endpointd_bench::bench::{Bench, n_steps};
use endpointd_bench::contender::Contender;
use endpointd_bench::machine;
use endpointd_bench::progress::Progress;
use endpointd_bench::record::Scenario;
use endpointd_bench::report::Report;
use endpointd_bench::scale::Scale;
use endpointd_bench::scenarios::engine;
use endpointd_control_plane::Binaries;
use endpointd_histories::daemon;

/// The engine is measured with the allocator it ships with.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Side by side with kube-controller-manager on the same API server
#[derive(Parser)]
#[command(name = "bench")]
struct Cli {
    /// Which scenarios; all of them if none is named
    scenarios: Vec<Scenario>,
    /// Small worlds and short runs: to see that it works
    #[arg(long, conflicts_with = "large")]
    quick: bool,
    /// Also 10,000 Services and 150,000 pods
    #[arg(long)]
    large: bool,
    /// Smaller than quick: for the tests of the bench
    #[arg(long, hide = true, conflicts_with_all = ["quick", "large"])]
    tiny: bool,
    /// Leave out cold starts with more pods
    #[arg(long, value_name = "N")]
    pods_max: Option<usize>,
    /// How often everything is measured; by default three times
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// Only these: to see what a change of ours does, or to leave out the slowest
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHO")]
    only: Vec<Contender>,
    /// Churn at these rates only, in flips a second
    #[arg(long, value_delimiter = ',', value_name = "RATE")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    rates: Vec<u32>,
    /// Where pictures are written; by default `docs/bench`, and nowhere with --quick
    #[arg(long, value_name = "DIRECTORY")]
    pictures: Option<PathBuf>,
    /// One JSON object as the last line
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [first, part, n_pods] if first == engine::ARGUMENT => {
            engine::alone(part, n_pods.parse().expect("we pass a number to ourselves"))
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
        scale.contenders.retain(|who| cli.only.contains(who));
    }
    if !cli.rates.is_empty() {
        scale.rates.clone_from(&cli.rates);
    }
    let wanted =
        if cli.scenarios.is_empty() { Scenario::ALL.to_vec() } else { cli.scenarios.clone() };
    if !cli.tiny {
        daemon::use_release();
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
        // Now, and not at the end of hours that may not come.
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
    /// Where the pictures go. Numbers of short runs are not worth one, unless somebody asks.
    fn directory(&self) -> Option<PathBuf> {
        let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench");
        let is_short = self.quick || self.tiny || !self.only.is_empty() || !self.rates.is_empty();
        self.pictures.clone().or_else(|| (!is_short).then_some(documents))
    }
}

/// As a person types it.
fn command() -> String {
    let mut command = "cargo xtask bench".to_owned();
    for argument in std::env::args().skip(1) {
        command = format!("{command} {argument}");
    }
    command
}
