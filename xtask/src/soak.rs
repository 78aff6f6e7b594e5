//! `cargo xtask soak`: the daemon for hours on a real control plane, with changes and faults.

use std::process::ExitCode;

use anyhow::{Context, Result};
use endpointd_control_plane::Release;
use endpointd_control_plane::binaries::DIRECTORY_VARIABLE;
use endpointd_control_plane::release::RELEASE_VARIABLE;

use crate::{cargo, control_plane};

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// `--hours N` or `--minutes N`, `--seed N`; `--help` explains them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<String>,
}

/// The soak prints its own output; the exit code says whether it passed.
pub fn run(args: &Args) -> ExitCode {
    match soak(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn soak(args: &Args) -> Result<ExitCode> {
    let release = Release::under_test();
    let binaries = control_plane::find_or_build()?;
    let mut cargo = cargo::command();
    cargo.env(DIRECTORY_VARIABLE, binaries.directory()).env(RELEASE_VARIABLE, release.minor());
    cargo.args(["run", "--quiet", "--package", "endpointd-scenarios", "--bin", "soak", "--"]);
    let status = cargo.args(&args.args).status().context("cannot start cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
