//! The library crates can be published: their archives build outside of the workspace, with nothing but
//! each other and crates.io.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// In the order in which they would be published.
const PUBLISHED: [&str; 5] =
    ["endpointd-rng", "endpointd-model", "endpointd-plan", "endpointd-wire", "endpointd-engine"];

fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the root"));
    cargo
}

#[test]
fn libraries_build_from_their_archives() {
    let mut package = cargo();
    package.args(["package", "--quiet", "--allow-dirty"]);
    for name in PUBLISHED {
        package.args(["--package", name]);
    }
    let output = package.output().expect("cargo runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
}

#[test]
fn only_the_libraries_can_be_published_and_they_say_what_they_are() {
    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("a list");
    // An empty list forbids it.
    let is_public =
        |package: &&Value| package["publish"].as_array().is_none_or(|all| !all.is_empty());
    let public: Vec<&Value> = packages.iter().filter(is_public).collect();
    let names: BTreeSet<&str> = public.iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, PUBLISHED.into());
    for package in public {
        for field in ["description", "license", "readme", "rust_version"] {
            assert!(package[field].is_string(), "{} has no {field}", package["name"]);
        }
        for list in ["keywords", "categories"] {
            let is_filled = package[list].as_array().is_some_and(|list| !list.is_empty());
            assert!(is_filled, "{} has no {list}", package["name"]);
        }
    }
}
