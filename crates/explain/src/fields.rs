//! Fields of raw objects. A field that is absent or of another type counts as empty.

use endpointd_model::{Labels, SharedStr, Timestamp};
use serde_json::Value;

pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

pub fn is_true(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
}

pub fn time(object: &Value, pointer: &str) -> Option<Timestamp> {
    text(object, pointer).parse().ok()
}

pub fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub fn kind(object: &Value) -> &str {
    text(object, "/kind")
}

/// Labels, annotations, or a selector.
pub fn labels(object: &Value, pointer: &str) -> Labels {
    let Some(map) = object.pointer(pointer).and_then(Value::as_object) else {
        return Labels::default();
    };
    let pairs = map.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    pairs.map(|(key, value)| (SharedStr::from(key), SharedStr::from(value))).collect()
}

/// The first condition of this type.
pub fn condition<'a>(object: &'a Value, condition_type: &str) -> Option<&'a Value> {
    list(object, "/status/conditions").iter().find(|one| text(one, "/type") == condition_type)
}

/// Whether a condition of this type is `True`.
pub fn has_condition(object: &Value, condition_type: &str) -> bool {
    condition(object, condition_type).is_some_and(|one| text(one, "/status") == "True")
}

/// `45s`, `12m`, `3h`, `5d`.
pub fn age(now: Timestamp, since: Timestamp) -> String {
    let secs = (now.as_second() - since.as_second()).max(0);
    match secs {
        0..60 => format!("{secs}s"),
        60..7200 => format!("{}m", secs / 60),
        7200..172_800 => format!("{}h", secs / 3600),
        _ => format!("{}d", secs / 86_400),
    }
}

/// `1 pod`, `2 pods`; `address` and `proxy` form their plurals too.
pub fn counted(n: usize, noun: &str) -> String {
    match n {
        1 => format!("1 {noun}"),
        n if noun.ends_with('s') => format!("{n} {noun}es"),
        n => format!("{n} {noun}s"),
    }
}

/// `a`, `a and b`, `a, b, and 3 more`.
pub fn names(all: &[String]) -> String {
    const SHOWN_MAX: usize = 3;
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [one, other] => format!("{one} and {other}"),
        all if all.len() <= SHOWN_MAX => {
            format!("{}, and {}", all[..all.len() - 1].join(", "), all[all.len() - 1])
        }
        all => format!("{}, and {} more", all[..SHOWN_MAX].join(", "), all.len() - SHOWN_MAX),
    }
}

/// Joins the parts that are not empty.
pub fn joined(parts: &[&str], separator: &str) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join(separator)
}
