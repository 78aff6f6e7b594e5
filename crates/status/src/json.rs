//! The status as JSON, in the words of the metrics and the logs.

use std::time::Duration;

use endpointd_engine::{
    ControllerStatus, DeletionLimiterStatus, EngineStatus, KeyState, KeyStatus, Sizes,
    SourceStatus, WatchStatus,
};
use endpointd_model::Key;
use serde_json::{Map, Value, json};

use crate::handle::{LeadershipStatus, StatusSnapshot};
use crate::metrics::endpointd::by_reason_label;

/// The status of the engine, with a row for each key that waits, is in flight, or failed.
pub fn render_json(status: &EngineStatus) -> Value {
    let EngineStatus {
        is_leading,
        watches,
        sources,
        import_conflicts,
        controllers,
        keys,
        n_keys_not_shown,
        n_consumers,
        sizes,
        deletion_limiter,
        throttled_for,
    } = status;
    json!({
        "ready": status.is_ready(),
        "leader": is_leading,
        "watches": watches.iter().map(watch_row).collect::<Vec<_>>(),
        "importConflicts": import_conflicts
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(kind, n)| (kind.as_str().to_owned(), json!(n)))
            .collect::<serde_json::Map<_, _>>(),
        "clusters": sources.iter().map(source_row).collect::<Vec<_>>(),
        "controllers": controllers.iter().map(controller_row).collect::<Vec<_>>(),
        "keys": keys.iter().map(key_row).collect::<Vec<_>>(),
        "keysNotShown": n_keys_not_shown,
        "importsByReason": n_consumers.iter()
            .map(|(reason, n)| (reason.as_str().to_owned(), json!(n)))
            .collect::<Map<_, _>>(),
        "sizes": sizes_row(sizes),
        "deletionLimiter": deletion_limiter_row(deletion_limiter),
        "throttledForSeconds": throttled_for.map(|duration| duration.as_secs_f64()),
    })
}

/// One key, with a row for each controller that knows it.
pub(crate) fn render_key_json(key: &Key, rows: &[KeyStatus]) -> Value {
    json!({
        "key": key.to_string(),
        "keys": rows.iter().map(key_row).collect::<Vec<_>>(),
    })
}

/// Version, identity, uptime, and leadership of this process.
pub fn process_row(snapshot: &StatusSnapshot) -> Value {
    let leadership = match &snapshot.leadership {
        LeadershipStatus::NoElection => json!({"state": "no_election"}),
        LeadershipStatus::DryRun => json!({"state": "dry_run"}),
        LeadershipStatus::Leading { lease } => {
            json!({"state": "leading", "lease": &**lease, "holder": &*snapshot.process.identity})
        }
        LeadershipStatus::Standby { lease, holder } => {
            json!({"state": "standby", "lease": &**lease, "holder": holder.as_deref()})
        }
    };
    json!({
        "version": &*snapshot.process.version,
        "identity": &*snapshot.process.identity,
        "uptimeSeconds": snapshot.uptime.as_secs_f64(),
        "heartbeatAgeSeconds": snapshot.heartbeat_age.as_secs_f64(),
        "leadership": leadership,
    })
}

fn watch_row(watch: &WatchStatus) -> Value {
    let WatchStatus {
        resource,
        n_objects,
        is_synced,
        disconnected_reason,
        version,
        last_event_age,
        decode_errors,
    } = watch;
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

fn source_row(source: &SourceStatus) -> Value {
    let SourceStatus {
        cluster,
        state,
        last_contact,
        last_contact_age,
        is_denied,
        watches,
        n_exports,
        n_slices,
        endpoints,
    } = source;
    json!({
        "cluster": cluster.as_str(),
        "state": state.as_str(),
        "lastContact": last_contact.map(|at| at.to_string()),
        "lastContactAgeSeconds": last_contact_age.map(|age| age.as_secs_f64()),
        "denied": is_denied,
        "exports": n_exports,
        "slices": n_slices,
        "endpoints": endpoints.n,
        "readyEndpoints": endpoints.n_ready,
        "watches": watches.iter().map(watch_row).collect::<Vec<_>>(),
    })
}

fn controller_row(status: &ControllerStatus) -> Value {
    let ControllerStatus {
        controller,
        waits_for,
        n_waiting,
        n_in_flight,
        n_backing_off,
        n_contested,
        oldest_wait,
        oldest_in_flight,
        n_adds,
        n_retries,
        n_endpoints_desired,
        n_slices,
        n_slices_desired,
        excluded_pods,
        n_by_traffic_distribution,
    } = status;
    let services: Map<String, Value> = n_by_traffic_distribution
        .iter()
        .map(|(distribution, n)| (distribution.unwrap_or("none").to_owned(), json!(n)))
        .collect();
    json!({
        "controller": controller.name(),
        "waitsFor": waits_for.iter().map(|resource| resource.as_str()).collect::<Vec<_>>(),
        "waiting": n_waiting,
        "inFlight": n_in_flight,
        "backingOff": n_backing_off,
        "contested": n_contested,
        "oldestWaitSeconds": oldest_wait.as_secs_f64(),
        "oldestInFlightSeconds": oldest_in_flight.as_secs_f64(),
        "adds": n_adds,
        "retries": n_retries,
        "endpointsDesired": n_endpoints_desired,
        "slices": n_slices,
        "slicesDesired": n_slices_desired,
        "excludedPods": by_reason_label(excluded_pods),
        "servicesByTrafficDistribution": services,
    })
}

/// One key in one controller.
pub fn key_row(row: &KeyStatus) -> Value {
    let KeyStatus {
        controller,
        key,
        state,
        n_failures,
        last_result,
        last_error,
        is_contested,
        excluded_pods,
    } = row;
    let (state, duration) = state_label(*state);
    json!({
        "controller": controller.name(),
        "key": key.to_string(),
        "state": state,
        "seconds": duration.map(|duration| duration.as_secs_f64()),
        "failures": n_failures,
        "lastResult": last_result,
        "lastError": last_error.as_deref(),
        "contested": is_contested,
        "excludedPods": by_reason_label(excluded_pods),
    })
}

/// The state, and how long it has lasted; for `backing_off`, how long it will last.
fn state_label(state: KeyState) -> (&'static str, Option<Duration>) {
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

fn deletion_limiter_row(deletion_limiter: &DeletionLimiterStatus) -> Value {
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
