//! `cargo xtask docs`: the documents as a site with search, made by mdBook.
//!
//! mdBook takes pages from one folder, but README and others are in the root, and documents link to
//! code. So all pages, and the files that they link to, are copied below `target` at their own paths.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{cargo, dist};

const MDBOOK_VERSION: &str = "0.5.4";
/// The table of contents, with links relative to `docs`.
const SUMMARY: &str = "docs/SUMMARY.md";
/// As `src` in `book.toml`.
const SOURCE: &str = "target/book-source";
const SITE: &str = "target/book";

pub fn run() -> Result<()> {
    let root = dist::root();
    let mdbook = find_or_install()?;
    copy_pages(&root, &root.join(SOURCE))?;
    let mut mdbook = Command::new(mdbook);
    let status = mdbook.arg("build").current_dir(&root).status().context("cannot start mdbook")?;
    ensure!(status.success(), "mdbook failed: {status}");
    println!("{}", root.join(SITE).join("index.html").display());
    Ok(())
}

/// Compiled from crates.io once, into the target directory.
fn find_or_install() -> Result<PathBuf> {
    let folder = dist::target_directory().join("tools").join(format!("mdbook-{MDBOOK_VERSION}"));
    let program = folder.join("bin/mdbook");
    if program.is_file() {
        return Ok(program);
    }
    eprintln!("building mdbook {MDBOOK_VERSION}: once, some minutes");
    let mut install = cargo::command();
    install.args(["install", "--locked", "--quiet", "--version", MDBOOK_VERSION, "mdbook"]);
    let status = install.arg("--root").arg(&folder).status().context("cannot start cargo")?;
    ensure!(status.success(), "mdbook cannot be installed\nhint: crates.io must be reachable once");
    Ok(program)
}

/// Copies the pages of the table of contents and everything that they link to.
fn copy_pages(root: &Path, target: &Path) -> Result<()> {
    if target.exists() {
        fs::remove_dir_all(target).with_context(|| cannot("empty", target))?;
    }
    let summary = read(&root.join(SUMMARY))?;
    let mut waiting: Vec<PathBuf> = linked(Path::new("docs"), &summary).collect();
    let mut copied = BTreeSet::new();
    while let Some(path) = waiting.pop() {
        if !root.join(&path).is_file() || !copied.insert(path.clone()) {
            continue;
        }
        let to = target.join(&path);
        let folder = to.parent().expect("a path below the target");
        fs::create_dir_all(folder).with_context(|| cannot("create", folder))?;
        fs::copy(root.join(&path), &to).with_context(|| cannot("write", &to))?;
        if path.extension().is_some_and(|extension| extension == "md") {
            let text = read(&root.join(&path))?;
            waiting.extend(linked(path.parent().unwrap_or(Path::new("")), &text));
        }
    }
    let listed: BTreeSet<PathBuf> = linked(Path::new("docs"), &summary).collect();
    let mut summary = summary.replace("](", "](docs/").replace("](docs/../", "](");
    summary.push_str("\n# Other pages\n\n");
    let is_page = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "md");
    for path in copied.difference(&listed).filter(is_page) {
        let title = title(&target.join(path))?;
        summary.push_str(&format!("- [{title}]({})\n", path.display()));
    }
    fs::write(target.join("SUMMARY.md"), summary).with_context(|| cannot("write", target))
}

/// The first heading of a page.
fn title(page: &Path) -> Result<String> {
    let text = read(page)?;
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    heading.map(str::to_owned).with_context(|| format!("`{}` has no heading", page.display()))
}

/// The files that a page in this folder links to, relative to the root.
fn linked<'a>(folder: &'a Path, text: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
    text.split("](").skip(1).filter_map(move |rest| {
        let file = rest.split([')', '#']).next()?;
        (!file.is_empty() && !file.contains("://")).then(|| normalized(&folder.join(file)))
    })
}

/// Without `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(result.pop()),
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => {
                result.push(component);
            }
        }
    }
    result
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| cannot("read", path))
}

fn cannot(what: &str, path: &Path) -> String {
    format!("cannot {what} `{}`", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_what_they_link_to_are_copied() {
        let folder = tempfile::tempdir().unwrap();
        let (root, target) = (folder.path().join("root"), folder.path().join("target"));
        for (path, text) in [
            ("docs/SUMMARY.md", "- [One](spec.md)\n- [Read me](../README.md)\n"),
            (
                "docs/spec.md",
                "[code](../crates/plan/src/lib.rs) [part](#part) [other](explain.md) [site](https://example.com/b)",
            ),
            ("docs/glossary.md", "linked by nobody"),
            ("docs/explain.md", "# Part\n"),
            ("README.md", "![image](docs/images/a.png)"),
            ("crates/plan/src/lib.rs", "fn"),
            ("docs/images/a.png", "png"),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        copy_pages(&root, &target).unwrap();
        for path in ["docs/spec.md", "README.md", "crates/plan/src/lib.rs", "docs/images/a.png"] {
            assert!(target.join(path).is_file(), "{path}");
        }
        assert!(!target.join("docs/glossary.md").exists());
        let summary = fs::read_to_string(target.join("SUMMARY.md")).unwrap();
        let other = "\n# Other pages\n\n- [Part](docs/explain.md)\n";
        let listed = "- [One](docs/spec.md)\n- [Read me](README.md)\n";
        assert_eq!(summary, format!("{listed}{other}"));
    }

    #[test]
    fn the_table_of_contents_lists_pages_that_exist() {
        let root = dist::root();
        let summary = fs::read_to_string(root.join(SUMMARY)).unwrap();
        let listed: Vec<PathBuf> = linked(Path::new("docs"), &summary).collect();
        assert!(listed.len() > 10, "{listed:?}");
        for page in listed {
            assert!(root.join(&page).is_file(), "{SUMMARY} lists `{}`", page.display());
        }
    }
}
