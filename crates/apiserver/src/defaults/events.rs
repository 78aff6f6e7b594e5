//! Conversion of events between `v1`, which is stored, and `events.k8s.io/v1`. Upstream:
//! pkg/apis/events/v1/conversion.go.

use serde_json::{Value, json};

use crate::schema::read::read;

pub(crate) const SELECTABLE: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

/// Name in `events.k8s.io/v1`, name in `v1`.
const RENAMED: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

pub(crate) fn to_core(event: Value) -> Value {
    rename(event, RENAMED)
}

pub(crate) fn from_core(event: Value) -> Value {
    let event = rename(event, RENAMED.map(|(new, core)| (core, new)));
    let read = read("io.k8s.api.events.v1.Event", event);
    read.expect("a stored event has the fields of both forms").object
}

fn rename(mut event: Value, names: [(&str, &str); 7]) -> Value {
    let Value::Object(fields) = &mut event else { return event };
    let moved: Vec<(&str, Value)> = names
        .iter()
        .filter_map(|(from, to)| fields.remove(*from).map(|value| (*to, value)))
        .filter(|(_, value)| !value.is_null())
        .collect();
    for (name, value) in moved {
        fields.insert(name.to_owned(), value);
    }
    event
}

/// Fields that the stored form always has.
pub(crate) fn complete_core(mut event: Value) -> Value {
    for (field, zero) in [
        ("involvedObject", json!({})),
        ("source", json!({})),
        ("reportingComponent", json!("")),
        ("reportingInstance", json!("")),
        ("firstTimestamp", Value::Null),
        ("lastTimestamp", Value::Null),
        ("eventTime", Value::Null),
    ] {
        if event.get(field).is_none() {
            event[field] = zero;
        }
    }
    event
}
