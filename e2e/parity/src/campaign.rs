//! Many worlds, asked and judged on all cores, in bounded memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::case::Case;
use crate::choice::Choice;
use crate::coverage::Coverage;
use crate::generate::{self, Scope};
use crate::judge::{Aspect, Difference, judge, judge_and_tell};
use crate::oracle::Oracle;

/// Worlds asked at once: enough that neither side waits long for the other.
const BATCH: u64 = 64;
/// Outcomes waiting to be counted; a slow reader slows the workers and costs no memory.
const WAITING_MAX: usize = 16;
/// How often a world is run before a difference counts. Upstream leaves much to chance: what we
/// do must be among what it does, and some of that is rare.
const RUNS: [usize; 3] = [1, 24, 200];

/// What a difference must survive before it counts.
struct Patience {
    /// Runs at once, of which only what did not vary is compared.
    runs: &'static [usize],
    /// How often upstream may be asked whether it ever acts as we do.
    chances: usize,
}

const PATIENT: Patience = Patience { runs: &[RUNS[1], RUNS[2]], chances: 100 };
const CERTAIN: Patience = Patience { runs: &[RUNS[1]], chances: 0 };
/// So many differences are a defect, not a rare order: from here on less patience has to do.
const CERTAIN_FROM: u64 = 20;

/// What to run.
#[derive(Clone, Debug)]
pub struct Order {
    pub seed: u64,
    pub indexes: Range<u64>,
    pub scope: Scope,
    pub oracle: PathBuf,
    pub n_workers: usize,
    /// Worlds kept to be shown; further ones are only counted.
    pub shown_max: usize,
}

/// A world upstream and we disagree on.
#[derive(Clone, Debug)]
pub struct Found {
    pub index: u64,
    pub case: Case,
    pub differences: Vec<Difference>,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Tally {
    pub n_worlds: u64,
    /// Worlds with a difference nothing explains.
    pub n_different: u64,
    /// Worlds with differences that are all explained.
    pub n_by_choice: u64,
    /// Worlds by what explains a difference in them.
    pub n_by_id: BTreeMap<Choice, u64>,
    /// Worlds in which upstream was seen to act by chance.
    pub n_by_chance: u64,
    pub coverage: Coverage,
    /// The first few that differ, by index.
    pub found: Vec<Found>,
    /// Worlds the oracle could not answer, by what it said.
    pub n_by_fault: BTreeMap<String, u64>,
}

/// Runs the order; `progress` is told the tally so far now and then.
pub fn run(order: &Order, progress: impl FnMut(&Tally)) -> Result<Tally> {
    let shared = Shared { next: AtomicU64::new(order.indexes.start), n_different: 0.into() };
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let workers: Vec<_> = (0..order.n_workers.max(1))
            .map(|_| {
                let (sender, shared) = (sender.clone(), &shared);
                scope.spawn(move || work(order, shared, &sender))
            })
            .collect();
        drop(sender);
        let tally = gather(&receiver, order.shown_max, progress);
        for worker in workers {
            worker.join().expect("a worker reports its failures")?;
        }
        Ok(tally)
    })
}

fn gather(receiver: &Receiver<Tally>, shown_max: usize, mut progress: impl FnMut(&Tally)) -> Tally {
    let mut tally = Tally::default();
    while let Ok(part) = receiver.recv() {
        tally.add(part);
        tally.found.sort_by_key(|found| found.index);
        tally.found.truncate(shown_max);
        progress(&tally);
    }
    tally
}

/// What the workers have in common.
struct Shared {
    /// The first index nobody has taken yet.
    next: AtomicU64,
    n_different: AtomicU64,
}

impl Shared {
    fn patience(&self) -> Patience {
        let is_certain = self.n_different.load(Ordering::Relaxed) >= CERTAIN_FROM;
        if is_certain { CERTAIN } else { PATIENT }
    }
}

fn work(order: &Order, shared: &Shared, sender: &SyncSender<Tally>) -> Result<()> {
    let mut oracle = Oracle::start(&order.oracle)?;
    loop {
        let start = shared.next.fetch_add(BATCH, Ordering::Relaxed);
        if start >= order.indexes.end {
            return Ok(());
        }
        let indexes = start..(start + BATCH).min(order.indexes.end);
        if sender.send(batch(order, indexes, shared, &mut oracle)?).is_err() {
            return Ok(());
        }
    }
}

fn batch(
    order: &Order,
    indexes: Range<u64>,
    shared: &Shared,
    oracle: &mut Oracle,
) -> Result<Tally> {
    let world = |index| generate::world(order.seed, index, order.scope);
    let mut cases: Vec<Case> = indexes.clone().map(world).collect();
    let faults = oracle.ask(&mut cases, RUNS[0])?;
    let mut tally = Tally::default();
    for ((index, case), fault) in indexes.zip(cases).zip(faults) {
        match fault {
            None => {
                let before = tally.n_different;
                tally.judge(index, case, &shared.patience(), oracle)?;
                shared.n_different.fetch_add(tally.n_different - before, Ordering::Relaxed);
            }
            Some(fault) => {
                tally.n_worlds += 1;
                *tally.n_by_fault.entry(fault).or_default() += 1;
            }
        }
    }
    Ok(tally)
}

impl Tally {
    fn judge(
        &mut self,
        index: u64,
        mut case: Case,
        patience: &Patience,
        oracle: &mut Oracle,
    ) -> Result<()> {
        self.n_worlds += 1;
        let coverage = &mut self.coverage;
        let mut differences = judge_and_tell(&case, |sync| coverage.see(sync))?;
        for runs in patience.runs {
            if differences.iter().all(|one| one.choice.is_some()) {
                break;
            }
            differences = ask_again(&mut case, *runs, oracle)?;
        }
        if differences.iter().any(|one| one.choice.is_none())
            && let Some(met) = meet_by_chance(&case, patience.chances, oracle)?
        {
            differences = met;
        }
        let nondeterministic = |case: &Case| {
            case.expect.nondeterministic
                || case.then.as_ref().is_some_and(|then| then.expect.nondeterministic)
        };
        self.n_by_chance += u64::from(nondeterministic(&case));
        let mut ids: Vec<Choice> = differences.iter().filter_map(|one| one.choice).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.iter().for_each(|id| *self.n_by_id.entry(*id).or_default() += 1);
        if differences.iter().any(|one| one.choice.is_none()) {
            self.n_different += 1;
            self.found.push(Found { index, case, differences });
        } else if !differences.is_empty() {
            self.n_by_choice += 1;
        }
        Ok(())
    }

    fn add(&mut self, part: Self) {
        let Self {
            n_worlds,
            n_different,
            n_by_choice,
            n_by_id,
            n_by_chance,
            coverage,
            found,
            n_by_fault,
        } = part;
        self.n_worlds += n_worlds;
        self.n_different += n_different;
        self.n_by_choice += n_by_choice;
        self.n_by_chance += n_by_chance;
        n_by_id.into_iter().for_each(|(id, n)| *self.n_by_id.entry(id).or_default() += n);
        n_by_fault.into_iter().for_each(|(why, n)| *self.n_by_fault.entry(why).or_default() += n);
        self.coverage.add(&coverage);
        self.found.extend(found);
    }
}

/// Where upstream acts by chance, one of its ways may be exactly ours, however rare: then there is
/// nothing left to explain. A world in which it always acts the same gains nothing by this.
fn meet_by_chance(
    case: &Case,
    chances: usize,
    oracle: &mut Oracle,
) -> Result<Option<Vec<Difference>>> {
    for _ in 0..chances {
        let differences = ask_again(&mut case.clone(), RUNS[0], oracle)?;
        if differences.iter().all(|one| one.choice.is_some()) {
            return Ok(Some(differences));
        }
    }
    Ok(None)
}

/// Asks for several runs at once, and judges by what did not vary.
fn ask_again(case: &mut Case, runs: usize, oracle: &mut Oracle) -> Result<Vec<Difference>> {
    oracle.ask(std::slice::from_mut(case), runs)?;
    judge(case)
}

/// What shrinking one world may take.
const SHRINKING_MAX: Duration = Duration::from_secs(5);

/// The smallest world with the same kind of difference, and what differs in it.
pub fn shrink(found: &Found, oracle: &mut Oracle) -> Result<(Case, Vec<Difference>)> {
    let kind = kinds(&found.differences).into_iter().next();
    let still = |mut case: Case| {
        for runs in &RUNS[..2] {
            // What the oracle or we cannot read is no smaller world.
            let faults = oracle.ask(std::slice::from_mut(&mut case), *runs).ok()?;
            let differences = judge(&case).ok()?;
            let is_same = kinds(&differences).into_iter().any(|one| Some(one) == kind);
            if !is_same || faults != [None] {
                return None;
            }
        }
        Some(case)
    };
    let case = crate::shrink::shrink(found.case.clone(), Instant::now() + SHRINKING_MAX, still);
    let differences = judge(&case)?;
    Ok((case, differences))
}

/// What an unexplained difference is about; how it was compared does not matter.
fn kinds(differences: &[Difference]) -> Vec<(&'static str, &'static str)> {
    let unexplained = differences.iter().filter(|one| one.choice.is_none());
    unexplained
        .map(|one| {
            let about = match one.aspect {
                Aspect::Writes | Aspect::WriteCounts => "writes",
                Aspect::Events => "events",
                Aspect::Errors => "errors",
                Aspect::End | Aspect::EndShape | Aspect::EndUnion | Aspect::EndUnionWithHints => {
                    "end"
                }
                Aspect::Rest => "rest",
            };
            (one.sync, about)
        })
        .collect()
}
