//! One Service in the list, as JSON.

use std::collections::BTreeMap;
use std::time::SystemTime;

use endpointd_engine::{EndpointCounts, ServiceOverview};
use endpointd_model::{Key, Timestamp};
use serde_json::{Map, Value, json};

use crate::import_json;

/// Endpoints without a zone have an empty one.
pub fn row(key: &Key, overview: &ServiceOverview, changed_at: Option<SystemTime>) -> Value {
    let ServiceOverview {
        source,
        is_deleting,
        import,
        by_zone,
        slice_sizes,
        n_slices,
        excluded_pods,
        last_trigger,
    } = overview;
    let zones: Map<String, Value> = by_zone
        .iter()
        .map(|(zone, counts)| (zone.as_deref().unwrap_or_default().to_owned(), counted(*counts)))
        .collect();
    let excluded: BTreeMap<&str, usize> =
        excluded_pods.iter().map(|(reason, n)| (reason.as_str(), *n)).collect();
    let changed_at = changed_at.and_then(timestamp).max(*last_trigger);
    json!({
        "namespace": &*key.namespace,
        "name": &*key.name,
        "source": source.as_str(),
        "deleting": is_deleting,
        "import": import_json::import(import.as_ref()),
        "zones": zones,
        "slices": slice_sizes,
        "sliceCount": n_slices,
        "excluded": excluded,
        "changedAt": changed_at.map(|time| time.to_string()),
    })
}

fn counted(counts: EndpointCounts) -> Value {
    let EndpointCounts { n_ready, n_not_ready, n_terminating } = counts;
    json!([n_ready, n_not_ready, n_terminating])
}

/// `None`: not representable, long before or after our time.
pub fn timestamp(time: SystemTime) -> Option<Timestamp> {
    Timestamp::try_from(time).ok()
}
