//! The table of result files in `docs/bench/README.md` says which commit each was measured with, and
//! whether the sources of the daemon are still those of that commit.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use endpointd_control_plane::binaries::is_ci;

/// What a result depends on: the daemon's crates and its dependencies.
const SOURCES: [&str; 10] = [
    "crates/model",
    "crates/plan",
    "crates/engine",
    "crates/wire",
    "crates/client",
    "crates/runtime",
    "crates/status",
    "crates/cli",
    "Cargo.toml",
    "Cargo.lock",
];
const NOT_SOURCES: [&str; 2] = [":(exclude)crates/*/tests", ":(exclude)crates/*/README.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the root").to_owned()
}

fn git(args: &[&str]) -> Option<bool> {
    let output = Command::new("git").args(args).current_dir(root()).output().ok()?;
    match output.status.code()? {
        0 => Some(true),
        1 => Some(false),
        _ => None,
    }
}

/// `None` without the history of the repository.
fn are_sources_of(commit: &str) -> Option<bool> {
    let diff = ["diff", "--quiet", commit, "--"];
    git(&[&diff[..], &SOURCES, &NOT_SOURCES].concat())
}

/// The commit in the head of each result file, by scenario.
fn measured() -> BTreeMap<String, String> {
    let files = fs::read_dir(root().join("docs/bench")).expect("the directory of results");
    let paths = files.map(|file| file.expect("a file").path());
    let results = paths.filter(|path| path.extension().is_some_and(|one| one == "txt"));
    let commit = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("results are text");
        let line = text.lines().find_map(|line| line.strip_prefix("endpointd: "));
        let (_, commit) = line.and_then(|line| line.split_once(", ")).expect("version and commit");
        let scenario = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        (scenario, commit.to_owned())
    };
    results.map(commit).collect()
}

/// Commit and the word about its sources, by scenario, from the table.
fn documented() -> BTreeMap<String, (String, String)> {
    let text = fs::read_to_string(root().join("docs/bench/README.md")).expect("the document");
    let rows = text.lines().skip_while(|line| !line.starts_with("| files |")).skip(2);
    let mut by_scenario = BTreeMap::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [files, _, commit, sources] = cells[..] else { panic!("four cells in {row}") };
        for scenario in files.split(", ") {
            by_scenario.insert(scenario.to_owned(), (commit.to_owned(), sources.to_owned()));
        }
    }
    by_scenario
}

#[test]
fn results_of_older_sources_are_marked() {
    let (measured, documented) = (measured(), documented());
    let scenarios = |names: Vec<&String>| names.into_iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(scenarios(measured.keys().collect()), scenarios(documented.keys().collect()));
    for (scenario, commit) in measured {
        let (written, sources) = &documented[&scenario];
        assert_eq!(*written, commit, "the commit of {scenario}.txt");
        match are_sources_of(&commit) {
            Some(are_same) => {
                let want = if are_same { "current" } else { "older" };
                assert_eq!(sources, want, "the sources of {scenario}.txt, commit {commit}");
            }
            None if is_ci() => panic!("no commit {commit} of {scenario}.txt in this clone"),
            None => eprintln!("skipped: {scenario}.txt, because this clone has no commit {commit}"),
        }
    }
}
