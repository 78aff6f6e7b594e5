//! Generated worlds, planned by us and by upstream's own code.

use std::io::{IsTerminal, Write, stderr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Parser, ValueEnum};
use endpointd_model::Controller;
use endpointd_parity::{Oracle, Order, Scope, Tally, report, run, shrink};

#[derive(Parser)]
#[command(name = "parity", about = "Compares our plans with upstream's on generated worlds")]
struct Cli {
    /// The oracle's program
    #[arg(long)]
    oracle: PathBuf,
    /// How many worlds
    #[arg(long, default_value_t = 4000)]
    worlds: u64,
    /// Same seed, same worlds
    #[arg(long)]
    seed: u64,
    /// Only this controller's
    #[arg(long)]
    controller: Option<Which>,
    /// Only the world of this index
    #[arg(long)]
    world: Option<u64>,
    /// How many of the worlds that differ to shrink and show
    #[arg(long, default_value_t = 5)]
    show: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Which {
    Endpoints,
    Endpointslice,
    Mirroring,
}

/// On a terminal the line is drawn anew; elsewhere a line now and then.
const TERMINAL_EVERY: Duration = Duration::from_millis(200);
const PLAIN_EVERY: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    match compare(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn compare(cli: Cli) -> Result<ExitCode> {
    let Cli { oracle, worlds, seed, controller, world, show } = cli;
    let scope = match controller {
        None => Scope::All,
        Some(Which::Endpoints) => Scope::One(Controller::Endpoints),
        Some(Which::Endpointslice) => Scope::One(Controller::Slices),
        Some(Which::Mirroring) => Scope::One(Controller::Mirror),
    };
    let indexes = world.map_or(0..worlds, |index| index..index + 1);
    let n_workers = std::thread::available_parallelism().map_or(1, usize::from);
    let order = Order { seed, indexes, scope, oracle, n_workers, shown_max: show };
    println!("seed: {seed}");
    let mut progress = Progress::new(order.indexes.end - order.indexes.start);
    let tally = run(&order, |tally| progress.show(tally))?;
    progress.end(&tally);
    if !tally.found.is_empty() {
        eprintln!("shrinking {} of {} worlds that differ", tally.found.len(), tally.n_different);
        let mut oracle = Oracle::start(&order.oracle)?;
        for found in &tally.found {
            let (case, differences) = shrink(found, &mut oracle)?;
            report::print_world(found.index, &case, &differences);
        }
    }
    let is_good = report::print(&tally, scope);
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

struct Progress {
    n: u64,
    start: Instant,
    shown: Instant,
    is_terminal: bool,
}

impl Progress {
    fn new(n: u64) -> Self {
        let now = Instant::now();
        Self { n, start: now, shown: now, is_terminal: stderr().is_terminal() }
    }

    fn rate(&self, tally: &Tally) -> f64 {
        tally.n_worlds as f64 / self.start.elapsed().as_secs_f64().max(0.001)
    }

    fn show(&mut self, tally: &Tally) {
        let every = if self.is_terminal { TERMINAL_EVERY } else { PLAIN_EVERY };
        if self.shown.elapsed() < every {
            return;
        }
        self.shown = Instant::now();
        let rate = self.rate(tally);
        let left_secs = (self.n - tally.n_worlds) as f64 / rate.max(1.0);
        let line = format!(
            "{}/{} worlds, {rate:.0}/s, {left_secs:.0} s left, {} differences",
            tally.n_worlds, self.n, tally.n_different
        );
        if self.is_terminal {
            const BAR: usize = 30;
            let n_done = (tally.n_worlds * BAR as u64 / self.n.max(1)) as usize;
            eprint!("\r\x1b[K[{}{}] {line}", "#".repeat(n_done), ".".repeat(BAR - n_done));
            drop(stderr().flush());
        } else {
            eprintln!("{line}");
        }
    }

    fn end(&self, tally: &Tally) {
        let start = if self.is_terminal { "\r\x1b[K" } else { "" };
        let secs = self.start.elapsed().as_secs_f64();
        eprintln!("{start}{} worlds in {secs:.1} s, {:.0}/s", tally.n_worlds, self.rate(tally));
    }
}
