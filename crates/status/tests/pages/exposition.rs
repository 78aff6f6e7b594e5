//! What `/metrics` says for a scripted report and a few recorded events.

use std::time::Duration;

use endpointd_engine::{EngineStatus, SyncResult, SyncSummary};
use endpointd_model::{Controller, Failure, FailureKind, PublishedResource, TopologyMode};
use endpointd_status::{CompletedWrite, Metrics};
use expect_test::expect_file;

use crate::scripted::{report, secs, synced};

#[test]
fn a_scripted_report_reads_as_it_always_did() {
    let metrics = Metrics::new();
    metrics.synced(&synced());
    metrics.wrote(&wrote("update", "stored"));
    metrics.wrote(&wrote("create", "forbidden"));
    metrics.request("PUT", "10.96.0.1:443", "200");
    metrics.leading("endpointd", true);
    metrics.event_records(2, 1);
    let text = metrics.render(&report(), secs(1));
    // The process is never the same twice.
    let ours: Vec<&str> = text.lines().filter(|line| !line.contains("process_")).collect();
    expect_file!["exposition.txt"].assert_eq(&(ours.join("\n") + "\n"));
}

#[test]
fn the_process_is_there_too() {
    let text = Metrics::new().render(&EngineStatus::default(), Duration::ZERO);
    assert!(value(&text, "process_resident_memory_bytes") > 0.0);
    assert!(value(&text, "process_open_fds") > 0.0);
}

#[test]
fn nothing_watched_is_not_ready() {
    let text = Metrics::new().render(&EngineStatus::default(), Duration::ZERO);
    assert_eq!(value(&text, "endpointd_ready"), 0.0);
}

#[test]
fn rendering_twice_counts_nothing_twice() {
    let metrics = Metrics::new();
    let once = metrics.render(&report(), secs(1));
    let twice = metrics.render(&report(), secs(1));
    let adds = "workqueue_adds_total{name=\"endpoint_slice\"}";
    assert_eq!(value(&once, adds), 17.0);
    assert_eq!(value(&twice, adds), 17.0);
}

#[test]
fn a_reason_that_is_gone_leaves_the_page() {
    let metrics = Metrics::new();
    let excluded_pods = "endpointd_pods_left_out{";
    assert!(metrics.render(&report(), secs(0)).contains(excluded_pods));
    let mut later = report();
    later.controllers.iter_mut().for_each(|controller| controller.excluded_pods.clear());
    assert!(!metrics.render(&later, secs(0)).contains(excluded_pods));
}

#[test]
fn ages_go_on_when_the_engine_stops_reporting() {
    let text = Metrics::new().render(&report(), secs(100));
    assert_eq!(value(&text, "endpointd_report_age_seconds"), 100.0);
    assert_eq!(value(&text, "endpointd_watch_age_seconds{kind=\"pods\"}"), 105.0);
    let oldest = "endpointd_queue_oldest_seconds{controller=\"endpointslice-controller\"}";
    assert_eq!(value(&text, oldest), 103.0);
    let longest = "workqueue_longest_running_processor_seconds{name=\"endpoint_slice\"}";
    assert_eq!(value(&text, longest), 102.0);
    assert_eq!(value(&text, "endpointd_throttled_seconds"), 0.0);
}

/// What does not wait does not age.
#[test]
fn an_empty_queue_has_no_age() {
    let text = Metrics::new().render(&report(), secs(100));
    let oldest =
        "endpointd_queue_oldest_seconds{controller=\"endpointslice-mirroring-controller\"}";
    assert_eq!(value(&text, oldest), 0.0);
}

#[test]
fn a_sync_ends_in_upstreams_words() {
    let failure = || Failure { kind: FailureKind::Forbidden, message: "quota".into() };
    let ends = [
        (SyncResult::Unchanged, Some("success")),
        (SyncResult::Written, Some("success")),
        (SyncResult::ConflictRetry, Some("stale")),
        (SyncResult::Throttled, Some("error")),
        (SyncResult::Failed(failure()), Some("error")),
        (SyncResult::LeadershipLost, None),
    ];
    for (end, word) in ends {
        let metrics = Metrics::new();
        metrics.synced(&SyncSummary { result: end.clone(), ..synced() });
        let text = metrics.render(&EngineStatus::default(), Duration::ZERO);
        let counted = "endpoint_slice_controller_syncs{";
        match word {
            Some(word) => {
                assert_eq!(value(&text, &format!("{counted}result=\"{word}\"}}")), 1.0, "{end:?}");
            }
            None => assert!(!text.contains(counted), "{end:?}"),
        }
    }
}

/// Only then has a change arrived; a sync that failed is followed by one that tells the truth.
#[test]
fn latency_is_told_only_for_syncs_that_wrote() {
    let count = "endpointd_trigger_to_write_seconds_count\
                 {change=\"removal\",controller=\"endpointslice-controller\"}";
    for (end, n) in
        [(SyncResult::Written, 1.0), (SyncResult::Unchanged, 0.0), (SyncResult::ConflictRetry, 0.0)]
    {
        let metrics = Metrics::new();
        metrics.synced(&SyncSummary { result: end, ..synced() });
        assert_eq!(value(&metrics.render(&EngineStatus::default(), Duration::ZERO), count), n);
    }
}

#[test]
fn the_annotation_overrules_the_traffic_distribution() {
    let metrics = Metrics::new();
    let mut synced = synced();
    synced.hints.topology = TopologyMode::Auto;
    metrics.synced(&synced);
    let text = metrics.render(&EngineStatus::default(), Duration::ZERO);
    let count = "endpoint_slice_controller_endpointslices_changed_per_sync_count\
                 {topology=\"Auto\",traffic_distribution=\"\"}";
    assert_eq!(value(&text, count), 1.0);
}

#[test]
fn only_writes_that_arrived_count_as_changes() {
    let metrics = Metrics::new();
    for outcome in ["forbidden", "behind", "unknown", "throttled", "unsent", "pointless"] {
        metrics.wrote(&wrote("update", outcome));
    }
    let changes = "endpoint_slice_controller_changes{operation=\"update\"}";
    let text = metrics.render(&EngineStatus::default(), Duration::ZERO);
    assert_eq!(value(&text, changes), 0.0);
    metrics.wrote(&wrote("update", "stored"));
    let text = metrics.render(&EngineStatus::default(), Duration::ZERO);
    assert_eq!(value(&text, changes), 1.0);
}

#[test]
fn own_counters_end_in_total_and_own_gauges_do_not() {
    for family in Metrics::new().families() {
        let Some(name) = family.name.strip_prefix("endpointd_") else { continue };
        assert_eq!(name.ends_with("_total"), family.kind.as_str() == "counter", "{name}");
        assert!(!family.help.is_empty(), "{name}");
    }
}

fn wrote(verb: &'static str, outcome: &'static str) -> CompletedWrite {
    CompletedWrite {
        controller: Controller::Slices,
        verb,
        resource: PublishedResource::Slices,
        outcome,
        took: Duration::from_millis(7),
    }
}

/// The value of one series, by everything that stands before it.
fn value(text: &str, series: &str) -> f64 {
    let found = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no {series} in\n{text}")).parse().expect("a value is a number")
}
