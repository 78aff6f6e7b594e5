//! Mutations of JSON: values and keys are replaced, removed, repeated, and nested.

use endpointd_rng::SplitMix64;
use serde_json::{Map, Value, json};

/// Texts that decoders treat specially.
const TEXTS: [&str; 22] = [
    "",
    " ",
    "\u{0}",
    "0",
    "-1",
    "2147483648",
    "18446744073709551616",
    "1e9",
    "1Ki",
    "100m",
    "True",
    "10.0.0.1",
    "010.0.0.1",
    "::1",
    "fe80::1%eth0",
    "::ffff:10.0.0.1",
    "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:60.999999999+23:59",
    "a/b",
    "é",
    "\u{10ffff}",
    "TCP",
];
/// Text that a parser of values would not print.
const TOKENS: [&str; 14] = [
    "1e999",
    "-0",
    "18446744073709551616",
    "-9223372036854775809",
    "0.1e-400",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "[[[[[[[[",
    "]]]]",
    "{\"a\":1,\"a\":2}",
    ",",
    "null",
    "\u{feff}",
    "/**/",
];
const LONG_TEXT_BYTES: usize = 1000;
const NESTED_MAX: u64 = 200;

pub fn mutate(input: &[u8], other: &[u8], rng: &mut SplitMix64) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(input).ok()?;
    let other: Value = serde_json::from_slice(other).unwrap_or_default();
    let places = places(&value);
    let place = &places[rng.index(places.len())];
    match rng.below(10) {
        0..=3 => *at(&mut value, place) = replacement(&other, rng),
        4 => {
            let copied = at(&mut value, &places[rng.index(places.len())]).clone();
            *at(&mut value, place) = copied;
        }
        5 | 6 => remove_or_repeat(at(&mut value, place), rng),
        7 => rename(at(&mut value, place), &other, rng),
        8 => change_text(at(&mut value, place), rng),
        _ => {
            let inner = at(&mut value, place).take();
            *at(&mut value, place) = nested(inner, rng);
        }
    }
    serde_json::to_vec(&value).ok()
}

/// Puts a token where a value may begin.
pub fn insert_token(input: &[u8], rng: &mut SplitMix64) -> Vec<u8> {
    let starts: Vec<usize> = (0..input.len())
        .filter(|at| matches!(input[*at], b':' | b',' | b'['))
        .map(|at| at + 1)
        .collect();
    let at = if starts.is_empty() { 0 } else { rng.pick(&starts) };
    let token = rng.pick(&TOKENS).bytes();
    let mut bytes = input.to_vec();
    if rng.percent(50) {
        let is_end = |b: &u8| matches!(b, b',' | b'}' | b']');
        let end = bytes[at..].iter().position(is_end).map_or(bytes.len(), |n| at + n);
        bytes.splice(at..end, token);
    } else {
        bytes.splice(at..at, token.chain([b',']));
    }
    bytes
}

/// The path to every value: indexes into maps and lists.
fn places(value: &Value) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    let mut waiting = vec![(value, Vec::new())];
    while let Some((value, path)) = waiting.pop() {
        let inner: Vec<&Value> = match value {
            Value::Object(fields) => fields.values().collect(),
            Value::Array(items) => items.iter().collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        };
        for (index, value) in inner.into_iter().enumerate() {
            let mut path = path.clone();
            path.push(index);
            waiting.push((value, path));
        }
        found.push(path);
    }
    found
}

fn at<'a>(value: &'a mut Value, path: &[usize]) -> &'a mut Value {
    let mut place = value;
    for index in path {
        place = match place {
            Value::Object(fields) => fields.values_mut().nth(*index),
            Value::Array(items) => items.get_mut(*index),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        }
        .expect("the path was found in this value");
    }
    place
}

fn replacement(other: &Value, rng: &mut SplitMix64) -> Value {
    match rng.below(9) {
        0 => Value::Null,
        1 => rng.percent(50).into(),
        2 => rng.pick(&[0, -1, 1, 80, 65_535, 65_536, i64::MAX, i64::MIN]).into(),
        3 => json!(rng.pick(&[0.5, -1.5, 1e300, 1e-300, u64::MAX as f64])),
        4 | 5 => rng.pick(&TEXTS).into(),
        6 => json!([]),
        7 => json!({}),
        _ => {
            let places = places(other);
            at(&mut other.clone(), &places[rng.index(places.len())]).clone()
        }
    }
}

fn remove_or_repeat(value: &mut Value, rng: &mut SplitMix64) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            let at = rng.index(items.len());
            if rng.percent(50) {
                items.remove(at);
            } else {
                let again = items[at].clone();
                items.push(again);
            }
        }
        Value::Object(fields) if !fields.is_empty() => {
            let key = nth_key(fields, rng);
            fields.remove(&key);
        }
        other => *other = json!([other.take()]),
    }
}

fn rename(value: &mut Value, other: &Value, rng: &mut SplitMix64) {
    let Value::Object(fields) = value else { return change_text(value, rng) };
    let Value::Object(others) = other else { return };
    if fields.is_empty() || others.is_empty() {
        return;
    }
    let (from, to) = (nth_key(fields, rng), nth_key(others, rng));
    let moved = fields.remove(&from).expect("the key was found in this map");
    let to = if rng.percent(20) { rng.pick(&TEXTS).to_owned() } else { to };
    fields.insert(to, moved);
}

fn nth_key(fields: &Map<String, Value>, rng: &mut SplitMix64) -> String {
    let at = rng.index(fields.len());
    fields.keys().nth(at).cloned().unwrap_or_default()
}

fn change_text(value: &mut Value, rng: &mut SplitMix64) {
    let Value::String(text) = value else {
        *value = value.to_string().into();
        return;
    };
    let n_chars = text.chars().count();
    let at = text.char_indices().nth(rng.index(n_chars + 1)).map_or(text.len(), |(at, _)| at);
    match rng.below(4) {
        0 => text.truncate(at),
        1 => text.insert_str(at, rng.pick(&TEXTS)),
        2 => text.insert(at, char::from(rng.between(32, 126) as u8)),
        _ => *text = rng.pick(&["a", "é", "-"]).repeat(LONG_TEXT_BYTES),
    }
}

fn nested(value: Value, rng: &mut SplitMix64) -> Value {
    let is_list = rng.percent(50);
    (0..rng.between(1, NESTED_MAX))
        .fold(value, |inner, _| if is_list { json!([inner]) } else { json!({"a": inner}) })
}
