//! Everything is published except the change of one pod that occurred while no controller ran.
//!
//! When that change is published, the controller has finished its initial lists. This is the only
//! sign of readiness that all subjects have in common.

use std::time::{Duration, Instant};

use anyhow::Result;
use endpointd_control_plane::Audit;

use crate::bench::Bench;
use crate::load::{Readiness, report_pod};
use crate::published::ExpectedState;
use crate::record::{Measure, Scenario};
use crate::server::Written;
use crate::subject::{RunningSubject, Subject};
use crate::test_bed::{COMPLETE_MAX, Publication};

const SCENARIO: Scenario = Scenario::Restart;
/// Must be zero.
pub const UNNECESSARY_WRITES: &str = "unnecessary writes";
/// One slice and one Endpoints object.
const NECESSARY_WRITES: u64 = 2;
/// The end of the initial sync, and possible late writes.
const LATE_WRITES: Duration = Duration::from_secs(5);

pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    let layout = bench.scale.settled;
    for round in 0..bench.scale.n_rounds {
        for who in bench.scale.subjects(round) {
            bench.step(SCENARIO, &layout.describe(), round, who);
            let measures = restart(bench, who)?;
            bench.keep(SCENARIO, &layout.describe(), who, measures);
        }
    }
    Ok(())
}

fn restart(bench: &mut Bench<'_>, who: Subject) -> Result<Vec<Measure>> {
    let layout = bench.scale.settled;
    let saved = bench.clusters.get(layout, Publication::Complete)?;
    let test_bed = bench.clusters.start(&saved, Audit::Off, ExpectedState::all(layout))?;
    let changed_pod = (0, Readiness::Unready);
    test_bed
        .drivers
        .observer
        .with(|published| published.toggle_started(changed_pod.0, changed_pod.1, Instant::now()));
    let changed =
        report_pod(&test_bed.drivers.sender, &test_bed.drivers.templates, &layout, changed_pod);
    bench.runtime.block_on(changed)?;
    let written = Written::so_far(&test_bed.api)?;

    bench.progress.detail("restarting");
    let running = RunningSubject::start(who, &test_bed)?;
    let started = running.started;
    let whole =
        bench.runtime.block_on(test_bed.drivers.observer.wait_until_complete(COMPLETE_MAX))?;
    bench.progress.wait(LATE_WRITES, "waiting for late writes");
    let usage = running.usage()?;
    let written = Written::so_far(&test_bed.api)?.since(written);
    running.stop()?;
    Ok(vec![
        Measure::seconds("time until ready", whole - started),
        Measure::seconds("CPU", usage.cpu),
        Measure::count(UNNECESSARY_WRITES, written.n_writes - NECESSARY_WRITES),
        Measure::bytes("memory, peak", usage.peak_bytes),
        Measure::bytes("memory, settled", usage.resident_bytes),
    ])
}
