//! B6, B8, and B18: writes that only one side sends.

use endpointd_model::{Controller, Labels, Object, TopologyMode, names};
use endpointd_plan::ClusterState;
use endpointd_wire::to_json_value;
use serde_json::Value;

use super::order::identities;
use super::{Sync, SyncStep, is_subset, without};
use crate::answer::Answer;
use crate::canonical::{self, HintsIn};
use crate::case::Expected;
use crate::judge::{Aspect, known_names};

impl Sync<'_> {
    /// B6: the API server rejected a request, so upstream stopped where we would go on.
    pub(super) fn upstream_stopped_at_injected_error(&self, aspect: Aspect) -> bool {
        let is_injected = self.step == SyncStep::First && self.case.settings.inject.is_some();
        is_injected
            && (aspect != Aspect::Writes || is_subset(&self.upstream.writes, &self.ours.writes))
    }

    /// B8: upstream deletes Endpoints that do not exist.
    pub(super) fn deletes_unobserved_endpoints(&self, aspect: Aspect) -> bool {
        let sent: Vec<&str> = self.upstream.writes.iter().map(String::as_str).collect();
        self.controller == Controller::Endpoints
            && matches!(aspect, Aspect::Writes)
            && self.before.endpoints.is_empty()
            && self.ours.writes.is_empty()
            && matches!(sent.as_slice(), [only] if only.starts_with("[\"delete\",\"endpoints\""))
    }

    /// B8: upstream updates a recycled or mirrored slice with a new object under the old name,
    /// which drops finalizers of other clients.
    pub(super) fn differs_only_by_finalizers(&self, aspect: Aspect) -> bool {
        let plain = |writes: &[String]| -> Vec<Value> {
            let parsed = writes.iter().map(|write| serde_json::from_str(write).unwrap_or_default());
            let mut plain: Vec<Value> = parsed.map(without_finalizers).collect();
            plain.sort_by_cached_key(Value::to_string);
            plain
        };
        let holds = |write: &String| write.contains("\"finalizers\"");
        matches!(aspect, Aspect::Writes | Aspect::End)
            && self.ours.writes.iter().any(holds)
            && plain(&self.upstream.writes) == plain(&self.ours.writes)
    }

    /// B18: every additional write of upstream leaves the object as it was, except for the trigger
    /// time.
    pub(super) fn is_write_without_change(&self, aspect: Aspect) -> bool {
        // `differs_only_by_finalizers` covers the finalizers that mirroring drops.
        let plain = |writes: &[String]| -> Vec<String> {
            if self.controller != Controller::Mirror {
                return writes.to_vec();
            }
            let parsed = writes.iter().map(|write| serde_json::from_str(write).unwrap_or_default());
            parsed.map(|write| without_finalizers(write).to_string()).collect()
        };
        let (upstream, ours) = (plain(&self.upstream.writes), plain(&self.ours.writes));
        let more = without(&upstream, &ours);
        let is_about_writes = matches!(aspect, Aspect::Writes | Aspect::WriteCounts | Aspect::End);
        is_about_writes
            && without(&ours, &upstream).is_empty()
            && !more.is_empty()
            && more.iter().all(|write| self.changes_nothing(write))
    }

    pub(super) fn changes_nothing(&self, write: &str) -> bool {
        let write: Value = serde_json::from_str(write).unwrap_or_default();
        let mut before = self.objects_before(write[1].as_str().unwrap_or(""));
        match write[0].as_str() {
            Some("update") => before.any(|was| self.comparable(&was) == self.comparable(&write[3])),
            // The object is already being deleted. B19 covers slices in that state.
            Some("delete") => before.any(|was| {
                self.controller == Controller::Endpoints
                    && was["metadata"]["name"] == write[2]
                    && !was["metadata"]["deletionTimestamp"].is_null()
            }),
            _ => false,
        }
    }

    /// The part of an object that must be equal for a write to change nothing. Upstream never
    /// accepts the labels of a slice mirrored from Endpoints with a reserved label, and its rewrite
    /// then also corrects fields that alone cause no write: a missing owner, the resourceVersion of
    /// a target.
    pub(super) fn comparable(&self, object: &Value) -> Value {
        let mut object = without_time(object);
        // Dropping the finalizer of an object that is being deleted removes the object.
        if self.controller == Controller::Mirror
            && object["metadata"]["deletionTimestamp"].is_null()
            && let Some(meta) = object["metadata"].as_object_mut()
        {
            meta.remove("finalizers");
        }
        if self.mirrors_reserved_label()
            && let Some(meta) = object["metadata"].as_object_mut()
        {
            meta.remove("ownerReferences");
            let endpoints = object["endpoints"].as_array_mut().into_iter().flatten();
            for fields in endpoints.filter_map(Value::as_object_mut) {
                fields.remove("hints");
                fields.remove("deprecatedTopology");
                if let Some(target) = fields.get_mut("targetRef").and_then(Value::as_object_mut) {
                    target.remove("resourceVersion");
                }
            }
        }
        // The same for Endpoints of a Service with a reserved label: the rewrite also corrects the
        // headless label, which alone causes no write.
        let service = self.before.services.get(self.key);
        let reserved = [names::HEADLESS, names::ENDPOINTS_MANAGED_BY];
        let is_reserved = |labels: &Labels| reserved.iter().any(|key| labels.contains_key(key));
        if self.controller == Controller::Endpoints
            && service.is_some_and(|one| is_reserved(&one.labels))
            && let Some(labels) = object["metadata"]["labels"].as_object_mut()
        {
            labels.remove(names::HEADLESS);
            object["subsets"] = identities(&object["subsets"]).into();
        }
        object
    }

    pub(super) fn mirrors_reserved_label(&self) -> bool {
        let reserved = [names::MANAGED_BY, names::SERVICE_NAME];
        let is_reserved = |labels: &Labels| reserved.iter().any(|key| labels.contains_key(key));
        let endpoints = self.before.endpoints.get(self.key);
        self.controller == Controller::Mirror
            && endpoints.is_some_and(|one| is_reserved(&one.meta.labels))
    }

    /// B18 where upstream's result is random: it sends more updates that lead to the same
    /// endpoints, or sends in its next sync the updates that hints need.
    pub(super) fn differs_only_by_number_of_updates(&self, aspect: Aspect) -> bool {
        let union = |answer: &Answer| canonical::union(&answer.slices, HintsIn::Ignored);
        let updates = |answer: &Answer| {
            let mut counts = answer.n_writes.clone();
            (counts.remove("[\"update\",\"endpointslices\"]").unwrap_or(0), counts)
        };
        let ((n_upstream, others_upstream), (n_ours, others_ours)) =
            (updates(self.upstream), updates(self.ours));
        // Upstream has already chosen slices to rewrite when it refuses hints.
        let refuses_late =
            self.upstream.events.iter().any(|event| event.contains("do not have a zone specified"));
        // While the owner is being deleted, random endpoints lose their slice.
        let Expected { nondeterministic, stable, .. } = self.expected;
        let union_varies = *nondeterministic && !stable.iter().any(|name| name == "endUnion");
        // After a change, our updates can include hints that upstream writes in its next sync, and
        // upstream's updates can include hints that its next sync reverts.
        let service = self.before.services.get(self.key);
        let is_later = self.step == SyncStep::AfterChange
            && self.controller == Controller::Slices
            && service.is_some_and(|one| one.topology == TopologyMode::Auto);
        matches!(aspect, Aspect::WriteCounts | Aspect::EndUnionWithHints)
            && (self.mirrors_reserved_label() || refuses_late || is_later)
            && (n_upstream > n_ours || (is_later && n_upstream < n_ours))
            && others_upstream == others_ours
            && (union_varies || union(self.upstream) == union(self.ours))
    }

    /// The canonical objects of a resource before the sync.
    pub(super) fn objects_before(&self, resource: &str) -> impl Iterator<Item = Value> {
        let known = known_names(self.case);
        let mirrors = self.controller == Controller::Mirror;
        let ClusterState { slices, endpoints, .. } = self.before;
        let objects: Vec<Object> = match resource {
            "endpointslices" => slices.values().cloned().map(Object::Slice).collect(),
            _ => endpoints.values().cloned().map(Object::Endpoints).collect(),
        };
        objects.into_iter().map(move |object| {
            let mut was = canonical::object(&to_json_value(&object), &known);
            // Upstream rewrites a mirrored slice without generateName.
            if let (true, Some(meta)) = (mirrors, was["metadata"].as_object_mut()) {
                meta.remove("generateName");
            }
            was
        })
    }
}

pub(super) fn without_finalizers(mut write: Value) -> Value {
    if let Some(meta) = write[3]["metadata"].as_object_mut() {
        meta.remove("finalizers");
    }
    write
}

pub(super) fn without_time(object: &Value) -> Value {
    let mut object = object.clone();
    let Some(meta) = object["metadata"].as_object_mut() else { return object };
    let mut is_empty = false;
    if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(names::TRIGGER_TIME);
        is_empty = annotations.is_empty();
    }
    if is_empty {
        meta.remove("annotations");
    }
    object
}
