//! Namespaces, nodes, events, leases, config maps, service accounts.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{AGE, Column, Columns, NAME, age, int, name, or, text, wide};

pub(crate) static NAMESPACES: Columns = Columns {
    columns: &[NAME, text("Status"), AGE],
    cells: |it, now| vec![name(it), or(&it["status"]["phase"], ""), age(it, now)],
};

pub(crate) static SERVICE_ACCOUNTS: Columns =
    Columns { columns: &[NAME, AGE], cells: |it, now| vec![name(it), age(it, now)] };

pub(crate) static CONFIG_MAPS: Columns = Columns {
    columns: &[NAME, text("Data"), AGE],
    cells: |it, now| {
        let count = |field: &str| it[field].as_object().map_or(0, serde_json::Map::len);
        vec![name(it), json!(count("data") + count("binaryData")), age(it, now)]
    },
};

pub(crate) static LEASES: Columns = Columns {
    columns: &[NAME, text("Holder"), AGE],
    cells: |it, now| vec![name(it), or(&it["spec"]["holderIdentity"], ""), age(it, now)],
};

pub(crate) static NODES: Columns = Columns {
    columns: &[
        NAME,
        text("Status"),
        text("Roles"),
        AGE,
        text("Version"),
        wide("Internal-IP"),
        wide("External-IP"),
        wide("OS-Image"),
        wide("Kernel-Version"),
        wide("Container-Runtime"),
    ],
    cells: node,
};

fn node(it: &Value, now: Timestamp) -> Vec<Value> {
    let conditions = it["status"]["conditions"].as_array();
    let ready = conditions.into_iter().flatten().find(|one| one["type"] == "Ready");
    let mut status = match ready {
        Some(ready) if ready["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if it["spec"]["unschedulable"] == true {
        status += ",SchedulingDisabled";
    }
    let labels = it["metadata"]["labels"].as_object();
    let role = |(name, value): (&String, &Value)| match name.as_str() {
        "kubernetes.io/role" => value.as_str().map(str::to_owned),
        name => name.strip_prefix("node-role.kubernetes.io/").map(str::to_owned),
    };
    let mut roles: Vec<String> = labels.into_iter().flatten().filter_map(role).collect();
    roles.retain(|role| !role.is_empty());
    roles.sort();
    let roles = if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") };
    let about = &it["status"]["nodeInfo"];
    let address = |of: &str| {
        let all = it["status"]["addresses"].as_array().into_iter().flatten();
        let found = all.into_iter().find(|one| one["type"] == of);
        found.map_or(json!("<none>"), |one| one["address"].clone())
    };
    let mut kernel = about["kernelVersion"].as_str().unwrap_or_default().to_owned();
    if kernel.is_empty() {
        kernel = "<unknown>".to_owned();
    }
    if let Some(architecture) = about["architecture"].as_str().filter(|text| !text.is_empty()) {
        kernel = format!("{kernel} ({architecture})");
    }
    vec![
        name(it),
        json!(status),
        json!(roles),
        age(it, now),
        or(&about["kubeletVersion"], ""),
        address("InternalIP"),
        address("ExternalIP"),
        or(&about["osImage"], "<unknown>"),
        json!(kernel),
        or(&about["containerRuntimeVersion"], "<unknown>"),
    ]
}

pub(crate) static EVENTS: Columns = Columns {
    columns: &[
        text("Last Seen"),
        text("Type"),
        text("Reason"),
        text("Object"),
        wide("Subobject"),
        wide("Source"),
        text("Message"),
        wide("First Seen"),
        wide("Count"),
        Column { name: "Name", of: "string", format: "name", priority: 1 },
    ],
    cells: event_cells,
};

/// Takes the stored form, for both event APIs.
fn event_cells(it: &Value, now: Timestamp) -> Vec<Value> {
    let since = |time: &Value| super::age::since(time, now);
    let first = if it["firstTimestamp"].is_string() {
        since(&it["firstTimestamp"])
    } else {
        since(&it["eventTime"])
    };
    let series = &it["series"];
    let last = if series.is_object() {
        since(&series["lastObservedTime"])
    } else if it["lastTimestamp"].is_string() {
        since(&it["lastTimestamp"])
    } else {
        first.clone()
    };
    let count = match (series.is_object(), int(&it["count"])) {
        (true, _) => int(&series["count"]),
        (false, 0) => 1,
        (false, count) => count,
    };
    let about = &it["involvedObject"];
    let kind = about["kind"].as_str().unwrap_or_default().to_lowercase();
    let target = match about["name"].as_str() {
        Some(name) => format!("{kind}/{name}"),
        None => kind,
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let either = |one: &Value, other: &Value| {
        Some(text(one)).filter(|it| !it.is_empty()).unwrap_or_else(|| text(other))
    };
    let source = [
        either(&it["source"]["component"], &it["reportingComponent"]),
        either(&it["source"]["host"], &it["reportingInstance"]),
    ];
    let source: Vec<&str> = source.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
    vec![
        json!(last),
        or(&it["type"], ""),
        or(&it["reason"], ""),
        json!(target),
        or(&about["fieldPath"], ""),
        json!(source.join(", ")),
        json!(text(&it["message"]).trim()),
        json!(first),
        json!(count),
        name(it),
    ]
}
