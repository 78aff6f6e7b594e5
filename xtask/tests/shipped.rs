//! The image and the dist build contain neither the playground nor its API server.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates that only the playground needs.
const PLAYGROUND_ONLY: [&str; 3] = ["endpointd-apiserver", "endpointd-playground", "json-patch"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the root").to_owned()
}

/// One line per package that `endpointd` links: its name, version, and features.
fn linked(flags: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "endpointd", "--edges", "normal", "--prefix", "none"])
        .args(["--offline", "--format", "{p} {f}"])
        .args(flags)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

fn has(packages: &BTreeSet<String>, name: &str) -> bool {
    packages.iter().any(|line| line.split(' ').next() == Some(name))
}

#[test]
fn the_shipped_build_links_no_playground_and_no_api_server() {
    let (shipped, with_playground) = (linked(&["--no-default-features"]), linked(&[]));
    assert!(has(&shipped, "endpointd-runtime"), "not a dependency tree: {shipped:?}");
    for name in PLAYGROUND_ONLY {
        assert!(!has(&shipped, name), "the shipped build links `{name}`");
        assert!(has(&with_playground, name), "`{name}` is not part of the playground any more");
    }
}

/// `status` hands axum its connections itself; only the API server has axum listen.
#[test]
fn the_shipped_build_has_no_server_features_of_axum() {
    let shipped = linked(&["--no-default-features"]);
    let axum = shipped.iter().find(|line| line.starts_with("axum v")).expect("status needs axum");
    for feature in ["http1", "tokio"] {
        let is_on = axum.split([' ', ',']).any(|word| word == feature);
        assert!(!is_on, "the shipped build has axum's `{feature}`: {axum}");
    }
}

#[test]
fn image_and_dist_build_leave_the_default_features_out() {
    for file in ["deploy/Dockerfile", "xtask/src/dist.rs"] {
        let text = fs::read_to_string(root().join(file)).expect("the file exists");
        assert!(text.contains("--no-default-features"), "{file} builds the playground");
    }
}
