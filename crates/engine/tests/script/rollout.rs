//! A large Service in a rollout: few writes, removals at once, and additions a second later at most.

use std::time::Duration;

use endpointd_engine::Settings;
use endpointd_model::names::TRIGGER_TIME;
use endpointd_model::{Endpoint, Pod, Readiness, Timestamp};

use crate::cluster::Cluster;
use crate::objects::{converged, endpoints, key, node, pod, service, unready};

const N_PODS: usize = 5_000;
/// Pods that are replaced together, as with `maxSurge`.
const BATCH: usize = 50;
const BATCH_INTERVAL: Duration = Duration::from_millis(500);
/// Time between two pods of a batch.
const POD_INTERVAL: Duration = Duration::from_millis(1);

/// Names in the order of their numbers.
fn name(number: usize) -> String {
    format!("web-{number:05}")
}

fn large_service(settings: Settings) -> Cluster {
    let mut cluster = Cluster::new(settings);
    cluster.put_node(node("n"));
    cluster.put_service(service("web"));
    for number in 0..N_PODS {
        cluster.put_pod(pod(&name(number)));
    }
    cluster.start();
    cluster.advance(Duration::from_secs(2));
    cluster.clear_log();
    cluster
}

/// Creates, terminates, and deletes pods as a Deployment does.
fn roll(cluster: &mut Cluster, n_batches: usize) {
    cluster.write_takes = Duration::from_millis(4);
    let mut end = cluster.now;
    for first in (0..n_batches * BATCH).step_by(BATCH) {
        end = end + BATCH_INTERVAL;
        for number in first..first + BATCH {
            cluster.put_pod(pod(&name(N_PODS + number)));
            cluster.advance(POD_INTERVAL);
        }
        for number in first..first + BATCH {
            cluster.change_pod(&key(&name(number)), |pod| pod.is_terminating = true);
            cluster.advance(POD_INTERVAL);
        }
        for number in first.saturating_sub(BATCH)..first {
            cluster.remove_pod(&key(&name(number)));
            cluster.advance(POD_INTERVAL);
        }
        cluster.advance(end.since(cluster.now));
    }
}

/// Writes of slices, and of Endpoints.
fn n_writes(cluster: &Cluster) -> (usize, usize) {
    let n_slices = cluster.sent.iter().filter(|sent| sent.contains("endpointslices")).count();
    (n_slices, cluster.sent.len() - n_slices)
}

fn without_addition_delay() -> Settings {
    let mut settings = Settings::default();
    settings.controllers.iter_mut().for_each(|one| one.addition_delay.max = Duration::ZERO);
    settings
}

#[test]
fn rollout_of_a_large_service_takes_few_writes() {
    const N_BATCHES: usize = 20;
    let [before, after] = [without_addition_delay(), Settings::default()].map(|settings| {
        let mut cluster = large_service(settings);
        roll(&mut cluster, N_BATCHES);
        let counts = n_writes(&cluster);
        cluster.advance(Duration::from_secs(2));
        let n_ready =
            endpoints(&cluster, "web").iter().filter(|one| one.ends_with(" ready")).count();
        assert_eq!(n_ready, N_PODS);
        counts
    });
    assert!(after.0 * 4 <= before.0 * 3, "slices: {after:?}, without delay {before:?}");
    assert!(after.1 * 2 <= before.1, "Endpoints: {after:?}, without delay {before:?}");
}

/// The annotation of the slice that has this pod.
fn trigger_time_of(cluster: &Cluster, pod: usize) -> Option<String> {
    let is_it = |one: &Endpoint| one.target_ref.iter().any(|target| *target.name == *name(pod));
    let slices = cluster.slices();
    let slice = slices.iter().find(|slice| slice.endpoints.iter().any(is_it))?;
    slice.meta.annotations.get(TRIGGER_TIME).map(ToString::to_string)
}

#[test]
fn removal_does_not_wait_for_additions_nor_take_them_along() {
    let mut cluster = large_service(Settings::default());
    cluster.put_pod(pod(&name(N_PODS)));
    cluster.run();
    assert_eq!(n_writes(&cluster).0, 1, "nothing has changed for a second");
    cluster.advance(Duration::from_millis(300));
    cluster.clear_log();

    let since = Timestamp::from_second(1_800_000_000).expect("a valid time");
    cluster.put_pod(Pod {
        readiness: Some(Readiness { is_ready: true, since: Some(since) }),
        ..pod(&name(N_PODS + 1))
    });
    cluster.run();
    assert_eq!(cluster.sent, [""; 0], "an addition to 5,001 endpoints waits");
    cluster.change_pod(&key(&name(0)), unready);
    cluster.run();
    assert_eq!(n_writes(&cluster).0, 1, "the removal does not: {:?}", cluster.sent);
    assert_eq!(endpoints(&cluster, "web").len(), N_PODS + 1);
    cluster.advance(Duration::from_millis(700));
    assert_eq!(endpoints(&cluster, "web").len(), N_PODS + 2, "a second after the last plan");
    assert_eq!(trigger_time_of(&cluster, N_PODS + 1), Some(since.to_string()));
}

#[test]
fn additions_are_urgent_when_few_endpoints_are_ready() {
    let mut cluster = converged(&[("web", 60)]);
    for number in 60..64 {
        cluster.put_pod(pod(&format!("web-{number}")));
        cluster.run();
    }
    assert_eq!(n_writes(&cluster), (4, 4), "{:?}", cluster.sent);

    let mut cluster = large_service(Settings::default());
    for number in 0..N_PODS {
        cluster.change_pod(&key(&name(number)), unready);
    }
    cluster.advance(Duration::from_millis(250));
    assert!(endpoints(&cluster, "web").iter().all(|one| one.ends_with(" unready")));
    cluster.clear_log();
    cluster.put_pod(pod(&name(N_PODS)));
    cluster.advance(Duration::from_millis(250));
    assert!(endpoints(&cluster, "web").iter().any(|one| one.ends_with(" ready")));
}
