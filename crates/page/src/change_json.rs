//! Changes as JSON.

use endpointd_engine::{SyncResult, SyncSummary};
use endpointd_status::{Change, EndpointChange, EndpointChanges, WriteRecord};
use serde_json::{Value, json};

use crate::overview_json::timestamp;

pub fn change(change: &Change) -> Value {
    let Change { at, sync, writes } = change;
    let SyncSummary {
        controller,
        key,
        result,
        counts,
        n_creates,
        n_updates,
        n_deletes,
        waited,
        took,
        is_removal,
        is_background,
        has_lasted: _,
        hints: _,
    } = sync;
    json!({
        "at": timestamp(*at).map(|time| time.to_string()),
        "namespace": &*key.namespace,
        "name": &*key.name,
        "controller": controller.name(),
        "result": result.as_str(),
        "error": error(result),
        "planned": {
            "creates": n_creates,
            "updates": n_updates,
            "deletes": n_deletes,
            "added": counts.n_added,
            "removed": counts.n_removed,
            "slices": counts.n_slices_desired,
        },
        "waitedMs": millis(*waited),
        "tookMs": millis(*took),
        "removal": is_removal,
        "background": is_background,
        "writes": writes.iter().map(write).collect::<Vec<_>>(),
    })
}

fn error(result: &SyncResult) -> Option<&str> {
    match result {
        SyncResult::Failed(failure) => Some(&failure.message),
        SyncResult::Unchanged
        | SyncResult::Written
        | SyncResult::NamespaceTerminating
        | SyncResult::ConflictRetry
        | SyncResult::Throttled
        | SyncResult::LeadershipLost => None,
    }
}

fn write(record: &WriteRecord) -> Value {
    let WriteRecord { verb, resource, name, result, took, endpoints } = record;
    let EndpointChanges { shown, n_not_shown } = endpoints.get();
    json!({
        "verb": verb,
        "resource": resource,
        "name": &**name,
        "result": result,
        "tookMs": millis(*took),
        "endpoints": shown.iter().map(endpoint).collect::<Vec<_>>(),
        "endpointsNotShown": n_not_shown,
    })
}

fn endpoint(change: &EndpointChange) -> Value {
    let EndpointChange { name, before, after } = change;
    json!({
        "name": &**name,
        "before": before.map(|one| one.as_str()),
        "after": after.map(|one| one.as_str()),
    })
}

/// Rounded to 0.001 ms.
pub fn millis(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000.0).round() / 1000.0
}
