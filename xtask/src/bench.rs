//! `cargo xtask bench`: starts the bench with a control plane, and with the program as it is shipped.

use std::env;
use std::process::ExitCode;

use anyhow::{Context, Result};
use endpointd_control_plane::binaries::DIRECTORY_VARIABLE;

use crate::{cargo, control_plane, dist};

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Scenarios and flags of the bench; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<String>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let binaries = control_plane::find_or_build()?;
    // Somebody may want to measure another one, to see what a change does.
    let program = match env::var_os(dist::PROGRAM_VARIABLE) {
        Some(chosen) => chosen.into(),
        None => dist::build()?,
    };
    let status = cargo::command()
        .args(["run", "--quiet", "--release", "--package", "endpointd-bench", "--"])
        .args(&args.args)
        .env(DIRECTORY_VARIABLE, binaries.directory())
        .env(dist::PROGRAM_VARIABLE, program)
        .status()
        .context("cannot start cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
