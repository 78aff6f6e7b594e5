//! The write-only lower bound: the writes of a cold start, sent as fast as the server accepts them
//! by a client that already knows them. Includes the initial lists, which a controller needs as
//! well.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use endpointd_client::election::WritePermit;
use endpointd_client::{Client, ConnectOptions};
use endpointd_control_plane::{Audit, Cluster};
use endpointd_model::{
    Meta, Object, ObjectEvent, ResourceEvent, ResourceVersion, Uid, WatchSignal, WatchedResource,
    Write, WriteResult,
};
use tokio::sync::mpsc;

use crate::bench::Bench;
use crate::load::{Layout, for_each, number_of_service};
use crate::published::ExpectedState;
use crate::record::{Measure, Record, Scenario};
use crate::scenarios::cold_start::{self, TIME};
use crate::subject::Subject;
use crate::test_bed::{COMPLETE_MAX, Publication, TestBed};

const SCENARIO: Scenario = Scenario::WriteOnly;
/// Concurrent writes; the faster of the two runs counts.
const CONCURRENT_WRITES: [usize; 2] = [16, 64];
const SIGNALS_MAX: usize = 4096;

/// Measured together with the cold starts, whose times appear in the same table.
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
    bench.step(SCENARIO, &layout.describe(), round, Subject::WriteOnly);
    let measures = write_all(bench, layout)?;
    bench.keep(SCENARIO, &layout.describe(), Subject::WriteOnly, measures);
    Ok(())
}

fn write_all(bench: &mut Bench<'_>, layout: Layout) -> Result<Vec<Measure>> {
    let saved = bench.clusters.get(layout, Publication::Complete)?;
    let test_bed = bench.clusters.start(&saved, Audit::Off, ExpectedState::all(layout))?;
    let writes = bench.runtime.block_on(read_writes(&test_bed.cluster))?;
    drop(test_bed);

    let saved = bench.clusters.get(layout, Publication::None)?;
    let (mut reads, mut written) = (Vec::new(), Vec::new());
    for n_at_once in CONCURRENT_WRITES {
        let test_bed = bench.clusters.start(&saved, Audit::Off, ExpectedState::all(layout))?;
        let times = bench.runtime.block_on(read_and_write(&test_bed, writes.clone(), n_at_once))?;
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

/// The time of the initial lists, and the time until all writes are observed.
async fn read_and_write(
    test_bed: &TestBed,
    writes: Vec<Write>,
    n_at_once: usize,
) -> Result<(Duration, Duration)> {
    let client = connect(&test_bed.cluster).await?;
    let began = Instant::now();
    read_everything(&client, &WatchedResource::DEFAULT, |_| ()).await?;
    let read = began.elapsed();
    let began = Instant::now();
    send_all(&client, writes, n_at_once).await?;
    let whole = test_bed.drivers.observer.wait_until_complete(COMPLETE_MAX).await?;
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

/// The creates that produced all slices and Endpoints of a saved cluster.
async fn read_writes(cluster: &Cluster) -> Result<Vec<Write>> {
    let client = connect(cluster).await?;
    let mut writes = Vec::new();
    let keep = |change: ResourceEvent| {
        let object = match change {
            ResourceEvent::Slice(ObjectEvent::Applied(mut slice)) => {
                clear_server_fields(&mut slice.meta);
                Object::Slice(slice)
            }
            ResourceEvent::Endpoints(ObjectEvent::Applied(mut endpoints)) => {
                clear_server_fields(&mut endpoints.meta);
                Object::Endpoints(endpoints)
            }
            ResourceEvent::Slice(_)
            | ResourceEvent::Endpoints(_)
            | ResourceEvent::Service(_)
            | ResourceEvent::Pod(_)
            | ResourceEvent::Node(_)
            | ResourceEvent::ReferenceGrant(_)
            | ResourceEvent::Namespace(_)
            | ResourceEvent::ServiceExport(_)
            | ResourceEvent::ServiceImport(_)
            | ResourceEvent::DerivedService(_) => return,
        };
        let name = &object.meta().name;
        let is_generated = match &object {
            Object::Endpoints(_) => number_of_service(name).is_some(),
            Object::Slice(_) => name.starts_with("web-"),
            Object::ServiceStatus(_) | Object::MultiCluster(_) => false,
        };
        if is_generated {
            writes.push(Write::Create(object));
        }
    };
    read_everything(&client, &[WatchedResource::Slices, WatchedResource::Endpoints], keep).await?;
    Ok(writes)
}

fn clear_server_fields(meta: &mut Meta) {
    meta.uid = Uid::default();
    meta.resource_version = ResourceVersion::NONE;
    meta.generation = None;
    meta.created = None;
}

/// One complete list of each resource.
async fn read_everything(
    client: &Client,
    kinds: &[WatchedResource],
    mut keep: impl FnMut(ResourceEvent),
) -> Result<()> {
    let (sender, mut receiver) = mpsc::channel(SIGNALS_MAX);
    for kind in kinds {
        tokio::spawn(client.clone().watch(*kind, sender.clone()));
    }
    drop(sender);
    let mut n_left = kinds.len();
    while n_left > 0 {
        let (kind, signal) = receiver.recv().await.context("the watches have ended")?;
        match signal {
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
            match client.send(&writes[number], &WritePermit::Always).await {
                WriteResult::Stored(_) => Ok(()),
                other => bail!("{}: {other:?}", writes[number].key()),
            }
        }
    };
    for_each((n, n_at_once), |_| (), send).await
}
