//! `cargo xtask bench`: starts the bench, built as it is shipped, with a control plane.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use endpointd_control_plane::binaries::DIRECTORY_VARIABLE;

use crate::control_plane;

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Scenarios and flags of the bench; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<String>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let binaries = control_plane::find_or_build()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "endpointd-bench", "--"])
        .args(&args.args)
        .env(DIRECTORY_VARIABLE, binaries.directory())
        .status()
        .context("cannot start cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
