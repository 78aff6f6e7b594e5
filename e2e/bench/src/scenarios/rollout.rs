//! All pods of one large Service are replaced in batches: new pods become ready, as many old pods
//! start to terminate, and those of the previous batch are deleted.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Result;
use endpointd_control_plane::Audit;

use crate::bench::Bench;
use crate::load::{IN_FLIGHT, Layout, PodNumber, for_each, grouped, pod_path, write_pod};
use crate::published::ExpectedState;
use crate::record::{Measure, Scenario};
use crate::scale::BATCH;
use crate::scenarios::churn::{DRAIN_MAX, IDLE_WAIT_MAX};
use crate::server::Written;
use crate::subject::{RunningSubject, Subject};
use crate::test_bed::{Drivers, Publication};

const SCENARIO: Scenario = Scenario::Rollout;
/// Interval between batches, the same for all subjects.
const BATCH_INTERVAL: Duration = Duration::from_millis(500);

pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    let n_pods = bench.scale.rollout_pods;
    let case = format!("{} pods, {BATCH} at a time", grouped(n_pods));
    for round in 0..bench.scale.n_rounds {
        for who in bench.scale.subjects(round) {
            bench.step(SCENARIO, &case, round, who);
            let measures = roll(bench, n_pods, who)?;
            bench.keep(SCENARIO, &case, who, measures);
        }
    }
    Ok(())
}

fn roll(bench: &mut Bench<'_>, n_pods: usize, who: Subject) -> Result<Vec<Measure>> {
    let layout = Layout::spread(1, n_pods);
    let saved = bench.clusters.get(layout, Publication::Complete)?;
    let wanted = ExpectedState { layout, first_pod: n_pods };
    let test_bed = bench.clusters.start(&saved, Audit::Off, wanted)?;
    let running = RunningSubject::start(who, &test_bed)?;
    running.wait_until_idle(IDLE_WAIT_MAX)?;
    let (written, before) = (Written::so_far(&test_bed.api)?, running.usage()?);

    let began = Instant::now();
    bench.runtime.block_on(async {
        for first in (0..n_pods).step_by(BATCH) {
            let due = tokio::time::Instant::now() + BATCH_INTERVAL;
            bench.progress.count("pods replaced", first, n_pods);
            replace(&test_bed.drivers, first..(first + BATCH).min(n_pods), n_pods).await?;
            tokio::time::sleep_until(due).await;
        }
        let last = n_pods.saturating_sub(BATCH)..n_pods;
        remove(&test_bed.drivers, last, "gracePeriodSeconds=0").await
    })?;
    let last_write = Instant::now();
    let whole = bench.runtime.block_on(test_bed.drivers.observer.wait_until_complete(DRAIN_MAX))?;
    let after = running.usage()?;
    // Late writes count, too.
    std::thread::sleep(Duration::from_secs(2));
    let written = Written::so_far(&test_bed.api)?.since(written);
    running.stop()?;
    let n_slices = test_bed.drivers.observer.with(|published| published.n_slices());
    let mut measures = vec![
        Measure::seconds("time until complete", whole - began),
        Measure::seconds("after the last pod", whole.saturating_duration_since(last_write)),
        Measure::seconds("CPU", after - before),
        Measure::count("writes", written.n_writes),
        Measure::count("writes rejected", written.n_rejected),
        Measure::bytes("bytes written", written.n_bytes),
        Measure::count("slices at the end", n_slices as u64),
        Measure::bytes("memory, peak", after.peak_bytes),
    ];
    measures.extend(written.watch_measures());
    Ok(measures)
}

/// One batch: creates as many pods as `old` has, and deletes those.
async fn replace(drivers: &Drivers, old: Range<PodNumber>, n_pods: usize) -> Result<()> {
    let first_new = n_pods + old.start;
    let Drivers { sender, templates, layout, .. } = drivers.clone();
    let create = move |number| {
        let (sender, templates) = (sender.clone(), templates.clone());
        async move { write_pod(&sender, &templates, &layout, first_new + number).await }
    };
    for_each((old.len(), IN_FLIGHT), |_| (), create).await?;
    remove(drivers, old.clone(), "gracePeriodSeconds=30").await?;
    if old.start >= BATCH {
        remove(drivers, old.start - BATCH..old.start, "gracePeriodSeconds=0").await?;
    }
    Ok(())
}

async fn remove(drivers: &Drivers, pods: Range<PodNumber>, query: &'static str) -> Result<()> {
    let (sender, layout, first) = (drivers.sender.clone(), drivers.layout, pods.start);
    let delete = move |number| {
        let sender = sender.clone();
        let path = format!("{}?{query}", pod_path(&layout, first + number));
        async move { sender.delete(&path).await.map(drop) }
    };
    for_each((pods.len(), IN_FLIGHT), |_| (), delete).await
}
