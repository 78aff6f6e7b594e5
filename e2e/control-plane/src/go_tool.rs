//! Programs of other projects that tests run, built once from the Go module registry into our cache.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::binaries::{cache_directory, is_ci};
use crate::source::{BuildError, require_go};

/// A program that `go install` can build, which needs a module without `replace`.
#[derive(Clone, Copy, Debug)]
pub struct GoTool {
    pub name: &'static str,
    package: &'static str,
    version: &'static str,
}

pub const HELM: GoTool =
    GoTool { name: "helm", package: "helm.sh/helm/v4/cmd/helm", version: "v4.3.1" };

impl GoTool {
    /// For tests: `None` means skip, because the program is not built.
    ///
    /// # Panics
    ///
    /// If it is not built and `CI=true`, because CI must not skip tests.
    pub fn for_test(&self) -> Option<PathBuf> {
        let found = self.find();
        let Self { name, version, .. } = self;
        assert!(found.is_some() || !is_ci(), "there is no {name} {version}: {HINT}");
        if found.is_none() {
            eprintln!("skipped: there is no {name} {version}: {HINT}");
        }
        found
    }

    pub fn find(&self) -> Option<PathBuf> {
        self.path().filter(|path| path.is_file())
    }

    /// Finds the program, or builds it, which takes some minutes.
    pub fn find_or_build(&self) -> Result<PathBuf, BuildError> {
        let path = self.path().ok_or(BuildError::NoCache)?;
        if path.is_file() {
            return Ok(path);
        }
        require_go()?;
        let folder = path.parent().expect("the path has a folder");
        fs::create_dir_all(folder).map_err(|source| files(folder, source))?;
        // Renamed when complete, so an interrupted build leaves nothing that looks like a program.
        let partial = tempfile::tempdir_in(folder).map_err(|source| files(folder, source))?;
        let module = format!("{}@{}", self.package, self.version);
        eprintln!("building {} {}: go install {module}", self.name, self.version);
        let status = Command::new("go")
            .args(["install", "-trimpath", "-ldflags=-s -w", &module])
            .env("GOBIN", partial.path())
            .env("GOFLAGS", "")
            .stdout(Stdio::null())
            .status()
            .map_err(BuildError::Start)?;
        let built = partial.path().join(self.name);
        if !status.success() || !built.is_file() {
            return Err(BuildError::Tool { tool: self.name, status });
        }
        fs::rename(&built, &path).map_err(|source| files(&path, source))?;
        Ok(path)
    }

    fn path(&self) -> Option<PathBuf> {
        let folder = format!("{}-{}-{}", self.version, env::consts::OS, env::consts::ARCH);
        Some(cache_directory()?.join("tools").join(self.name).join(folder).join(self.name))
    }
}

const HINT: &str = "`cargo xtask install-tools` builds it";

fn files(path: &Path, source: io::Error) -> BuildError {
    BuildError::Files { path: path.to_owned(), source }
}
