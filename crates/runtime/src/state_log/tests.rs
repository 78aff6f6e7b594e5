//! Log lines for scripted syncs and statuses.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use endpointd_engine::{HintsKind, WatchStatus};
use endpointd_model::FailureKind;
use endpointd_plan::Counts;
use serde_json::{Value, json};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::*;

/// The JSON log of one test, in the format of `--log-format=json`.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Captured {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// The lines that `log` writes at `level` and above.
fn lines(level: LevelFilter, log: impl FnOnce(&mut StateChangeLogger)) -> Vec<Value> {
    let captured = Captured::default();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_max_level(level)
        .with_writer(captured.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || log(&mut StateChangeLogger::default()));
    let bytes = captured.0.lock().unwrap().clone();
    let text = String::from_utf8(bytes).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn messages(log: impl FnOnce(&mut StateChangeLogger)) -> Vec<String> {
    let message = |line: Value| line["message"].as_str().unwrap().to_owned();
    lines(LevelFilter::INFO, log).into_iter().map(message).collect()
}

fn sync(result: SyncResult) -> SyncSummary {
    SyncSummary {
        controller: Controller::Slices,
        key: Key::new("shop", "web"),
        result,
        counts: Counts::default(),
        n_creates: 1,
        n_updates: 2,
        n_deletes: 0,
        waited: Duration::from_millis(20),
        took: Duration::from_millis(10),
        is_removal: false,
        is_background: false,
        has_lasted: false,
        hints: HintsKind::default(),
    }
}

fn failed(message: &str) -> SyncResult {
    SyncResult::Failed(Failure { kind: FailureKind::Forbidden, message: message.into() })
}

fn watching(change: impl FnOnce(&mut WatchStatus)) -> EngineStatus {
    let mut watch = WatchStatus {
        resource: WatchedResource::Pods,
        n_objects: 1,
        is_synced: true,
        disconnected_reason: None,
        version: 7.into(),
        last_event_age: Duration::ZERO,
        decode_errors: BTreeMap::new(),
    };
    change(&mut watch);
    EngineStatus { watches: vec![watch], ..EngineStatus::default() }
}

#[test]
fn sync_is_logged_in_a_span_with_its_fields() {
    let lines = lines(LevelFilter::DEBUG, |log| log.on_sync(&sync(SyncResult::Written)));
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(line["message"], "sync finished");
    assert_eq!(line["result"], "written");
    let span = json!({
        "name": "sync",
        "controller": "endpointslice-controller",
        "key": "shop/web",
        "writes": 3,
        "elapsed": "10ms",
    });
    assert_eq!(line["span"], span);
}

#[test]
fn successful_sync_is_not_logged_at_info() {
    assert!(messages(|log| log.on_sync(&sync(SyncResult::Written))).is_empty());
}

#[test]
fn failing_key_is_logged_once_per_reason_and_when_it_recovers() {
    let logged = messages(|log| {
        log.on_sync(&sync(failed("quota")));
        log.on_sync(&sync(failed("quota")));
        log.on_sync(&sync(SyncResult::ConflictRetry));
        log.on_sync(&sync(failed("webhook")));
        log.on_sync(&sync(SyncResult::Written));
        log.on_sync(&sync(SyncResult::Written));
    });
    let expected =
        ["sync failed, will retry: quota", "sync failed, will retry: webhook", "sync recovered"];
    assert_eq!(logged, expected);
}

#[test]
fn readiness_is_logged_when_it_changes() {
    let logged = messages(|log| {
        log.on_status(&watching(|_| {}));
        log.on_status(&watching(|_| {}));
        log.on_status(&watching(|watch| watch.disconnected_reason = Some("cut off".into())));
    });
    assert_eq!(logged, ["ready", "not ready: a watch is disconnected"]);
}

#[test]
fn decode_error_is_logged_once_per_reason_and_again_after_it_was_resolved() {
    let bad = |reason: &'static str| {
        watching(move |watch| {
            watch.decode_errors.insert(Key::new("shop", "odd"), reason.into());
        })
    };
    let logged = messages(|log| {
        for status in [bad("a"), bad("a"), bad("b"), watching(|_| {}), bad("b")] {
            log.on_status(&status);
        }
    });
    let decode = logged.iter().filter(|line| line.starts_with("failed to decode object"));
    assert_eq!(decode.count(), 3, "{logged:?}");
}

#[test]
fn deletion_limiter_is_logged_when_it_starts_and_stops() {
    let limited = |is_active| EngineStatus {
        deletion_limiter: DeletionLimiterStatus { is_active, ..Default::default() },
        ..watching(|_| {})
    };
    let logged = messages(|log| {
        for is_active in [false, true, true, false] {
            log.on_status(&limited(is_active));
        }
    });
    let expected =
        ["ready", "mass deletion detected: rate-limiting deletions", "deletion rate limit lifted"];
    assert_eq!(logged, expected);
}
