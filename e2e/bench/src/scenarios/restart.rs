//! Everything is published already but for one pod, which changed while nobody looked.
//!
//! When its change is published, the controller has read everything and is at work. That is the one
//! sign of being ready that all contenders give in the same way.

use std::time::{Duration, Instant};

use anyhow::Result;
use endpointd_control_plane::Audit;

use crate::bench::Bench;
use crate::contender::{AtWork, Contender};
use crate::load::{Readiness, report_pod};
use crate::published::Wanted;
use crate::record::{Measure, Scenario};
use crate::server::Written;
use crate::stage::{Settled, WHOLE_MAX};

const SCENARIO: Scenario = Scenario::Restart;
/// There must be none.
pub const UNCALLED: &str = "writes not called for";
/// The slice and the Endpoints of the pod that changed.
const WRITES_WANTED: u64 = 2;
/// The rest of a start-up, and late writes that should not be.
const AFTER: Duration = Duration::from_secs(5);

pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    let layout = bench.scale.settled;
    for round in 0..bench.scale.n_rounds {
        for who in bench.scale.contenders(round) {
            bench.step(SCENARIO, &layout.describe(), round, who);
            let measures = restart(bench, who)?;
            bench.keep(SCENARIO, &layout.describe(), who, measures);
        }
    }
    Ok(())
}

fn restart(bench: &mut Bench<'_>, who: Contender) -> Result<Vec<Measure>> {
    let layout = bench.scale.settled;
    let world = bench.worlds.get(layout, Settled::Yes)?;
    let stage = bench.worlds.stage(&world, Audit::Off, Wanted::all(layout))?;
    let witness = (0, Readiness::Unready);
    stage.actors.observer.with(|published| published.flip(witness.0, witness.1, Instant::now()));
    let changed = report_pod(&stage.actors.sender, &stage.actors.templates, &layout, witness);
    bench.runtime.block_on(changed)?;
    let written = Written::so_far(&stage.api)?;

    bench.progress.detail("starting again");
    let at_work = AtWork::start(who, &stage)?;
    let started = at_work.started;
    let whole = bench.runtime.block_on(stage.actors.observer.wait_until_whole(WHOLE_MAX))?;
    bench.progress.wait(AFTER, "looking for writes");
    let usage = at_work.usage()?;
    let written = Written::so_far(&stage.api)?.since(written);
    at_work.stop()?;
    Ok(vec![
        Measure::seconds("time until at work", whole - started),
        Measure::seconds("CPU", usage.cpu),
        Measure::count(UNCALLED, written.n_writes - WRITES_WANTED),
        Measure::bytes("memory, peak", usage.peak_bytes),
        Measure::bytes("memory, settled", usage.resident_bytes),
    ])
}
