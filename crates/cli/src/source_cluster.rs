//! `endpointd cluster`: makes other clusters known whose Services are imported, lists them, and forgets
//! them. In the other cluster it makes an account that may only read; here, a kubeconfig with a token
//! of it. No credential is ever shown.

mod account;
mod add;
mod flags;
mod identity;
mod list;
mod place;
mod remove;
mod render;
mod token;

use std::process::ExitCode;

use endpointd_client::ConnectOptions;
use endpointd_model::ClusterId;

pub use self::flags::Flags;
use self::flags::Subcommand;
use crate::cli_error::CliError;
use crate::cluster::run_async;
use crate::{EXIT_FINDINGS, output};

/// A kubeconfig of another cluster, and how to connect with it.
#[derive(Clone)]
struct Entry {
    name: String,
    options: ConnectOptions,
}

pub fn run(flags: &Flags) -> Result<ExitCode, CliError> {
    match &flags.command {
        Subcommand::Add(flags) => output::print(&run_async(add::add(flags))?)?,
        Subcommand::Remove(flags) => output::print(&run_async(remove::remove(flags))?)?,
        Subcommand::List(flags) => {
            let rows = run_async(list::list(flags))?;
            output::print(&render::text_or_json(&rows, flags.output))?;
            if rows.iter().any(list::Row::has_findings) {
                return Ok(ExitCode::from(EXIT_FINDINGS));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn cluster_id(name: &str) -> Result<ClusterId, CliError> {
    ClusterId::parse(name).map_err(|error| {
        CliError::new(
            error.to_string(),
            "1 to 63 lower-case letters, digits, and `-` between them, as in `eu1`",
        )
    })
}
