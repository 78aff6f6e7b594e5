//! A change of a Service, until the copies of its slice in other namespaces have it. One change after
//! the other: each is published everywhere before the next one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use endpointd_client::{Client, ConnectOptions};
use endpointd_control_plane::{Api, Audit};
use endpointd_model::{
    EndpointSlice, Key, ObjectEvent, ResourceEvent, WatchSignal, WatchedResource, names,
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::bench::Bench;
use crate::load::layout::{namespace, service};
use crate::load::{
    Layout, PodNumber, Readiness, grouped, number_of_pod, report_pod, service_ports,
};
use crate::published::ExpectedState;
use crate::record::{Measure, Scenario, Unit};
use crate::server::Written;
use crate::statistics::percentile;
use crate::subject::{RunningSubject, Subject};
use crate::test_bed::{COMPLETE_MAX, Drivers, Publication, TestBed};

const SCENARIO: Scenario = Scenario::Imports;
const CONTROLLERS: &str = "--controllers=*,endpointslice-import-controller";
/// A change that is not published within this time is lost.
const PUBLISHED_MAX: Duration = Duration::from_secs(120);
const SIGNALS_MAX: usize = 4096;
/// Services with ten pods each, of which the first one is the source.
pub const N_SERVICES: usize = 10;
const PODS_PER_SERVICE: usize = 10;

pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    for round in 0..bench.scale.n_rounds {
        for n_consumers in bench.scale.consumer_counts.clone() {
            let noun = if n_consumers == 1 { "consumer" } else { "consumers" };
            let case = format!("{} {noun}", grouped(n_consumers));
            bench.step(SCENARIO, &case, round, Subject::Endpointd);
            let measures = measure(bench, n_consumers)?;
            bench.keep(SCENARIO, &case, Subject::Endpointd, measures);
        }
    }
    Ok(())
}

fn measure(bench: &mut Bench<'_>, n_consumers: usize) -> Result<Vec<Measure>> {
    let layout = Layout::spread(N_SERVICES, N_SERVICES * PODS_PER_SERVICE);
    let saved = bench.clusters.get(layout, Publication::None)?;
    let test_bed = bench.clusters.start(&saved, Audit::Off, ExpectedState::all(layout))?;
    create_consumers(&test_bed.api, n_consumers)?;
    let running = RunningSubject::start_endpointd(&test_bed, &[CONTROLLERS])?;
    bench.progress.detail("waiting for the copies");
    let n_changes = bench.scale.source_changes;
    let mut published = bench.runtime.block_on(Published::watch(&test_bed, n_consumers))?;
    // Writes of other Services would count.
    let complete = test_bed.drivers.observer.wait_until_complete(COMPLETE_MAX);
    bench.runtime.block_on(complete)?;
    let (written, before) = (Written::so_far(&test_bed.api)?, running.usage()?);
    bench.progress.detail(&format!("{n_changes} changes"));
    let changes = bench.runtime.block_on(published.measure(&test_bed.drivers, n_changes))?;
    let cpu = running.usage()? - before;
    let written = Written::so_far(&test_bed.api)?.since(written);
    running.stop()?;
    let per_change = |value: f64| value / n_changes as f64;
    let mut measures = latencies(&changes);
    measures.extend([
        Measure::new("writes per change", Unit::Count, per_change(written.n_writes as f64)),
        Measure::new("CPU per change", Unit::Milliseconds, per_change(cpu.as_secs_f64() * 1000.0)),
    ]);
    Ok(measures)
}

/// Each in a namespace of its own.
fn create_consumers(api: &Api, n_consumers: usize) -> Result<()> {
    let (home, source) = (namespace(0), service(0));
    let consent = json!({"metadata": {"annotations": {names::ENDPOINTS_TO: "*"}}});
    api.merge(&format!("/api/v1/namespaces/{home}/services/{source}"), &consent)?;
    for number in 0..n_consumers {
        let name = format!("consumer-{number:03}");
        api.create("/api/v1/namespaces", &json!({"metadata": {"name": name}}))?;
        let from = format!("{home}/{source}");
        let consumer = json!({
            "metadata": {"name": "source", "annotations": {names::ENDPOINTS_FROM: from}},
            "spec": {"ports": service_ports()},
        });
        api.create(&format!("/api/v1/namespaces/{name}/services"), &consumer)?;
    }
    Ok(())
}

/// Times from the response to a change of a pod to the events of the slices that show it.
struct Change {
    source: Duration,
    copies: Vec<Duration>,
}

/// The slices of the source and its copies, as a watch of the harness reports them.
struct Published {
    slices: mpsc::Receiver<(Instant, EndpointSlice)>,
    n_consumers: usize,
    _tasks: JoinSet<()>,
}

impl Published {
    /// Returns when all copies exist.
    async fn watch(test_bed: &TestBed, n_consumers: usize) -> Result<Self> {
        let client = Client::connect(ConnectOptions {
            kubeconfig: Some(test_bed.cluster.kubeconfig()),
            user_agent: "endpointd-bench".to_owned(),
            ..ConnectOptions::default()
        });
        let client = client.await?;
        let (sender, mut signals) = mpsc::channel(SIGNALS_MAX);
        let (slice_sender, slices) = mpsc::channel(SIGNALS_MAX);
        let mut tasks = JoinSet::new();
        tasks.spawn(client.watch(WatchedResource::Slices, sender));
        tasks.spawn(async move {
            while let Some((_, signal)) = signals.recv().await {
                let now = Instant::now();
                if let WatchSignal::Event(event) = signal
                    && let ResourceEvent::Slice(ObjectEvent::Applied(slice)) = *event
                    && slice_sender.send((now, slice)).await.is_err()
                {
                    return;
                }
            }
        });
        let mut published = Self { slices, n_consumers, _tasks: tasks };
        published.wait_for(0, Readiness::Ready, Instant::now()).await?;
        Ok(published)
    }

    async fn measure(&mut self, drivers: &Drivers, n_changes: usize) -> Result<Vec<Change>> {
        let mut changes = Vec::with_capacity(n_changes);
        for number in 0..n_changes {
            // Each pod of the source becomes unready, and ready again.
            let pod = (number / 2 % PODS_PER_SERVICE) * N_SERVICES;
            let readiness =
                if number.is_multiple_of(2) { Readiness::Unready } else { Readiness::Ready };
            let Drivers { sender, templates, layout, .. } = drivers;
            report_pod(sender, templates, layout, (pod, readiness)).await?;
            changes.push(self.wait_for(pod, readiness, Instant::now()).await?);
        }
        Ok(changes)
    }

    /// Until the slice of the source and all copies show it.
    async fn wait_for(
        &mut self,
        pod: PodNumber,
        readiness: Readiness,
        acknowledged: Instant,
    ) -> Result<Change> {
        let (home, name) = (namespace(0), service(0));
        let mut source = None;
        let mut copies: BTreeMap<Key, Duration> = BTreeMap::new();
        let received = async {
            while source.is_none() || copies.len() < self.n_consumers {
                let (at, slice) = self.slices.recv().await.context("the watch has ended")?;
                let took = at.saturating_duration_since(acknowledged);
                let is_source = *slice.meta.namespace == *home;
                if !shows(&slice, pod, readiness) {
                    continue;
                }
                match is_source {
                    true if slice.meta.labels.has(names::SERVICE_NAME, &name) => {
                        source.get_or_insert(took);
                    }
                    true => {}
                    false => {
                        copies.entry(slice.meta.key()).or_insert(took);
                    }
                }
            }
            anyhow::Ok(())
        };
        let in_time = tokio::time::timeout(PUBLISHED_MAX, received).await;
        in_time.with_context(|| format!("pod {pod} is not {readiness:?} everywhere"))??;
        let copies = copies.into_values().collect();
        Ok(Change { source: source.context("the source has no slice")?, copies })
    }
}

fn shows(slice: &EndpointSlice, pod: PodNumber, readiness: Readiness) -> bool {
    slice.endpoints.iter().any(|endpoint| {
        let target = endpoint.target_ref.as_ref();
        let number = target.and_then(|target| number_of_pod(&target.name));
        number == Some(pod) && endpoint.is_ready() == (readiness == Readiness::Ready)
    })
}

fn latencies(changes: &[Change]) -> Vec<Measure> {
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let of_source: Vec<f64> = changes.iter().map(|one| ms(one.source)).collect();
    let of_copies: Vec<f64> =
        changes.iter().flat_map(|one| &one.copies).map(|time| ms(*time)).collect();
    let of_last: Vec<f64> =
        changes.iter().filter_map(|one| one.copies.iter().max()).map(|time| ms(*time)).collect();
    let mut measures = Vec::new();
    for (name, values) in
        [("slice of the source", of_source), ("a copy", of_copies), ("all copies", of_last)]
    {
        for (percent, suffix) in [(50.0, "p50"), (99.0, "p99")] {
            if let Some(value) = percentile(&values, percent) {
                let name = format!("{name}, {suffix}");
                measures.push(Measure::new(name, Unit::Milliseconds, value));
            }
        }
    }
    measures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_of_each_copy_and_of_the_last() {
        let ms = Duration::from_millis;
        let change = |source, copies: [u64; 2]| Change {
            source: ms(source),
            copies: copies.map(ms).to_vec(),
        };
        let found = latencies(&[change(1, [2, 3]), change(2, [5, 9])]);
        let values: Vec<f64> = found.iter().map(|one| one.value).collect();
        assert_eq!(values, [1.0, 2.0, 3.0, 9.0, 3.0, 9.0], "{found:?}");
    }
}
