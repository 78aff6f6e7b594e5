//! `cargo xtask release`.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::{is_debian, krew, paths, program, succeed};

#[test]
fn a_release_has_checksums_for_all_its_files() {
    if !is_debian() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let output = folder.path().join("artifacts");
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let server = krew::DownloadServer::start(&output);
    xtask.args(["release", "--without", "static", "--homepage", &server.homepage(), "--program"]);
    xtask.arg(format!("dist={}", program().display())).arg("--output").arg(&output);
    succeed(&mut xtask);
    let sums = fs::read_to_string(output.join("SHA256SUMS")).expect("checksums");
    succeed(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(&output));
    let listed: BTreeSet<&str> = sums.lines().filter_map(|line| line.split("  ").nth(1)).collect();
    let entries = fs::read_dir(&output).expect("the directory is there");
    let files: BTreeSet<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(files.len(), listed.len() + 1, "{files:?}");
    let archive = files.iter().find(|name| name.ends_with("-dist.tar.gz")).expect("a program");
    let all: Vec<String> = paths(&output.join(archive)).into_iter().map(|(path, _)| path).collect();
    for needed in [
        "/endpointd",
        "/LICENSE",
        "/THIRD-PARTY-NOTICES",
        "/completions/endpointd.bash",
        "/man/man1/endpointd-run.1",
        "/deploy/static-pod/endpointd.yaml",
    ] {
        assert!(all.iter().any(|path| path.ends_with(needed)), "no {needed} in {all:?}");
    }
    let chart = files.iter().find(|name| name.contains("chart")).expect("a chart");
    let all: Vec<String> = paths(&output.join(chart)).into_iter().map(|(path, _)| path).collect();
    assert!(all.contains(&"endpointd/values.schema.json".to_owned()), "{all:?}");
    krew::installs(&output.join("krew-endpointd.yaml"));
}
