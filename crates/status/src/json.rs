//! The report as JSON. The words are those of the metrics and the logs.

use std::time::Duration;

use endpointd_engine::{
    BrakeReport, ControllerReport, KeyReport, KeyState, KindReport, Report, Sizes,
};
use endpointd_model::Key;
use serde_json::{Map, Value, json};

use crate::board::{Leadership, View};
use crate::metrics::own::by_word;

/// The whole report, or with `only` the rows of that key instead of all.
pub fn render_json(report: &Report, only: Option<&Key>) -> Value {
    let Report {
        is_leading,
        kinds,
        controllers,
        keys,
        n_keys_not_shown,
        sizes,
        brake,
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
        "isReady": report.is_ready(),
        "isLeading": is_leading,
        "kinds": kinds.iter().map(kind_row).collect::<Vec<_>>(),
        "controllers": controllers.iter().map(controller_row).collect::<Vec<_>>(),
        "keys": keys.iter().map(key_row).collect::<Vec<_>>(),
        "keysNotShown": n_keys_not_shown,
        "sizes": sizes_row(sizes),
        "brake": brake_row(brake),
        "throttledForSeconds": throttled_for.map(|duration| duration.as_secs_f64()),
    })
}

/// The process around the report: who it is, since when, and who leads.
pub(crate) fn process_row(view: &View) -> Value {
    let leadership = match &view.leadership {
        Leadership::Alone => json!({"state": "alone"}),
        Leadership::Leading { lease } => {
            json!({"state": "leading", "lease": &**lease, "holder": &*view.about.identity})
        }
        Leadership::Standby { lease, holder } => {
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

fn kind_row(kind: &KindReport) -> Value {
    let KindReport { kind, n_objects, is_listed, lost, version, age, unreadable } = kind;
    let unreadable: Map<String, Value> =
        unreadable.iter().map(|(key, reason)| (key.to_string(), json!(&**reason))).collect();
    json!({
        "kind": kind.as_str(),
        "objects": n_objects,
        "isListed": is_listed,
        "lost": lost.as_deref(),
        "resourceVersion": version.to_string(),
        "ageSeconds": age.as_secs_f64(),
        "unreadable": unreadable,
    })
}

fn controller_row(report: &ControllerReport) -> Value {
    let ControllerReport {
        controller,
        n_waiting,
        n_in_flight,
        n_backing_off,
        oldest_wait,
        oldest_flight,
        n_adds,
        n_retries,
        n_endpoints_desired,
        n_slices,
        n_slices_desired,
        left_out,
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
        "oldestFlightSeconds": oldest_flight.as_secs_f64(),
        "adds": n_adds,
        "retries": n_retries,
        "endpointsDesired": n_endpoints_desired,
        "slices": n_slices,
        "slicesDesired": n_slices_desired,
        "leftOut": by_word(left_out),
        "servicesByTrafficDistribution": services,
    })
}

fn key_row(row: &KeyReport) -> Value {
    let KeyReport { controller, key, state, n_failures, last_end, last_error, left_out } = row;
    let (state, for_how_long) = state_words(*state);
    json!({
        "controller": controller.name(),
        "key": key.to_string(),
        "state": state,
        "seconds": for_how_long.map(|duration| duration.as_secs_f64()),
        "failures": n_failures,
        "lastEnd": last_end,
        "lastError": last_error.as_deref(),
        "leftOut": by_word(left_out),
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
    let Sizes { n_label_sets, n_texts, n_tombstones, n_remembered_keys, cache_bytes } = sizes;
    json!({
        "labelSets": n_label_sets,
        "texts": n_texts,
        "tombstones": n_tombstones,
        "rememberedKeys": n_remembered_keys,
        "cacheBytes": cache_bytes,
    })
}

fn brake_row(brake: &BrakeReport) -> Value {
    let BrakeReport { is_on, n_last_minute, n_held, max_a_minute } = brake;
    json!({
        "isOn": is_on,
        "deletionsLastMinute": n_last_minute,
        "heldKeys": n_held,
        "deletionsLimit": max_a_minute,
    })
}
