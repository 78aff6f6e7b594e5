//! Files of Debian packages: the C library and what the compiler needs at run time, for a program that
//! is linked against those of this machine.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::archive::Archive;

/// The packages that have every library of the program, and the copyright of `libgcc-s1`.
const PACKAGES: [&str; 3] = ["libc6", "libgcc-s1", "gcc-12-base"];
const HINT: &str = "hint: this flavour needs Debian 12 with a program that was linked there";

/// A package whose files are in an image.
#[derive(Clone, Debug)]
pub struct DebianPackage {
    pub name: String,
    pub version: String,
    pub architecture: String,
    /// What `dpkg` knows of it; scanners of images read it.
    pub control: String,
}

/// Adds the shared libraries of the program, their copyrights, and the records of their packages.
pub fn add_libraries(archive: Archive, program: &Path) -> Result<(Archive, Vec<DebianPackage>)> {
    let needed = needed_libraries(program)?;
    let folder = tempfile::tempdir().context("no temporary directory")?;
    let mut archive = archive;
    let mut packages = Vec::new();
    let mut libraries = BTreeMap::new();
    for name in PACKAGES {
        let file = download(name, folder.path())?;
        let package = describe(&file)?;
        for (path, entry) in files(&file)? {
            let base = path.rsplit('/').next().unwrap_or_default();
            if needed.iter().any(|library| library == base) {
                libraries.insert(path, entry);
            } else if path.ends_with("/copyright") {
                archive = entry.add(archive, &path);
            }
        }
        let record = format!("var/lib/dpkg/status.d/{name}");
        archive = archive.text(&record, &package.control);
        packages.push(package);
    }
    for library in &needed {
        let is_there = libraries.keys().any(|path| path.ends_with(&format!("/{library}")));
        ensure!(is_there, "no package of {PACKAGES:?} has `{library}`\n{HINT}");
    }
    archive =
        libraries.into_iter().fold(archive, |archive, (path, entry)| entry.add(archive, &path));
    Ok((archive, packages))
}

/// File names, among them that of the loader.
fn needed_libraries(program: &Path) -> Result<Vec<String>> {
    let text = run(Command::new("ldd").arg(program))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let names = text.lines().filter_map(|line| {
        let path = line.split_whitespace().next()?;
        let name = path.rsplit('/').next()?;
        (!name.starts_with("linux-vdso")).then(|| name.to_owned())
    });
    let names: Vec<String> = names.collect();
    ensure!(
        names.iter().any(|name| name.starts_with("libc.so")),
        "`{}` is not linked against a shared C library: {text}\n{HINT}",
        program.display()
    );
    Ok(names)
}

/// If the list of packages is old, the named version may not be there any more.
fn download(name: &str, folder: &Path) -> Result<PathBuf> {
    let download =
        || run(Command::new("apt-get").args(["download", "--quiet", name]).current_dir(folder));
    if download().is_err() {
        run(Command::new("apt-get").args(["update", "--quiet"]))?;
        download()?;
    }
    let prefix = format!("{name}_");
    let entries = fs::read_dir(folder).context("the folder is ours")?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
        })
        .with_context(|| format!("apt-get downloaded no package `{name}`"))
}

fn describe(file: &Path) -> Result<DebianPackage> {
    let control = run(Command::new("dpkg-deb").arg("--field").arg(file))?;
    let control = String::from_utf8(control).context("a control file is UTF-8")?;
    let field = |key: &str| {
        let line = control.lines().find_map(|line| line.strip_prefix(&format!("{key}: ")));
        line.map(str::to_owned).with_context(|| format!("`{}` has no {key}", file.display()))
    };
    Ok(DebianPackage {
        name: field("Package")?,
        version: field("Version")?,
        architecture: field("Architecture")?,
        control,
    })
}

enum Entry {
    File { bytes: Vec<u8>, mode: u32 },
    Link { target: String },
}

impl Entry {
    fn add(self, archive: Archive, path: &str) -> Archive {
        match self {
            Self::File { bytes, mode } => archive.bytes(path, bytes, mode),
            Self::Link { target } => archive.link(path, &target),
        }
    }
}

/// The files and links of a package, with paths without a leading `./`.
fn files(package: &Path) -> Result<Vec<(String, Entry)>> {
    let bytes = run(Command::new("dpkg-deb").arg("--fsys-tarfile").arg(package))?;
    let mut archive = tar::Archive::new(bytes.as_slice());
    let mut all = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().trim_start_matches("./").to_owned();
        let header = entry.header();
        if let Some(target) = entry.link_name()? {
            all.push((path, Entry::Link { target: target.to_string_lossy().into_owned() }));
        } else if header.entry_type().is_file() {
            let mode = header.mode()?;
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            all.push((path, Entry::File { bytes, mode }));
        }
    }
    Ok(all)
}

/// The standard output.
fn run(command: &mut Command) -> Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start {name}\n{HINT}"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name}: {}\n{HINT}", error.trim_end());
    Ok(output.stdout)
}
