//! `cargo xtask bench`: runs the bench on a real control plane with the program of `cargo xtask
//! dist`.

use std::env;
use std::process::{Command, ExitCode};

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
    if asks_for_help(&args.args) {
        // An unoptimized build prints the same help, and neither control plane nor program is
        // needed.
        return execute(bench(&["--quiet"], args));
    }
    let binaries = control_plane::find_or_build()?;
    let program = match env::var_os(dist::PROGRAM_VARIABLE) {
        Some(chosen) => chosen.into(),
        None => dist::build().context("cannot build the program to measure")?,
    };
    // The scenario `engine` runs the engine in the bench itself, so the profile must be the same.
    let mut bench = bench(&["--quiet", "--profile", "dist"], args);
    bench.env(DIRECTORY_VARIABLE, binaries.directory()).env(dist::PROGRAM_VARIABLE, program);
    execute(bench)
}

fn asks_for_help(args: &[String]) -> bool {
    args.iter().any(|arg| ["--help", "-h"].contains(&arg.as_str()))
}

fn bench(cargo_flags: &[&str], args: &Args) -> Command {
    let mut bench = cargo::command();
    bench.arg("run").args(cargo_flags).args(["--package", "endpointd-bench", "--"]);
    bench.args(&args.args);
    bench
}

fn execute(mut bench: Command) -> Result<ExitCode> {
    let status = bench.status().context("cannot start cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_flags_are_recognised_anywhere() {
        let asks = |args: &[&str]| {
            asks_for_help(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
        };
        assert!(asks(&["--help"]) && asks(&["churn", "-h"]));
        assert!(!asks(&["churn", "--quick"]) && !asks(&[]));
    }
}
