//! `cargo xtask fuzz`: runs the fuzz targets, which are tests beside the decoders, for some minutes.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;

use crate::cargo;

/// Name and package. The test is `fuzz_` and the name.
const TARGETS: [(&str, &str); 14] = [
    ("wire_multicluster", "endpointd-wire"),
    ("wire_json", "endpointd-wire"),
    ("wire_protobuf", "endpointd-wire"),
    ("wire_stored", "endpointd-wire"),
    ("watch_json", "endpointd-wire"),
    ("watch_protobuf", "endpointd-wire"),
    ("responses", "endpointd-client"),
    ("lease", "endpointd-client"),
    ("value_lists", "endpointd-client"),
    ("yaml", "endpointd"),
    ("json_as_yaml", "endpointd"),
    ("flags", "endpointd"),
    ("status_query", "endpointd-status"),
    ("explain", "endpointd-explain"),
];

#[derive(Args)]
pub struct Flags {
    /// Targets; all if none is given
    targets: Vec<String>,
    /// Time for each target
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Seed of the mutations; by default another one each time
    #[arg(long)]
    seed: Option<u64>,
    /// Print the names of the targets
    #[arg(long)]
    list: bool,
}

/// The exit code is 1 if a target failed, 2 for an unknown target.
pub fn run(flags: &Flags) -> ExitCode {
    if flags.list {
        TARGETS.iter().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let is_target = |name: &&String| TARGETS.iter().any(|(known, _)| known == name);
    if let Some(unknown) = flags.targets.iter().find(|name| !is_target(name)) {
        eprintln!("error: no fuzz target is called `{unknown}`");
        eprintln!("hint: `cargo xtask fuzz --list` prints their names");
        return ExitCode::from(2);
    }
    let is_chosen =
        |name: &str| flags.targets.is_empty() || flags.targets.iter().any(|it| it == name);
    let chosen = TARGETS.into_iter().filter(|(name, _)| is_chosen(name));
    let failed: Vec<&str> = chosen
        .filter(|(name, package)| !is_without_findings(flags, name, package))
        .map(|(name, _)| name)
        .collect();
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("error: fuzz targets with findings: {}", failed.join(", "));
    eprintln!(
        "hint: copy the input that the output names to crates/fuzz/kept/TARGET, fix the decoder, \
         and add a test"
    );
    ExitCode::FAILURE
}

fn is_without_findings(flags: &Flags, name: &str, package: &str) -> bool {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let status = cargo::command()
        .args(["test", "--quiet", "--package", package, &format!("fuzz_{name}")])
        .args(["--", "--nocapture"])
        .env("ENDPOINTD_FUZZ_SECS", (flags.minutes * 60).to_string())
        .env("ENDPOINTD_FUZZ_SEED", flags.seed.unwrap_or_else(now).to_string())
        .status();
    match status {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("error: cannot start cargo: {error}");
            false
        }
    }
}
