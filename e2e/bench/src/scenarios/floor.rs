//! The writes of a cold start without a controller: as fast as the server takes them, from a client
//! that knows them already. A controller must also read everything first, so that is timed as well.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use endpointd_client::{Client, ConnectOptions};
use endpointd_control_plane::{Audit, Cluster};
use endpointd_model::{
    Meta, Object, ObjectEvent, ResourceEvent, ResourceVersion, Uid, WatchSignal, WatchedResource,
    Write, WriteResult,
};
use tokio::sync::mpsc;

use crate::bench::Bench;
use crate::contender::Contender;
use crate::load::{Layout, for_each, number_of_service};
use crate::published::Wanted;
use crate::record::{Measure, Record, Scenario};
use crate::scenarios::cold_start::{self, TIME};
use crate::stage::{Settled, Stage, WHOLE_MAX};

const SCENARIO: Scenario = Scenario::Floor;
/// How many writes are under way at once: the better one counts.
const WRITES_AT_ONCE: [usize; 2] = [16, 64];
const NEWS_MAX: usize = 4096;

/// Was measured with the cold starts, whose times are shown beside it.
pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    cold_start::run(bench)?;
    let is_cold_start = |record: &&Record| record.scenario == Scenario::ColdStart;
    let cold_starts: Vec<Record> = bench.records.iter().filter(is_cold_start).cloned().collect();
    for Record { scenario: _, case, who, measures } in cold_starts {
        let time = measures.into_iter().filter(|measure| measure.name == TIME).collect();
        bench.keep(SCENARIO, &case, who, time);
    }
    Ok(())
}

pub fn measure(bench: &mut Bench<'_>, layout: Layout, round: usize) -> Result<()> {
    bench.step(SCENARIO, &layout.describe(), round, Contender::Floor);
    let measures = write_all(bench, layout)?;
    bench.keep(SCENARIO, &layout.describe(), Contender::Floor, measures);
    Ok(())
}

fn write_all(bench: &mut Bench<'_>, layout: Layout) -> Result<Vec<Measure>> {
    let world = bench.worlds.get(layout, Settled::Yes)?;
    let stage = bench.worlds.stage(&world, Audit::Off, Wanted::all(layout))?;
    let writes = bench.runtime.block_on(read_writes(&stage.cluster))?;
    drop(stage);

    let world = bench.worlds.get(layout, Settled::No)?;
    let (mut reads, mut written) = (Vec::new(), Vec::new());
    for n_at_once in WRITES_AT_ONCE {
        let stage = bench.worlds.stage(&world, Audit::Off, Wanted::all(layout))?;
        let times = bench.runtime.block_on(read_and_write(&stage, writes.clone(), n_at_once))?;
        reads.push(times.0);
        written.push(times.1);
    }
    let best = |times: Vec<Duration>| times.into_iter().min().unwrap_or_default();
    let (read, written) = (best(reads), best(written));
    Ok(vec![
        Measure::seconds(TIME, read + written),
        Measure::seconds("of that, reading", read),
        Measure::seconds("of that, writing", written),
    ])
}

/// How long it takes to read everything, and then until all writes are seen.
async fn read_and_write(
    stage: &Stage,
    writes: Vec<Write>,
    n_at_once: usize,
) -> Result<(Duration, Duration)> {
    let client = connect(&stage.cluster).await?;
    let began = Instant::now();
    read_everything(&client, &WatchedResource::ALL, |_| ()).await?;
    let read = began.elapsed();
    let began = Instant::now();
    send_all(&client, writes, n_at_once).await?;
    let whole = stage.actors.observer.wait_until_whole(WHOLE_MAX).await?;
    Ok((read, whole - began))
}

async fn connect(cluster: &Cluster) -> Result<Client> {
    let options = ConnectOptions {
        kubeconfig: Some(cluster.kubeconfig()),
        user_agent: "endpointd-bench".to_owned(),
        ..ConnectOptions::default()
    };
    Ok(Client::connect(options).await?)
}

/// All slices and Endpoints of a settled world, as they were first written.
async fn read_writes(cluster: &Cluster) -> Result<Vec<Write>> {
    let client = connect(cluster).await?;
    let mut writes = Vec::new();
    let keep = |change: ResourceEvent| {
        let object = match change {
            ResourceEvent::Slice(ObjectEvent::Applied(mut slice)) => {
                as_new(&mut slice.meta);
                Object::Slice(slice)
            }
            ResourceEvent::Endpoints(ObjectEvent::Applied(mut endpoints)) => {
                as_new(&mut endpoints.meta);
                Object::Endpoints(endpoints)
            }
            ResourceEvent::Slice(_)
            | ResourceEvent::Endpoints(_)
            | ResourceEvent::Service(_)
            | ResourceEvent::Pod(_)
            | ResourceEvent::Node(_) => return,
        };
        let name = &object.meta().name;
        let is_ours = match &object {
            Object::Endpoints(_) => number_of_service(name).is_some(),
            Object::Slice(_) => name.starts_with("web-"),
        };
        if is_ours {
            writes.push(Write::Create(object));
        }
    };
    read_everything(&client, &[WatchedResource::Slices, WatchedResource::Endpoints], keep).await?;
    Ok(writes)
}

fn as_new(meta: &mut Meta) {
    meta.uid = Uid::default();
    meta.resource_version = ResourceVersion::NONE;
    meta.generation = None;
    meta.created = None;
}

/// One complete picture of each kind.
async fn read_everything(
    client: &Client,
    kinds: &[WatchedResource],
    mut keep: impl FnMut(ResourceEvent),
) -> Result<()> {
    let (sender, mut receiver) = mpsc::channel(NEWS_MAX);
    for kind in kinds {
        tokio::spawn(client.clone().feed(*kind, sender.clone()));
    }
    drop(sender);
    let mut n_left = kinds.len();
    while n_left > 0 {
        let (kind, news) = receiver.recv().await.context("the watches have ended")?;
        match news {
            WatchSignal::Event(change) => keep(*change),
            WatchSignal::InitDone(_) => n_left -= 1,
            WatchSignal::Disconnected(reason) => bail!("watch of {} lost: {reason}", kind.as_str()),
            WatchSignal::InitStarted
            | WatchSignal::DecodeError { .. }
            | WatchSignal::Bookmark(_)
            | WatchSignal::Reconnected => {}
        }
    }
    Ok(())
}

async fn send_all(client: &Client, writes: Vec<Write>, n_at_once: usize) -> Result<()> {
    let (client, writes) = (client.clone(), std::sync::Arc::new(writes));
    let n = writes.len();
    let send = move |number: usize| {
        let (client, writes) = (client.clone(), writes.clone());
        async move {
            match client.send(&writes[number]).await {
                WriteResult::Stored(_) => Ok(()),
                other => bail!("{}: {other:?}", writes[number].key()),
            }
        }
    };
    for_each((n, n_at_once), |_| (), send).await
}
