//! Nothing changes. Requests are counted in the audit log, which tells who asked.

use std::time::Duration;

use anyhow::Result;
use endpointd_control_plane::Audit;
use endpointd_histories::audit;

use crate::bench::Bench;
use crate::contender::{AtWork, Contender};
use crate::published::Wanted;
use crate::record::{Measure, Scenario, Unit};
use crate::scenarios::churn::QUIET_MAX;
use crate::stage::Settled;

const SCENARIO: Scenario = Scenario::Idle;
/// Nobody else than these and a contender talks to the server.
const OTHERS: [&str; 2] = ["admin", "system:apiserver"];

pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    let layout = bench.scale.settled;
    let case = format!("{}, {} s", layout.describe(), bench.scale.idle.as_secs());
    for round in 0..bench.scale.n_rounds {
        for who in bench.scale.contenders(round) {
            bench.step(SCENARIO, &case, round, who);
            let measures = rest(bench, who)?;
            bench.keep(SCENARIO, &case, who, measures);
        }
    }
    Ok(())
}

fn rest(bench: &mut Bench<'_>, who: Contender) -> Result<Vec<Measure>> {
    let layout = bench.scale.settled;
    let world = bench.worlds.get(layout, Settled::Yes)?;
    let stage = bench.worlds.stage(&world, Audit::Metadata, Wanted::all(layout))?;
    let at_work = AtWork::start(who, &stage)?;
    at_work.wait_until_quiet(QUIET_MAX)?;
    bench.progress.wait(bench.scale.settle, "settling");

    let (end, before) = (audit::end(&stage.cluster), at_work.usage()?);
    bench.progress.wait(bench.scale.idle, "idle");
    let after = at_work.usage()?;
    let requests = audit::requests_since(&stage.cluster, end);
    let of_contender = requests.iter().filter(|one| !OTHERS.contains(&one.user.as_str()));
    let cpu: Duration = after - before;
    let measures = vec![
        Measure::new("CPU", Unit::Milliseconds, cpu.as_secs_f64() * 1000.0),
        Measure::count("requests", of_contender.count() as u64),
        Measure::bytes("memory", after.resident_bytes),
    ];
    at_work.stop()?;
    Ok(measures)
}
