//! One namespace with more and more Services. A pod's change concerns one of them; what it costs
//! should not depend on how many others there are.

use anyhow::Result;
use endpointd_control_plane::Audit;

use crate::bench::Bench;
use crate::churn::Flipper;
use crate::contender::{AtWork, Contender};
use crate::load::{Layout, grouped};
use crate::published::Wanted;
use crate::record::{Measure, Scenario};
use crate::scale::{CROWD_PODS, CROWD_RATE};
use crate::scenarios::churn::{QUIET_MAX, Run};
use crate::stage::Settled;

const SCENARIO: Scenario = Scenario::Crowded;

/// Crowds take turns as well: it is they that are compared, and machines change from hour to hour.
pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    for round in 0..bench.scale.n_rounds {
        for n_services in bench.scale.crowds.clone() {
            let case = format!("{} Services", grouped(n_services));
            for who in bench.scale.contenders(round) {
                bench.step(SCENARIO, &case, round, who);
                let measures = flip_among(bench, n_services, who)?;
                bench.keep(SCENARIO, &case, who, measures);
            }
        }
    }
    Ok(())
}

fn flip_among(bench: &mut Bench<'_>, n_services: usize, who: Contender) -> Result<Vec<Measure>> {
    let layout = Layout::crowded(n_services, n_services * CROWD_PODS);
    let world = bench.worlds.get(layout, Settled::Yes)?;
    let stage = bench.worlds.stage(&world, Audit::Off, Wanted::all(layout))?;
    let at_work = AtWork::start(who, &stage)?;
    at_work.wait_until_quiet(QUIET_MAX)?;
    let run = Run { rate: CROWD_RATE, time: bench.scale.crowd };
    let measures = run.measure(bench, &stage, &at_work, &mut Flipper::default())?;
    at_work.stop()?;
    let is_told = |measure: &Measure| {
        ["CPU a flip", "writes a flip", "removal, p99"].contains(&measure.name.as_str())
    };
    Ok(measures.into_iter().filter(is_told).collect())
}
