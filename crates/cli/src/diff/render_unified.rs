//! The differences as unified differences of YAML, as `kubectl diff` prints them.

use endpointd_model::Object;
use endpointd_wire::to_json_value;
use serde_json::Value;
use similar::TextDiff;

use super::compared::{Compared, ComparedWrite};
use crate::terminal::{Style, Terminal};
use crate::yaml_output::to_yaml;

const CONTEXT_LINES: usize = 3;
/// Fields that the server sets: they differ in every version of an object.
const SERVER_FIELDS: [&str; 4] = ["uid", "resourceVersion", "creationTimestamp", "generation"];

pub fn render(terminal: &Terminal, compared: &Compared) -> String {
    let writes = compared.differences.iter().flat_map(|one| &one.writes);
    writes.map(|write| unified(terminal, write)).collect()
}

fn unified(terminal: &Terminal, ComparedWrite { write, before, .. }: &ComparedWrite) -> String {
    let (old, new) = (before.as_ref().map(yaml), write.object().map(yaml));
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let key = write.key();
    let path = format!("{}/{}/{}", write.resource().as_str(), key.namespace, key.name);
    let difference = TextDiff::from_lines(&old, &new);
    let mut unified = difference.unified_diff();
    unified.context_radius(CONTEXT_LINES);
    unified.header(&format!("published/{path}"), &format!("planned/{path}"));
    let text = unified.to_string();
    text.lines().map(|line| format!("{}\n", colour(terminal, line))).collect()
}

fn colour(terminal: &Terminal, line: &str) -> String {
    let style = match line.as_bytes() {
        [b'-', b'-', b'-', ..] | [b'+', b'+', b'+', ..] => Style::Bold,
        [b'-', ..] => Style::Bad,
        [b'+', ..] => Style::Good,
        [b'@', ..] => Style::Dim,
        _ => return line.to_owned(),
    };
    terminal.paint(style, line)
}

/// Without what the server sets, and with endpoints in the order of their addresses: the order in a
/// slice has no meaning.
fn yaml(object: &Object) -> String {
    let mut value = to_json_value(object);
    if let Some(metadata) = value["metadata"].as_object_mut() {
        SERVER_FIELDS.iter().for_each(|field| drop(metadata.remove(*field)));
    }
    if let Some(endpoints) = value.get_mut("endpoints").and_then(Value::as_array_mut) {
        endpoints.sort_by_key(|endpoint| endpoint["addresses"].to_string());
    }
    to_yaml(&value)
}
