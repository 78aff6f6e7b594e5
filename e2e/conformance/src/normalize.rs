//! Removes what differs between runs from responses: versions, uids, times, addresses.

use serde_json::{Map, Value, json};

/// The value of these fields is replaced by their name.
const VOLATILE: [&str; 20] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "healthCheckNodePort",
    "continue",
    "lastTransitionTime",
    "description",
    "gitVersion",
    "gitCommit",
    "buildDate",
    "goVersion",
    "compiler",
    "platform",
    "gitTreeState",
    "serverAddress",
    "goPackage",
];
/// These fields are removed: the embedded server does not have them.
const DROPPED: [&str; 2] = ["managedFields", "storageVersionHash"];

/// Parses JSON, the lines of a watch, or text.
pub(crate) fn parse_body(text: &str) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        let is_event = |value: &Value| value["type"].is_string() && value["object"].is_object();
        return if is_event(&value) { json!({"watched": [value]}) } else { value };
    }
    let lines: Option<Vec<Value>> =
        text.lines().map(|line| serde_json::from_str(line).ok()).collect();
    match lines {
        Some(lines) => json!({"watched": lines}),
        None => Value::String(text.to_owned()),
    }
}

pub(crate) fn normalize(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(normalize_fields(fields)),
        Value::Array(items) => {
            items.into_iter().filter(|item| !is_periodic_bookmark(item)).map(normalize).collect()
        }
        other => other,
    }
}

fn normalize_fields(fields: Map<String, Value>) -> Map<String, Value> {
    let mut kept = Map::new();
    for (name, value) in fields {
        if DROPPED.contains(&name.as_str()) {
            continue;
        }
        let masked = match (name.as_str(), value) {
            // `None` must stay visible; addresses are replaced.
            ("clusterIP" | "clusterIPs", value) if value == "None" || value[0] == "None" => value,
            ("clusterIPs", Value::Array(ips)) => json!(vec!["<IP>"; ips.len()]),
            (volatile, value) if VOLATILE.contains(&volatile) && !value.is_null() => {
                json!(format!("<{volatile}>"))
            }
            ("message", Value::String(text)) => json!(normalize_message(&text)),
            ("cells", Value::Array(cells)) => cells.into_iter().map(normalize_cell).collect(),
            (_, value) => normalize(value),
        };
        kept.insert(name, masked);
    }
    kept
}

/// Periodic bookmarks arrive at arbitrary times.
fn is_periodic_bookmark(item: &Value) -> bool {
    item["type"] == "BOOKMARK" && item["object"]["metadata"]["annotations"].is_null()
}

/// Replaces ages and addresses in tables.
fn normalize_cell(cell: Value) -> Value {
    let Some(text) = cell.as_str() else { return cell };
    let is_age = text.ends_with('s') && text[..text.len() - 1].parse::<u32>().is_ok();
    if is_age {
        return json!("<age>");
    }
    if text.starts_with("10.96.") || text.starts_with("fd00:10:96:") {
        return json!("<IP>");
    }
    if let Some((port, rest)) = text.split_once(':')
        && let Some((node_port, protocol)) = rest.split_once('/')
        && node_port.parse::<u16>().is_ok()
    {
        return json!(format!("{port}:<nodePort>/{protocol}"));
    }
    cell
}

/// Replaces uids and versions in messages.
fn normalize_message(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_uid = bare.len() == 36 && bare.matches('-').count() == 4;
        let is_number = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit());
        if is_uid {
            word.replace(bare, "<uid>")
        } else if is_number && text.to_lowercase().contains("version") {
            word.replace(bare, "<n>")
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// For `Comparison::Reason`: what clients react to.
pub(crate) fn status_reason(answer: &Value) -> Value {
    json!({"kind": answer["kind"], "reason": answer["reason"]})
}

/// Collects differences as `path: recorded | found`.
pub(crate) fn compare(recorded: &Value, found: &Value, path: &str, paths: &mut Vec<String>) {
    match (recorded, found) {
        (Value::Object(one), Value::Object(other)) => {
            let names: std::collections::BTreeSet<&String> =
                one.keys().chain(other.keys()).collect();
            for name in names {
                let null = Value::Null;
                let (one, other) =
                    (one.get(name).unwrap_or(&null), other.get(name).unwrap_or(&null));
                compare(one, other, &format!("{path}/{name}"), paths);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                compare(one, other, &format!("{path}/{index}"), paths);
            }
        }
        (one, other) if one == other => {}
        (one, other) => paths.push(format!("{path}: {one} | {other}")),
    }
}
