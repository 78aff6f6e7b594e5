//! The crates that a shipped program links, with what is known of their licenses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cargo;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    pub name: String,
    pub version: String,
    /// An SPDX expression.
    pub license: String,
    pub authors: Vec<String>,
    /// With its sources.
    pub folder: PathBuf,
    /// Of the archive in the registry; none for crates of this workspace.
    pub sha256: Option<String>,
}

/// Sorted by name and version, without the crates of this workspace. Procedural macros and build
/// scripts run while endpointd is compiled and are not part of it.
pub fn linked(root: &Path, target: &str) -> Result<Vec<Dependency>> {
    let names = linked_names(root, target)?;
    let metadata = ["metadata", "--format-version=1", "--filter-platform", target];
    let metadata = cargo_output(root, &metadata)?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata is not JSON")?;
    let checksums = checksums(root)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let mut all: Vec<Dependency> = packages
        .iter()
        .filter(|package| !package["source"].is_null())
        .map(|package| dependency(package, &checksums))
        .filter(|one| names.contains(&(one.name.clone(), one.version.clone())))
        .collect();
    all.sort();
    Ok(all)
}

fn dependency(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Dependency {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let (name, version) = (text("name"), text("version"));
    let manifest = PathBuf::from(text("manifest_path"));
    let authors = package["authors"].as_array().into_iter().flatten();
    Dependency {
        sha256: checksums.get(&(name.clone(), version.clone())).cloned(),
        name,
        version,
        // The old form of `OR`.
        license: text("license").replace(" / ", " OR ").replace('/', " OR "),
        authors: authors.filter_map(|one| one.as_str()).map(str::to_owned).collect(),
        folder: manifest.parent().unwrap_or(Path::new("")).to_owned(),
    }
}

/// Name and version of each crate.
fn linked_names(root: &Path, target: &str) -> Result<BTreeSet<(String, String)>> {
    let tree = cargo_output(
        root,
        &[
            "tree",
            "--package=endpointd",
            "--no-default-features",
            "--edges=normal,no-proc-macro",
            "--prefix=none",
            "--format={p}",
            "--target",
            target,
        ],
    )?;
    let names: BTreeSet<(String, String)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let name = words.next()?;
            let version = words.next()?.strip_prefix('v')?;
            Some((name.to_owned(), version.to_owned()))
        })
        .collect();
    ensure!(names.len() > 1, "`cargo tree` names no crates of endpointd for {target}");
    Ok(names)
}

fn checksums(root: &Path) -> Result<BTreeMap<(String, String), String>> {
    let lock =
        std::fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let field = |package: &str, key: &str| {
        let start = format!("{key} = \"");
        let line = package.lines().find_map(|line| line.strip_prefix(&start))?;
        line.strip_suffix('"').map(str::to_owned)
    };
    let packages = lock.split("[[package]]");
    let known = packages.filter_map(|package| {
        let id = (field(package, "name")?, field(package, "version")?);
        Some((id, field(package, "checksum")?))
    });
    Ok(known.collect())
}

fn cargo_output(root: &Path, args: &[&str]) -> Result<String> {
    let output = cargo::command().args(args).arg("--locked").current_dir(root).output();
    let output = output.context("cannot start cargo")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo {} failed: {error}", args.join(" "));
    String::from_utf8(output.stdout).context("cargo prints no UTF-8")
}
