//! The result of one sync, upstream's or ours, in canonical form.

use std::collections::BTreeMap;

use endpointd_model::{Key, names};
use endpointd_plan::{ClusterState, Plan, Retry};
use endpointd_wire::to_json_value;
use serde_json::{Value, json};

use crate::canonical::{self, KnownNames};
use crate::case::Expected;

/// All lists are sorted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub writes: Vec<String>,
    /// By verb and resource.
    pub n_writes: BTreeMap<String, usize>,
    pub events: Vec<String>,
    pub errors: Vec<String>,
    /// The Service's slices after the sync, of all managers.
    pub slices: Vec<Value>,
    pub endpoints: Value,
}

impl Answer {
    /// Upstream's result.
    pub fn expected(expected: &Expected, known: &KnownNames) -> Self {
        let text = |value: &Value, field: &str| value[field].as_str().unwrap_or("").to_owned();
        let mut answer = Self { errors: expected.errors.clone(), ..Self::default() };
        if answer.errors.is_empty() {
            answer.errors.extend(expected.error.clone());
        }
        for write in &expected.writes {
            let (verb, resource) = (text(write, "verb"), text(write, "resource"));
            let name = write["name"].as_str();
            let text = canonical::write(&verb, &resource, name, &write["object"], known);
            answer.count(&verb, &resource, text);
        }
        for event in &expected.events {
            answer.events.push(canonical::event(
                &text(event, "type"),
                &text(event, "reason"),
                &text(event, "message"),
                &text(event, "on"),
            ));
        }
        let slices = expected.end["endpointslices"].as_array().map_or(&[][..], Vec::as_slice);
        answer.slices = slices.iter().map(|slice| canonical::object(slice, known)).collect();
        if !expected.end["endpoints"].is_null() {
            answer.endpoints = canonical::object(&expected.end["endpoints"], known);
        }
        answer.sorted()
    }

    /// Our result: the plan, and the cluster state after it.
    pub fn ours(plan: &Plan, cluster: &ClusterState, key: &Key, known: &KnownNames) -> Self {
        let mut answer = Self::default();
        if let Some(Retry::MissingNodes(messages)) = &plan.retry {
            answer.errors = messages.clone();
        }
        for write in &plan.writes {
            let object = write.object().map_or(Value::Null, to_json_value);
            let (verb, resource) = (write.verb(), write.resource().as_str());
            let text = canonical::write(verb, resource, Some(&write.key().name), &object, known);
            answer.count(verb, resource, text);
        }
        for record in &plan.event_records {
            let on = format!("{} {key}", record.involved_kind.as_str());
            let kind = record.event_type().as_str();
            answer.events.push(canonical::event(
                kind,
                record.reason.as_str(),
                &record.message,
                &on,
            ));
        }
        let of_service = cluster.slices.values().filter(|slice| {
            slice.meta.namespace == key.namespace
                && slice.meta.labels.has(names::SERVICE_NAME, &key.name)
        });
        let json =
            |object: endpointd_model::Object| canonical::object(&to_json_value(&object), known);
        answer.slices =
            of_service.map(|one| json(endpointd_model::Object::Slice(one.clone()))).collect();
        if let Some(endpoints) = cluster.endpoints.get(key) {
            answer.endpoints = json(endpointd_model::Object::Endpoints(endpoints.clone()));
        }
        answer.sorted()
    }

    fn count(&mut self, verb: &str, resource: &str, text: String) {
        *self.n_writes.entry(json!([verb, resource]).to_string()).or_default() += 1;
        self.writes.push(text);
    }

    fn sorted(mut self) -> Self {
        self.writes.sort_unstable();
        self.events.sort_unstable();
        self.errors.sort_unstable();
        self.errors.dedup();
        self.slices.sort_by_cached_key(Value::to_string);
        self
    }
}
