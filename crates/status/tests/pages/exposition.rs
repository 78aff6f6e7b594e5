//! `/metrics` for the status of the fixture and a few recorded events.

use std::time::Duration;

use endpointd_engine::{EngineStatus, SyncResult, SyncSummary};
use endpointd_model::{Controller, Failure, FailureKind, PublishedResource, TopologyMode};
use endpointd_status::{CompletedWrite, Metrics};
use expect_test::expect_file;

use crate::fixture::{engine_status, secs, sync_summary};

#[test]
fn exposition_matches_the_golden_file() {
    let metrics = Metrics::new();
    metrics.record_sync(&sync_summary());
    metrics.record_write(&write("update", "stored"));
    metrics.record_write(&write("create", "forbidden"));
    metrics.record_requests("PUT", "10.96.0.1:443", "200", 3);
    metrics.record_request_duration("PUT", "10.96.0.1:443", Duration::from_millis(20));
    metrics.set_leading("endpointd", true);
    metrics.record_events(2, 1);
    let text = metrics.render(&engine_status(), secs(1));
    // Values of the process differ between runs.
    let ours: Vec<&str> = text.lines().filter(|line| !line.contains("process_")).collect();
    expect_file!["exposition.txt"].assert_eq(&(ours.join("\n") + "\n"));
}

#[test]
fn process_metrics_have_values() {
    let text = Metrics::new().render(&EngineStatus::default(), Duration::ZERO);
    assert!(value(&text, "process_resident_memory_bytes") > 0.0);
    assert!(value(&text, "process_open_fds") > 0.0);
}

#[test]
fn without_watches_ready_is_zero() {
    let text = Metrics::new().render(&EngineStatus::default(), Duration::ZERO);
    assert_eq!(value(&text, "endpointd_ready"), 0.0);
}

#[test]
fn rendering_twice_leaves_counters_unchanged() {
    let metrics = Metrics::new();
    let once = metrics.render(&engine_status(), secs(1));
    let twice = metrics.render(&engine_status(), secs(1));
    let adds = "workqueue_adds_total{name=\"endpoint_slice\"}";
    assert_eq!(value(&once, adds), 17.0);
    assert_eq!(value(&twice, adds), 17.0);
}

#[test]
fn exclusion_reason_without_pods_is_not_exported() {
    let metrics = Metrics::new();
    let excluded_pods = "endpointd_pods_excluded{";
    assert!(metrics.render(&engine_status(), secs(0)).contains(excluded_pods));
    let mut later = engine_status();
    later.controllers.iter_mut().for_each(|controller| controller.excluded_pods.clear());
    assert!(!metrics.render(&later, secs(0)).contains(excluded_pods));
}

#[test]
fn ages_grow_when_the_engine_stops_publishing() {
    let text = Metrics::new().render(&engine_status(), secs(100));
    assert_eq!(value(&text, "endpointd_status_snapshot_age_seconds"), 100.0);
    assert_eq!(value(&text, "endpointd_watch_last_event_age_seconds{resource=\"pods\"}"), 105.0);
    let oldest = "endpointd_queue_oldest_seconds{controller=\"endpointslice-controller\"}";
    assert_eq!(value(&text, oldest), 103.0);
    let longest = "workqueue_longest_running_processor_seconds{name=\"endpoint_slice\"}";
    assert_eq!(value(&text, longest), 102.0);
    assert_eq!(value(&text, "endpointd_throttled_seconds"), 0.0);
}

#[test]
fn empty_queue_has_no_age() {
    let text = Metrics::new().render(&engine_status(), secs(100));
    let oldest =
        "endpointd_queue_oldest_seconds{controller=\"endpointslice-mirroring-controller\"}";
    assert_eq!(value(&text, oldest), 0.0);
}

#[test]
fn sync_results_map_to_upstream_labels() {
    let failure = || Failure { kind: FailureKind::Forbidden, message: "quota".into() };
    let results = [
        (SyncResult::Unchanged, Some("success")),
        (SyncResult::Written, Some("success")),
        (SyncResult::ConflictRetry, Some("stale")),
        (SyncResult::Throttled, Some("error")),
        (SyncResult::Failed(failure()), Some("error")),
        (SyncResult::LeadershipLost, None),
    ];
    for (result, label) in results {
        let metrics = Metrics::new();
        metrics.record_sync(&SyncSummary { result: result.clone(), ..sync_summary() });
        let text = metrics.render(&EngineStatus::default(), Duration::ZERO);
        let counted = "endpoint_slice_controller_syncs{";
        match label {
            Some(label) => {
                assert_eq!(
                    value(&text, &format!("{counted}result=\"{label}\"}}")),
                    1.0,
                    "{result:?}"
                );
            }
            None => assert!(!text.contains(counted), "{result:?}"),
        }
    }
}

/// The change has not arrived with another result; the next sync of the key records its latency.
#[test]
fn latency_is_recorded_only_for_syncs_that_wrote() {
    let count = "endpointd_trigger_to_write_seconds_count\
                 {change=\"endpoint_removal\",controller=\"endpointslice-controller\"}";
    for (result, n) in
        [(SyncResult::Written, 1.0), (SyncResult::Unchanged, 0.0), (SyncResult::ConflictRetry, 0.0)]
    {
        let metrics = Metrics::new();
        metrics.record_sync(&SyncSummary { result, ..sync_summary() });
        assert_eq!(value(&metrics.render(&EngineStatus::default(), Duration::ZERO), count), n);
    }
}

#[test]
fn topology_annotation_overrides_traffic_distribution() {
    let metrics = Metrics::new();
    let mut sync = sync_summary();
    sync.hints.topology = TopologyMode::Auto;
    metrics.record_sync(&sync);
    let text = metrics.render(&EngineStatus::default(), Duration::ZERO);
    let count = "endpoint_slice_controller_endpointslices_changed_per_sync_count\
                 {topology=\"Auto\",traffic_distribution=\"\"}";
    assert_eq!(value(&text, count), 1.0);
}

#[test]
fn only_applied_writes_count_as_changes() {
    let metrics = Metrics::new();
    let not_applied = [
        "forbidden",
        "conflict",
        "no_response",
        "throttled",
        "not_leader",
        "namespace_terminating",
    ];
    for result in not_applied {
        metrics.record_write(&write("update", result));
    }
    let changes = "endpoint_slice_controller_changes{operation=\"update\"}";
    let text = metrics.render(&EngineStatus::default(), Duration::ZERO);
    assert_eq!(value(&text, changes), 0.0);
    metrics.record_write(&write("update", "stored"));
    let text = metrics.render(&EngineStatus::default(), Duration::ZERO);
    assert_eq!(value(&text, changes), 1.0);
}

#[test]
fn own_counters_and_only_they_end_in_total() {
    for family in Metrics::new().families() {
        let Some(name) = family.name.strip_prefix("endpointd_") else { continue };
        assert_eq!(name.ends_with("_total"), family.kind.as_str() == "counter", "{name}");
        assert!(!family.help.is_empty(), "{name}");
    }
}

fn write(verb: &'static str, result: &'static str) -> CompletedWrite {
    CompletedWrite {
        controller: Controller::Slices,
        verb,
        resource: PublishedResource::Slices,
        result,
        took: Duration::from_millis(7),
    }
}

/// The value of the series whose name and labels are `series`.
fn value(text: &str, series: &str) -> f64 {
    let found = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    found
        .unwrap_or_else(|| panic!("no series {series} in\n{text}"))
        .parse()
        .expect("a value is a number")
}
