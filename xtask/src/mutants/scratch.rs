//! A scratch copy of the workspace's tracked files. The working tree is never patched.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo;

/// Compile time matters more than run time here: most mutants are detected within a few runs.
const CONFIG: [&str; 7] = [
    "profile.dev.debug=false",
    "profile.dev.codegen-units=256",
    "profile.dev.package.endpointd-memory-api.opt-level=1",
    "profile.dev.package.endpointd-model.opt-level=1",
    "profile.dev.package.endpointd-plan.opt-level=1",
    "profile.dev.package.endpointd-engine.opt-level=1",
    "profile.dev.package.endpointd-sim.opt-level=1",
];

pub struct Scratch {
    root: PathBuf,
    source: PathBuf,
    build: PathBuf,
}

impl Scratch {
    /// Each job has a copy and a build directory of its own, kept for the next run.
    pub fn new(root: &Path, job: usize) -> Result<Self> {
        let folder = root.join("target/mutants").join(job.to_string());
        let (source, build) = (folder.join("source"), folder.join("build"));
        fs::create_dir_all(&source).with_context(|| source.display().to_string())?;
        Ok(Self { root: root.to_path_buf(), source, build })
    }

    /// Builds the simulator with one patch. The inner error is what git or rustc said.
    pub fn build(&self, patch: &Path) -> Result<Result<PathBuf, String>> {
        self.synchronize()?;
        // git must not find the repository around the copy: it would skip ignored paths.
        let mut git = Command::new("git");
        git.arg("apply").arg(patch).current_dir(&self.source);
        git.env("GIT_CEILING_DIRECTORIES", self.source.parent().unwrap_or(&self.source));
        let applied = git.output().context("cannot start git")?;
        if !applied.status.success() {
            return Ok(Err(String::from_utf8_lossy(&applied.stderr).into_owned()));
        }
        let mut cargo = cargo::command();
        cargo.args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "endpointd-sim",
            "--manifest-path",
        ]);
        cargo.arg(self.source.join("Cargo.toml")).arg("--target-dir").arg(&self.build);
        for setting in CONFIG {
            cargo.args(["--config", setting]);
        }
        cargo.env("CARGO_INCREMENTAL", "1").current_dir(&self.source);
        let built = cargo.output().context("cannot start cargo")?;
        if !built.status.success() {
            return Ok(Err(String::from_utf8_lossy(&built.stderr).into_owned()));
        }
        Ok(Ok(self.build.join("debug/endpointd-sim")))
    }

    /// Makes the copy equal to the tracked files. Equal files keep their times, so that cargo
    /// rebuilds only what differs from the last mutant.
    fn synchronize(&self) -> Result<()> {
        let tracked = self.tracked()?;
        remove_others(&self.source, Path::new(""), &tracked)?;
        for path in &tracked {
            let content =
                fs::read(self.root.join(path)).with_context(|| path.display().to_string())?;
            let copy = self.source.join(path);
            if fs::read(&copy).is_ok_and(|old| old == content) {
                continue;
            }
            let folder = copy.parent().context("a file has a folder")?;
            fs::create_dir_all(folder)?;
            fs::write(&copy, content).with_context(|| copy.display().to_string())?;
        }
        Ok(())
    }

    fn tracked(&self) -> Result<BTreeSet<PathBuf>> {
        let mut git = Command::new("git");
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let output = git.current_dir(&self.root).output().context("cannot start git")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).context("paths are UTF-8")?;
        let paths = text.split('\0').map(PathBuf::from);
        // A file may be deleted and not committed.
        Ok(paths.filter(|path| self.root.join(path).is_file()).collect())
    }
}

/// Removes files that are not tracked any more: a folder left in `crates` would be a member.
fn remove_others(source: &Path, folder: &Path, tracked: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(source.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            remove_others(source, &path, tracked)?;
            // Fails unless the folder is empty.
            fs::remove_dir(source.join(&path)).ok();
        } else if !tracked.contains(&path) {
            fs::remove_file(source.join(&path))?;
        }
    }
    Ok(())
}
