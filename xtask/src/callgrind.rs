//! `cargo xtask instructions`: counts the instructions of planning with callgrind. Unlike times,
//! the counts do not depend on the load of the machine.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo;

/// Must be the version of the library in `Cargo.toml`, because the two exchange data.
const RUNNER: &str = "gungraun-runner";
const RUNNER_VERSION: &str = "0.20.0";

pub fn run() -> Result<()> {
    ensure!(
        has_version("valgrind", ""),
        "valgrind is not installed\nhint: `apt-get install valgrind`"
    );
    ensure!(
        has_version(RUNNER, RUNNER_VERSION),
        "{RUNNER} {RUNNER_VERSION} is not installed\n\
         hint: `cargo install {RUNNER} --version {RUNNER_VERSION} --locked`"
    );
    let args = ["bench", "--package", "endpointd-plan", "--bench", "instructions"];
    let status = cargo::command().args(args).status().context("cannot start cargo")?;
    ensure!(status.success(), "cargo {} failed: {status}", args.join(" "));
    Ok(())
}

/// Whether the program exists and `--version` prints this version.
fn has_version(program: &str, version: &str) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(version))
}
