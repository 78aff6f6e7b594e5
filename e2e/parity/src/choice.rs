//! The differences we chose, by their id in the list of deliberate differences, and how to tell
//! that one of them is what we are looking at. Every rule asks for the exact shape of the
//! difference; a world that merely could differ does not excuse one that does.

use std::collections::BTreeMap;
use std::fmt;

use endpointd_model::{Controller, PodIp, names, parse_ip, refused_by_api_server};
use endpointd_plan::World;
use serde_json::Value;

use crate::answer::Answer;
use crate::case::Case;
use crate::judge::Aspect;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Choice {
    /// Writes fail on their own; upstream stops at the first error.
    B6,
    /// Nothing is deleted that we do not see.
    B8,
    /// Addresses the API server refuses are left out.
    B9,
    /// Hint events on transitions only.
    B14,
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
    /// Before the writes.
    pub before: &'a World,
    pub upstream: &'a Answer,
    pub ours: &'a Answer,
    pub is_first: bool,
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
            (Choice::B14, Self::is_repeated_hint_event),
            (Choice::B18, Self::is_write_without_change),
            (Choice::B19, Self::is_mirrored_oddity),
            (Choice::B9, Self::is_bad_address),
        ]
        .into_iter()
        .find_map(|(choice, holds)| holds(self, aspect).then_some(choice))
    }

    /// The API server refused a request, so upstream stopped and we would have gone on.
    fn is_refused(&self, aspect: Aspect) -> bool {
        let is_injected = self.is_first && self.case.settings.inject.is_some();
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

    fn is_repeated_hint_event(&self, aspect: Aspect) -> bool {
        let more = without(&self.upstream.events, &self.ours.events);
        aspect == Aspect::Events
            && without(&self.ours.events, &self.upstream.events).is_empty()
            && more.iter().all(|event| event.contains("\"TopologyAwareHints"))
    }

    /// All that upstream wrote beyond us is what was there already, but for the trigger time.
    fn is_write_without_change(&self, aspect: Aspect) -> bool {
        let more = without(&self.upstream.writes, &self.ours.writes);
        let stays = |write: &String| {
            let write: Value = serde_json::from_str(write).unwrap_or_default();
            let is_update = write[0] == "update";
            let was = self.was(write[1].as_str().unwrap_or(""), write[2].as_str().unwrap_or(""));
            is_update && was.is_some_and(|was| without_time(&was) == without_time(&write[3]))
        };
        let is_about_writes = matches!(aspect, Aspect::Writes | Aspect::WriteCounts | Aspect::End);
        is_about_writes
            && without(&self.ours.writes, &self.upstream.writes).is_empty()
            && !more.is_empty()
            && more.iter().all(stays)
    }

    /// The canonical object of that name before the sync.
    fn was(&self, resource: &str, name: &str) -> Option<Value> {
        let before = match resource {
            "endpointslices" => &self.case.world.endpointslices,
            _ => &self.case.world.endpoints,
        };
        let found = before.iter().find(|object| object["metadata"]["name"] == name)?;
        let known = [name.to_owned()].into();
        let mut was = crate::canonical::object(found, &known);
        // A mirrored slice is rewritten without it.
        if self.controller == Controller::Mirror
            && let Some(meta) = was["metadata"].as_object_mut()
        {
            meta.remove("generateName");
        }
        Some(was)
    }

    fn is_mirrored_oddity(&self, aspect: Aspect) -> bool {
        let mirrored = self
            .before
            .slices
            .values()
            .filter(|slice| slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_MIRROR));
        let mut odd = mirrored.filter(|slice| {
            let addresses = slice.endpoints.iter().map(|endpoint| &endpoint.addresses);
            let mut sorted: Vec<_> = addresses.collect();
            sorted.sort_unstable();
            slice.meta.is_deleting() || sorted.windows(2).any(|pair| pair[0] == pair[1])
        });
        self.controller == Controller::Mirror && aspect != Aspect::Events && odd.next().is_some()
    }

    /// Without what the API server would refuse, both publish the same.
    fn is_bad_address(&self, aspect: Aspect) -> bool {
        let bad_pod =
            self.before.pods.values().flat_map(|pod| pod.ips.all.iter()).any(|ip| match ip {
                PodIp::Garbage(_) => true,
                PodIp::Ip(ip) => refused_by_api_server(*ip).is_some(),
            });
        let mirrors = self.controller == Controller::Mirror;
        let mirrored_bad =
            self.before.endpoints.values().flat_map(|one| &one.subsets).any(|subset| {
                let mut all = subset.addresses.iter().chain(&subset.not_ready_addresses);
                all.any(|address| is_refused(&address.ip))
            });
        let has_bad = if mirrors { mirrored_bad } else { bad_pod };
        has_bad && (aspect == Aspect::Events || good_union(self.upstream) == good_union(self.ours))
    }
}

fn is_refused(text: &str) -> bool {
    parse_ip(text).is_none_or(|ip| refused_by_api_server(ip).is_some())
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

/// Every good address that is published, with its conditions and target.
fn good_union(answer: &Answer) -> Vec<String> {
    let endpoints = answer.slices.iter().flat_map(|slice| slice["endpoints"].as_array());
    let of_slices = endpoints.flatten().flat_map(|endpoint| {
        let addresses = endpoint["addresses"].as_array().into_iter().flatten();
        addresses.map(|address| {
            format!("{address} {} {}", endpoint["conditions"], endpoint["targetRef"])
        })
    });
    let subsets = answer.endpoints["subsets"].as_array().into_iter().flatten();
    let of_subsets = subsets.flat_map(|subset| {
        let list = |name: &str| subset[name].as_array().cloned().unwrap_or_default();
        let ready = list("addresses").into_iter().map(|one| (one, true));
        ready.chain(list("notReadyAddresses").into_iter().map(|one| (one, false)))
    });
    let of_subsets =
        of_subsets.map(|(one, ready)| format!("{} {ready} {}", one["ip"], one["targetRef"]));
    let is_good = |text: &String| {
        let address = text.split('"').nth(1).unwrap_or("");
        !is_refused(address)
    };
    let mut union: Vec<String> = of_slices.chain(of_subsets).filter(is_good).collect();
    union.sort_unstable();
    union
}
