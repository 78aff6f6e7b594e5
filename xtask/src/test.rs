//! `cargo xtask test`: runs all checks and stops at the first failure.

use anyhow::{Context, Result, ensure};
use endpointd_control_plane::Binaries;
use endpointd_control_plane::binaries::{DIRECTORY_VARIABLE, is_ci};

use crate::{browser, cargo, control_plane, mutants, parity, sim};

/// A check: its title and its cargo command.
struct Step {
    title: &'static str,
    args: &'static [&'static str],
}

const FORMAT: Step = Step { title: "format", args: &["fmt", "--all", "--check"] };
const LINTS: Step = Step {
    title: "lints",
    args: &["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"],
};
const TESTS: Step = Step { title: "tests", args: &["test", "--workspace"] };

pub fn run() -> Result<()> {
    check(&FORMAT, None)?;
    check(&LINTS, None)?;
    let control_plane = prepare_control_plane()?;
    check(&TESTS, control_plane.as_ref())?;
    let is_browsed = browser::check()?;
    sim::check()?;
    mutants::check()?;
    let is_compared = compare_with_upstream()?;
    if control_plane.is_none() {
        eprintln!("skipped: the tests against a real control plane; {HINT}");
    }
    if !is_browsed {
        eprintln!(
            "skipped: the tests of the live page; `cargo xtask install-tools` installs Chromium"
        );
    }
    if !is_compared {
        eprintln!(
            "skipped: parity with upstream's code; `cargo xtask parity` runs it with Go 1.26 or newer"
        );
    }
    Ok(())
}

const HINT: &str = "`cargo xtask control-plane` builds it with Go 1.26 or newer";

/// Returns false if the comparison was skipped, which happens only without Go and outside CI.
fn compare_with_upstream() -> Result<bool> {
    eprintln!("== parity");
    if !parity::available() && !is_ci() {
        return Ok(false);
    }
    parity::check()?;
    Ok(true)
}

/// The control plane for the tests. Without one the other checks still run; in CI that is an error.
fn prepare_control_plane() -> Result<Option<Binaries>> {
    eprintln!("== control plane");
    match control_plane::find_or_build() {
        Ok(binaries) => Ok(Some(binaries)),
        Err(error) if is_ci() => Err(error),
        Err(error) => {
            eprintln!("no control plane: {error}");
            Ok(None)
        }
    }
}

fn check(step: &Step, control_plane: Option<&Binaries>) -> Result<()> {
    eprintln!("== {}: cargo {}", step.title, step.args.join(" "));
    let mut cargo = cargo::command();
    if let Some(binaries) = control_plane {
        cargo.env(DIRECTORY_VARIABLE, binaries.directory());
    }
    let status = cargo.args(step.args).status().context("cannot start cargo")?;
    ensure!(status.success(), "{} failed: {status}", step.title);
    Ok(())
}
