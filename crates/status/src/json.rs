//! The report as JSON. The words are those of the metrics and the logs.

use std::time::Duration;

use endpointd_engine::{
    ControllerStatus, DeletionLimiterStatus, EngineStatus, KeyState, KeyStatus, Sizes, WatchStatus,
};
use endpointd_model::Key;
use serde_json::{Map, Value, json};

use crate::board::{LeadershipStatus, StatusSnapshot};
use crate::metrics::own::by_word;

/// The whole report, or with `only` the rows of that key instead of all.
pub fn render_json(report: &EngineStatus, only: Option<&Key>) -> Value {
    let EngineStatus {
        is_leading,
        watches,
        controllers,
        keys,
        n_keys_not_shown,
        sizes,
        deletion_limiter,
        throttled_for,
    } = report;
    if let Some(only) = only {
        let rows = keys.iter().filter(|row| row.key == *only).map(key_row);
        return json!({
            "key": only.to_string(),
            "keys": rows.collect::<Vec<_>>(),
            "keysNotShown": n_keys_not_shown,
        });
    }
    json!({
        "ready": report.is_ready(),
        "leader": is_leading,
        "watches": watches.iter().map(kind_row).collect::<Vec<_>>(),
        "controllers": controllers.iter().map(controller_row).collect::<Vec<_>>(),
        "keys": keys.iter().map(key_row).collect::<Vec<_>>(),
        "keysNotShown": n_keys_not_shown,
        "sizes": sizes_row(sizes),
        "deletion_limiter": brake_row(deletion_limiter),
        "throttledForSeconds": throttled_for.map(|duration| duration.as_secs_f64()),
    })
}

/// The process around the report: who it is, since when, and who leads.
pub(crate) fn process_row(view: &StatusSnapshot) -> Value {
    let leadership = match &view.leadership {
        LeadershipStatus::Alone => json!({"state": "no_election"}),
        LeadershipStatus::Leading { lease } => {
            json!({"state": "leading", "lease": &**lease, "holder": &*view.about.identity})
        }
        LeadershipStatus::Standby { lease, holder } => {
            json!({"state": "standby", "lease": &**lease, "holder": holder.as_deref()})
        }
    };
    json!({
        "version": &*view.about.version,
        "identity": &*view.about.identity,
        "uptimeSeconds": view.uptime.as_secs_f64(),
        "heartbeatAgeSeconds": view.heartbeat_age.as_secs_f64(),
        "leadership": leadership,
    })
}

fn kind_row(kind: &WatchStatus) -> Value {
    let WatchStatus {
        resource,
        n_objects,
        is_synced,
        disconnected_reason,
        version,
        last_event_age,
        decode_errors,
    } = kind;
    let decode_errors: Map<String, Value> =
        decode_errors.iter().map(|(key, reason)| (key.to_string(), json!(&**reason))).collect();
    json!({
        "resource": resource.as_str(),
        "objects": n_objects,
        "synced": is_synced,
        "disconnectedReason": disconnected_reason.as_deref(),
        "resourceVersion": version.to_string(),
        "lastEventAgeSeconds": last_event_age.as_secs_f64(),
        "decodeErrors": decode_errors,
    })
}

fn controller_row(report: &ControllerStatus) -> Value {
    let ControllerStatus {
        controller,
        n_waiting,
        n_in_flight,
        n_backing_off,
        oldest_wait,
        oldest_in_flight,
        n_adds,
        n_retries,
        n_endpoints_desired,
        n_slices,
        n_slices_desired,
        excluded_pods,
        n_by_traffic_distribution,
    } = report;
    let services: Map<String, Value> = n_by_traffic_distribution
        .iter()
        .map(|(distribution, n)| (distribution.unwrap_or("none").to_owned(), json!(n)))
        .collect();
    json!({
        "controller": controller.name(),
        "waiting": n_waiting,
        "inFlight": n_in_flight,
        "backingOff": n_backing_off,
        "oldestWaitSeconds": oldest_wait.as_secs_f64(),
        "oldestInFlightSeconds": oldest_in_flight.as_secs_f64(),
        "adds": n_adds,
        "retries": n_retries,
        "endpointsDesired": n_endpoints_desired,
        "slices": n_slices,
        "slicesDesired": n_slices_desired,
        "excludedPods": by_word(excluded_pods),
        "servicesByTrafficDistribution": services,
    })
}

fn key_row(row: &KeyStatus) -> Value {
    let KeyStatus { controller, key, state, n_failures, last_result, last_error, excluded_pods } =
        row;
    let (state, for_how_long) = state_words(*state);
    json!({
        "controller": controller.name(),
        "key": key.to_string(),
        "state": state,
        "seconds": for_how_long.map(|duration| duration.as_secs_f64()),
        "failures": n_failures,
        "lastResult": last_result,
        "lastError": last_error.as_deref(),
        "excludedPods": by_word(excluded_pods),
    })
}

/// The state in a word, and how long it has lasted or, when backing off, will last.
fn state_words(state: KeyState) -> (&'static str, Option<Duration>) {
    match state {
        KeyState::InFlight { since } => ("in_flight", Some(since)),
        KeyState::Waiting { since } => ("waiting", Some(since)),
        KeyState::BackingOff { remaining } => ("backing_off", Some(remaining)),
        KeyState::Idle => ("idle", None),
    }
}

fn sizes_row(sizes: &Sizes) -> Value {
    let Sizes { n_label_sets, n_interned_strings, n_tombstones, n_tracked_keys, cache_bytes } =
        sizes;
    json!({
        "labelSets": n_label_sets,
        "internedStrings": n_interned_strings,
        "tombstones": n_tombstones,
        "trackedKeys": n_tracked_keys,
        "cacheBytes": cache_bytes,
    })
}

fn brake_row(deletion_limiter: &DeletionLimiterStatus) -> Value {
    let DeletionLimiterStatus {
        is_active,
        n_deletions_last_minute,
        n_delayed_keys,
        deletions_per_minute_max,
    } = deletion_limiter;
    json!({
        "active": is_active,
        "deletionsLastMinute": n_deletions_last_minute,
        "delayedKeys": n_delayed_keys,
        "deletionsPerMinuteLimit": deletions_per_minute_max,
    })
}
