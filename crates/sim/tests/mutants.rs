//! Every mutant applies to the code as it is, says what goes wrong, and has a row in the table.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use endpointd_sim::ClientBug;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn patches() -> Vec<PathBuf> {
    let folder = root().join("crates/sim/mutants");
    let entries = fs::read_dir(folder).expect("the folder of the patches is readable");
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    all.sort();
    all
}

fn sentence_of(patch: &Path) -> String {
    let text = fs::read_to_string(patch).expect("a patch is readable");
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn every_patch_applies() {
    for patch in patches() {
        let mut git = Command::new("git");
        git.args(["apply", "--check"]).arg(&patch).current_dir(root());
        let output = git.output().expect("git can be started");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {error}", patch.display());
    }
}

#[test]
fn every_patch_starts_with_a_sentence() {
    for patch in patches() {
        let sentence = sentence_of(&patch);
        let is_sentence =
            sentence.starts_with(|first: char| first.is_alphanumeric()) && sentence.ends_with('.');
        assert!(is_sentence, "{}: {sentence:?}", patch.display());
    }
}

#[test]
fn the_table_of_the_page_lists_every_mutant_as_detected() {
    let mut expected: BTreeMap<String, String> = BTreeMap::new();
    for patch in patches() {
        let stem = patch.file_stem().expect("a file has a name");
        expected.insert(stem.to_string_lossy().into_owned(), sentence_of(&patch));
    }
    for bug in ClientBug::ALL {
        expected.insert(bug.name().to_owned(), bug.description().to_owned());
    }
    let page = fs::read_to_string(root().join("docs/simulation.md")).expect("a readable page");
    let (_, table) = page.split_once("| mutant |").expect("the page has the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with("| "));
    let mut listed = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let name = row.split('`').nth(1).expect("a row names its mutant").to_owned();
        assert!(!row.contains("not detected"), "{row}");
        listed.insert(name, cells[1].to_owned());
    }
    assert_eq!(listed, expected, "`cargo xtask mutants --write-table` writes the table");
}
