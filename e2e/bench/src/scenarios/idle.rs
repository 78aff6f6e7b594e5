//! Nothing changes. Requests are counted from the audit log, which names the user.

use std::time::Duration;

use anyhow::Result;
use endpointd_control_plane::Audit;
use endpointd_scenarios::audit;

use crate::bench::Bench;
use crate::published::ExpectedState;
use crate::record::{Measure, Scenario, Unit};
use crate::scenarios::churn::IDLE_WAIT_MAX;
use crate::subject::{RunningSubject, Subject};
use crate::test_bed::Publication;

const SCENARIO: Scenario = Scenario::Idle;
/// Users of other requests than the subject's.
const OTHERS: [&str; 2] = ["admin", "system:apiserver"];

pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    let layout = bench.scale.settled;
    let case = format!("{}, {} s", layout.describe(), bench.scale.idle.as_secs());
    for round in 0..bench.scale.n_rounds {
        for who in bench.scale.subjects(round) {
            bench.step(SCENARIO, &case, round, who);
            let measures = measure(bench, who)?;
            bench.keep(SCENARIO, &case, who, measures);
        }
    }
    Ok(())
}

fn measure(bench: &mut Bench<'_>, who: Subject) -> Result<Vec<Measure>> {
    let layout = bench.scale.settled;
    let saved = bench.clusters.get(layout, Publication::Complete)?;
    let test_bed = bench.clusters.start(&saved, Audit::Metadata, ExpectedState::all(layout))?;
    let running = RunningSubject::start(who, &test_bed)?;
    running.wait_until_idle(IDLE_WAIT_MAX)?;
    bench.progress.wait(bench.scale.settle, "settling");

    let (end, before) = (audit::end(&test_bed.cluster), running.usage()?);
    bench.progress.wait(bench.scale.idle, "idle");
    let after = running.usage()?;
    let requests = audit::requests_since(&test_bed.cluster, end);
    let of_subject = requests.iter().filter(|one| !OTHERS.contains(&one.user.as_str()));
    let cpu: Duration = after - before;
    let measures = vec![
        Measure::new("CPU", Unit::Milliseconds, cpu.as_secs_f64() * 1000.0),
        Measure::count("requests", of_subject.count() as u64),
        Measure::bytes("memory", after.resident_bytes),
    ];
    running.stop()?;
    Ok(measures)
}
