//! B16: results that depend on the order of a Go map, or on a hash.

use endpointd_model::{Controller, EndpointAddress, Object, Subset};
use endpointd_wire::to_json_value;
use serde_json::{Value, json};

use super::{Sync, truncation};
use crate::answer::Answer;
use crate::judge::Aspect;

impl Sync<'_> {
    /// B16: beyond 1000 addresses each subset keeps its share, rounded up while there is room, so
    /// the order of subsets decides which share is rounded up.
    pub(super) fn differs_only_by_truncation_order(&self, aspect: Aspect) -> bool {
        let is_about = matches!(aspect, Aspect::Writes | Aspect::End);
        self.controller == Controller::Endpoints
            && is_about
            && truncation::is_same_but_rounding(&self.upstream.endpoints, &self.ours.endpoints)
    }

    /// B16: upstream compares subsets in the order of a hash that includes the resourceVersion of
    /// targets, which the comparison itself ignores. Equal subsets can be in another order and are
    /// then written again.
    pub(super) fn differs_only_by_hash_order(&self, aspect: Aspect) -> bool {
        let Some(before) = self.before.endpoints.get(self.key) else { return false };
        let addresses = |subset: &Subset| {
            subset.addresses.iter().chain(&subset.not_ready_addresses).cloned().collect::<Vec<_>>()
        };
        let is_versioned = |address: EndpointAddress| {
            address.target_ref.is_some_and(|target| !target.resource_version.is_empty())
        };
        let observed = to_json_value(&Object::Endpoints(before.clone()));
        self.controller == Controller::Endpoints
            && matches!(aspect, Aspect::Writes | Aspect::End)
            && self.ours.writes.is_empty()
            && before.subsets.len() > 1
            && before.subsets.iter().flat_map(addresses).any(is_versioned)
            && identities(&observed["subsets"]) == identities(&self.upstream.endpoints["subsets"])
    }

    /// B16: the same slices with exchanged names, because the order of groups decides which new
    /// slice gets the name of which deleted slice.
    pub(super) fn differs_only_by_slice_names(&self, aspect: Aspect) -> bool {
        let writes = |answer: &Answer| -> Vec<String> {
            let parsed = answer.writes.iter().map(|text| serde_json::from_str(text));
            let mut nameless: Vec<String> = parsed
                .map(|write| {
                    let mut write: Value = write.unwrap_or_default();
                    write[2] = Value::Null;
                    without_name(&mut write[3]);
                    write.to_string()
                })
                .collect();
            nameless.sort_unstable();
            nameless
        };
        let slices = |answer: &Answer| -> Vec<String> {
            let nameless = |slice: &Value| {
                let mut slice = self.comparable(slice);
                without_name(&mut slice);
                slice.to_string()
            };
            let mut nameless: Vec<String> = answer.slices.iter().map(nameless).collect();
            nameless.sort_unstable();
            nameless
        };
        // Upstream may also send writes without effect (B18).
        let mut upstream = self.upstream.clone();
        upstream.writes.retain(|write| !self.changes_nothing(write));
        self.controller != Controller::Endpoints
            && matches!(aspect, Aspect::Writes | Aspect::End)
            && writes(&upstream) == writes(self.ours)
            && slices(self.upstream) == slices(self.ours)
    }
}

/// The subsets in a form that does not depend on their layout: every combination of port,
/// readiness, and identity of an address.
pub(super) fn identities(subsets: &Value) -> Vec<String> {
    let mut all = Vec::new();
    for subset in subsets.as_array().into_iter().flatten() {
        let ports = subset["ports"].as_array().cloned().unwrap_or_else(|| vec![Value::Null]);
        for list in ["addresses", "notReadyAddresses"] {
            for address in subset[list].as_array().into_iter().flatten() {
                let identity = json!([address["ip"], address["targetRef"]["uid"]]);
                all.extend(ports.iter().map(|port| json!([port, list, identity]).to_string()));
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

pub(super) fn without_name(object: &mut Value) {
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("name");
    }
}
