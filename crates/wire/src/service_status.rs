//! The status of a Service, as far as the import controller reads and writes it: one condition.

use endpointd_model as model;
use endpointd_model::names;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::condition::Condition;

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceStatus {
    #[prost(message, repeated, tag = "2")]
    pub conditions: Vec<Condition>,
}

impl ServiceStatus {
    /// The condition about the source of the endpoints.
    pub fn source_condition(self) -> Option<model::Condition> {
        let mut all = self.conditions.into_iter();
        all.find(|one| one.type_ == names::SOURCE_CONDITION).map(model::Condition::from)
    }
}

/// A strategic merge patch: it changes one condition of the version that it names, and nothing else.
pub(crate) fn patch(status: &model::ServiceStatus) -> Value {
    let model::ServiceStatus { meta, condition } = status;
    let condition = match condition {
        Some(condition) => wire(condition),
        None => json!({ "type": names::SOURCE_CONDITION, "$patch": "delete" }),
    };
    json!({
        "metadata": {
            "uid": meta.uid.to_string(),
            "resourceVersion": meta.resource_version.to_string(),
        },
        "status": { "conditions": [condition] },
    })
}

/// The Service with its condition and without its other fields, for people.
pub(crate) fn to_json(status: &model::ServiceStatus) -> Value {
    let model::ServiceStatus { meta, condition } = status;
    let conditions: Vec<Value> = condition.iter().map(wire).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "namespace": &*meta.namespace, "name": &*meta.name },
        "status": { "conditions": conditions },
    })
}

fn wire(condition: &model::Condition) -> Value {
    serde_json::to_value(Condition::from(condition)).expect("texts and a time are always JSON")
}
