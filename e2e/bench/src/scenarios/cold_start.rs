//! Services and pods exist, nothing is published, the controller starts.

use anyhow::Result;
use endpointd_control_plane::{Audit, Program};

use crate::bench::Bench;
use crate::contender::{AtWork, Contender};
use crate::load::Layout;
use crate::process::Usage;
use crate::published::Wanted;
use crate::record::{Measure, Scenario};
use crate::scenarios::floor;
use crate::server::Written;
use crate::stage::{Settled, WHOLE_MAX};

const SCENARIO: Scenario = Scenario::ColdStart;
/// What people ask for first.
pub const TIME: &str = "time until complete";

/// The floor takes its turn in every round if it is wanted: it is compared with what is found here.
/// Whoever asks first measures for both.
pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    if bench.records.iter().any(|record| record.scenario == SCENARIO) {
        return Ok(());
    }
    for layout in bench.scale.cold.clone() {
        for round in 0..bench.scale.n_rounds {
            for who in bench.scale.contenders(round) {
                bench.step(SCENARIO, &layout.describe(), round, who);
                let measures = start(bench, layout, who)?;
                bench.keep(SCENARIO, &layout.describe(), who, measures);
            }
            if bench.wanted.contains(&Scenario::Floor) {
                floor::measure(bench, layout, round)?;
            }
        }
    }
    Ok(())
}

fn start(bench: &mut Bench<'_>, layout: Layout, who: Contender) -> Result<Vec<Measure>> {
    let world = bench.worlds.get(layout, Settled::No)?;
    let stage = bench.worlds.stage(&world, Audit::Off, Wanted::all(layout))?;
    let server = |program| Usage::of(stage.cluster.pid(program).unwrap_or_default());
    let written = Written::so_far(&stage.api)?;
    let (own, api_server) = (Usage::own()?, server(Program::ApiServer)?);

    bench.progress.detail("publishing");
    let at_work = AtWork::start(who, &stage)?;
    let started = at_work.started;
    let whole = bench.runtime.block_on(stage.actors.observer.wait_until_whole(WHOLE_MAX))?;
    let usage = at_work.usage()?;
    let (own, api_server) = (Usage::own()? - own, server(Program::ApiServer)? - api_server);

    bench.progress.wait(bench.scale.settle, "settling");
    let settled = at_work.usage()?;
    let written = Written::so_far(&stage.api)?.since(written);
    at_work.stop()?;
    Ok(vec![
        Measure::seconds(TIME, whole - started),
        Measure::seconds("CPU until complete", usage.cpu),
        Measure::bytes("memory, peak", settled.peak_bytes),
        Measure::bytes("memory, settled", settled.resident_bytes),
        Measure::count("writes", written.n_writes),
        Measure::count("writes refused", written.n_refused),
        Measure::seconds("CPU of kube-apiserver", api_server),
        Measure::seconds("CPU of this harness", own),
    ])
}
