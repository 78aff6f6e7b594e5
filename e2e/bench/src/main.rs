//! `cargo xtask bench` starts this, built as it is shipped.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use endpointd_bench::bench::{Bench, n_steps};
use endpointd_bench::progress::Progress;
use endpointd_bench::record::{Scenario, to_json};
use endpointd_bench::scale::Scale;
use endpointd_bench::scenarios::engine;
use endpointd_bench::table::table;
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
    /// How often everything is measured
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// One JSON object as the last line
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, n_pods] = arguments.as_slice()
        && first == engine::ARGUMENT
    {
        let n_pods = n_pods.parse().expect("we pass a number to ourselves");
        println!("{}", engine::alone(n_pods).expect("this process can be looked at"));
        return ExitCode::SUCCESS;
    }
    match run(&Cli::parse()) {
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
    let wanted =
        if cli.scenarios.is_empty() { Scenario::ALL.to_vec() } else { cli.scenarios.clone() };
    if !cli.tiny {
        daemon::use_release();
    }
    let binaries = Binaries::find().context("no control plane")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let progress = Progress::new(n_steps(&scale, &wanted));
    let mut bench = Bench::new(&scale, &binaries, &runtime, &progress);
    for scenario in &wanted {
        bench.run(*scenario)?;
    }
    progress.end();
    let records = bench.records;
    for table in wanted.iter().filter_map(|scenario| table(&records, *scenario)) {
        println!("{table}\n");
    }
    if cli.json {
        println!("{}", to_json(&records));
    }
    Ok(())
}
