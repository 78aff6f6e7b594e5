//! `endpointd`: selects the subcommand; each has its own file.

mod changes;
mod check;
mod cli_error;
mod cluster;
mod diff;
mod duration;
mod explain;
mod input;
mod output;
mod plan;
#[cfg(feature = "playground")]
mod playground;
#[cfg(any(test, not(feature = "playground")))]
mod playground_disabled;
mod run;
mod shared_flags;
mod stderr;
mod target;
mod terminal;
mod tokio_runtime;
mod yaml_output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[cfg(not(feature = "playground"))]
use playground_disabled as playground;

/// The allocator with the lowest resident memory of those measured; tuned in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Exit code of commands that look for findings or differences, if there are some.
const EXIT_FINDINGS: u8 = 1;
/// Exit code for every error; the same as clap's for invalid flags.
const EXIT_ERROR: u8 = 2;

/// Kubernetes controllers for Endpoints and EndpointSlices, in one process
#[derive(Parser)]
#[command(name = "endpointd", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Playground(playground::Flags),
    Run(Box<run::Flags>),
    Plan(plan::Flags),
    Explain(Box<explain::Flags>),
    Diff(Box<diff::Flags>),
    Check(Box<check::Flags>),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Playground(flags) => playground::run(&flags).map(|()| ExitCode::SUCCESS),
        Command::Run(flags) => run::run(&flags).map(|()| ExitCode::SUCCESS),
        Command::Plan(flags) => plan::run(&flags),
        Command::Explain(flags) => explain::run(&flags),
        Command::Diff(flags) => diff::run(&flags),
        Command::Check(flags) => check::run(&flags),
    };
    match result {
        Ok(exit_code) => exit_code,
        Err(error) => {
            stderr::line(format_args!("error: {}", error.message));
            stderr::line(format_args!("hint: {}", error.hint));
            ExitCode::from(EXIT_ERROR)
        }
    }
}
