//! `endpointd`: one file per subcommand; this one only chooses between them.

mod choices;
mod duration;
mod plan;
#[cfg(feature = "playground")]
mod playground;
#[cfg(any(test, not(feature = "playground")))]
mod playground_disabled;
mod refusal;
mod run;
mod shell;
mod stderr;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[cfg(not(feature = "playground"))]
use playground_disabled as playground;

/// Settles at the lowest resident memory of those measured; tuned in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Exit code of everything that could not be done; also clap's for flags it cannot read.
const REFUSED: u8 = 2;

/// Keeps the Endpoints and EndpointSlices of a Kubernetes cluster as they should be
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
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Playground(flags) => playground::run(&flags),
        Command::Run(flags) => run::run(&flags),
        Command::Plan(flags) => plan::run(&flags),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            stderr::line(format_args!("error: {}", refusal.message));
            stderr::line(format_args!("hint: {}", refusal.hint));
            ExitCode::from(REFUSED)
        }
    }
}
