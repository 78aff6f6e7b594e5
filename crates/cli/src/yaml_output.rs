//! A JSON value as YAML, in the layout of kubectl.

use serde_json::Value;

/// What YAML would read as something other than text.
const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "~", "y"];

pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, 0);
    out
}

/// Writes a whole value; the cursor is at the begin of a line.
fn write(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (at, (key, field)) in fields.iter().enumerate() {
                // The first field of a list item follows its dash.
                if at > 0 || !out.ends_with("- ") {
                    out.push_str(&" ".repeat(indent));
                }
                out.push_str(&text(key));
                out.push(':');
                write_field(out, field, indent);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                out.push_str(&" ".repeat(indent));
                out.push_str("- ");
                match item {
                    Value::Object(_) => write(out, item, indent + 2),
                    _ => write_scalar(out, item),
                }
            }
        }
        _ => write_scalar(out, value),
    }
}

fn write_field(out: &mut String, field: &Value, indent: usize) {
    match field {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            write(out, field, indent + 2);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            write(out, field, indent);
        }
        _ => {
            out.push(' ');
            write_scalar(out, field);
        }
    }
}

/// Scalars, empty collections, and lists of lists: JSON is YAML.
fn write_scalar(out: &mut String, value: &Value) {
    match value {
        Value::String(scalar) => out.push_str(&text(scalar)),
        other => out.push_str(&other.to_string()),
    }
    out.push('\n');
}

/// Text that could be read as another type, or as syntax, is quoted.
fn text(text: &str) -> String {
    let is_plain_char = |c: char| c.is_ascii_alphanumeric() || "-_./ ".contains(c);
    let starts_with_letter = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_word = WORDS.iter().any(|word| text.eq_ignore_ascii_case(word));
    let is_plain = starts_with_letter
        && !is_word
        && text.chars().all(is_plain_char)
        && !text.ends_with(' ')
        && !text.contains(" -");
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::input::Source;

    #[test]
    fn the_layout_is_that_of_kubectl() {
        let value = json!({
            "kind": "List", "n": 1, "none": null, "empty": [], "no": "no",
            "items": [{"name": "a b", "tags": ["x", "10.0.0.1"]}, {"deep": {"er": true}}],
        });
        let want = "empty: []\nitems:\n- name: a b\n  tags:\n  - x\n  - \"10.0.0.1\"\n\
                    - deep:\n    er: true\nkind: List\nn: 1\n\"no\": \"no\"\nnone: null\n";
        assert_eq!(to_yaml(&value), want);
    }

    #[test]
    fn our_own_reader_reads_it_back() {
        let value = json!({
            "apiVersion": "v1", "kind": "Odd", "text": "a: b # c\n\"d\"", "dash": "- x", "true": "1",
            "list": [["nested", {}], "", {"a": [{"b": [1, 2]}]}],
        });
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("odd.yaml");
        std::fs::write(&path, to_yaml(&value)).expect("a file");
        let sources = Source::find(&[path]).map_err(|error| error.message).expect("a source");
        let read: Vec<Value> = crate::input::read_objects(&sources)
            .map_err(|error| format!("{}: {}", error.message, to_yaml(&value)))
            .expect("YAML");
        assert_eq!(read, [value]);
    }
}
