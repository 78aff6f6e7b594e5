//! `soak --minutes 45`, started by `cargo xtask soak`. Progress goes to stderr, the report to stdout.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use endpointd_scenarios::daemon;
use endpointd_scenarios::soak::{self, SoakOptions};

/// Run the daemon on a real control plane with changes and faults
#[derive(Parser)]
struct Flags {
    /// How long, in hours
    #[arg(long, conflicts_with = "minutes")]
    hours: Option<f64>,
    /// How long, in minutes; 45 by default
    #[arg(long)]
    minutes: Option<f64>,
    /// Repeats the changes of another run
    #[arg(long, default_value_t = 20_260_101)]
    seed: u64,
}

fn main() -> ExitCode {
    let Flags { hours, minutes, seed } = Flags::parse();
    let minutes = hours.map(|hours| hours * 60.0).or(minutes).unwrap_or(45.0);
    let Ok(duration) = Duration::try_from_secs_f64(minutes * 60.0) else {
        eprintln!("error: not a time: {minutes} minutes");
        return ExitCode::from(2);
    };
    eprintln!("program: {}", daemon::use_dist_profile().display());
    let Some(report) = soak::run(SoakOptions { duration, seed }) else {
        eprintln!("error: no control plane");
        return ExitCode::from(2);
    };
    println!("{}", report.text());
    if report.has_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
