//! `cargo xtask scenarios`: the tests of `e2e/scenarios`, and those of the client, on a control plane
//! of one release of Kubernetes.

use anyhow::{Context, Result, ensure};
use endpointd_control_plane::binaries::DIRECTORY_VARIABLE;
use endpointd_control_plane::release::RELEASE_VARIABLE;

use crate::{cargo, control_plane};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    release: control_plane::ReleaseFlag,
    /// Arguments of `cargo test`, as in `--test differential`; without them all tests run
    #[arg(last = true, value_name = "ARGS")]
    cargo_test: Vec<String>,
}

/// All tests that need a real control plane, except those that compare with recordings of one
/// release.
const ALL: [&str; 2] = ["--package=endpointd-scenarios", "--package=endpointd-client"];

pub fn run(args: &Args) -> Result<()> {
    let release = args.release.chosen().unwrap_or_default();
    let binaries = control_plane::find_or_build_release(Some(release))?;
    eprintln!("== scenarios on Kubernetes {}", release.version());
    let mut cargo = cargo::command();
    cargo.env(DIRECTORY_VARIABLE, binaries.directory()).env(RELEASE_VARIABLE, release.minor());
    cargo.args(["test", "--no-fail-fast"]);
    match args.cargo_test.is_empty() {
        true => cargo.args(ALL),
        false => cargo.arg("--package=endpointd-scenarios").args(&args.cargo_test),
    };
    let status = cargo.status().context("cannot start cargo")?;
    ensure!(status.success(), "the scenarios failed on Kubernetes {}: {status}", release.version());
    Ok(())
}
