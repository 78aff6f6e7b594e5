//! `cargo xtask mutants`: puts one deliberate bug at a time into a scratch copy of the workspace and
//! checks that the simulator detects it. Each bug is a patch in `crates/sim/mutants`; a few more are
//! options of the simulator, in its own model of the client.

mod scratch;
mod table;

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use endpointd_rng::SplitMix64;

use crate::{cargo, parity};
use scratch::Scratch;

const PATCHES: &str = "crates/sim/mutants";
/// Patches of a CI run; each builds the engine and the simulator once.
const CHECK_SAMPLE: usize = 3;

#[derive(Args)]
pub struct Flags {
    /// Names of mutants; all if none is given
    names: Vec<String>,
    /// Only this number of patches, chosen by the seed, and all bugs of the client model
    #[arg(long)]
    sample: Option<usize>,
    /// Seed of the sample
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of scratch copies that build and run at the same time
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Write the results into the table of docs/simulation.md
    #[arg(long)]
    write_table: bool,
}

/// One deliberate bug.
#[derive(Clone, Debug)]
struct Mutant {
    name: String,
    /// One sentence.
    description: String,
    /// `None`: a bug in the simulator's model of the client.
    patch: Option<PathBuf>,
}

enum Outcome {
    Detected { by: String, rule: String, n_runs: String },
    Survived,
    Failed(String),
}

struct Finished {
    mutant: Mutant,
    outcome: Outcome,
    /// Build and runs.
    time: Duration,
}

/// 0: all detected. 1: a mutant survived, or a patch did not apply or compile. 2: bad arguments.
pub fn run(flags: &Flags) -> ExitCode {
    match check_mutants(flags) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The part of `cargo xtask test`: a sample that depends on the commit.
pub fn check() -> Result<()> {
    let seed = parity::commit_seed().unwrap_or_default();
    eprintln!("== mutants: --sample {CHECK_SAMPLE} --seed {seed}");
    let names = Vec::new();
    let sample = Some(CHECK_SAMPLE);
    let flags = Flags { names, sample, seed, jobs: 1, write_table: false };
    ensure!(check_mutants(&flags)?, "a mutant was not detected");
    Ok(())
}

fn check_mutants(flags: &Flags) -> Result<bool> {
    let root = root()?;
    let mut all = patches(&root)?;
    all.extend(client_bugs()?);
    let chosen = choose(&all, flags)?;
    let n_chosen = chosen.len();
    let mut finished = run_all(&root, chosen, flags.jobs.max(1))?;
    finished.sort_by(|a, b| a.mutant.name.cmp(&b.mutant.name));
    let n_detected = finished.iter().filter(|one| one.is_detected()).count();
    println!("mutants: {n_detected} of {n_chosen} detected");
    if flags.write_table {
        table::write(&root, &all, &finished)?;
    }
    Ok(n_detected == n_chosen)
}

fn root() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has a parent")?;
    Ok(root.to_path_buf())
}

/// The first line of a patch file is its sentence.
fn patches(root: &Path) -> Result<Vec<Mutant>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(root.join(PATCHES)).context(PATCHES)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "patch") {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let stem = path.file_stem().unwrap_or_default();
        all.push(Mutant {
            name: stem.to_string_lossy().into_owned(),
            description: text.lines().next().unwrap_or_default().to_owned(),
            patch: Some(path),
        });
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// The simulator lists its own bugs: name, tab, description.
fn client_bugs() -> Result<Vec<Mutant>> {
    let output = simulator(&["client-bugs"])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).context("the simulator prints UTF-8")?;
    let mutant = |line: &str| {
        let (name, description) = line.split_once('\t')?;
        Some(Mutant { name: name.into(), description: description.into(), patch: None })
    };
    Ok(text.lines().filter_map(mutant).collect())
}

fn choose(all: &[Mutant], flags: &Flags) -> Result<Vec<Mutant>> {
    if flags.names.is_empty() && flags.sample.is_none() {
        return Ok(all.to_vec());
    }
    let mut chosen = Vec::new();
    for name in &flags.names {
        match all.iter().find(|mutant| mutant.name == *name) {
            Some(mutant) => chosen.push(mutant.clone()),
            None => bail!("no mutant is called `{name}`; {PATCHES} has their patches"),
        }
    }
    if let Some(n) = flags.sample {
        let (mut patches, bugs): (Vec<_>, Vec<_>) =
            all.iter().cloned().partition(|mutant| mutant.patch.is_some());
        let mut rng = SplitMix64::of_case(flags.seed, 0);
        for _ in 0..n.min(patches.len()) {
            chosen.push(patches.swap_remove(rng.index(patches.len())));
        }
        chosen.extend(bugs);
    }
    Ok(chosen)
}

/// Every thread has a scratch copy of its own and takes one mutant after the other.
fn run_all(root: &Path, chosen: Vec<Mutant>, n_jobs: usize) -> Result<Vec<Finished>> {
    let (finished, queue) = (Mutex::new(Vec::new()), Mutex::new(VecDeque::from(chosen)));
    let take = || queue.lock().ok()?.pop_front();
    thread::scope(|scope| {
        let work = |job: usize| -> Result<()> {
            let scratch = Scratch::new(root, job)?;
            while let Some(mutant) = take() {
                let one = run_one(&scratch, mutant)?;
                println!("{}", table::line(&one));
                finished.lock().map(|mut all| all.push(one)).ok();
            }
            Ok(())
        };
        let threads: Vec<_> = (0..n_jobs).map(|job| scope.spawn(move || work(job))).collect();
        for one in threads {
            one.join().map_err(|_| anyhow::anyhow!("a job panicked"))??;
        }
        anyhow::Ok(())
    })?;
    finished.into_inner().context("a job panicked")
}

fn run_one(scratch: &Scratch, mutant: Mutant) -> Result<Finished> {
    let started = Instant::now();
    let outcome = match &mutant.patch {
        None => hunted(&simulator(&["hunt", "--client-bug", &mutant.name])?),
        Some(patch) => match scratch.build(patch)? {
            Ok(program) => {
                let output = Command::new(&program).arg("hunt").output();
                hunted(&output.with_context(|| program.display().to_string())?)
            }
            Err(error) => Outcome::Failed(error),
        },
    };
    Ok(Finished { mutant, outcome, time: started.elapsed() })
}

/// `hunt` exits with 1 and prints one line if a rule was broken.
fn hunted(output: &Output) -> Outcome {
    let line = String::from_utf8_lossy(&output.stdout);
    let fields: Vec<&str> = line.trim_end().split('\t').collect();
    match (output.status.code(), fields.as_slice()) {
        (Some(0), _) => Outcome::Survived,
        (Some(1), [by, rule, n_runs]) => Outcome::Detected {
            by: (*by).to_owned(),
            rule: (*rule).to_owned(),
            n_runs: (*n_runs).to_owned(),
        },
        _ => Outcome::Failed(format!(
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// The simulator of the workspace itself, without a patch.
fn simulator(args: &[&str]) -> Result<Output> {
    let mut cargo = cargo::command();
    cargo.args(["run", "--quiet", "--package", "endpointd-sim", "--"]).args(args);
    cargo.output().context("cannot start cargo")
}

impl Finished {
    fn is_detected(&self) -> bool {
        matches!(self.outcome, Outcome::Detected { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sample: Option<usize>, seed: u64, given: &[&str]) -> Result<Vec<String>> {
        let mutant = |number: usize| Mutant {
            name: format!("mutant-{number}"),
            description: String::new(),
            patch: (number > 0).then(PathBuf::new),
        };
        let all: Vec<Mutant> = (0..20).map(mutant).collect();
        let given = given.iter().map(|name| (*name).to_owned()).collect();
        let flags = Flags { names: given, sample, seed, jobs: 1, write_table: false };
        Ok(choose(&all, &flags)?.into_iter().map(|mutant| mutant.name).collect())
    }

    #[test]
    fn sample_depends_on_the_seed_and_includes_all_bugs_of_the_client_model() {
        let sample = names(Some(3), 1, &[]).expect("a sample needs no names");
        assert_eq!(sample.len(), 4);
        assert_eq!(sample.last().map(String::as_str), Some("mutant-0"));
        assert_eq!(sample, names(Some(3), 1, &[]).expect("a sample needs no names"));
        assert_ne!(sample, names(Some(3), 2, &[]).expect("a sample needs no names"));
    }

    #[test]
    fn without_names_and_sample_all_mutants_are_chosen() {
        assert_eq!(names(None, 0, &[]).expect("no names are needed").len(), 20);
        assert_eq!(names(None, 0, &["mutant-7"]).expect("the name exists"), ["mutant-7"]);
        assert!(names(None, 0, &["unknown"]).is_err());
    }
}
