//! `cargo xtask instructions`: counts the instructions of planning, which a busy machine cannot
//! blur. Gets the runner it needs; valgrind comes from the distribution.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::cargo;

/// Must be the version of the library in `Cargo.toml`: runner and library speak to each other.
const RUNNER: &str = "gungraun-runner";
const RUNNER_VERSION: &str = "0.20.0";

pub fn run() -> Result<()> {
    if !answers("valgrind", "") {
        bail!("valgrind is not installed\nhint: `apt-get install valgrind`");
    }
    if !answers(RUNNER, RUNNER_VERSION) {
        eprintln!("installing {RUNNER} {RUNNER_VERSION}, which takes some minutes once");
        run_cargo(&["install", RUNNER, "--version", RUNNER_VERSION, "--locked"])?;
    }
    run_cargo(&["bench", "--package", "endpointd-plan", "--bench", "instructions"])
}

/// Whether a program is there and names this version.
fn answers(program: &str, version: &str) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(version))
}

fn run_cargo(args: &[&str]) -> Result<()> {
    let status = cargo::command().args(args).status().context("cannot start cargo")?;
    ensure!(status.success(), "cargo {} failed: {status}", args.join(" "));
    Ok(())
}
