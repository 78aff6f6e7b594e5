//! Builds the three programs from the Go module registry into our cache. Start at [`build`].
//!
//! Each program is built in a temporary directory and renamed into the cache, so the cache has only
//! complete programs. An interrupted build loses at most one program, and Go's build cache keeps
//! its packages. A file lock prevents two concurrent builds, and a reaper stops Go when this
//! process ends.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::binaries::{Binaries, SearchPaths, version_of};
use crate::process_reaper::ProcessReaper;
use crate::program::Program;
use crate::release::Release;

const PARTIAL_PREFIX: &str = "partial-";
/// Number of lines at the end of Go's output that an error message contains.
const OUTPUT_LINES_MAX: usize = 20;

/// Progress of a build.
#[derive(Debug)]
pub enum Progress<'a> {
    /// Another process is building; this one waits for it.
    Waiting,
    /// Go lists the packages and downloads missing modules.
    Fetching {
        program: Program,
        module: Option<&'a str>,
    },
    Building {
        program: Program,
        n_done: usize,
        n_packages: usize,
        package: &'a str,
    },
    Built {
        program: Program,
        elapsed: Duration,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("the Go toolchain is not installed")]
    NoGo,
    #[error("there is no cache directory: neither XDG_CACHE_HOME nor HOME is set")]
    NoCache,
    #[error("cannot write `{}`: {source}", path.display())]
    Files { path: PathBuf, source: io::Error },
    #[error("cannot run `go`: {0}")]
    Start(io::Error),
    #[error("cannot build {program}: go: {status}\n{output}")]
    Go { program: Program, status: ExitStatus, output: String },
    #[error("cannot build {tool}: go: {status}")]
    Tool { tool: &'static str, status: ExitStatus },
    #[error("the new {program} is not the pinned version: {found}")]
    WrongVersion { program: Program, found: String },
}

/// Builds the programs that are not in the cache.
pub fn build(
    paths: &SearchPaths,
    report: &mut dyn FnMut(Progress<'_>),
) -> Result<Binaries, BuildError> {
    require_go()?;
    let directory = paths.build_directory().ok_or(BuildError::NoCache)?;
    fs::create_dir_all(&directory).map_err(files(&directory))?;
    let _lock = lock(&directory.join("lock"), report)?;
    remove_partial(&directory);

    for program in Program::ALL {
        if !directory.join(program.name()).exists() {
            build_program(Target { program, release: paths.release }, &directory, report)?;
        }
    }
    Binaries::in_directory(&directory)
        .map_err(|reason| BuildError::Files { path: directory, source: io::Error::other(reason) })
}

impl BuildError {
    /// How to repair it, if known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoGo => Some(
                "hint: install Go 1.26 or newer (https://go.dev/dl), or set KUBEBUILDER_ASSETS to \
                 a directory with etcd, kube-apiserver and kube-controller-manager",
            ),
            Self::NoCache => Some("hint: set XDG_CACHE_HOME to a directory with 1 GB to spare"),
            Self::Files { path: _, source } if source.kind() == io::ErrorKind::StorageFull => {
                Some(DISK_HINT)
            }
            Self::Go { program: _, status: _, output } => hint_from(output),
            Self::Tool { .. } => {
                Some("hint: the Go module registry must be reachable once; see `go env GOPROXY`")
            }
            Self::Files { .. } | Self::Start(_) | Self::WrongVersion { .. } => None,
        }
    }
}

const DISK_HINT: &str = "hint: the disk is full: a build needs about 6 GB, in Go's caches (`go env \
                         GOCACHE GOMODCACHE`), the temporary directory, and the cache directory of endpointd";

/// Hints for known causes in Go's output.
fn hint_from(output: &str) -> Option<&'static str> {
    let contains_any = |words: &[&str]| words.iter().any(|word| output.contains(word));
    if contains_any(&["no space left on device"]) {
        Some(DISK_HINT)
    } else if contains_any(&["requires go >="]) {
        Some("hint: install Go 1.26 or newer, or set GOTOOLCHAIN=auto")
    } else if contains_any(&["dial tcp", "no such host", "i/o timeout", "module lookup disabled"]) {
        Some("hint: the Go module registry must be reachable once; see `go env GOPROXY`")
    } else {
        None
    }
}

fn files(path: &Path) -> impl FnOnce(io::Error) -> BuildError {
    let path = path.to_owned();
    |source| BuildError::Files { path, source }
}

/// Whether a build can be tried at all.
pub fn require_go() -> Result<(), BuildError> {
    match Command::new("go").arg("version").stdout(Stdio::null()).status() {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(BuildError::NoGo),
        Err(error) => Err(BuildError::Start(error)),
    }
}

/// The lock is released on drop, and by the kernel when the process ends.
fn lock(path: &Path, report: &mut dyn FnMut(Progress<'_>)) -> Result<File, BuildError> {
    let file = File::create(path).map_err(files(path))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => report(Progress::Waiting),
        Err(TryLockError::Error(error)) => return Err(files(path)(error)),
    }
    file.lock().map_err(files(path))?;
    Ok(file)
}

/// Removes directories of interrupted builds. We hold the lock, so no build uses them.
fn remove_partial(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_name().to_string_lossy().starts_with(PARTIAL_PREFIX) {
            // The build does not depend on the removal.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// What one build makes.
#[derive(Clone, Copy)]
struct Target {
    program: Program,
    release: Release,
}

fn build_program(
    target: Target,
    directory: &Path,
    report: &mut dyn FnMut(Progress<'_>),
) -> Result<(), BuildError> {
    let started = Instant::now();
    let program = target.program;
    let partial = tempfile::Builder::new()
        .prefix(PARTIAL_PREFIX)
        .tempdir_in(directory)
        .map_err(files(directory))?
        .keep();
    let reaper = ProcessReaper::start(&partial).map_err(BuildError::Start)?;
    let built = partial.join(program.name());

    report(Progress::Fetching { program, module: None });
    let n_packages = count_packages(target, &reaper, report)?;
    compile(target, &reaper, n_packages, &built, report)?;
    check_version(target, &built)?;

    let cached = directory.join(program.name());
    fs::rename(&built, &cached).map_err(files(&cached))?;
    report(Progress::Built { program, elapsed: started.elapsed() });
    Ok(())
}

fn count_packages(
    target: Target,
    reaper: &ProcessReaper,
    report: &mut dyn FnMut(Progress<'_>),
) -> Result<usize, BuildError> {
    let program = target.program;
    let mut go = go(target);
    go.args(["list", "-mod=readonly", "-buildvcs=false", "-deps", program.package()]);
    let mut stdout = tempfile::tempfile().map_err(files(&std::env::temp_dir()))?;
    go.stdout(stdout.try_clone().map_err(BuildError::Start)?);
    watch(program, reaper, go, &mut |line| {
        let module = line.strip_prefix("go: downloading ")?;
        report(Progress::Fetching { program, module: Some(module) });
        Some(())
    })?;
    io::Seek::rewind(&mut stdout).map_err(BuildError::Start)?;
    Ok(BufReader::new(stdout).lines().count())
}

fn compile(
    target: Target,
    reaper: &ProcessReaper,
    n_packages: usize,
    built: &Path,
    report: &mut dyn FnMut(Progress<'_>),
) -> Result<(), BuildError> {
    let program = target.program;
    let mut go = go(target);
    // `-v` names each package when it is compiled; those in Go's build cache are not named.
    go.args(["build", "-v", "-mod=readonly", "-buildvcs=false", "-trimpath"]);
    go.arg("-ldflags").arg(linker_flags(target)).arg("-o").arg(built).arg(program.package());
    go.stdout(Stdio::null());
    let mut n_done = 0;
    watch(program, reaper, go, &mut |line| {
        if line.contains(' ') {
            return None;
        }
        n_done = (n_done + 1).min(n_packages);
        report(Progress::Building { program, n_done, n_packages, package: line });
        Some(())
    })
}

/// `go` with a fixed environment, independent of the user's settings.
fn go(Target { program, release }: Target) -> Command {
    let mut go = Command::new("go");
    go.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("go").join(program.module(release)))
        .env("GOFLAGS", "")
        .env("GOWORK", "off")
        .env("CGO_ENABLED", "0")
        .env_remove("GOOS")
        .env_remove("GOARCH")
        .stdin(Stdio::null());
    go
}

/// Sets the version, which a build from modules lacks and clients and feature gates need.
fn linker_flags(Target { program, release }: Target) -> String {
    let mut flags = "-s -w".to_owned();
    if program == Program::Etcd {
        return flags;
    }
    let version = release.version();
    let (major, minor) = ("1", minor_of(version));
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        flags += &format!(" -X {package}.gitVersion={version}");
        flags += &format!(" -X {package}.gitMajor={major} -X {package}.gitMinor={minor}");
    }
    flags
}

fn minor_of(version: &str) -> &str {
    version.split('.').nth(1).expect("a version has a minor number")
}

/// Runs Go and passes each line of its output to `take`. Lines not taken go into the error message.
fn watch(
    program: Program,
    reaper: &ProcessReaper,
    mut go: Command,
    take: &mut dyn FnMut(&str) -> Option<()>,
) -> Result<(), BuildError> {
    let go = reaper.adopt(go.stderr(Stdio::piped()));
    let mut child = go.spawn().map_err(BuildError::Start)?;
    let stderr = child.stderr.take().expect("it was piped two lines above");
    let output = remaining_lines(stderr, take);
    let status = child.wait().map_err(BuildError::Start)?;
    if status.success() { Ok(()) } else { Err(BuildError::Go { program, status, output }) }
}

fn remaining_lines(stderr: ChildStderr, take: &mut dyn FnMut(&str) -> Option<()>) -> String {
    let mut kept = Vec::new();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if take(&line).is_some() {
            continue;
        }
        if kept.len() == OUTPUT_LINES_MAX {
            kept.remove(0);
        }
        kept.push(line);
    }
    kept.join("\n")
}

fn check_version(Target { program, release }: Target, built: &Path) -> Result<(), BuildError> {
    if program == Program::Etcd {
        return Ok(()); // Its version is a constant of the module that go.mod pins.
    }
    let wrong = |found| BuildError::WrongVersion { program, found };
    match version_of(built) {
        Ok(version) if version == program.version(release) => Ok(()),
        Ok(version) => Err(wrong(version)),
        Err(reason) => Err(wrong(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_lock;

    #[test]
    fn full_disk_has_a_hint() {
        let output = "write /x: no space left on device";
        assert!(hint_from(output).unwrap().contains("the disk is full"));
    }

    #[test]
    fn old_go_has_a_hint() {
        let output = "go: go.mod requires go >= 1.26.0 (running go 1.22.0; GOTOOLCHAIN=local)";
        assert!(hint_from(output).unwrap().contains("install Go 1.26"));
    }

    #[test]
    fn compile_error_has_no_hint() {
        assert_eq!(hint_from("./x.go:1:1: undefined: y"), None);
    }

    #[test]
    fn linker_flags_set_the_kubernetes_version() {
        let release = Release::V1_36;
        let flags = linker_flags(Target { program: Program::ApiServer, release });
        assert!(flags.contains("component-base/version.gitVersion=v1.36.4"), "{flags}");
        assert!(flags.contains("component-base/version.gitMinor=36"), "{flags}");
        assert_eq!(linker_flags(Target { program: Program::Etcd, release }), "-s -w");
    }

    #[test]
    fn directories_of_interrupted_builds_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("partial-x")).unwrap();
        fs::write(directory.path().join("etcd"), "").unwrap();
        remove_partial(directory.path());
        assert!(!directory.path().join("partial-x").exists());
        assert!(directory.path().join("etcd").exists());
    }

    #[test]
    fn second_lock_waits_for_the_first() {
        let _guard = test_lock::acquire();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let first = lock(&path, &mut |_| panic!("the lock is free")).unwrap();
        let mut first = Some(first);
        let mut n_waits = 0;
        lock(&path, &mut |progress| {
            assert!(matches!(progress, Progress::Waiting));
            n_waits += 1;
            first.take();
        })
        .unwrap();
        assert_eq!(n_waits, 1);
    }
}
