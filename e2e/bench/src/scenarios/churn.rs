//! Readiness toggles at a fixed rate on a converged cluster.

use std::time::Duration;

use anyhow::Result;
use endpointd_control_plane::Audit;

use crate::bench::Bench;
use crate::load::Readiness;
use crate::process::Usage;
use crate::published::ExpectedState;
use crate::record::{Measure, Scenario, Unit};
use crate::server::Written;
use crate::statistics::percentile;
use crate::subject::RunningSubject;
use crate::test_bed::{Publication, TestBed};
use crate::toggle_tracker::{CompletedToggle, Latency};
use crate::toggles::{self, ToggleSequence};

const SCENARIO: Scenario = Scenario::Churn;
/// A toggle that is not published within this time counts as lost.
pub const DRAIN_MAX: Duration = Duration::from_secs(300);
/// The longest initial sync of any subject.
pub const IDLE_WAIT_MAX: Duration = Duration::from_secs(60);

pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    let layout = bench.scale.settled;
    for round in 0..bench.scale.n_rounds {
        for who in bench.scale.subjects(round) {
            bench.step(SCENARIO, &layout.describe(), round, who);
            let saved = bench.clusters.get(layout, Publication::Complete)?;
            let test_bed = bench.clusters.start(&saved, Audit::Off, ExpectedState::all(layout))?;
            let running = RunningSubject::start(who, &test_bed)?;
            running.wait_until_idle(IDLE_WAIT_MAX)?;
            let mut sequence = ToggleSequence::default();
            for rate in bench.scale.rates.clone() {
                let run = Run { rate, time: bench.scale.churn };
                let measures = run.measure(bench, &test_bed, &running, &mut sequence)?;
                bench.keep(SCENARIO, &format!("{rate} toggles per second"), who, measures);
            }
            running.stop()?;
        }
    }
    Ok(())
}

/// A rate of toggles for some time.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub rate: u32,
    pub time: Duration,
}

impl Run {
    pub fn measure(
        self,
        bench: &Bench<'_>,
        test_bed: &TestBed,
        running: &RunningSubject<'_>,
        sequence: &mut ToggleSequence,
    ) -> Result<Vec<Measure>> {
        let n_toggles = self.rate as usize * usize::try_from(self.time.as_secs())?;
        // Each pod is unready for a quarter of the time.
        let prepared = sequence.prepare(test_bed.drivers.layout.n_pods, n_toggles / 8);
        bench.progress.detail(&format!("{} toggles per second: preparing", self.rate));
        bench.runtime.block_on(toggles::prepare(&test_bed.drivers, prepared, DRAIN_MAX))?;
        let written = Written::so_far(&test_bed.api)?;
        let (own, before) = (Usage::own()?, running.usage()?);

        bench.progress.detail(&format!("{} toggles per second", self.rate));
        let late = bench.runtime.block_on(toggles::run(
            &test_bed.drivers,
            sequence,
            self.rate,
            n_toggles,
        ))?;
        let drained =
            test_bed.drivers.observer.wait_until(DRAIN_MAX, |published| published.is_converged());
        let n_lost = match bench.runtime.block_on(drained) {
            Ok(()) => 0,
            Err(_) => test_bed.drivers.observer.with(|published| published.n_waiting()),
        };
        let (own, after) = (Usage::own()? - own, running.usage()?);
        let written = Written::so_far(&test_bed.api)?.since(written);
        let toggles = test_bed.drivers.observer.with(|published| published.take_completed());
        let count = |matches: fn(Latency) -> bool| {
            toggles.iter().filter(|toggle| matches(toggle.latency)).count() as u64
        };
        let n_superseded = count(Latency::is_superseded);
        let n_early = count(|latency| latency == Latency::BeforeResponse);
        let per_toggle = |value: f64| value / n_toggles as f64;
        let ms = |value| Measure::new("CPU per toggle", Unit::Milliseconds, value);
        let mut measures = latencies(&toggles);
        measures.extend([
            ms(per_toggle((after - before).as_secs_f64() * 1000.0)),
            Measure::new("writes per toggle", Unit::Count, per_toggle(written.n_writes as f64)),
            Measure::bytes("memory", after.resident_bytes),
            Measure::count("toggles superseded or lost", n_superseded + n_lost as u64),
            Measure::count("toggles published before their response", n_early),
            Measure::seconds("CPU of the harness", own),
            Measure::new("send delay, max", Unit::Milliseconds, late.as_secs_f64() * 1000.0),
        ]);
        measures.extend(written.watch_measures());
        Ok(measures)
    }
}

/// Percentiles of removals and of additions. A superseded toggle counts with its lower bound; one
/// with unknown latency does not count.
fn latencies(toggles: &[CompletedToggle]) -> Vec<Measure> {
    let mut measures = Vec::new();
    for (word, readiness) in [("removal", Readiness::Unready), ("addition", Readiness::Ready)] {
        let of_word = toggles.iter().filter(|toggle| toggle.readiness == readiness);
        let known = of_word.filter_map(|toggle| toggle.latency.at_least());
        let ms: Vec<f64> = known.map(|time| time.as_secs_f64() * 1000.0).collect();
        for (name, percent) in [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("max", 100.0)] {
            if let Some(value) = percentile(&ms, percent) {
                measures.push(Measure::new(format!("{word}, {name}"), Unit::Milliseconds, value));
            }
        }
    }
    measures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toggles_with_unknown_latency_do_not_count() {
        let ms = Duration::from_millis;
        let removal = |latency| CompletedToggle { readiness: Readiness::Unready, latency };
        let known = [Latency::Took(ms(5)), Latency::MoreThan(ms(9)), Latency::BeforeResponse];
        let toggles: Vec<CompletedToggle> =
            known.into_iter().chain([Latency::Unknown; 9]).map(removal).collect();
        let found: Vec<f64> = latencies(&toggles).iter().map(|measure| measure.value).collect();
        assert_eq!(found, [5.0, 9.0, 9.0, 9.0]);
    }
}
