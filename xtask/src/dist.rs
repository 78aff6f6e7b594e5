//! `cargo xtask dist`: the program as it is shipped, by what practice runs have shown.
//!
//! A change wakes us for a moment and finds the processor's caches full of others' things, so what
//! it costs is probably most of all fetching our own code. So the program practises twice what it
//! is for, on a real control plane. First it counts how often each of its branches is taken, and
//! is compiled by these counts. Then it counts once more, and is arranged by that: what runs
//! stands close together, and what hardly ever runs stands apart.

mod layout;
mod profile;
mod tool;
mod toolchain;

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use endpointd_control_plane::binaries::DIRECTORY_VARIABLE;

use crate::{cargo, control_plane};
use layout::LayoutTool;
use profile::ProfileTool;
use toolchain::Toolchain;

/// The daemon that the bench starts.
pub const PROGRAM_VARIABLE: &str = "ENDPOINTD_PROGRAM";

/// What it is for: starting up, changes one at a time, changes in a stream.
const LESSONS: [&str; 4] = ["cold-start", "restart", "churn", "rollout"];
const PACKAGE: &str = "endpointd";

pub fn run() -> Result<()> {
    println!("{}", build()?.display());
    Ok(())
}

/// The program, built if need be: the first time, and after each change, this takes minutes.
pub fn build() -> Result<PathBuf> {
    let toolchain = Toolchain::ask()?;
    // Before anything else: whoever lacks one of them should hear of it now.
    let profile_tool = ProfileTool::find_or_install(&toolchain)?;
    let layout_tool = LayoutTool::find_or_install(&toolchain)?;
    let directory = target_directory().join("dist");
    let trained = trained(&toolchain, &profile_tool, &directory)?;
    arranged(&trained, &layout_tool, &directory)
}

/// Compiled twice, the second time by what the first one counted.
fn trained(toolchain: &Toolchain, tool: &ProfileTool, directory: &Path) -> Result<PathBuf> {
    let counts = directory.join("branches");
    let counting = Compilation {
        package: PACKAGE,
        workspace: root(),
        target_directory: directory.join("counting"),
        flags: vec![format!("-Cprofile-generate={}", counts.display())],
    };
    eprintln!("== dist: a program that counts its branches");
    let counting = counting.run(toolchain)?;
    let profile = directory.join(format!("{}.profdata", fingerprint(&counting)?));
    if !profile.exists() {
        eprintln!("== dist: counting, on a real control plane");
        practise(&counting, &counts)?;
        tool.merge(&counts, &profile)?;
    }
    eprintln!("== dist: the program, by these counts");
    let trained = Compilation {
        package: PACKAGE,
        workspace: root(),
        target_directory: directory.join("trained"),
        flags: vec![format!("-Cprofile-use={}", profile.display()), layout::MOVABLE.to_owned()],
    };
    trained.run(toolchain)
}

/// The same instructions in another order.
fn arranged(trained: &Path, tool: &LayoutTool, directory: &Path) -> Result<PathBuf> {
    let counts = directory.join("places");
    let merged = directory.join(format!("{}.fdata", fingerprint(trained)?));
    if !merged.exists() {
        eprintln!("== dist: counting once more, to arrange it");
        let counting = directory.join("counting-places");
        tool.count(trained, &counts, &counting)?;
        practise(&counting, &counts)?;
        tool.merge(&counts, &merged)?;
    }
    let shipped = directory.join(PACKAGE);
    tool.arrange(trained, &merged, &shipped)?;
    Ok(shipped)
}

/// Small worlds suffice: what counts is which way the branches go.
fn practise(program: &Path, counts: &Path) -> Result<()> {
    empty(counts)?;
    let binaries = control_plane::find_or_build()?;
    let status = cargo::command()
        .args(["run", "--quiet", "--package", "endpointd-bench", "--"])
        .args(["--quick", "--only", "endpointd"])
        .args(LESSONS)
        .env(DIRECTORY_VARIABLE, binaries.directory())
        .env(PROGRAM_VARIABLE, program)
        // What is measured while counting is nobody's number, and our answer is the path alone.
        .stdout(io::stderr())
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "the practice run failed: {status}");
    Ok(())
}

/// A release build of one program with more flags for the compiler.
struct Compilation<'a> {
    package: &'a str,
    workspace: PathBuf,
    target_directory: PathBuf,
    flags: Vec<String>,
}

/// Between two flags.
const SEPARATOR: &str = "\u{1f}";

impl Compilation<'_> {
    /// The program that was built.
    fn run(&self, toolchain: &Toolchain) -> Result<PathBuf> {
        let Self { package, workspace, target_directory, flags } = self;
        // With a target, even if it is the usual one, the flags are for the program alone and not
        // for what runs during the build.
        let status = cargo::command()
            .args(["build", "--release", "--package", package, "--target", &toolchain.host])
            .arg("--target-dir")
            .arg(target_directory)
            .current_dir(workspace)
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join(SEPARATOR))
            .status()
            .context("cannot start cargo")?;
        ensure!(status.success(), "the build failed: {status}");
        Ok(target_directory.join(&toolchain.host).join("release").join(package))
    }
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    root.expect("xtask is a directory of the workspace").to_owned()
}

fn target_directory() -> PathBuf {
    let chosen = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root().join(chosen.unwrap_or_else(|| "target".into()))
}

/// Counts fit the program that made them, and no other.
fn fingerprint(program: &Path) -> Result<String> {
    let bytes =
        fs::read(program).with_context(|| format!("cannot read `{}`", program.display()))?;
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// Programs add to the counts they find.
fn empty(directory: &Path) -> Result<()> {
    let cannot = || format!("cannot empty `{}`", directory.display());
    if directory.exists() {
        fs::remove_dir_all(directory).with_context(cannot)?;
    }
    fs::create_dir_all(directory).with_context(cannot)
}

#[cfg(test)]
mod tests;
