//! All pods of one large Service are replaced, some at a time: new ones become ready, as many old
//! ones are asked to go, and those asked before are gone.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Result;
use endpointd_control_plane::Audit;

use crate::bench::Bench;
use crate::contender::{AtWork, Contender};
use crate::load::{IN_FLIGHT, Layout, PodNumber, for_each, grouped, pod_path, write_pod};
use crate::published::Wanted;
use crate::record::{Measure, Scenario};
use crate::scale::BATCH;
use crate::scenarios::churn::{DRAIN_MAX, QUIET_MAX};
use crate::server::Written;
use crate::stage::{Actors, Settled};

const SCENARIO: Scenario = Scenario::Rollout;
/// One batch after the other, if the server keeps up: the same pace for everybody.
const PACE: Duration = Duration::from_millis(500);

pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    let n_pods = bench.scale.rollout_pods;
    let case = format!("{} pods, {BATCH} at a time", grouped(n_pods));
    for round in 0..bench.scale.n_rounds {
        for who in bench.scale.contenders(round) {
            bench.step(SCENARIO, &case, round, who);
            let measures = roll(bench, n_pods, who)?;
            bench.keep(SCENARIO, &case, who, measures);
        }
    }
    Ok(())
}

fn roll(bench: &mut Bench<'_>, n_pods: usize, who: Contender) -> Result<Vec<Measure>> {
    let layout = Layout::spread(1, n_pods);
    let world = bench.worlds.get(layout, Settled::Yes)?;
    let wanted = Wanted { layout, first_pod: n_pods };
    let stage = bench.worlds.stage(&world, Audit::Off, wanted)?;
    let at_work = AtWork::start(who, &stage)?;
    at_work.wait_until_quiet(QUIET_MAX)?;
    let (written, before) = (Written::so_far(&stage.api)?, at_work.usage()?);

    let began = Instant::now();
    bench.runtime.block_on(async {
        for first in (0..n_pods).step_by(BATCH) {
            let due = tokio::time::Instant::now() + PACE;
            bench.progress.count("pods replaced", first, n_pods);
            replace(&stage.actors, first..(first + BATCH).min(n_pods), n_pods).await?;
            tokio::time::sleep_until(due).await;
        }
        let last = n_pods.saturating_sub(BATCH)..n_pods;
        remove(&stage.actors, last, "gracePeriodSeconds=0").await
    })?;
    let last_write = Instant::now();
    let whole = bench.runtime.block_on(stage.actors.observer.wait_until_whole(DRAIN_MAX))?;
    let after = at_work.usage()?;
    // Late writes are writes too.
    std::thread::sleep(Duration::from_secs(2));
    let written = Written::so_far(&stage.api)?.since(written);
    at_work.stop()?;
    let n_slices = stage.actors.observer.with(|published| published.n_slices());
    Ok(vec![
        Measure::seconds("time to settled", whole - began),
        Measure::seconds("after the last pod", whole.saturating_duration_since(last_write)),
        Measure::seconds("CPU", after - before),
        Measure::count("writes", written.n_writes),
        Measure::count("writes refused", written.n_refused),
        Measure::bytes("bytes written", written.n_bytes),
        Measure::count("slices at the end", n_slices as u64),
        Measure::bytes("memory, peak", after.peak_bytes),
    ])
}

/// One batch: `old` pods, and as many new ones.
async fn replace(stage: &Actors, old: Range<PodNumber>, n_pods: usize) -> Result<()> {
    let first_new = n_pods + old.start;
    let Actors { sender, templates, layout, .. } = stage.clone();
    let create = move |number| {
        let (sender, templates) = (sender.clone(), templates.clone());
        async move { write_pod(&sender, &templates, &layout, first_new + number).await }
    };
    for_each((old.len(), IN_FLIGHT), |_| (), create).await?;
    remove(stage, old.clone(), "gracePeriodSeconds=30").await?;
    if old.start >= BATCH {
        remove(stage, old.start - BATCH..old.start, "gracePeriodSeconds=0").await?;
    }
    Ok(())
}

async fn remove(stage: &Actors, pods: Range<PodNumber>, query: &'static str) -> Result<()> {
    let (sender, layout, first) = (stage.sender.clone(), stage.layout, pods.start);
    let delete = move |number| {
        let sender = sender.clone();
        let path = format!("{}?{query}", pod_path(&layout, first + number));
        async move { sender.delete(&path).await.map(drop) }
    };
    for_each((pods.len(), IN_FLIGHT), |_| (), delete).await
}
