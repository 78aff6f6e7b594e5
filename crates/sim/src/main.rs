//! The simulator as a program; `cargo xtask sim` runs it.

mod program;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use program::work::{Job, Tally};

#[derive(Parser)]
#[command(name = "cargo xtask sim", about = "Tries to break the engine, on one thread a run")]
struct Flags {
    /// How many random runs, besides the exhaustive ones
    #[arg(long, default_value_t = 2000)]
    seeds: u64,
    /// Only this seed; if it fails, the shortest history found is told
    #[arg(long)]
    seed: Option<u64>,
    /// Acts of each random run
    #[arg(long, default_value_t = 2000)]
    steps: usize,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Put bugs in, one at a time, and see that each is caught
    Mutants,
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
    // A panic is a violation; its text is in the verdict.
    std::panic::set_hook(Box::new(|_| {}));
    match flags.command {
        Some(Command::Mutants) => program::hunt::run(),
        None => simulate(&flags),
    }
}

fn simulate(flags: &Flags) -> ExitCode {
    let jobs = match flags.seed {
        Some(seed) => vec![Job::Seed { seed, n_steps: flags.steps }],
        None => program::work::all(flags.seeds, flags.steps),
    };
    let tally = Tally::of(&jobs);
    program::tell::failures(&jobs, &tally);
    let never = match flags.seed {
        Some(_) => Vec::new(),
        None => program::tell::census(&tally.census),
    };
    println!(
        "sim: {} seeds, {} steps, {} violations",
        tally.n_seeds,
        tally.census.n_steps,
        tally.failed.len()
    );
    match tally.failed.is_empty() && never.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
