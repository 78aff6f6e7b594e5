//! What an instance needs that looks at a part of the namespaces only.

use anyhow::{Context, Result};
use endpointd_control_plane::Audit;

use crate::bench::Bench;
use crate::load::layout::namespace;
use crate::published::ExpectedState;
use crate::record::{Measure, Scenario, Unit};
use crate::scenarios::churn::IDLE_WAIT_MAX;
use crate::subject::{RunningSubject, Subject};
use crate::test_bed::Publication;

const SCENARIO: Scenario = Scenario::Scopes;
/// Of the twenty namespaces of a [`Layout`](crate::load::Layout).
const SOME_NAMESPACES: usize = 5;

pub const N_SCOPES: usize = 3;

pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    let names = |n: usize| (0..n).map(namespace).collect::<Vec<_>>().join(",");
    let flags: [Vec<String>; N_SCOPES] = [
        vec![],
        vec![format!("--namespaces={}", names(SOME_NAMESPACES))],
        vec![format!("--namespaces={}", names(1))],
    ];
    for round in 0..bench.scale.n_rounds {
        for flags in &flags {
            let scope = flags.first().map_or("everything", String::as_str);
            let case = format!("{}, {scope}", bench.scale.settled.describe());
            bench.step(SCENARIO, &case, round, Subject::Endpointd);
            let measures = measure(bench, flags)?;
            bench.keep(SCENARIO, &case, Subject::Endpointd, measures);
        }
    }
    Ok(())
}

/// Everything is published when it starts.
fn measure(bench: &mut Bench<'_>, flags: &[String]) -> Result<Vec<Measure>> {
    let layout = bench.scale.settled;
    let saved = bench.clusters.get(layout, Publication::Complete)?;
    let test_bed = bench.clusters.start(&saved, Audit::Off, ExpectedState::all(layout))?;
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let running = RunningSubject::start_endpointd(&test_bed, &flags)?;
    running.wait_until_idle(IDLE_WAIT_MAX)?;
    bench.progress.wait(bench.scale.settle, "settling");
    let usage = running.usage()?;
    let metric = |name: &str| running.metric(name).with_context(|| format!("no metric `{name}`"));
    let measures = vec![
        Measure::bytes("memory", usage.resident_bytes),
        Measure::bytes("memory, peak", usage.peak_bytes),
        Measure::bytes("cache", metric("endpointd_cache_bytes")? as u64),
        Measure::new("CPU", Unit::Milliseconds, usage.cpu.as_secs_f64() * 1000.0),
    ];
    running.stop()?;
    Ok(measures)
}
