//! The commands that look at a cluster and end: `explain` of one Service, and `diff` of all.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use endpointd_control_plane::Audit;
use endpointd_scenarios::daemon;

use crate::bench::Bench;
use crate::load::{Layout, layout};
use crate::process::Usage;
use crate::published::ExpectedState;
use crate::record::{Measure, Scenario};
use crate::subject::Subject;
use crate::test_bed::{Publication, TestBed};

const SCENARIO: Scenario = Scenario::Commands;
/// Memory and CPU time are those of the last sample before the process ends.
const SAMPLE: Duration = Duration::from_millis(2);

pub const EXPLAIN_TIME: &str = "explain: time";

pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    for round in 0..bench.scale.n_rounds {
        for layout in bench.scale.cold.clone() {
            bench.step(SCENARIO, &layout.describe(), round, Subject::Endpointd);
            let saved = bench.clusters.get(layout, Publication::Complete)?;
            let expected = ExpectedState::all(layout);
            let test_bed = bench.clusters.start(&saved, Audit::Off, expected)?;
            let mut measures = run_command("explain", &explain(&layout, round), &test_bed)?;
            measures.extend(run_command("diff", &["diff", "-A"].map(str::to_owned), &test_bed)?);
            bench.keep(SCENARIO, &layout.describe(), Subject::Endpointd, measures);
        }
    }
    Ok(())
}

/// Another Service in each round.
fn explain(layout: &Layout, round: usize) -> [String; 4] {
    let service = round % layout.n_services;
    let name = format!("svc/{}", layout::service(service));
    ["explain".to_owned(), name, "-n".to_owned(), layout.namespace_of(service)]
}

fn run_command(word: &str, arguments: &[String], test_bed: &TestBed) -> Result<Vec<Measure>> {
    let mut command: Command = daemon::command();
    command.args(arguments).arg("--kubeconfig").arg(&test_bed.account);
    let started = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn().context("cannot start endpointd")?;
    let mut last = Usage::default();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        last = Usage::of(child.id()).unwrap_or(last);
        thread::sleep(SAMPLE);
    };
    let took = started.elapsed();
    // 1: it found something. On this cluster there is nothing to find.
    ensure!(status.success(), "`endpointd {}` ended with {status}", arguments.join(" "));
    Ok(vec![
        Measure::seconds(format!("{word}: time"), took),
        Measure::seconds(format!("{word}: CPU"), last.cpu),
        Measure::bytes(format!("{word}: memory, peak"), last.peak_bytes),
    ])
}
