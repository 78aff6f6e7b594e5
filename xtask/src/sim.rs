//! `cargo xtask sim`: runs the simulator; `cargo xtask sim mutants` runs the mutants.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::cargo;

#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Flags {
    /// `[--seeds N] [--seed S] [--steps N]`, or `mutants`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    given: Vec<String>,
}

/// Returns the exit code of the simulator, which prints its own results.
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

/// The part of `cargo xtask test`.
pub fn check() -> Result<()> {
    for given in [&[][..], &["mutants".to_owned()]] {
        eprintln!("== sim {}", given.join(" "));
        let status = simulator(given).status().context("cannot start cargo")?;
        ensure!(status.success(), "the simulation failed: {status}");
    }
    Ok(())
}

/// Uses the profile of the tests; the feature `mutants` only for `mutants`.
fn simulator(given: &[String]) -> Command {
    let mut cargo = cargo::command();
    cargo.args(["run", "--quiet", "--package", "endpointd-sim"]);
    if given.first().is_some_and(|first| first == "mutants") {
        cargo.args(["--features", "mutants"]);
    }
    cargo.arg("--").args(given);
    cargo
}
