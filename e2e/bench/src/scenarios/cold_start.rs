//! Services and pods exist, no Endpoints and slices exist, the controller starts.

use anyhow::Result;
use endpointd_control_plane::{Audit, Program};

use crate::bench::Bench;
use crate::load::Layout;
use crate::process::Usage;
use crate::published::ExpectedState;
use crate::record::{Measure, Scenario};
use crate::scenarios::write_only;
use crate::server::Written;
use crate::subject::{RunningSubject, Subject};
use crate::test_bed::{COMPLETE_MAX, Publication};

const SCENARIO: Scenario = Scenario::ColdStart;
pub const TIME: &str = "time until complete";

/// If `write-only` is wanted, it runs in every round of the cold starts, because the two are
/// compared. The first of the two scenarios measures both.
pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    if bench.records.iter().any(|record| record.scenario == SCENARIO) {
        return Ok(());
    }
    for layout in bench.scale.cold.clone() {
        for round in 0..bench.scale.n_rounds {
            for who in bench.scale.subjects(round) {
                bench.step(SCENARIO, &layout.describe(), round, who);
                let measures = start(bench, layout, who)?;
                bench.keep(SCENARIO, &layout.describe(), who, measures);
            }
            if bench.wanted.contains(&Scenario::WriteOnly) {
                write_only::measure(bench, layout, round)?;
            }
        }
    }
    Ok(())
}

fn start(bench: &mut Bench<'_>, layout: Layout, who: Subject) -> Result<Vec<Measure>> {
    let saved = bench.clusters.get(layout, Publication::None)?;
    let test_bed = bench.clusters.start(&saved, Audit::Off, ExpectedState::all(layout))?;
    let server = |program| Usage::of(test_bed.cluster.pid(program).unwrap_or_default());
    let written = Written::so_far(&test_bed.api)?;
    let (own, api_server) = (Usage::own()?, server(Program::ApiServer)?);

    bench.progress.detail("publishing");
    let running = RunningSubject::start(who, &test_bed)?;
    let started = running.started;
    let whole =
        bench.runtime.block_on(test_bed.drivers.observer.wait_until_complete(COMPLETE_MAX))?;
    let usage = running.usage()?;
    let (own, api_server) = (Usage::own()? - own, server(Program::ApiServer)? - api_server);

    bench.progress.wait(bench.scale.settle, "settling");
    let settled = running.usage()?;
    let written = Written::so_far(&test_bed.api)?.since(written);
    running.stop()?;
    Ok(vec![
        Measure::seconds(TIME, whole - started),
        Measure::seconds("CPU until complete", usage.cpu),
        Measure::bytes("memory, peak", settled.peak_bytes),
        Measure::bytes("memory, settled", settled.resident_bytes),
        Measure::count("writes", written.n_writes),
        Measure::count("writes rejected", written.n_rejected),
        Measure::seconds("CPU of kube-apiserver", api_server),
        Measure::seconds("CPU of the harness", own),
    ])
}
