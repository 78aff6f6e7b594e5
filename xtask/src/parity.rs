//! `cargo xtask parity`: builds the oracle if needed, and compares our plans with upstream's on
//! generated cases.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, DefaultHasher, Hasher};
use std::io::{IsTerminal, Write, stderr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::cargo;

#[derive(Args)]
pub struct Flags {
    /// Number of cases to generate
    #[arg(long, alias = "worlds", default_value_t = 4000, value_parser = clap::value_parser!(u64).range(1..))]
    cases: u64,
    /// Seed of the cases; random if not given
    #[arg(long)]
    seed: Option<u64>,
    /// Only cases of this controller
    #[arg(long)]
    controller: Option<Controller>,
    /// Only the case of this index, as the output names it
    #[arg(long, alias = "world")]
    case: Option<u64>,
    /// Number of differing cases to shrink and print
    #[arg(long, default_value_t = 5)]
    show: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Controller {
    Endpoints,
    Endpointslice,
    Mirroring,
}

impl Controller {
    fn as_str(self) -> &'static str {
        match self {
            Self::Endpoints => "endpoints",
            Self::Endpointslice => "endpointslice",
            Self::Mirroring => "mirroring",
        }
    }
}

/// Whether there is a Go toolchain, which building the oracle needs.
pub fn available() -> bool {
    go_version().is_ok()
}

/// Exit codes: 0 for equal results, 1 for differences, 2 for a failed comparison.
pub fn run(flags: &Flags) -> ExitCode {
    match compare(flags) {
        Ok(Verdict::Same) => ExitCode::SUCCESS,
        Ok(Verdict::Different) => ExitCode::from(1),
        Ok(Verdict::Unknown) => ExitCode::from(2),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Seeds that every commit is tested with, besides its own. The second one once found a difference.
const FIXED_SEEDS: [u64; 3] = [1, 20_261_118_777, 7_919];

/// The part of `cargo xtask test`: cases of the commit's own seed, which is the same when the
/// commit is tested again, and cases of fixed seeds.
pub fn check() -> Result<()> {
    // The commit's own run is large enough that it must cover every rule.
    const CASES_OF_COMMIT: u64 = 3800;
    const CASES_OF_FIXED_SEED: u64 = 400;
    let fixed = FIXED_SEEDS.map(|seed| (Some(seed), CASES_OF_FIXED_SEED));
    for (seed, cases) in fixed.into_iter().chain([(commit_seed(), CASES_OF_COMMIT)]) {
        let flags = Flags { cases, seed, controller: None, case: None, show: 5 };
        ensure!(compare(&flags)? == Verdict::Same, "our plans differ from upstream's");
    }
    Ok(())
}

/// A seed from the id of the commit; none outside a repository.
pub fn commit_seed() -> Option<u64> {
    let output = Command::new("git").args(["rev-parse", "HEAD"]).output().ok()?;
    let id = String::from_utf8(output.stdout).ok()?;
    u64::from_str_radix(id.get(..15)?, 16).ok()
}

#[derive(PartialEq)]
enum Verdict {
    Same,
    Different,
    /// The comparison itself failed and has printed its error.
    Unknown,
}

fn compare(flags: &Flags) -> Result<Verdict> {
    let seed = flags.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
    println!("parity: seed {seed}");
    ensure!(
        available(),
        "the oracle needs a Go toolchain, and `go` cannot be started\n\
         hint: install Go 1.26 or later and have `go` in the PATH"
    );
    let oracle = oracle()?;
    let Flags { cases, seed: _, controller, case, show } = flags;
    let mut parity = cargo::command();
    parity.args(["run", "--quiet", "--release", "-p", "endpointd-parity", "--bin", "parity", "--"]);
    parity.arg("--oracle").arg(oracle);
    parity.args(["--seed", &seed.to_string(), "--cases", &cases.to_string()]);
    parity.args(["--show", &show.to_string()]);
    if let Some(controller) = controller {
        parity.args(["--controller", controller.as_str()]);
    }
    if let Some(case) = case {
        parity.args(["--case", &case.to_string()]);
    }
    let status = parity.status().context("cannot start cargo")?;
    Ok(match status.code() {
        Some(0) => Verdict::Same,
        Some(1) => Verdict::Different,
        Some(_) | None => Verdict::Unknown,
    })
}

fn go_version() -> Result<String> {
    let output = Command::new("go").arg("version").stdin(Stdio::null()).output();
    let output = output.context("cannot start `go`")?;
    ensure!(output.status.success(), "`go version` failed\nhint: repair the Go toolchain");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The oracle's program, built if there is none of the same sources and toolchain yet.
pub fn oracle() -> Result<PathBuf> {
    let version = go_version()?;
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/parity/oracle");
    let cache = cache_dir()?;
    let program = cache.join(format!("oracle-{:016x}", digest(&sources, &version)?));
    if program.is_file() {
        return Ok(program);
    }
    fs::create_dir_all(&cache).with_context(|| format!("cannot create `{}`", cache.display()))?;
    // Built under another name and renamed, so that an interrupted build leaves no partial program.
    let aside = cache.join(format!("building-{}", std::process::id()));
    build(&sources, &aside)?;
    fs::rename(&aside, &program).context("cannot rename the oracle")?;
    Ok(program)
}

fn build(sources: &Path, program: &Path) -> Result<()> {
    let start = Instant::now();
    eprintln!("building the oracle; the first time takes some minutes");
    // The same flags as for the control plane, so that Go compiles shared packages only once.
    let mut go = Command::new("go")
        .args(["build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-o"])
        .arg(program)
        .arg(".")
        .current_dir(sources)
        .env("GOFLAGS", "")
        .env("CGO_ENABLED", "0")
        .stdin(Stdio::null())
        .spawn()
        .context("cannot start go")?;
    let status = loop {
        if let Some(status) = go.try_wait().context("cannot wait for go")? {
            break status;
        }
        thread::sleep(Duration::from_millis(500));
        if stderr().is_terminal() {
            eprint!("\rgo build: {} s ", start.elapsed().as_secs());
            drop(stderr().flush());
        }
    };
    eprintln!("\rgo build: {} s", start.elapsed().as_secs());
    ensure!(
        status.success(),
        "the oracle could not be built: {status}\n\
         hint: its modules come from the Go module proxy; see `e2e/parity/oracle/README.md`"
    );
    Ok(())
}

/// Changes with every source file of the oracle and with the toolchain.
fn digest(sources: &Path, version: &str) -> Result<u64> {
    let entries = fs::read_dir(sources)
        .with_context(|| format!("cannot read the oracle's sources in `{}`", sources.display()))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort_unstable();
    let mut hasher = DefaultHasher::new();
    hasher.write(version.as_bytes());
    for file in files.iter().filter(|file| is_source(file)) {
        hasher.write(file.file_name().unwrap_or_default().as_encoded_bytes());
        hasher.write(&fs::read(file).with_context(|| format!("cannot read `{}`", file.display()))?);
    }
    Ok(hasher.finish())
}

fn is_source(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let is_test = name.ends_with("_test.go");
    let extension = file.extension().unwrap_or_default().to_string_lossy();
    !is_test && ["go", "s", "mod", "sum"].contains(&extension.as_ref())
}

/// The user's cache directory.
fn cache_dir() -> Result<PathBuf> {
    let given = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let of_home = || std::env::home_dir().map(|home| home.join(".cache"));
    let cache = given
        .filter(|path| path.is_absolute())
        .or_else(of_home)
        .context("no place to keep the oracle\nhint: set HOME or XDG_CACHE_HOME")?;
    Ok(cache.join("endpointd"))
}
