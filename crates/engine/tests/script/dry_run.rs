//! A dry run: the engine plans and compares, and sends no writes.

use std::time::Duration;

use endpointd_engine::{Settings, WriteMode};
use endpointd_model::Object;

use crate::cluster::Cluster;
use crate::objects::{converged, key, unready};

/// A dry run on a cluster that another engine has converged.
fn dry_run() -> Cluster {
    let mut cluster = converged(&[("web", 2), ("other", 1)]);
    cluster.restart_with(Settings { write_mode: WriteMode::DryRun, ..Settings::default() });
    cluster
}

#[test]
fn a_converged_cluster_agrees() {
    let mut cluster = dry_run();
    assert!(cluster.results.iter().all(|result| *result == "unchanged"), "{:?}", cluster.results);
    cluster.clear_log();
    cluster.advance(Duration::from_secs(3600));
    assert_eq!(cluster.results, [""; 0]);
    assert_eq!(cluster.engine.wake_at(), None, "no timer is needed");
}

#[test]
fn a_difference_is_planned_again_until_another_controller_has_written() {
    let mut cluster = dry_run();
    cluster.clear_log();
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    assert_eq!(cluster.results, ["written", "written"], "one look of each controller");
    cluster.advance(Duration::from_secs(6));
    assert_eq!(cluster.results, ["written"; 4], "and a later one");
    assert!(cluster.sent.is_empty() && cluster.event_records.is_empty());

    let mut slices = cluster.slices().into_iter();
    let of_web = slices.find(|slice| slice.meta.name.starts_with("web-"));
    let mut slice = of_web.expect("a slice").clone();
    let changed = slice.endpoints.iter_mut().find(|one| &*one.addresses[0] == "10.0.0.1");
    let conditions = &mut changed.expect("the pod is published").conditions;
    (conditions.ready, conditions.serving) = (Some(false), Some(false));
    cluster.clear_log();
    cluster.put_object(Object::Slice(slice));
    cluster.run();
    assert_eq!(cluster.results, ["unchanged"], "the slices agree, the Endpoints do not yet");
    cluster.advance(Duration::from_secs(12));
    assert!(cluster.results.contains(&"written"), "{:?}", cluster.results);
    assert!(cluster.sent.is_empty());
}

/// A live list of the namespace releases plans that waited for it. That is no change of the key.
#[test]
fn a_plan_that_no_change_caused_settles_nothing_early() {
    let mut cluster = dry_run();
    cluster.clear_log();
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    cluster.advance(Duration::from_secs(4));
    cluster.change_pod(&key("web-1"), unready);
    cluster.run();
    assert_eq!(cluster.lasting, [false; 4], "two controllers, two changes");
    cluster.advance(Duration::from_secs(4));
    assert_eq!(cluster.lasting, [false; 4], "the first look is 5 s after the last change");
    cluster.advance(Duration::from_secs(2));
    assert_eq!(cluster.lasting[4..], [true; 2]);
}

#[test]
fn a_deleted_service_is_compared_without_a_write() {
    let mut cluster = dry_run();
    cluster.clear_log();
    cluster.remove_service(&key("web"));
    cluster.advance(Duration::from_secs(20));
    assert!(cluster.results.contains(&"written"), "its Endpoints should go: {:?}", cluster.results);
    assert!(cluster.sent.is_empty(), "{:?}", cluster.sent);
}
