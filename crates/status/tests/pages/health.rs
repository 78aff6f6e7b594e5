//! When this process calls itself alive and ready, and what it says when it does not.

use std::sync::Arc;
use std::time::Duration;

use endpointd_engine::EngineStatus;
use endpointd_model::WatchedResource;
use endpointd_status::{Check, HEARTBEAT_AGE_MAX, StatusSnapshot, live, ready};

use crate::scripted::{board, kind, secs};

#[test]
fn nothing_reported_is_not_ready_but_alive() {
    let view = board().view();
    assert_eq!(problems(&live(&view)), NONE);
    assert_eq!(problems(&ready(&view)), ["report: nothing reported yet: the engine is starting"]);
}

#[test]
fn a_standby_with_all_pictures_is_ready() {
    let view = watching(|_| {});
    assert!(!view.leadership.is_leading());
    assert_eq!(problems(&ready(&view)), NONE);
}

#[test]
fn an_incomplete_picture_is_not_ready() {
    let view = watching(|report| report.watches[1].is_synced = false);
    assert_eq!(problems(&ready(&view)), ["pods: the first picture is not complete"]);
    assert_eq!(problems(&live(&view)), NONE, "a restart would not make it complete");
}

#[test]
fn each_dead_watch_has_a_line() {
    let view = watching(|report| {
        report.watches[0].disconnected_reason = Some("silent for 90 s".into());
        report.watches[1].disconnected_reason = Some("connection refused".into());
    });
    let expected = [
        "services: the watch is not alive: silent for 90 s",
        "pods: the watch is not alive: connection refused",
    ];
    assert_eq!(problems(&ready(&view)), expected);
}

#[test]
fn a_stuck_engine_is_neither_alive_nor_ready() {
    let mut view = watching(|_| {});
    view.heartbeat_age = HEARTBEAT_AGE_MAX;
    assert_eq!(problems(&live(&view)), NONE);
    view.heartbeat_age += Duration::from_secs(1);
    assert_eq!(problems(&live(&view)), ["engine: no sign of life for 61 s"]);
    assert_eq!(problems(&ready(&view)), ["engine: no sign of life for 61 s"]);
}

#[test]
fn the_first_reason_of_a_failed_process_stays() {
    let board = board();
    board.fail("the sender is gone");
    board.fail("and so is the rest");
    assert_eq!(problems(&live(&board.view())), ["process: the sender is gone"]);
}

#[test]
fn a_posted_report_is_a_sign_of_life() {
    let board = board();
    std::thread::sleep(Duration::from_millis(30));
    assert!(board.view().heartbeat_age >= Duration::from_millis(30));
    board.post(EngineStatus::default());
    let view = board.view();
    assert!(view.heartbeat_age < Duration::from_millis(30), "{:?}", view.heartbeat_age);
}

const NONE: [&str; 0] = [];

/// A view of a report with two watches, changed as the test wants it.
fn watching(change: impl FnOnce(&mut EngineStatus)) -> StatusSnapshot {
    let mut report = EngineStatus {
        watches: vec![kind(WatchedResource::Services, 1), kind(WatchedResource::Pods, 1)],
        ..EngineStatus::default()
    };
    change(&mut report);
    StatusSnapshot { report: Some((Arc::new(report), secs(0))), ..board().view() }
}

fn problems(checks: &[Check]) -> Vec<String> {
    let told = |check: &Check| Some(format!("{}: {}", check.name, check.problem.as_ref()?));
    checks.iter().filter_map(told).collect()
}
