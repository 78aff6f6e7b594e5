//! Rules of the architecture that no compiler checks: who may use whom, and what pure crates may
//! not reach.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What each crate may use, of ours and of others. A new arrow is a decision: say why in
/// `docs/decisions/`, then add it here.
const LANES: &[(&str, &[&str])] = &[
    ("endpointd-model", &["jiff", "thiserror"]),
    ("endpointd-rng", &[]),
    ("endpointd-memory-api", &["endpointd-model"]),
    ("endpointd-mutants", &[]),
    ("endpointd-plan", &["endpointd-model"]),
    (
        "endpointd-engine",
        &["endpointd-model", "endpointd-plan", "endpointd-rng", "hashbrown", "slab"],
    ),
    (
        "endpointd-sim",
        &[
            "endpointd-engine",
            "endpointd-memory-api",
            "endpointd-model",
            "endpointd-rng",
            "clap",
            "indicatif",
        ],
    ),
    (
        "endpointd-wire",
        &["endpointd-model", "prost", "serde", "serde_json", "serde_path_to_error", "thiserror"],
    ),
    (
        "endpointd-status",
        &[
            "endpointd-engine",
            "endpointd-model",
            "endpointd-plan",
            "axum",
            "hyper",
            "hyper-util",
            "prometheus",
            "serde_json",
            "tokio",
        ],
    ),
    (
        "endpointd-client",
        &[
            "endpointd-model",
            "endpointd-wire",
            "fastrand",
            "http",
            "http-body-util",
            "hyper",
            "hyper-util",
            "k8s-openapi",
            "kube",
            "percent-encoding",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tower",
            "tracing",
        ],
    ),
    (
        "endpointd-apiserver",
        &[
            "axum",
            "base64",
            "bytes",
            "form_urlencoded",
            "futures-util",
            "getrandom",
            "jiff",
            "json-patch",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
        ],
    ),
    (
        "endpointd-runtime",
        &[
            "endpointd-client",
            "endpointd-engine",
            "endpointd-model",
            "endpointd-status",
            "thiserror",
            "tokio",
            "tracing",
        ],
    ),
    (
        "endpointd-playground",
        &[
            "endpointd-apiserver",
            "endpointd-client",
            "endpointd-engine",
            "endpointd-rng",
            "endpointd-runtime",
            "endpointd-status",
            "crossterm",
            "jiff",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
        ],
    ),
    (
        "endpointd",
        &[
            "endpointd-client",
            "endpointd-engine",
            "endpointd-model",
            "endpointd-plan",
            "endpointd-playground",
            "endpointd-runtime",
            "endpointd-wire",
            "clap",
            "comfy-table",
            "saphyr-parser",
            "serde",
            "serde_json",
            "thiserror",
            "tikv-jemallocator",
            "tokio",
            "tracing",
            "tracing-subscriber",
        ],
    ),
    (
        "endpointd-bench",
        &[
            "endpointd-client",
            "endpointd-control-plane",
            "endpointd-engine",
            "endpointd-scenarios",
            "endpointd-model",
            "endpointd-wire",
            "anyhow",
            "clap",
            "comfy-table",
            "http",
            "http-body-util",
            "indicatif",
            "kube",
            "prost",
            "serde_json",
            "tikv-jemallocator",
            "tokio",
        ],
    ),
];

/// What code that must be pure may not name, and why.
const IMPURE: &[(&str, &str)] = &[
    ("tokio", "nothing below the runtime waits for anything"),
    ("std::time", "time is an argument"),
    ("Timestamp::now", "time is an argument"),
    ("Instant", "time is an argument"),
    ("SystemTime", "time is an argument"),
    ("std::env", "settings are arguments"),
    ("env!", "settings are arguments"),
    ("std::fs", "plans do no I/O"),
    ("std::net::Tcp", "plans do no I/O"),
    ("std::thread", "the caller decides what runs at once"),
    ("println!", "a decision is a value; printing is the caller's"),
    ("HashMap", "its order is random, and order shows in plans"),
    ("HashSet", "its order is random, and order shows in plans"),
    ("rand::", "chance is an argument"),
];

/// Crates whose code must be pure.
const PURE: &[&str] = &["crates/plan", "crates/model"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root").to_owned()
}

/// Normal dependencies by package, of the packages in this workspace.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let name = |value: &Value| value["name"].as_str().expect("packages have names").to_owned();
    packages
        .iter()
        .map(|package| {
            let all = package["dependencies"].as_array().expect("a list of dependencies");
            let normal = all.iter().filter(|one| one["kind"].is_null());
            (name(package), normal.map(name).collect())
        })
        .collect()
}

#[test]
fn crates_keep_to_their_lane() {
    let dependencies = dependencies();
    for (package, allowed) in LANES {
        let allowed: BTreeSet<String> = allowed.iter().map(|one| (*one).to_owned()).collect();
        let used = dependencies.get(*package).expect("the lanes name real packages");
        let beyond: Vec<&String> = used.difference(&allowed).collect();
        assert!(
            beyond.is_empty(),
            "`{package}` may not use {beyond:?}: see LANES in xtask/tests/architecture.rs"
        );
    }
}

#[test]
fn every_product_crate_has_a_lane() {
    let lanes: BTreeSet<&str> = LANES.iter().map(|(package, _)| *package).collect();
    let crates = fs::read_dir(root().join("crates")).expect("crates/ is there");
    for folder in crates {
        let manifest = folder.expect("readable").path().join("Cargo.toml");
        let text = fs::read_to_string(&manifest).expect("every crate has a manifest");
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")).expect("a name");
        let name = name.trim_end_matches('"');
        assert!(lanes.contains(name), "`{name}` has no lane: add it to LANES");
        assert!(text.contains("[lints]\nworkspace = true"), "`{name}` does not take our lints");
    }
}

#[test]
fn pure_crates_reach_neither_clock_nor_chance_nor_the_world() {
    for source in PURE.iter().flat_map(|folder| sources(&root().join(folder).join("src"))) {
        let text = fs::read_to_string(&source).expect("readable source");
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            for (word, why) in IMPURE {
                assert!(
                    !code.contains(word),
                    "{}:{}: `{word}` has no place in pure code: {why}",
                    source.display(),
                    number + 1
                );
            }
        }
    }
}

/// The tables of `docs/parity.md` name a function and tests for each rule, and files.
#[test]
fn what_the_parity_page_names_exists() {
    let page = fs::read_to_string(root().join("docs/parity.md")).expect("the page is there");
    let code: String = ["crates", "e2e"]
        .iter()
        .flat_map(|folder| sources(&root().join(folder)))
        .map(|source| fs::read_to_string(source).expect("readable source"))
        .collect();
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let mut n_names = 0;
    for name in rows.flat_map(|row| row.split('`').skip(1).step_by(2)) {
        n_names += 1;
        if name.ends_with(".rs") {
            assert!(root().join(name).is_file(), "docs/parity.md names `{name}`, which is nowhere");
            continue;
        }
        let last = name.rsplit("::").next().expect("a split gives one part at least");
        let is_there = [format!("fn {last}("), format!("fn {last}<"), format!("struct {last}")]
            .iter()
            .any(|form| code.contains(form));
        // Words of Kubernetes are not ours to define.
        let is_foreign = last == "Ready";
        assert!(is_there || is_foreign, "docs/parity.md names `{name}`, which is nowhere");
    }
    assert!(n_names > 100, "only {n_names} names found");
}

#[test]
fn files_stay_small_and_say_what_they_are_for() {
    const LINES_MAX: usize = 500;
    let folders = ["crates", "e2e", "xtask"].map(|folder| root().join(folder));
    for source in folders.iter().flat_map(|folder| sources(folder)) {
        let text = fs::read_to_string(&source).expect("readable source");
        let place = source.display();
        assert!(text.starts_with("//!"), "{place}: no header says what this file is for");
        let n_lines = text.lines().count();
        assert!(n_lines <= LINES_MAX, "{place}: {n_lines} lines; split it");
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no sources below {}", folder.display());
    found
}
