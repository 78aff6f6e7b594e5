//! References in code and documents lead somewhere: files, sections of the specification, ids of
//! deliberate differences.

use std::collections::BTreeSet;

use super::{Source, assert_none, files, root};

const TEXTS: &[&str] = &[".md", ".rs", ".toml", ".yaml"];

fn spec() -> String {
    std::fs::read_to_string(root().join("docs/spec.md")).expect("the specification exists")
}

/// Targets of Markdown links, without URLs and anchors.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split(')').next()?.split('#').next()?;
        let is_file = !target.is_empty() && !target.contains("://") && !target.contains(' ');
        is_file.then_some(target)
    })
}

#[test]
fn links_in_documents_lead_to_files() {
    let mut violations = Vec::new();
    for Source { path, text } in files(&[".md"]) {
        let folder = root().join(&path).parent().expect("a file has a folder").to_owned();
        for (number, line) in (1..).zip(text.lines()) {
            for target in links(line).filter(|target| !folder.join(target).exists()) {
                violations.push(format!("{path}:{number}: `{target}` does not exist"));
            }
        }
    }
    assert_none(&violations);
}

/// Paths with a folder in a line: `crates/plan/src/slices.rs`, `docs/spec.md`.
fn mentioned_files(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    line.split(move |c| !is_part(c)).map(|word| word.trim_matches('.')).filter(|word| {
        let is_file = [".rs", ".md"].iter().any(|ending| word.ends_with(ending));
        is_file && word.contains('/') && !word.starts_with('/')
    })
}

#[test]
fn mentioned_files_exist() {
    let all: Vec<String> = files(&[".rs", ".md"]).into_iter().map(|source| source.path).collect();
    // `cache/pods.rs` and `engine/cache.rs` are readable short forms of paths below `src`.
    let exists = |mentioned: &str| {
        let mentioned = mentioned.trim_start_matches("../");
        all.iter().any(|path| {
            let short = path.replace("/src/", "/");
            [path, &short].iter().any(|path| {
                path.strip_suffix(mentioned)
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
            })
        })
    };
    let mut violations = Vec::new();
    for Source { path, text } in files(TEXTS) {
        // This file and the list of wording have examples of their own.
        if path.starts_with("xtask/tests/rules/") {
            continue;
        }
        for (number, line) in (1..).zip(text.lines().filter(|line| !line.contains("://"))) {
            for mentioned in mentioned_files(line).filter(|mentioned| !exists(mentioned)) {
                violations.push(format!("{path}:{number}: `{mentioned}` does not exist"));
            }
        }
    }
    assert_none(&violations);
}

/// Ids of deliberate differences in a text: `B` and a number.
fn ids(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_id = |word: &&str| {
        let digits = word.strip_prefix('B').unwrap_or_default();
        !digits.is_empty() && digits.len() <= 2 && digits.chars().all(|c| c.is_ascii_digit())
    };
    words.filter(is_id).collect()
}

#[test]
fn cited_differences_are_specified() {
    let spec = spec();
    let is_specified = |id: &str| spec.contains(&format!("- **{id} "));
    let mut violations = Vec::new();
    for Source { path, text } in files(&[".md", ".rs"]) {
        let unknown = ids(&text).into_iter().filter(|id| !is_specified(id));
        violations.extend(unknown.map(|id| format!("{path}: {id} is not in docs/spec.md")));
    }
    assert_none(&violations);
}

/// Numbers after "section" in a text: `4`, `4.10`.
fn sections(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let numbers = lower.split("section ").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].trim_matches('.').to_owned()
    });
    numbers.filter(|number| !number.is_empty()).collect()
}

#[test]
fn cited_sections_are_in_the_specification() {
    let spec = spec();
    let is_specified = |number: &str| match number.contains('.') {
        true => spec.contains(&format!("\n**{number} ")),
        false => spec.contains(&format!("\n## {number} ")),
    };
    let mut violations = Vec::new();
    for Source { path, text } in files(&[".md", ".rs"]) {
        let unknown = sections(&text).into_iter().filter(|number| !is_specified(number));
        violations
            .extend(unknown.map(|number| format!("{path}: no section {number} in docs/spec.md")));
    }
    assert_none(&violations);
}

#[test]
fn references_are_found_in_text() {
    assert_eq!(links("[a](b.md#c) and [d](https://e.f)").collect::<Vec<_>>(), ["b.md"]);
    let files: Vec<&str> = mentioned_files("see `a/b.rs`, c.rs and a/b.go.").collect();
    assert_eq!(files, ["a/b.rs"]);
    assert_eq!(ids("(B12) Base64 B1: UTF8"), BTreeSet::from(["B1", "B12"]));
    let numbers = sections("Section 4.10. See section 3, a section of it");
    assert_eq!(numbers, BTreeSet::from(["3".to_owned(), "4.10".to_owned()]));
}
