//! THIRD-PARTY-NOTICES: the licenses of everything that is linked into a shipped program, which MIT,
//! BSD, ISC, and Apache-2.0 ask to be given with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::dependencies::Dependency;

/// Names of files with license texts begin with one of these, in any case.
const NAMES: [&str; 6] = ["license", "licence", "copying", "notice", "copyright", "unlicense"];
/// Texts for crates whose archive has none, and for what is not a crate.
const APACHE: &str = include_str!("../../LICENSE");
const MIT: &str = include_str!("notices/mit.txt");
const MUSL: &str = include_str!("notices/musl.txt");
const RUST: &str = include_str!("notices/rust.txt");

const HEADER: &str = "\
endpointd is licensed under the Apache License, Version 2.0; see LICENSE.
The program contains the following software of others. Each text below applies to what is listed above it.
";
const LINE: &str =
    "--------------------------------------------------------------------------------";

/// One text for all crates; `is_static` adds the C library.
pub fn render(dependencies: &[Dependency], is_static: bool) -> Result<String> {
    // By text, so that a license that many crates share appears once.
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut add = |text: &str, title: String| {
        texts.entry(normalized(text)).or_default().insert(title);
    };
    for dependency in dependencies {
        for text in texts_of(dependency)? {
            add(&text, title(dependency));
        }
    }
    add(RUST, "The Rust standard library (MIT OR Apache-2.0)".to_owned());
    if is_static {
        add(MUSL, "musl, the C library (MIT)".to_owned());
    }
    let mut sections: Vec<(BTreeSet<String>, String)> =
        texts.into_iter().map(|(text, titles)| (titles, text)).collect();
    sections.sort();
    let mut all = HEADER.to_owned();
    for (titles, text) in sections {
        let titles: Vec<String> = titles.into_iter().collect();
        all.push_str(&format!("\n{LINE}\n{}\n{LINE}\n\n{text}\n", titles.join("\n")));
    }
    Ok(all)
}

fn title(Dependency { name, version, license, .. }: &Dependency) -> String {
    format!("{name} {version} ({license})")
}

/// Trailing spaces and line ends differ between copies of one license.
fn normalized(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

fn texts_of(dependency: &Dependency) -> Result<Vec<String>> {
    let mut files = license_files(&dependency.folder)?;
    // C code that a crate brings has its license one folder below.
    for entry in fs::read_dir(&dependency.folder).with_context(|| title(dependency))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(license_files(&path)?);
        }
    }
    if files.is_empty() {
        return Ok(vec![standard_text(dependency)?]);
    }
    files.sort();
    let read = |path: &PathBuf| {
        let bytes = fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    files.iter().map(read).collect()
}

fn license_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("no `{}`", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let is_code = [".rs", ".c", ".h", ".py"].iter().any(|ending| name.ends_with(ending));
        if path.is_file() && !is_code && NAMES.iter().any(|start| name.starts_with(start)) {
            found.push(path);
        }
    }
    Ok(found)
}

/// For a crate without a file: the license that its manifest names and that we may choose.
fn standard_text(dependency: &Dependency) -> Result<String> {
    let Dependency { license, authors, name, .. } = dependency;
    let choices: Vec<&str> =
        license.split(" OR ").map(|one| one.trim_matches(['(', ')'])).collect();
    if choices.contains(&"MIT") {
        let holders = match authors.is_empty() {
            true => format!("the authors of {name}"),
            false => authors.join(", "),
        };
        return Ok(MIT.replace("HOLDERS", &holders));
    }
    ensure!(
        choices.contains(&"Apache-2.0"),
        "{} brings no license text, and there is none for its license\nhint: add the text to \
         xtask/src/notices",
        title(dependency)
    );
    Ok(APACHE.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependency(folder: &Path, name: &str, license: &str) -> Dependency {
        Dependency {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.to_owned(),
            authors: vec!["A. Author".to_owned()],
            folder: folder.to_owned(),
            sha256: None,
        }
    }

    #[test]
    fn files_of_crates_are_collected_and_equal_ones_appear_once() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["one", "two"] {
            let folder = folder.path().join(name);
            fs::create_dir_all(folder.join("bundled")).unwrap();
            fs::write(folder.join("LICENSE-X"), "Shared text  \n").unwrap();
            fs::write(folder.join("bundled/COPYING"), format!("Text of {name}")).unwrap();
            fs::write(folder.join("license.rs"), "fn main() {}").unwrap();
        }
        let all = ["one", "two"].map(|name| dependency(&folder.path().join(name), name, "X"));
        let text = render(&all, false).unwrap();
        assert_eq!(text.matches("Shared text\n").count(), 1, "{text}");
        assert!(text.contains("one 1.0.0 (X)\ntwo 1.0.0 (X)\n"), "{text}");
        assert!(text.contains("Text of one") && text.contains("Text of two"), "{text}");
        assert!(!text.contains("fn main"), "{text}");
        assert!(text.contains("The Rust standard library") && !text.contains("musl"), "{text}");
    }

    #[test]
    fn crates_without_a_file_get_the_text_of_a_license_they_name() {
        let folder = tempfile::tempdir().unwrap();
        let text_for = |license| render(&[dependency(folder.path(), "bare", license)], true);
        let text = text_for("Apache-2.0 OR MIT").unwrap();
        assert!(text.contains("Copyright (c) A. Author"), "{text}");
        assert!(text.contains("Rich Felker"), "{text}");
        assert!(text_for("Apache-2.0").unwrap().contains("Version 2.0, January 2004"));
        let error = text_for("BSD-3-Clause").unwrap_err().to_string();
        assert!(error.contains("bare 1.0.0 (BSD-3-Clause) brings no license text"), "{error}");
    }
}
