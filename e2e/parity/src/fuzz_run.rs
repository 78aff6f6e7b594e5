//! Generates and compares many cases on all cores, in bounded memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::case::Case;
use crate::coverage::Coverage;
use crate::deliberate::DeliberateDifference;
use crate::generate::{self, Scope};
use crate::judge::{Aspect, Difference, judge, judge_and_observe};
use crate::oracle::Oracle;

/// Cases per request to the oracle: enough that neither side waits long for the other.
const BATCH: u64 = 64;
/// Summaries waiting to be added; a slow reader blocks the workers and costs no memory.
const WAITING_MAX: usize = 16;
/// How often the oracle runs a case before a difference counts. Upstream acts at random in many
/// places: our result must be one of its results, and some of those are rare.
const RUNS: [usize; 3] = [1, 24, 200];

/// How often a differing case is tried again before the difference counts.
struct RetryPolicy {
    /// Numbers of runs to try in turn; only what is equal in all of them is compared.
    runs: &'static [usize],
    /// Further attempts in which upstream may give exactly our result.
    extra_attempts: usize,
}

const FULL_RETRIES: RetryPolicy = RetryPolicy { runs: &[RUNS[1], RUNS[2]], extra_attempts: 100 };
const FEW_RETRIES: RetryPolicy = RetryPolicy { runs: &[RUNS[1]], extra_attempts: 0 };
/// So many differences have a defect as their cause, not a rare order; from here on fewer retries
/// suffice.
const FEW_RETRIES_FROM: u64 = 20;

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct RunSpec {
    pub seed: u64,
    pub indexes: Range<u64>,
    pub scope: Scope,
    pub oracle: PathBuf,
    pub n_workers: usize,
    /// Differing cases to keep; further ones are only counted.
    pub shown_max: usize,
}

/// A case with a difference that nothing explains.
#[derive(Clone, Debug)]
pub struct DifferingCase {
    pub index: u64,
    pub case: Case,
    pub differences: Vec<Difference>,
}

/// The result of a run, or of a part of it.
#[derive(Debug, Default)]
pub struct RunSummary {
    pub n_cases: u64,
    /// Cases with a difference that nothing explains.
    pub n_different: u64,
    /// Cases with differences that are all deliberate.
    pub n_deliberate: u64,
    /// Cases by deliberate difference.
    pub n_by_id: BTreeMap<DeliberateDifference, u64>,
    /// Cases in which upstream's result varied between runs.
    pub n_nondeterministic: u64,
    pub coverage: Coverage,
    /// The first differing cases, by index.
    pub differing: Vec<DifferingCase>,
    /// Cases that the oracle could not answer, by its error.
    pub n_by_fault: BTreeMap<String, u64>,
}

/// Runs all cases; `progress` receives the summary so far.
pub fn run(spec: &RunSpec, progress: impl FnMut(&RunSummary)) -> Result<RunSummary> {
    let shared = Shared { next: AtomicU64::new(spec.indexes.start), n_different: 0.into() };
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let workers: Vec<_> = (0..spec.n_workers.max(1))
            .map(|_| {
                let (sender, shared) = (sender.clone(), &shared);
                scope.spawn(move || work(spec, shared, &sender))
            })
            .collect();
        drop(sender);
        let summary = gather(&receiver, spec.shown_max, progress);
        for worker in workers {
            worker.join().expect("a worker reports its failures")?;
        }
        Ok(summary)
    })
}

fn gather(
    receiver: &Receiver<RunSummary>,
    shown_max: usize,
    mut progress: impl FnMut(&RunSummary),
) -> RunSummary {
    let mut summary = RunSummary::default();
    while let Ok(part) = receiver.recv() {
        summary.add(part);
        summary.differing.sort_by_key(|differing| differing.index);
        summary.differing.truncate(shown_max);
        progress(&summary);
    }
    summary
}

/// State that all workers share.
struct Shared {
    /// The first index that no worker has taken.
    next: AtomicU64,
    n_different: AtomicU64,
}

impl Shared {
    fn policy(&self) -> RetryPolicy {
        let is_failing = self.n_different.load(Ordering::Relaxed) >= FEW_RETRIES_FROM;
        if is_failing { FEW_RETRIES } else { FULL_RETRIES }
    }
}

fn work(spec: &RunSpec, shared: &Shared, sender: &SyncSender<RunSummary>) -> Result<()> {
    let mut oracle = Oracle::start(&spec.oracle)?;
    loop {
        let start = shared.next.fetch_add(BATCH, Ordering::Relaxed);
        if start >= spec.indexes.end {
            return Ok(());
        }
        let indexes = start..(start + BATCH).min(spec.indexes.end);
        if sender.send(batch(spec, indexes, shared, &mut oracle)?).is_err() {
            return Ok(());
        }
    }
}

fn batch(
    spec: &RunSpec,
    indexes: Range<u64>,
    shared: &Shared,
    oracle: &mut Oracle,
) -> Result<RunSummary> {
    let case = |index| generate::generated_case(spec.seed, index, spec.scope);
    let mut cases: Vec<Case> = indexes.clone().map(case).collect();
    let faults = oracle.ask(&mut cases, RUNS[0])?;
    let mut summary = RunSummary::default();
    for ((index, case), fault) in indexes.zip(cases).zip(faults) {
        match fault {
            None => {
                let before = summary.n_different;
                summary.judge(index, case, &shared.policy(), oracle)?;
                shared.n_different.fetch_add(summary.n_different - before, Ordering::Relaxed);
            }
            Some(fault) => {
                summary.n_cases += 1;
                *summary.n_by_fault.entry(fault).or_default() += 1;
            }
        }
    }
    Ok(summary)
}

impl RunSummary {
    fn judge(
        &mut self,
        index: u64,
        mut case: Case,
        policy: &RetryPolicy,
        oracle: &mut Oracle,
    ) -> Result<()> {
        self.n_cases += 1;
        let coverage = &mut self.coverage;
        let mut differences = judge_and_observe(&case, |sync| coverage.record(sync))?;
        for runs in policy.runs {
            if differences.iter().all(|one| one.deliberate.is_some()) {
                break;
            }
            differences = ask_again(&mut case, *runs, oracle)?;
        }
        if differences.iter().any(|one| one.deliberate.is_none())
            && let Some(met) = retry_until_equal(&case, policy.extra_attempts, oracle)?
        {
            differences = met;
        }
        let nondeterministic = |case: &Case| {
            case.expect.nondeterministic
                || case.then.as_ref().is_some_and(|then| then.expect.nondeterministic)
        };
        self.n_nondeterministic += u64::from(nondeterministic(&case));
        let mut ids: Vec<DeliberateDifference> =
            differences.iter().filter_map(|one| one.deliberate).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.iter().for_each(|id| *self.n_by_id.entry(*id).or_default() += 1);
        if differences.iter().any(|one| one.deliberate.is_none()) {
            self.n_different += 1;
            self.differing.push(DifferingCase { index, case, differences });
        } else if !differences.is_empty() {
            self.n_deliberate += 1;
        }
        Ok(())
    }

    fn add(&mut self, part: Self) {
        let Self {
            n_cases,
            n_different,
            n_deliberate,
            n_by_id,
            n_nondeterministic,
            coverage,
            differing,
            n_by_fault,
        } = part;
        self.n_cases += n_cases;
        self.n_different += n_different;
        self.n_deliberate += n_deliberate;
        self.n_nondeterministic += n_nondeterministic;
        n_by_id.into_iter().for_each(|(id, n)| *self.n_by_id.entry(id).or_default() += n);
        n_by_fault.into_iter().for_each(|(why, n)| *self.n_by_fault.entry(why).or_default() += n);
        self.coverage.add(&coverage);
        self.differing.extend(differing);
    }
}

/// Where upstream acts at random, one of its possible results may equal ours; then there is no
/// difference. For a deterministic case more attempts change nothing.
fn retry_until_equal(
    case: &Case,
    extra_attempts: usize,
    oracle: &mut Oracle,
) -> Result<Option<Vec<Difference>>> {
    for _ in 0..extra_attempts {
        let differences = ask_again(&mut case.clone(), RUNS[0], oracle)?;
        if differences.iter().all(|one| one.deliberate.is_some()) {
            return Ok(Some(differences));
        }
    }
    Ok(None)
}

/// Asks the oracle for several runs and compares what is equal in all of them.
fn ask_again(case: &mut Case, runs: usize, oracle: &mut Oracle) -> Result<Vec<Difference>> {
    oracle.ask(std::slice::from_mut(case), runs)?;
    judge(case)
}

/// The time limit for shrinking one case.
const SHRINKING_MAX: Duration = Duration::from_secs(5);

/// The smallest case with the same kind of difference, and its differences.
pub fn shrink(differing: &DifferingCase, oracle: &mut Oracle) -> Result<(Case, Vec<Difference>)> {
    let kind = kinds(&differing.differences).into_iter().next();
    let is_still_different = |mut case: Case| {
        for runs in &RUNS[..2] {
            // A case that the oracle or we cannot decode is not a smaller case.
            let faults = oracle.ask(std::slice::from_mut(&mut case), *runs).ok()?;
            let differences = judge(&case).ok()?;
            let is_same = kinds(&differences).into_iter().any(|one| Some(one) == kind);
            if !is_same || faults != [None] {
                return None;
            }
        }
        Some(case)
    };
    let case = crate::shrink::shrink(
        differing.case.clone(),
        Instant::now() + SHRINKING_MAX,
        is_still_different,
    );
    let differences = judge(&case)?;
    Ok((case, differences))
}

/// The aspects of the unexplained differences, independent of how they were compared.
fn kinds(differences: &[Difference]) -> Vec<(&'static str, &'static str)> {
    let unexplained = differences.iter().filter(|one| one.deliberate.is_none());
    unexplained
        .map(|one| {
            let about = match one.aspect {
                Aspect::Writes | Aspect::WriteCounts => "writes",
                Aspect::Events => "events",
                Aspect::Errors => "errors",
                Aspect::End | Aspect::EndShape | Aspect::EndUnion | Aspect::EndUnionWithHints => {
                    "end"
                }
                Aspect::Idempotence => "idempotence",
            };
            (one.sync, about)
        })
        .collect()
}
