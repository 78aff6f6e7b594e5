//! `cargo xtask dist`: a build with profile-guided optimization (PGO) and BOLT; see
//! `docs/decisions/0008-pgo-and-bolt.md`.
//!
//! Two training runs on a real control plane collect profiles. The first run counts branches of an
//! instrumented build, and the compiler uses the counts (PGO). The second run counts branches of
//! the result, and BOLT moves hot code together and cold code apart.

mod bolt;
mod llvm_tool;
mod profdata;
mod toolchain;

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use endpointd_control_plane::binaries::DIRECTORY_VARIABLE;

use crate::{cargo, control_plane};
use bolt::Bolt;
use llvm_tool::{LlvmTool, Missing};
use profdata::Profdata;
use toolchain::Toolchain;

/// Names the daemon that the bench runs.
pub const PROGRAM_VARIABLE: &str = "ENDPOINTD_PROGRAM";

const TRAINING_SCENARIOS: [&str; 4] = ["cold-start", "restart", "churn", "rollout"];
const PACKAGE: &str = "endpointd";
/// The Cargo profile of the build: fat LTO in one codegen unit.
pub const PROFILE: &str = "dist";

pub fn run() -> Result<()> {
    println!("{}", build()?.display());
    Ok(())
}

/// Installs the missing LLVM tools. Nothing else here installs anything.
pub fn install_llvm_tools() -> Result<()> {
    let toolchain = Toolchain::query()?;
    for missing in missing_tools(&toolchain) {
        missing.install(&toolchain)?;
    }
    Ok(())
}

/// The path of the program. Takes minutes after each change of the sources.
pub fn build() -> Result<PathBuf> {
    let toolchain = Toolchain::query()?;
    let (profdata, bolt) = find_tools(&toolchain)?;
    let directory = target_directory().join("pgo-bolt");
    let pgo_program = pgo_build(&toolchain, &profdata, &directory)?;
    bolt_optimize(&pgo_program, &bolt, &directory)
}

fn missing_tools(toolchain: &Toolchain) -> Vec<Missing> {
    let all: [&LlvmTool; 3] = [&profdata::TOOL, &bolt::BOLT_TOOL, &bolt::MERGE_TOOL];
    all.into_iter().filter_map(|tool| tool.find(toolchain).err()).collect()
}

fn find_tools(toolchain: &Toolchain) -> Result<(Profdata, Bolt)> {
    let missing = missing_tools(toolchain);
    if !missing.is_empty() {
        let lines: String = missing.iter().map(|one| format!("\n  {one}")).collect();
        bail!("missing LLVM tools:{lines}\nhint: `cargo xtask install-tools` runs these commands");
    }
    Ok((Profdata::find(toolchain)?, Bolt::find(toolchain)?))
}

/// Builds an instrumented program, trains it, and builds with the resulting profile.
fn pgo_build(toolchain: &Toolchain, profdata: &Profdata, directory: &Path) -> Result<PathBuf> {
    let counts = directory.join("pgo-counts");
    let instrumented = Compilation {
        package: PACKAGE,
        workspace: root(),
        target_directory: directory.join("pgo-instrumented"),
        flags: vec![format!("-Cprofile-generate={}", counts.display())],
    };
    eprintln!("== dist: building with PGO instrumentation");
    let instrumented = instrumented.run(toolchain)?;
    let profile = directory.join(format!("{}.profdata", fingerprint(&instrumented)?));
    if !profile.exists() {
        eprintln!("== dist: PGO training run on a real control plane");
        run_training_workload(&instrumented, &counts)?;
        profdata.merge(&counts, &profile)?;
    }
    eprintln!("== dist: building with the PGO profile");
    let optimized = Compilation {
        package: PACKAGE,
        workspace: root(),
        target_directory: directory.join("pgo-optimized"),
        flags: vec![format!("-Cprofile-use={}", profile.display()), bolt::EMIT_RELOCS.to_owned()],
    };
    optimized.run(toolchain)
}

/// Instruments the program with BOLT, trains it, and reorders its code by the resulting profile.
fn bolt_optimize(program: &Path, bolt: &Bolt, directory: &Path) -> Result<PathBuf> {
    let counts = directory.join("bolt-counts");
    let profile = directory.join(format!("{}.fdata", fingerprint(program)?));
    if !profile.exists() {
        eprintln!("== dist: BOLT training run on a real control plane");
        let instrumented = directory.join("bolt-instrumented");
        bolt.instrument(program, &counts, &instrumented)?;
        run_training_workload(&instrumented, &counts)?;
        bolt.merge(&counts, &profile)?;
    }
    let optimized = directory.join(PACKAGE);
    bolt.optimize(program, &profile, &optimized)?;
    Ok(optimized)
}

/// Small clusters suffice: the profile depends on relative counts.
fn run_training_workload(program: &Path, counts: &Path) -> Result<()> {
    create_empty(counts)?;
    let binaries = control_plane::find_or_build()?;
    let status = cargo::command()
        .args(["run", "--quiet", "--package", "endpointd-bench", "--"])
        .args(["--quick", "--only", "endpointd"])
        .args(TRAINING_SCENARIOS)
        .env(DIRECTORY_VARIABLE, binaries.directory())
        .env(PROGRAM_VARIABLE, program)
        // Our standard output has the path of the program and nothing else.
        .stdout(io::stderr())
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "the training run failed: {status}");
    Ok(())
}

/// A build of one program with additional compiler flags.
struct Compilation<'a> {
    package: &'a str,
    workspace: PathBuf,
    target_directory: PathBuf,
    flags: Vec<String>,
}

/// Separates flags in `CARGO_ENCODED_RUSTFLAGS`.
pub const SEPARATOR: &str = "\u{1f}";

impl Compilation<'_> {
    /// Returns the path of the program.
    fn run(&self, toolchain: &Toolchain) -> Result<PathBuf> {
        let Self { package, workspace, target_directory, flags } = self;
        // With an explicit target the flags do not apply to build scripts and procedural macros.
        let status = cargo::command()
            .args(["build", "--profile", PROFILE, "--package", package])
            .args(["--no-default-features", "--target", &toolchain.host])
            .arg("--target-dir")
            .arg(target_directory)
            .current_dir(workspace)
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join(SEPARATOR))
            .status()
            .context("cannot start cargo")?;
        ensure!(status.success(), "the build failed: {status}");
        Ok(target_directory.join(&toolchain.host).join(PROFILE).join(package))
    }
}

pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    root.expect("xtask is a directory of the workspace").to_owned()
}

pub fn target_directory() -> PathBuf {
    let chosen = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root().join(chosen.unwrap_or_else(|| "target".into()))
}

/// A profile is valid only for the program that produced it.
fn fingerprint(program: &Path) -> Result<String> {
    let bytes =
        fs::read(program).with_context(|| format!("cannot read `{}`", program.display()))?;
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// Instrumented programs add their counts to existing files, so old ones must be removed.
fn create_empty(directory: &Path) -> Result<()> {
    let cannot = || format!("cannot empty `{}`", directory.display());
    if directory.exists() {
        fs::remove_dir_all(directory).with_context(cannot)?;
    }
    fs::create_dir_all(directory).with_context(cannot)
}

#[cfg(test)]
mod tests;
