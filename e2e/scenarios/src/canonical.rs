//! The canonical form: Endpoints and EndpointSlices as text without slice names, uids,
//! resourceVersions, times, and order. Two runs are equal if their canonical forms are equal. Start
//! at [`form`].
//!
//! A uid is replaced by *current* or *stale*: it must be the uid of the object that has the name
//! now. Slices that differ only in their endpoints form one group with the sizes of its slices,
//! because upstream distributes endpoints over them at random.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::observed_state::ObservedState;

const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// Metadata fields that differ from cluster to cluster.
const MASKED: [&str; 8] = [
    "name",
    "generateName",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
];

/// Uids of the objects that exist now.
type Uids = BTreeSet<String>;

/// All Endpoints and slices of a namespace, sorted.
pub fn form(state: &ObservedState) -> String {
    let uids = state.uids();
    let mut blocks: Vec<String> = state.endpoints.iter().map(|one| endpoints(one, &uids)).collect();
    blocks.extend(slices(&state.slices, &uids));
    blocks.sort();
    blocks.concat()
}

fn endpoints(object: &Value, uids: &Uids) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let mut object = masked(object, uids);
    let subsets = take_list(&mut object, "subsets").into_iter().map(|mut subset| {
        for list in ["addresses", "notReadyAddresses"] {
            for address in subset[list].as_array_mut().into_iter().flatten() {
                mask_uid(address.get_mut("targetRef"), uids);
            }
        }
        subset
    });
    let mut lines: Vec<String> = subsets.map(|subset| sorted(subset).to_string()).collect();
    lines.sort();
    block(format!("endpoints {name} {}", sorted(object)), lines)
}

fn slices(all: &[Value], uids: &Uids) -> Vec<String> {
    let mut groups: BTreeMap<String, (Vec<usize>, Vec<String>)> = BTreeMap::new();
    for slice in all {
        let mut slice = masked(slice, uids);
        let endpoints = take_list(&mut slice, "endpoints");
        let (sizes, lines) = groups.entry(sorted(slice).to_string()).or_default();
        sizes.push(endpoints.len());
        lines.extend(endpoints.into_iter().map(|mut endpoint| {
            mask_uid(endpoint.get_mut("targetRef"), uids);
            sorted(endpoint).to_string()
        }));
    }
    let group = |(header, (mut sizes, mut lines)): (String, (Vec<usize>, Vec<String>))| {
        sizes.sort_unstable();
        lines.sort();
        block(format!("slices of {sizes:?} {header}"), lines)
    };
    groups.into_iter().map(group).collect()
}

fn masked(object: &Value, uids: &Uids) -> Value {
    let mut object = object.clone();
    let metadata = &mut object["metadata"];
    if metadata["deletionTimestamp"].is_string() {
        metadata["deletionTimestamp"] = json!("deleting");
    }
    for owner in metadata["ownerReferences"].as_array_mut().into_iter().flatten() {
        mask_uid(Some(owner), uids);
    }
    if let Some(metadata) = metadata.as_object_mut() {
        MASKED.iter().for_each(|field| drop(metadata.remove(*field)));
    }
    if let Some(annotations) = metadata["annotations"].as_object_mut() {
        annotations.remove(TRIGGER_TIME);
    }
    object
}

fn mask_uid(reference: Option<&mut Value>, uids: &Uids) {
    let Some(uid) = reference.and_then(|reference| reference.get_mut("uid")) else { return };
    let is_current = uid.as_str().is_some_and(|uid| uids.contains(uid));
    *uid = json!(if is_current { "current" } else { "stale" });
}

fn take_list(object: &mut Value, field: &str) -> Vec<Value> {
    match object.get_mut(field).map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// Lists are sorted by their text; absent, null, and empty values are equal, as in Go.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, sorted(value)));
            Value::Object(fields.filter(|(_, value)| !is_empty_value(value)).collect::<Map<_, _>>())
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.into_iter().map(sorted).collect();
            items.sort_by_cached_key(Value::to_string);
            Value::Array(items)
        }
        plain => plain,
    }
}

fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn block(header: String, lines: Vec<String>) -> String {
    let lines: String = lines.into_iter().map(|line| format!("    {line}\n")).collect();
    format!("{header}\n{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(name: &str, addresses: &[&str]) -> Value {
        let endpoint = |address: &&str| json!({"addresses": [address]});
        json!({
            "metadata": {"name": name, "uid": name, "resourceVersion": name, "labels": {"a": "b"}},
            "addressType": "IPv4",
            "endpoints": addresses.iter().map(endpoint).collect::<Vec<_>>(),
        })
    }

    fn of(slices: &[Value]) -> String {
        form(&ObservedState { slices: slices.to_vec(), ..ObservedState::default() })
    }

    #[test]
    fn form_ignores_names_order_and_distribution_over_slices() {
        let one = [slice("x", &["10.0.0.1", "10.0.0.2"]), slice("y", &["10.0.0.3"])];
        let other = [slice("v", &["10.0.0.2"]), slice("w", &["10.0.0.3", "10.0.0.1"])];
        assert_eq!(of(&one), of(&other));
    }

    #[test]
    fn form_changes_with_a_missing_duplicate_or_moved_endpoint() {
        let right = of(&[slice("x", &["10.0.0.1", "10.0.0.2"])]);
        assert_ne!(right, of(&[slice("x", &["10.0.0.1"])]));
        assert_ne!(right, of(&[slice("x", &["10.0.0.1", "10.0.0.2", "10.0.0.2"])]));
        assert_ne!(right, of(&[slice("x", &["10.0.0.1"]), slice("y", &["10.0.0.2"])]));
    }

    #[test]
    fn form_changes_with_any_other_field() {
        let right = slice("x", &["10.0.0.1"]);
        for (pointer, value) in [
            ("/metadata/labels/a", json!("c")),
            ("/metadata/finalizers", json!(["example.com/held"])),
            ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
            ("/endpoints/0/hints", json!({"forZones": [{"name": "a"}]})),
            ("/ports", json!([{"port": 80}])),
        ] {
            let mut wrong = right.clone();
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            wrong.pointer_mut(parent).unwrap()[field] = value;
            assert_ne!(of(std::slice::from_ref(&right)), of(&[wrong]), "{pointer}");
        }
    }

    #[test]
    fn form_distinguishes_current_and_stale_uids() {
        let with_owner = |uid: &str| {
            let mut slice = slice("x", &[]);
            slice["metadata"]["ownerReferences"] = json!([{"kind": "Service", "uid": uid}]);
            slice
        };
        let state = |slice| ObservedState {
            slices: vec![slice],
            others: vec![json!({"metadata": {"uid": "now"}})],
            ..ObservedState::default()
        };
        assert!(form(&state(with_owner("now"))).contains(r#""uid":"current""#));
        assert!(form(&state(with_owner("before"))).contains(r#""uid":"stale""#));
    }

    #[test]
    fn form_ignores_the_trigger_time_and_no_other_annotation() {
        let mut timed = slice("x", &[]);
        timed["metadata"]["annotations"] = json!({ TRIGGER_TIME: "2026-01-01T00:00:00Z" });
        assert_eq!(of(std::slice::from_ref(&timed)), of(&[slice("x", &[])]));
        timed["metadata"]["annotations"]["example.com/a"] = json!("b");
        assert_ne!(of(&[timed]), of(&[slice("x", &[])]));
    }
}
