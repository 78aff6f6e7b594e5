//! Finds the three programs on this machine. Start at [`Binaries::find`].
//!
//! A directory is used only if it has all three, so that one cluster does not mix sources.

use std::env;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{ETCD_VERSION, Program};
use crate::release::Release;

/// Names the only directory to use; `cargo xtask test` sets it for its tests.
pub const DIRECTORY_VARIABLE: &str = "ENDPOINTD_CONTROL_PLANE";
const KUBEBUILDER_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// A directory that holds all three programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    directory: PathBuf,
}

/// No directory has all three programs.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub struct Missing {
    pub ignored: Vec<IgnoredPath>,
}

/// A path that cannot be used, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredPath {
    pub name: String,
    pub reason: String,
}

/// The result of a search, and the ignored paths before it.
pub struct Search {
    pub found: Option<Binaries>,
    pub ignored: Vec<IgnoredPath>,
}

/// The directories of a search, in this order.
#[derive(Clone, Debug, Default)]
pub struct SearchPaths {
    /// If set, the only directory.
    pub chosen: Option<PathBuf>,
    pub kubebuilder: Option<PathBuf>,
    /// The cache directory for builds of all versions.
    pub cache: Option<PathBuf>,
    pub release: Release,
}

impl Binaries {
    pub fn find() -> Result<Self, Missing> {
        let Search { found, ignored } = SearchPaths::from_environment().search();
        found.ok_or(Missing { ignored })
    }

    /// For tests: `None` means skip, because there is no control plane.
    ///
    /// # Panics
    ///
    /// If there is none and `CI=true`, because CI must not skip tests.
    pub fn for_test() -> Option<Self> {
        match Self::find() {
            Ok(binaries) => Some(binaries),
            Err(missing) if is_ci() => panic!("{missing}\n{}", missing.hint()),
            Err(missing) => {
                eprintln!("skipped: {missing}\n{}", missing.hint());
                None
            }
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn path(&self, program: Program) -> PathBuf {
        self.directory.join(program.name())
    }

    /// The programs in `directory`, or why it cannot be used.
    pub(crate) fn in_directory(directory: &Path) -> Result<Self, String> {
        let lacking: Vec<&str> = Program::ALL
            .into_iter()
            .map(Program::name)
            .filter(|name| !is_executable(&directory.join(name)))
            .collect();
        if lacking.is_empty() {
            return Ok(Self { directory: directory.to_owned() });
        }
        Err(format!("`{}` lacks {}", directory.display(), lacking.join(", ")))
    }

    /// Checks the version, which only directories of others need: the cache has the version in its
    /// path.
    fn at_version_of(self, release: Release) -> Result<Self, String> {
        let wanted = release.version();
        for program in [Program::ApiServer, Program::ControllerManager] {
            let version = version_of(&self.path(program))?;
            if version != wanted {
                return Err(format!("{program} is {version}, not {wanted}"));
            }
        }
        Ok(self)
    }
}

/// Where programs are kept between runs.
pub(crate) fn cache_directory() -> Option<PathBuf> {
    let caches = path_in("XDG_CACHE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| env::home_dir().map(|home| home.join(".cache")));
    caches.map(|path| path.join("endpointd"))
}

fn path_in(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

impl SearchPaths {
    pub fn from_environment() -> Self {
        Self {
            chosen: path_in(DIRECTORY_VARIABLE),
            kubebuilder: path_in(KUBEBUILDER_VARIABLE),
            cache: cache_directory().map(|path| path.join("control-plane")),
            release: Release::under_test(),
        }
    }

    /// The directory of the build of the release, which may not exist yet.
    pub(crate) fn build_directory(&self) -> Option<PathBuf> {
        let Self { chosen: _, kubebuilder: _, cache, release } = self;
        let (os, arch) = (env::consts::OS, env::consts::ARCH);
        let kubernetes = release.version();
        Some(cache.as_ref()?.join(format!("{kubernetes}-etcd-{ETCD_VERSION}-{os}-{arch}")))
    }

    pub fn search(&self) -> Search {
        let Self { chosen, kubebuilder, cache: _, release } = self;
        let mut ignored = Vec::new();
        let mut attempt = |name: &str, usable: Result<Binaries, String>| match usable {
            Ok(binaries) => Some(binaries),
            Err(reason) => {
                ignored.push(IgnoredPath { name: name.to_owned(), reason });
                None
            }
        };

        let found = if let Some(directory) = chosen {
            attempt(DIRECTORY_VARIABLE, Binaries::in_directory(directory))
        } else {
            let usable = kubebuilder.as_ref().map(|directory| {
                Binaries::in_directory(directory).and_then(|found| found.at_version_of(*release))
            });
            usable.and_then(|usable| attempt(KUBEBUILDER_VARIABLE, usable)).or_else(|| {
                let directory = self.build_directory();
                let nowhere = || "neither XDG_CACHE_HOME nor HOME is set".to_owned();
                let usable = directory.ok_or_else(nowhere).and_then(|d| Binaries::in_directory(&d));
                attempt("cache", usable)
            })
        };
        Search { found, ignored }
    }
}

impl Missing {
    /// How to get the programs.
    pub fn hint(&self) -> String {
        "hint: `cargo xtask control-plane` builds it once, with Go 1.26 or newer".to_owned()
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons: Vec<String> = self.ignored.iter().map(IgnoredPath::to_string).collect();
        write!(f, "no control plane on this machine: {}", reasons.join("; "))
    }
}

impl fmt::Display for IgnoredPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

/// Whether `CI=true`: a test that would be skipped must then fail.
pub fn is_ci() -> bool {
    env::var_os("CI").is_some_and(|value| value == "true")
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The output of `--version` without the word "Kubernetes".
pub(crate) fn version_of(path: &Path) -> Result<String, String> {
    let cannot = |why: &dyn fmt::Display| format!("cannot run `{}`: {why}", path.display());
    let output = Command::new(path).arg("--version").output().map_err(|error| cannot(&error))?;
    if !output.status.success() {
        return Err(cannot(&output.status));
    }
    let answer = String::from_utf8_lossy(&output.stdout);
    Ok(answer.trim().trim_start_matches("Kubernetes ").to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::test_lock;

    /// A directory of shell scripts that print a version like the programs.
    fn programs(names: &[&str], version: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            let path = directory.path().join(name);
            fs::write(&path, format!("#!/bin/sh\necho Kubernetes {version}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        directory
    }

    const THREE: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];

    #[test]
    fn kubebuilder_assets_of_the_pinned_version_are_used() {
        let _guard = test_lock::acquire();
        let assets = programs(&THREE, Release::default().version());
        let paths =
            SearchPaths { kubebuilder: Some(assets.path().to_owned()), ..SearchPaths::default() };
        assert_eq!(paths.search().found.unwrap().directory(), assets.path());
    }

    #[test]
    fn kubebuilder_assets_without_a_program_are_ignored() {
        let _guard = test_lock::acquire();
        let assets = programs(&["etcd", "kube-apiserver"], Release::default().version());
        let cache = tempfile::tempdir().unwrap();
        let paths = SearchPaths {
            chosen: None,
            kubebuilder: Some(assets.path().to_owned()),
            cache: Some(cache.path().to_owned()),
            release: Release::default(),
        };
        let cache = paths.build_directory().unwrap();
        fs::rename(programs(&THREE, Release::default().version()).keep(), &cache).unwrap();

        let search = paths.search();
        assert_eq!(search.found.unwrap().directory(), cache);
        let reason = &search.ignored[0].reason;
        assert!(reason.ends_with("lacks kube-controller-manager"), "{reason}");
    }

    #[test]
    fn kubebuilder_assets_of_another_release_are_ignored() {
        let _guard = test_lock::acquire();
        let assets = programs(&THREE, "v1.30.0");
        let paths =
            SearchPaths { kubebuilder: Some(assets.path().to_owned()), ..SearchPaths::default() };
        let search = paths.search();
        assert_eq!(search.found, None);
        assert_eq!(search.ignored[0].reason, "kube-apiserver is v1.30.0, not v1.36.4");
    }

    #[test]
    fn chosen_directory_is_the_only_one() {
        let assets = programs(&THREE, Release::default().version());
        let empty = tempfile::tempdir().unwrap();
        let paths = SearchPaths {
            chosen: Some(empty.path().to_owned()),
            kubebuilder: Some(assets.path().to_owned()),
            cache: None,
            release: Release::default(),
        };
        let search = paths.search();
        assert_eq!(search.found, None);
        assert_eq!(search.ignored.len(), 1);
        assert_eq!(search.ignored[0].name, DIRECTORY_VARIABLE);
    }

    #[test]
    fn file_without_execute_permission_does_not_count() {
        let assets = programs(&THREE, Release::default().version());
        let etcd = assets.path().join("etcd");
        fs::set_permissions(etcd, fs::Permissions::from_mode(0o644)).unwrap();
        let reason = Binaries::in_directory(assets.path()).unwrap_err();
        assert!(reason.ends_with("lacks etcd"), "{reason}");
    }
}
