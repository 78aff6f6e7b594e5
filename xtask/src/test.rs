//! `cargo xtask test`: every check, one after the other, stopping at the first that fails.

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// One check: a title for people, and the cargo command that performs it.
struct Step {
    title: &'static str,
    args: &'static [&'static str],
}

const STEPS: &[Step] = &[
    Step { title: "format", args: &["fmt", "--all", "--check"] },
    Step {
        title: "lints",
        args: &["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"],
    },
    Step { title: "tests", args: &["test", "--workspace"] },
];

pub fn run() -> Result<()> {
    for step in STEPS {
        eprintln!("== {}: cargo {}", step.title, step.args.join(" "));
        cargo(step)?;
    }
    Ok(())
}

fn cargo(step: &Step) -> Result<()> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(program).args(step.args).status().context("cannot start cargo")?;
    ensure!(status.success(), "{} failed: {status}", step.title);
    Ok(())
}
