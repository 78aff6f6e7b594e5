//! The rules of `deny.toml` for licenses, duplicate and banned crates, and sources, checked without
//! network against `cargo metadata`. `cargo deny check` applies the same file and also checks
//! advisories, whose database is a repository on GitHub.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the root").to_owned()
}

/// The texts of a list in `deny.toml`.
fn list(key: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("deny.toml")).expect("the file exists");
    let (_, rest) = text.split_once(&format!("\n{key} = [")).expect("deny.toml has the list");
    let (body, _) = rest.split_once(']').expect("the list ends");
    let lines = body.lines().filter(|line| !line.trim_start().starts_with('#'));
    let texts = lines.flat_map(|line| line.split('"').skip(1).step_by(2));
    texts.map(str::to_owned).collect()
}

/// One crate of the dependency graph.
struct Package {
    name: String,
    version: String,
    license: String,
    /// None for the crates of the workspace.
    source: Option<String>,
}

/// All crates that are built for a target, also for tests.
fn packages(target: &str) -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--locked", "--all-features", "--format-version", "1"])
        .args(["--filter-platform", target])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let nodes = metadata["resolve"]["nodes"].as_array().expect("a graph");
    let used: BTreeSet<&str> = nodes.iter().filter_map(|node| node["id"].as_str()).collect();
    let all = metadata["packages"].as_array().expect("a list of packages");
    let is_used = |one: &&Value| one["id"].as_str().is_some_and(|id| used.contains(id));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.iter()
        .filter(is_used)
        .map(|one| Package {
            name: text(&one["name"]),
            version: text(&one["version"]),
            license: text(&one["license"]),
            source: one["source"].as_str().map(str::to_owned),
        })
        .collect()
}

/// Of all released targets.
fn all_packages() -> Vec<Package> {
    let targets = list("targets");
    assert!(targets.len() > 1, "deny.toml names the targets of the image");
    targets.iter().flat_map(|target| packages(target)).collect()
}

/// Whether the licenses of an SPDX expression may be combined so that all are allowed. `/` is the
/// old form of `OR`.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest, allowed) && rest.is_empty()
}

fn any_of(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut is_allowed = all_of(rest, allowed);
    while let Some((word, after)) = rest.split_first()
        && word.eq_ignore_ascii_case("or")
    {
        *rest = after;
        is_allowed |= all_of(rest, allowed);
    }
    is_allowed
}

fn all_of(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut is_allowed = one(rest, allowed);
    while let Some((word, after)) = rest.split_first()
        && word.eq_ignore_ascii_case("and")
    {
        *rest = after;
        is_allowed &= one(rest, allowed);
    }
    is_allowed
}

fn one(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let Some((word, after)) = rest.split_first() else { return false };
    *rest = after;
    if *word == "(" {
        let is_allowed = any_of(rest, allowed);
        let is_closed = rest.split_off_first().is_some_and(|word| *word == ")");
        return is_allowed && is_closed;
    }
    if let ["WITH", exception, after @ ..] = *rest {
        *rest = after;
        return allowed.contains(&format!("{word} WITH {exception}"));
    }
    allowed.contains(*word)
}

#[test]
fn license_expressions_are_evaluated() {
    let allowed = ["MIT", "Apache-2.0"].map(str::to_owned).into();
    for (expression, want) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("MIT/GPL-3.0", true),
        ("GPL-3.0 OR MIT", true),
        ("MIT AND GPL-3.0", false),
        ("(MIT OR GPL-3.0) AND Apache-2.0", true),
        ("(MIT OR GPL-3.0) AND GPL-2.0", false),
        ("MIT OR GPL-2.0 AND GPL-3.0", true),
        ("GPL-3.0 WITH Classpath-exception-2.0 OR MIT", true),
        ("Apache-2.0 WITH LLVM-exception", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), want, "{expression}");
    }
}

#[test]
fn every_license_is_allowed() {
    let allowed = list("allow");
    for Package { name, version, license, .. } in all_packages() {
        assert!(
            is_allowed(&license, &allowed),
            "{name} {version} has the license `{license}`, which deny.toml does not allow"
        );
    }
}

#[test]
fn no_license_is_allowed_in_vain() {
    let packages = all_packages();
    let is_named = |license: &String| packages.iter().any(|one| one.license.contains(license));
    let unused: Vec<String> = list("allow").into_iter().filter(|one| !is_named(one)).collect();
    assert!(unused.is_empty(), "deny.toml allows licenses that no crate has: {unused:?}");
}

#[test]
fn crates_have_one_version_each_but_for_the_listed_ones() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for Package { name, version, .. } in all_packages() {
        versions.entry(name).or_default().insert(version);
    }
    let skipped = list("skip");
    let mut is_needed = BTreeSet::new();
    for (name, versions) in versions {
        let listed: Vec<String> = versions.iter().map(|one| format!("{name}@{one}")).collect();
        let (known, others): (Vec<String>, Vec<String>) =
            listed.into_iter().partition(|one| skipped.contains(one));
        assert!(others.len() < 2, "deny.toml does not list these duplicates: {others:?}");
        is_needed.extend(known.into_iter().filter(|_| versions.len() > 1));
    }
    let gone: Vec<&String> = skipped.difference(&is_needed).collect();
    assert!(gone.is_empty(), "deny.toml lists versions that are no duplicates any more: {gone:?}");
}

#[test]
fn no_banned_crate_is_used() {
    let banned = list("deny");
    assert!(banned.contains("openssl"), "{banned:?}");
    for Package { name, version, .. } in all_packages() {
        assert!(!banned.contains(&name), "deny.toml bans {name} {version}");
    }
}

#[test]
fn crates_come_from_the_allowed_registries() {
    let registries: BTreeSet<String> =
        list("allow-registry").iter().map(|url| format!("registry+{url}")).collect();
    let packages = all_packages();
    assert!(packages.iter().any(|one| one.source.is_some()), "the graph has crates of others");
    for Package { name, version, source, .. } in packages {
        let is_allowed = source.as_ref().is_none_or(|source| registries.contains(source));
        assert!(is_allowed, "{name} {version} comes from {source:?}");
    }
}
