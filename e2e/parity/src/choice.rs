//! The differences we chose, by their id in the list of deliberate differences, and how to tell
//! that one of them is what we are looking at. Every rule asks for the exact shape of the
//! difference; a world that merely could differ does not excuse one that does.

mod bad_address;
mod mirroring;
mod truncation;

use std::collections::BTreeMap;
use std::fmt;

use endpointd_model::{
    Controller, Endpoint, EndpointAddress, Key, Labels, Object, Subset, TopologyMode, names,
};
use endpointd_plan::{ClusterState, Plan};
use endpointd_wire::to_json_value;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::canonical::{self, HintsIn};
use crate::case::{Case, Expected};
use crate::judge::{Aspect, known_names};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Choice {
    /// Writes fail on their own; upstream stops at the first error.
    B6,
    /// Nothing is deleted that we do not see, and a recycled slice keeps its finalizers.
    B8,
    /// Addresses the API server refuses are left out.
    B9,
    /// Hint events on transitions only.
    B14,
    /// Order is ours where upstream's is that of a Go map, or a hash of a Go dump.
    B16,
    /// A write that would change nothing is not sent.
    B18,
    /// Mirrored slices being deleted are ignored; duplicates hide nothing.
    B19,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One sync as both sides saw it.
pub struct Sync<'a> {
    pub case: &'a Case,
    pub controller: Controller,
    pub key: &'a Key,
    /// Before our writes.
    pub before: &'a ClusterState,
    pub plan: &'a Plan,
    /// After our writes.
    pub after: &'a ClusterState,
    /// As upstream's answer came.
    pub expected: &'a Expected,
    pub upstream: &'a Answer,
    pub ours: &'a Answer,
    pub turn: Turn,
}

/// Which sync of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    First,
    Then,
}

impl Turn {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Then => "then",
        }
    }
}

impl Sync<'_> {
    /// The choice that explains a difference in this aspect, if one does.
    pub fn explain(&self, aspect: Aspect) -> Option<Choice> {
        if aspect == Aspect::Rest {
            return None;
        }
        [
            (Choice::B6, Self::is_refused as fn(&Self, Aspect) -> bool),
            (Choice::B8, Self::is_unseen_delete),
            (Choice::B8, Self::is_kept_finalizer),
            (Choice::B16, Self::is_cut_elsewhere),
            (Choice::B16, Self::is_hashed_elsewhere),
            (Choice::B16, Self::is_other_duplicate),
            (Choice::B14, Self::is_repeated_hint_event),
            (Choice::B19, Self::is_lost_create),
            (Choice::B19, Self::is_mirrored_oddity),
            (Choice::B18, Self::is_write_without_change),
            (Choice::B18, Self::is_more_updates),
            (Choice::B18, Self::is_settled_hints),
            (Choice::B16, Self::is_other_name),
            (Choice::B9, Self::is_bad_address),
        ]
        .into_iter()
        .find_map(|(choice, holds)| holds(self, aspect).then_some(choice))
    }

    /// The API server refused a request, so upstream stopped and we would have gone on.
    fn is_refused(&self, aspect: Aspect) -> bool {
        let is_injected = self.turn == Turn::First && self.case.settings.inject.is_some();
        is_injected
            && (aspect != Aspect::Writes || is_subset(&self.upstream.writes, &self.ours.writes))
    }

    fn is_unseen_delete(&self, aspect: Aspect) -> bool {
        let sent: Vec<&str> = self.upstream.writes.iter().map(String::as_str).collect();
        self.controller == Controller::Endpoints
            && matches!(aspect, Aspect::Writes)
            && self.before.endpoints.is_empty()
            && self.ours.writes.is_empty()
            && matches!(sent.as_slice(), [only] if only.starts_with("[\"delete\",\"endpoints\""))
    }

    /// Upstream's update of a recycled or mirrored slice is a new object under an old name: it
    /// drops the finalizers others have put there.
    fn is_kept_finalizer(&self, aspect: Aspect) -> bool {
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

    /// Beyond a thousand addresses each subset keeps its share, rounded up as long as there is
    /// room: which subset is rounded depends on their order.
    fn is_cut_elsewhere(&self, aspect: Aspect) -> bool {
        let is_about = matches!(aspect, Aspect::Writes | Aspect::End);
        self.controller == Controller::Endpoints
            && is_about
            && truncation::is_same_but_rounding(&self.upstream.endpoints, &self.ours.endpoints)
    }

    /// Upstream compares subsets in the order of a hash, into which goes the resourceVersion of
    /// targets that it then ignores: what is equal may be in another order and is written again.
    fn is_hashed_elsewhere(&self, aspect: Aspect) -> bool {
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

    /// Only hints differ, and upstream would change them again at once: it stops after one pass.
    fn is_settled_hints(&self, aspect: Aspect) -> bool {
        let union = |answer: &Answer| canonical::union(&answer.slices, HintsIn::Ignored);
        self.controller == Controller::Slices
            && !matches!(aspect, Aspect::Events | Aspect::Errors)
            && (!self.expected.second_sync_writes.is_empty() || self.has_deserted_zone())
            && union(self.upstream) == union(self.ours)
    }

    /// Hints by zone, and a ready endpoint in a zone without usable nodes: upstream hints it for
    /// that zone, and takes offence at it on every sync.
    fn has_deserted_zone(&self) -> bool {
        let usable: Vec<_> = self
            .before
            .nodes
            .values()
            .filter(|node| node.is_ready && !node.is_control_plane)
            .filter_map(|node| node.zone.as_ref())
            .collect();
        let is_deserted = |one: &Endpoint| {
            one.is_ready() && one.zone.as_ref().is_some_and(|zone| !usable.contains(&zone))
        };
        let mut endpoints = self.after.slices.values().flat_map(|slice| &slice.endpoints);
        let service = self.before.services.get(self.key);
        service.is_some_and(|one| one.topology == TopologyMode::Auto) && endpoints.any(is_deserted)
    }

    fn is_repeated_hint_event(&self, aspect: Aspect) -> bool {
        let more = without(&self.upstream.events, &self.ours.events);
        let less = without(&self.ours.events, &self.upstream.events);
        // Upstream never forgets a family the Service once had hints for.
        let families = |world: &ClusterState| {
            world.services.get(self.key).map(|one| (one.families.clone(), one.cluster_ip))
        };
        let has_other_families = self.turn == Turn::Then
            && self
                .case
                .world
                .to_world()
                .is_ok_and(|first| families(&first) != families(self.before));
        let is_forgotten =
            |event: &String| has_other_families && event.contains("\"TopologyAwareHintsEnabled\"");
        aspect == Aspect::Events
            && less.iter().all(is_forgotten)
            && more.iter().all(|event| event.contains("\"TopologyAwareHints"))
    }

    /// All that upstream wrote beyond us is what was there already, but for the trigger time.
    fn is_write_without_change(&self, aspect: Aspect) -> bool {
        // Finalizers that mirroring drops on the way are another matter: see `is_kept_finalizer`.
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

    fn changes_nothing(&self, write: &str) -> bool {
        let write: Value = serde_json::from_str(write).unwrap_or_default();
        let mut before = self.objects_before(write[1].as_str().unwrap_or(""));
        match write[0].as_str() {
            Some("update") => before.any(|was| self.comparable(&was) == self.comparable(&write[3])),
            // It is on its way out already. Slices in that state are a matter of B19.
            Some("delete") => before.any(|was| {
                self.controller == Controller::Endpoints
                    && was["metadata"]["name"] == write[2]
                    && !was["metadata"]["deletionTimestamp"].is_null()
            }),
            _ => false,
        }
    }

    /// What must be equal for a write to change nothing. Upstream never finds the labels right of
    /// a slice mirrored from Endpoints with a reserved label, and then also puts right what alone
    /// would not make it touch the slice: a missing owner, the resourceVersion of a target.
    fn comparable(&self, object: &Value) -> Value {
        let mut object = without_time(object);
        // To drop the finalizer of an object that is being deleted is to remove it.
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
        // The same with Endpoints of a Service that carries a reserved label itself: the headless
        // label is then put right, for which alone upstream would not touch it.
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

    fn mirrors_reserved_label(&self) -> bool {
        let reserved = [names::MANAGED_BY, names::SERVICE_NAME];
        let is_reserved = |labels: &Labels| reserved.iter().any(|key| labels.contains_key(key));
        let endpoints = self.before.endpoints.get(self.key);
        self.controller == Controller::Mirror
            && endpoints.is_some_and(|one| is_reserved(&one.meta.labels))
    }

    /// The same where names are left to chance: upstream sends more updates, to the same end, or
    /// will send those that hints ask for in its next sync.
    fn is_more_updates(&self, aspect: Aspect) -> bool {
        let union = |answer: &Answer| canonical::union(&answer.slices, HintsIn::Ignored);
        let updates = |answer: &Answer| {
            let mut counts = answer.n_writes.clone();
            (counts.remove("[\"update\",\"endpointslices\"]").unwrap_or(0), counts)
        };
        let ((n_upstream, others_upstream), (n_ours, others_ours)) =
            (updates(self.upstream), updates(self.ours));
        // Upstream has marked slices for a rewrite by the time it finds that it must refuse.
        let refuses_late =
            self.upstream.events.iter().any(|event| event.contains("do not have a zone specified"));
        // Endpoints being deleted lose what would need a new slice, at random.
        let Expected { nondeterministic, stable, .. } = self.expected;
        let union_varies = *nondeterministic && !stable.iter().any(|name| name == "endUnion");
        // In a later sync nobody asks whether upstream would write once more: what it would put
        // off until then may be among our updates, and what it would take back among its own.
        let service = self.before.services.get(self.key);
        let is_later = self.turn == Turn::Then
            && self.controller == Controller::Slices
            && service.is_some_and(|one| one.topology == TopologyMode::Auto);
        matches!(aspect, Aspect::WriteCounts | Aspect::EndUnionWithHints)
            && (self.mirrors_reserved_label() || refuses_late || is_later)
            && (n_upstream > n_ours || (is_later && n_upstream < n_ours))
            && others_upstream == others_ours
            && (union_varies || union(self.upstream) == union(self.ours))
    }

    /// The same slices under each other's names: which of several doomed slices a new one takes
    /// the name of depends on the order of groups.
    fn is_other_name(&self, aspect: Aspect) -> bool {
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
        // Upstream may send writes besides that change nothing, as B18 has it.
        let mut upstream = self.upstream.clone();
        upstream.writes.retain(|write| !self.changes_nothing(write));
        self.controller != Controller::Endpoints
            && matches!(aspect, Aspect::Writes | Aspect::End)
            && writes(&upstream) == writes(self.ours)
            && slices(self.upstream) == slices(self.ours)
    }

    /// The canonical objects of a resource before the sync.
    fn objects_before(&self, resource: &str) -> impl Iterator<Item = Value> {
        let known = known_names(self.case);
        let mirrors = self.controller == Controller::Mirror;
        let ClusterState { slices, endpoints, .. } = self.before;
        let objects: Vec<Object> = match resource {
            "endpointslices" => slices.values().cloned().map(Object::Slice).collect(),
            _ => endpoints.values().cloned().map(Object::Endpoints).collect(),
        };
        objects.into_iter().map(move |object| {
            let mut was = canonical::object(&to_json_value(&object), &known);
            // A mirrored slice is rewritten without it.
            if let (true, Some(meta)) = (mirrors, was["metadata"].as_object_mut()) {
                meta.remove("generateName");
            }
            was
        })
    }

    fn is_bad_address(&self, aspect: Aspect) -> bool {
        bad_address::explains(self, aspect)
    }
}

fn is_subset(part: &[String], whole: &[String]) -> bool {
    without(part, whole).is_empty()
}

/// The multiset difference.
fn without(list: &[String], other: &[String]) -> Vec<String> {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for item in other {
        *counts.entry(item).or_default() += 1;
    }
    let rest = list.iter().filter(|item| match counts.get_mut(item) {
        Some(n) if *n > 0 => {
            *n -= 1;
            false
        }
        _ => true,
    });
    rest.cloned().collect()
}

/// Subsets however they are packed: each port with each address, of which only that counts which
/// makes two addresses one. Repacking takes the rest from the first mention, whichever that is.
fn identities(subsets: &Value) -> Vec<String> {
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

fn without_name(object: &mut Value) {
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("name");
    }
}

fn without_finalizers(mut write: Value) -> Value {
    if let Some(meta) = write[3]["metadata"].as_object_mut() {
        meta.remove("finalizers");
    }
    write
}

fn without_time(object: &Value) -> Value {
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
