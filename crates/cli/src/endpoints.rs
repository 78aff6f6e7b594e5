//! `endpointd endpoints`: what still uses the Endpoints API, and how to leave it (KEP-4974).

mod audit;
mod flags;
mod probe;
mod prune;
mod report;
mod survey;

use std::process::ExitCode;

pub use self::flags::Flags;
use self::flags::Subcommand;
use crate::cli_error::CliError;
use crate::cluster::run_async;
use crate::output;

pub fn run(flags: &Flags) -> Result<ExitCode, CliError> {
    match &flags.command {
        Subcommand::Report(flags) => {
            let text = run_async(report::report(flags))?;
            output::print(&text)?;
        }
        Subcommand::Prune(flags) => {
            let text = run_async(prune::prune(flags))?;
            output::print(&text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
