//! Canonical form of objects and writes: without order inside a slice, generated names, versions,
//! and empty lists.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// Names that exist in the case; all other names are generated and compare as equal.
pub type KnownNames = BTreeSet<String>;

/// A write in canonical form. The namespace is that of the key and is not compared.
pub fn write(
    verb: &str,
    resource: &str,
    name: Option<&str>,
    object: &Value,
    known: &KnownNames,
) -> String {
    let object = if object.is_null() { Value::Null } else { self::object(object, known) };
    json!([verb, resource, masked(name, known), object]).to_string()
}

fn masked(name: Option<&str>, known: &KnownNames) -> String {
    match name {
        Some(name) if known.contains(name) => name.to_owned(),
        Some(_) | None => "*".to_owned(),
    }
}

pub fn object(value: &Value, known: &KnownNames) -> Value {
    let mut value = without_empty_lists(value);
    if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for volatile in ["resourceVersion", "uid", "generation", "namespace", "creationTimestamp"] {
            meta.remove(volatile);
        }
        // Only the presence of a deletionTimestamp is compared.
        if let Some(deleted) = meta.get_mut("deletionTimestamp") {
            *deleted = true.into();
        }
        let name = masked(meta.get("name").and_then(Value::as_str), known);
        meta.insert("name".into(), name.into());
        for map in ["labels", "annotations"] {
            if meta.get(map).is_some_and(|map| map.as_object().is_some_and(Map::is_empty)) {
                meta.remove(map);
            }
        }
    }
    for list in ["endpoints", "ports", "subsets"] {
        if let Some(items) = value.get_mut(list).and_then(Value::as_array_mut) {
            items.iter_mut().for_each(sort_lists);
            items.sort_by_cached_key(Value::to_string);
        }
    }
    value
}

/// The addresses and ports of a subset are sets, and so are the addresses of an endpoint.
fn sort_lists(item: &mut Value) {
    for list in ["addresses", "notReadyAddresses", "ports"] {
        if let Some(items) = item.get_mut(list).and_then(Value::as_array_mut) {
            items.sort_by_cached_key(Value::to_string);
        }
    }
}

fn without_empty_lists(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let keep =
                |value: &&Value| !value.is_null() && value.as_array().is_none_or(|l| !l.is_empty());
            let fields = fields.iter().filter(|(_, value)| keep(value));
            Value::Object(
                fields.map(|(key, value)| (key.clone(), without_empty_lists(value))).collect(),
            )
        }
        Value::Array(items) => items.iter().map(without_empty_lists).collect(),
        other => other.clone(),
    }
}

/// An event in canonical form; several errors in one message are sorted.
pub fn event(kind: &str, reason: &str, message: &str, on: &str) -> String {
    json!([kind, reason, sorted_errors(message), on]).to_string()
}

fn sorted_errors(message: &str) -> String {
    let Some((head, list)) = message.split_once('[') else { return message.to_owned() };
    let Some(list) = list.strip_suffix(']') else { return message.to_owned() };
    let mut errors: Vec<&str> = list.split(", ").collect();
    errors.sort_unstable();
    format!("{head}[{}]", errors.join(", "))
}

/// Slices grouped by address type, ports, and labels.
pub fn by_group(slices: &[Value]) -> BTreeMap<String, Vec<&Value>> {
    let mut groups: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for slice in slices {
        let group = json!([slice["addressType"], slice["ports"], slice["metadata"]["labels"]]);
        groups.entry(group.to_string()).or_default().push(slice);
    }
    groups
}

fn endpoints(slice: &Value) -> &[Value] {
    slice["endpoints"].as_array().map_or(&[], Vec::as_slice)
}

/// The number of endpoints of each slice of a group.
pub fn shape(slices: &[Value]) -> BTreeMap<String, Vec<usize>> {
    let sizes = |group: Vec<&Value>| {
        let mut sizes: Vec<usize> = group.into_iter().map(|slice| endpoints(slice).len()).collect();
        sizes.sort_unstable();
        sizes
    };
    by_group(slices).into_iter().map(|(group, slices)| (group, sizes(slices))).collect()
}

/// Whether hints are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HintsIn {
    Compared,
    Ignored,
}

/// All endpoints of a group together.
pub fn union(slices: &[Value], hints: HintsIn) -> BTreeMap<String, Vec<String>> {
    let text = |endpoint: &Value| {
        let mut endpoint = endpoint.clone();
        if let (HintsIn::Ignored, Some(fields)) = (hints, endpoint.as_object_mut()) {
            fields.remove("hints");
        }
        endpoint.to_string()
    };
    let all = |group: Vec<&Value>| {
        let mut all: Vec<String> = group.into_iter().flat_map(endpoints).map(text).collect();
        all.sort_unstable();
        all
    };
    let unions = by_group(slices).into_iter().map(|(group, slices)| (group, all(slices)));
    // The oracle omits groups without endpoints, too.
    unions.filter(|(_, all)| !all.is_empty()).collect()
}
