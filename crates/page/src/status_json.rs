//! The header and what waits, as JSON.

use endpointd_status::{StatusSnapshot, process_row, render_json};
use serde_json::{Value, json};

/// `rates` are those of the collector.
pub fn status(snapshot: &StatusSnapshot, rates: Value, n_readers: usize) -> Value {
    let mut value = match &snapshot.engine {
        Some((status, age)) => {
            let mut value = render_json(status);
            value["snapshotAgeSeconds"] = json!(age.as_secs_f64());
            value["services"] = json!(
                status
                    .watches
                    .iter()
                    .find(|watch| watch.resource == endpointd_model::WatchedResource::Services)
                    .map(|watch| watch.n_objects)
            );
            value
        }
        // Before the first status, at the start of the process.
        None => json!({"ready": false, "watches": [], "controllers": [], "keys": []}),
    };
    value["process"] = process_row(snapshot);
    value["failure"] = json!(snapshot.failure.as_deref());
    value["shadow"] = json!(snapshot.shadow.is_some());
    value["rates"] = rates;
    value["readers"] = json!(n_readers);
    value
}
