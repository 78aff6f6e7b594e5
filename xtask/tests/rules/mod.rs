//! Rules about the text of the repository: what pure code must not use, references, sizes, wording.

mod file_size;
mod purity;
mod references;
mod wording;

use std::fs;
use std::path::{Path, PathBuf};

/// The folders with code and documents, below the root.
const FOLDERS: &[&str] =
    &["charts", "crates", "deploy", "docs", "e2e", "examples", "xtask", ".ci", ".cargo"];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is below the root").to_owned()
}

/// A file of the repository.
pub struct Source {
    /// Relative to the root, with `/`.
    pub path: String,
    pub text: String,
}

/// All files with these endings, sorted by path.
pub fn files(endings: &[&str]) -> Vec<Source> {
    let root = root();
    let mut paths: Vec<PathBuf> =
        entries(&root).into_iter().filter(|path| path.is_file()).collect();
    let mut waiting: Vec<PathBuf> = FOLDERS.iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = waiting.pop() {
        for path in entries(&folder) {
            let is_build = path.file_name().is_some_and(|name| name == "target");
            match path.is_dir() {
                true if !is_build => waiting.push(path),
                true => {}
                false => paths.push(path),
            }
        }
    }
    paths.sort();
    let has_ending = |path: &&PathBuf| {
        let name = path.to_string_lossy();
        endings.iter().any(|ending| name.ends_with(ending))
    };
    let source = |path: &PathBuf| Source {
        path: path.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned(),
        text: fs::read_to_string(path).expect("sources are text"),
    };
    paths.iter().filter(has_ending).map(source).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder exists");
    entries.map(|entry| entry.expect("a readable folder").path()).collect()
}

/// A source without its unit tests, which are last in a file.
pub fn without_tests(text: &str) -> &str {
    text.split_once("\n#[cfg(test)]\nmod tests {").map_or(text, |(code, _)| code)
}

/// Fails with all violations at once.
pub fn assert_none(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}
