//! The simulator as a program; `cargo xtask sim` runs it.

mod program;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use program::jobs::{Job, Results};

#[derive(Parser)]
#[command(name = "cargo xtask sim", about = "Fault-injection simulator of the engine")]
struct Flags {
    /// Number of random runs, in addition to fault schedules and searches
    #[arg(long, default_value_t = 2000)]
    seeds: u64,
    /// Run only this seed; if it fails, print the shortest failing script
    #[arg(long)]
    seed: Option<u64>,
    /// Run only the fault schedules whose names contain this text
    #[arg(long)]
    schedule: Option<String>,
    /// First of the random seeds
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Only random seeds: no kept seeds, fault schedules, and searches
    #[arg(long)]
    only_seeds: bool,
    /// Runs at a time; all cores by default
    #[arg(long)]
    jobs: Option<usize>,
    /// Actions of each random run
    #[arg(long, default_value_t = 2000)]
    steps: usize,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Look for one violation; exit code 1 if there is one
    Hunt {
        /// A deliberate bug of the simulator's model of the client
        #[arg(long)]
        client_bug: Option<String>,
    },
    /// List the deliberate bugs of the simulator's model of the client
    ClientBugs,
}

fn main() -> ExitCode {
    let flags = match Flags::try_parse() {
        Ok(flags) => flags,
        Err(error) if !error.use_stderr() => {
            drop(error.print());
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("{}", error.to_string().lines().next().unwrap_or("error: bad flags"));
            eprintln!("hint: `cargo xtask sim --help` lists the flags");
            return ExitCode::from(2);
        }
    };
    // A panic is a violation; the result contains its text.
    std::panic::set_hook(Box::new(|_| {}));
    match &flags.command {
        Some(Command::Hunt { client_bug }) => program::hunt::run(client_bug.as_deref()),
        Some(Command::ClientBugs) => program::hunt::print_client_bugs(),
        None => simulate(&flags),
    }
}

fn simulate(flags: &Flags) -> ExitCode {
    let jobs = match flags.seed {
        Some(seed) => vec![Job::Seed { seed, n_steps: flags.steps }],
        None if flags.schedule.is_some() => program::jobs::schedules(flags.schedule.as_deref()),
        None if flags.only_seeds => program::jobs::seeds(flags.from, flags.seeds, flags.steps),
        None => program::jobs::all(flags.from, flags.seeds, flags.steps),
    };
    let results = Results::of(&jobs, flags.jobs);
    program::output::print_violations(&jobs, &results);
    let missing = match (flags.seed, &flags.schedule) {
        (Some(_), _) | (_, Some(_)) => Vec::new(),
        (None, None) => program::output::print_coverage(&results.coverage),
    };
    println!(
        "sim: {} seeds, {} steps, {} violations",
        results.n_seeds,
        results.coverage.n_steps,
        results.failed.len()
    );
    match results.failed.is_empty() && missing.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
