//! Liveness and readiness checks, and their texts.

use std::sync::Arc;
use std::time::Duration;

use endpointd_engine::EngineStatus;
use endpointd_model::WatchedResource;
use endpointd_status::{Check, HEARTBEAT_AGE_MAX, StatusSnapshot, live, ready};

use crate::fixture::{engine_status, handle, secs, watch};

#[test]
fn before_the_first_status_is_alive_and_not_ready() {
    let view = handle().0.snapshot();
    assert_eq!(problems(&live(&view)), NONE);
    assert_eq!(
        problems(&ready(&view)),
        ["report: no status published yet: the engine is starting"]
    );
}

#[test]
fn standby_with_all_watches_synced_is_ready() {
    let view = watching(|_| {});
    assert!(!view.leadership.is_leading());
    assert_eq!(problems(&ready(&view)), NONE);
}

#[test]
fn incomplete_initial_list_is_not_ready() {
    let mut view = watching(|status| {
        status.watches[1].is_synced = false;
        status.controllers = engine_status().controllers;
        for one in &mut status.controllers {
            one.waits_for = vec![WatchedResource::Pods];
        }
        status.controllers[0].waits_for.push(WatchedResource::Nodes);
    });
    let waiting = "waiting for it: endpointslice-controller, endpointslice-mirroring-controller";
    let expected = format!("pods: initial list not complete; {waiting}");
    assert_eq!(problems(&ready(&view)), [expected]);
    assert_eq!(problems(&live(&view)), NONE, "a restart would not help");
    let (status, _) = view.engine.as_mut().expect("published");
    Arc::make_mut(status).watches[1].disconnected_reason = Some("forbidden".into());
    let expected = format!("pods: cannot be listed: forbidden; {waiting}");
    assert_eq!(problems(&ready(&view)), [expected]);
}

#[test]
fn each_disconnected_watch_is_listed() {
    let view = watching(|status| {
        status.watches[0].disconnected_reason = Some("silent for 90 s".into());
        status.watches[1].disconnected_reason = Some("connection refused".into());
    });
    let expected = [
        "services: watch disconnected: silent for 90 s",
        "pods: watch disconnected: connection refused",
    ];
    assert_eq!(problems(&ready(&view)), expected);
}

#[test]
fn missing_heartbeat_is_neither_alive_nor_ready() {
    let mut view = watching(|_| {});
    view.heartbeat_age = HEARTBEAT_AGE_MAX;
    assert_eq!(problems(&live(&view)), NONE);
    view.heartbeat_age += Duration::from_secs(1);
    assert_eq!(problems(&live(&view)), ["engine: no heartbeat for 61 s"]);
    assert_eq!(problems(&ready(&view)), ["engine: no heartbeat for 61 s"]);
}

#[test]
fn failed_process_reports_its_first_reason() {
    let (handle, _queries) = handle();
    handle.fail("task `events` ended");
    handle.fail("task `watch pods` ended");
    assert_eq!(problems(&live(&handle.snapshot())), ["process: task `events` ended"]);
}

#[test]
fn publishing_is_a_heartbeat() {
    let (handle, _queries) = handle();
    std::thread::sleep(Duration::from_millis(30));
    assert!(handle.snapshot().heartbeat_age >= Duration::from_millis(30));
    handle.publish(EngineStatus::default());
    let view = handle.snapshot();
    assert!(view.heartbeat_age < Duration::from_millis(30), "{:?}", view.heartbeat_age);
}

const NONE: [&str; 0] = [];

/// A snapshot with two synced watches, after `change`.
fn watching(change: impl FnOnce(&mut EngineStatus)) -> StatusSnapshot {
    let mut status = EngineStatus {
        watches: vec![watch(WatchedResource::Services, 1), watch(WatchedResource::Pods, 1)],
        ..EngineStatus::default()
    };
    change(&mut status);
    StatusSnapshot { engine: Some((Arc::new(status), secs(0))), ..handle().0.snapshot() }
}

fn problems(checks: &[Check]) -> Vec<String> {
    let text = |check: &Check| Some(format!("{}: {}", check.name, check.problem.as_ref()?));
    checks.iter().filter_map(text).collect()
}
