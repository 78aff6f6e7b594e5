//! The library crates can be published: their archives build outside of the workspace, with nothing but
//! each other and crates.io.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use flate2::read::GzDecoder;
use serde_json::Value;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// In the order in which they would be published.
const PUBLISHED: [&str; 5] =
    ["endpointd-rng", "endpointd-model", "endpointd-plan", "endpointd-wire", "endpointd-engine"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the root")
}

fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root());
    cargo
}

/// `cargo package` would verify the archives itself, but it keeps what it unpacked of a version: after
/// a change it would compile the archive of an earlier run.
#[test]
fn libraries_build_from_their_archives() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut package = cargo();
    package.args(["package", "--quiet", "--allow-dirty", "--no-verify", "--target-dir"]);
    package.arg(folder.path().join("target"));
    for name in PUBLISHED {
        package.args(["--package", name]);
    }
    succeed(&mut package);
    for name in PUBLISHED {
        let archive = folder.path().join(format!("target/package/{name}-{VERSION}.crate"));
        let archive = File::open(archive).expect("it was packed");
        let unpacked = tar::Archive::new(GzDecoder::new(archive)).unpack(folder.path());
        unpacked.expect("an archive");
    }
    let members = PUBLISHED.map(|name| format!("\"{name}-{VERSION}\"")).join(", ");
    let patches =
        PUBLISHED.map(|name| format!("{name} = {{ path = \"{name}-{VERSION}\" }}\n")).concat();
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{members}]\n[patch.crates-io]\n{patches}"
    );
    fs::write(folder.path().join("Cargo.toml"), manifest).expect("the directory is ours");
    let lock = folder.path().join("Cargo.lock");
    fs::copy(root().join("Cargo.lock"), lock).expect("the directory is ours");
    let mut check = cargo();
    check.args(["check", "--quiet", "--offline", "--target-dir"]);
    // Kept between runs, because it has the crates of others.
    check.arg(root().join("target/packages")).current_dir(folder.path());
    succeed(&mut check);
}

fn succeed(command: &mut Command) {
    let output = command.output().expect("cargo runs");
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
