//! Pods of a settled cluster become ready and unready at a fixed rate.

use std::time::Duration;

use anyhow::Result;
use endpointd_control_plane::Audit;

use crate::bench::Bench;
use crate::churn::{self, Flipper};
use crate::contender::AtWork;
use crate::flips::{Ended, Latency};
use crate::load::Readiness;
use crate::process::Usage;
use crate::published::Wanted;
use crate::record::{Measure, Scenario, Unit};
use crate::server::Written;
use crate::stage::{Settled, Stage};
use crate::statistics::percentile;

const SCENARIO: Scenario = Scenario::Churn;
/// What is not published by then never will be.
pub const DRAIN_MAX: Duration = Duration::from_secs(300);
/// A start-up is over by then, whoever starts.
pub const QUIET_MAX: Duration = Duration::from_secs(60);

pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    let layout = bench.scale.settled;
    for round in 0..bench.scale.n_rounds {
        for who in bench.scale.contenders(round) {
            bench.step(SCENARIO, &layout.describe(), round, who);
            let world = bench.worlds.get(layout, Settled::Yes)?;
            let stage = bench.worlds.stage(&world, Audit::Off, Wanted::all(layout))?;
            let at_work = AtWork::start(who, &stage)?;
            at_work.wait_until_quiet(QUIET_MAX)?;
            let mut flipper = Flipper::default();
            for rate in bench.scale.rates.clone() {
                let run = Run { rate, time: bench.scale.churn };
                let measures = run.measure(bench, &stage, &at_work, &mut flipper)?;
                bench.keep(SCENARIO, &format!("{rate} flips a second"), who, measures);
            }
            at_work.stop()?;
        }
    }
    Ok(())
}

/// A rate, kept up for some time.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub rate: u32,
    pub time: Duration,
}

impl Run {
    pub fn measure(
        self,
        bench: &Bench<'_>,
        stage: &Stage,
        at_work: &AtWork<'_>,
        flipper: &mut Flipper,
    ) -> Result<Vec<Measure>> {
        let n_flips = self.rate as usize * usize::try_from(self.time.as_secs())?;
        // Each pod is out for a quarter of the time.
        let prepared = flipper.prepare(stage.actors.layout.n_pods, n_flips / 8);
        bench.progress.detail(&format!("{} flips a second: preparing", self.rate));
        bench.runtime.block_on(churn::prepare(&stage.actors, prepared, DRAIN_MAX))?;
        let written = Written::so_far(&stage.api)?;
        let (own, before) = (Usage::own()?, at_work.usage()?);

        bench.progress.detail(&format!("{} flips a second", self.rate));
        let late =
            bench.runtime.block_on(churn::flip(&stage.actors, flipper, self.rate, n_flips))?;
        let drained =
            stage.actors.observer.wait_until(DRAIN_MAX, |published| published.is_settled());
        let n_lost = match bench.runtime.block_on(drained) {
            Ok(()) => 0,
            Err(_) => stage.actors.observer.with(|published| published.n_waiting()),
        };
        let (own, after) = (Usage::own()? - own, at_work.usage()?);
        let written = Written::so_far(&stage.api)?.since(written);
        let flips = stage.actors.observer.with(|published| published.take_flips());
        let count = |is_so: fn(Latency) -> bool| {
            flips.iter().filter(|flip| is_so(flip.latency)).count() as u64
        };
        let n_overtaken = count(Latency::is_overtaken);
        let n_early = count(|latency| latency == Latency::BeforeAnswer);
        let per_flip = |value: f64| value / n_flips as f64;
        let ms = |value| Measure::new("CPU a flip", Unit::Milliseconds, value);
        let mut measures = latencies(&flips);
        measures.extend([
            ms(per_flip((after - before).as_secs_f64() * 1000.0)),
            Measure::new("writes a flip", Unit::Count, per_flip(written.n_writes as f64)),
            Measure::bytes("memory", after.resident_bytes),
            Measure::count("flips overtaken or lost", n_overtaken + n_lost as u64),
            Measure::count("flips shown before their answer", n_early),
            Measure::seconds("CPU of this harness", own),
            Measure::new("sent late, at most", Unit::Milliseconds, late.as_secs_f64() * 1000.0),
        ]);
        Ok(measures)
    }
}

/// Of removals and additions apart. One that was overtaken took at least as long as it counts; one
/// of which nothing is known does not count.
fn latencies(flips: &[Ended]) -> Vec<Measure> {
    let mut measures = Vec::new();
    for (word, readiness) in [("removal", Readiness::Unready), ("addition", Readiness::Ready)] {
        let of_word = flips.iter().filter(|flip| flip.readiness == readiness);
        let known = of_word.filter_map(|flip| flip.latency.at_least());
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
    fn a_flip_of_which_nothing_is_known_makes_no_latency_shorter() {
        let ms = Duration::from_millis;
        let removal = |latency| Ended { readiness: Readiness::Unready, latency };
        let known = [Latency::Took(ms(5)), Latency::MoreThan(ms(9)), Latency::BeforeAnswer];
        let flips: Vec<Ended> =
            known.into_iter().chain([Latency::Unknown; 9]).map(removal).collect();
        let found: Vec<f64> = latencies(&flips).iter().map(|measure| measure.value).collect();
        assert_eq!(found, [5.0, 9.0, 9.0, 9.0]);
    }
}
