//! `cargo xtask sim`: builds and runs the simulator.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::cargo;

#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Flags {
    /// `[--seeds N] [--seed S] [--steps N]`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    given: Vec<String>,
}

/// The simulator prints its own output; its exit code becomes ours.
pub fn run(flags: &Flags) -> ExitCode {
    let code = simulator(&flags.given).status().map(|status| status.code());
    match code {
        Ok(Some(0)) => ExitCode::SUCCESS,
        Ok(code) => ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("error: cannot start cargo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The part of `cargo xtask test`: kept seeds, fault schedules, searches, and 2,000 seeds.
pub fn check() -> Result<()> {
    eprintln!("== sim");
    let status = simulator(&[]).status().context("cannot start cargo")?;
    ensure!(status.success(), "the simulation failed: {status}");
    Ok(())
}

/// The development profile, which optimises the crates that the simulator spends its time in.
fn simulator(given: &[String]) -> Command {
    let mut cargo = cargo::command();
    cargo.args(["run", "--quiet", "--package", "endpointd-sim", "--"]).args(given);
    cargo
}
