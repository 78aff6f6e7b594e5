//! Programs of other projects that tests run, built once from the Go module registry into our cache.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::binaries::{cache_directory, is_ci};
use crate::source::{BuildError, require_go};

/// A program of another project.
#[derive(Clone, Copy, Debug)]
pub struct GoTool {
    pub name: &'static str,
    package: &'static str,
    version: &'static str,
    built_in: BuiltIn,
}

/// What decides the versions of the modules that it is built from.
#[derive(Clone, Copy, Debug)]
enum BuiltIn {
    /// Its own `go.mod`, which must have no `replace`: `go install` builds it.
    OwnModule,
    /// A module of ours: this folder in `go`.
    OurModule(&'static str),
}

pub const HELM: GoTool = GoTool {
    name: "helm",
    package: "helm.sh/helm/v4/cmd/helm",
    version: "v4.3.1",
    built_in: BuiltIn::OwnModule,
};
/// A registry may have the release and not the list of all releases, which `go install` asks for.
pub const KREW: GoTool = GoTool {
    name: "krew",
    package: "sigs.k8s.io/krew/cmd/krew",
    version: "v0.4.4",
    built_in: BuiltIn::OurModule("krew"),
};

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
        let mut go = self.go(partial.path());
        eprintln!("building {} {}: {go:?}", self.name, self.version);
        let status = go.stdout(Stdio::null()).status().map_err(BuildError::Start)?;
        let built = partial.path().join(self.name);
        if !status.success() || !built.is_file() {
            return Err(BuildError::Tool { tool: self.name, status });
        }
        fs::rename(&built, &path).map_err(|source| files(&path, source))?;
        Ok(path)
    }

    fn go(&self, folder: &Path) -> Command {
        let mut go = Command::new("go");
        go.env("GOFLAGS", "").env("GOWORK", "off").env("GOBIN", folder);
        match self.built_in {
            BuiltIn::OwnModule => {
                go.args(["install", "-trimpath", "-ldflags=-s -w"]);
                go.arg(format!("{}@{}", self.package, self.version));
            }
            BuiltIn::OurModule(module) => {
                go.current_dir(module_folder(module));
                go.args(["install", "-mod=readonly", "-trimpath", "-ldflags=-s -w", self.package]);
            }
        }
        go
    }

    fn path(&self) -> Option<PathBuf> {
        let folder = format!("{}-{}-{}", self.version, env::consts::OS, env::consts::ARCH);
        Some(cache_directory()?.join("tools").join(self.name).join(folder).join(self.name))
    }
}

const HINT: &str = "`cargo xtask install-tools` builds it";

fn module_folder(module: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("go").join(module)
}

fn files(path: &Path, source: io::Error) -> BuildError {
    BuildError::Files { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_module_pins_the_version_of_krew() {
        let text = fs::read_to_string(module_folder("krew").join("go.mod")).expect("it is there");
        assert!(text.contains(&format!("sigs.k8s.io/krew {}\n", KREW.version)), "{text}");
    }
}
