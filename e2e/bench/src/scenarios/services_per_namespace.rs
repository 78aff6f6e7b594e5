//! One namespace with an increasing number of Services. The cost of a readiness toggle should not
//! depend on the number of other Services.

use anyhow::Result;
use endpointd_control_plane::Audit;

use crate::bench::Bench;
use crate::load::{Layout, grouped};
use crate::published::ExpectedState;
use crate::record::{Measure, Scenario};
use crate::scale::{PODS_PER_SERVICE, SERVICE_COUNTS_RATE};
use crate::scenarios::churn::{IDLE_WAIT_MAX, Run};
use crate::subject::{RunningSubject, Subject};
use crate::test_bed::Publication;
use crate::toggles::ToggleSequence;

const SCENARIO: Scenario = Scenario::ServicesPerNamespace;

/// All sizes run in every round, because they are compared and the speed of the machine varies.
pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    for round in 0..bench.scale.n_rounds {
        for n_services in bench.scale.service_counts.clone() {
            let case = format!("{} Services", grouped(n_services));
            for who in bench.scale.subjects(round) {
                bench.step(SCENARIO, &case, round, who);
                let measures = measure_case(bench, n_services, who)?;
                bench.keep(SCENARIO, &case, who, measures);
            }
        }
    }
    Ok(())
}

fn measure_case(bench: &mut Bench<'_>, n_services: usize, who: Subject) -> Result<Vec<Measure>> {
    let layout = Layout::in_one_namespace(n_services, n_services * PODS_PER_SERVICE);
    let saved = bench.clusters.get(layout, Publication::Complete)?;
    let test_bed = bench.clusters.start(&saved, Audit::Off, ExpectedState::all(layout))?;
    let running = RunningSubject::start(who, &test_bed)?;
    running.wait_until_idle(IDLE_WAIT_MAX)?;
    let run = Run { rate: SERVICE_COUNTS_RATE, time: bench.scale.service_counts_duration };
    let measures = run.measure(bench, &test_bed, &running, &mut ToggleSequence::default())?;
    running.stop()?;
    let is_reported = |measure: &Measure| {
        ["CPU per toggle", "writes per toggle", "removal, p99"].contains(&measure.name.as_str())
    };
    Ok(measures.into_iter().filter(is_reported).collect())
}
