//! `cargo xtask man`: writes the manual pages of endpointd into `target/man`.

use anyhow::{Context, Result, ensure};

use crate::cargo;

const DIRECTORY: &str = "target/man";

pub fn run() -> Result<()> {
    let mut cargo = cargo::command();
    cargo.args(["run", "--quiet", "--package", "endpointd", "--", "man-pages", DIRECTORY]);
    let status = cargo.status().context("cannot start cargo")?;
    ensure!(status.success(), "the manual pages were not written: {status}");
    println!("{DIRECTORY}");
    Ok(())
}
