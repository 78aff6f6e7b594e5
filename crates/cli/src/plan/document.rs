//! One document of a file, whatever it was written in. The items of a list are read into the
//! model as soon as each is complete, so that a large dump never exists as a tree of values.

use std::fmt;

use endpointd_wire::{AnyObject, Identity, Malformed, flatten};
use serde_json::{Map, Value};

/// As the parsers give it.
pub enum Document {
    Empty,
    Object {
        /// Without `items` if those are a list.
        fields: Map<String, Value>,
        items: Option<Vec<Item>>,
    },
    /// Something else, and what it is.
    Other(&'static str),
}

/// An item of what is probably a list. kubectl writes `items` before `kind`, so that only the end
/// of the document tells.
pub enum Item {
    Settled(Read),
    /// Says not what it is, or is a list itself: the kind of the list around it decides.
    Waiting(Value),
}

/// What became of one object.
pub enum Read {
    Known(Box<AnyObject>),
    /// Of a kind we have no use for.
    Ignored(String),
    Malformed(Malformed),
}

/// Where and why a text could not be parsed.
#[derive(Debug)]
pub struct Failure {
    pub line: usize,
    pub column: usize,
    pub reason: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, reason } = self;
        write!(f, "line {line}, column {column}: {reason}")
    }
}

impl Item {
    pub fn of(value: Value) -> Self {
        match text(&value, "kind") {
            Some(kind) if !(kind.ends_with("List") && is_list(&value)) => {
                Self::Settled(Read::of(&value))
            }
            Some(_) | None => Self::Waiting(value),
        }
    }
}

impl Read {
    fn of(value: &Value) -> Self {
        match AnyObject::from_value(value) {
            Ok(Some(object)) => Self::Known(object.into()),
            Ok(None) => Self::Ignored(text(value, "kind").unwrap_or_default().to_owned()),
            Err(malformed) => Self::Malformed(malformed),
        }
    }
}

impl Document {
    /// The objects in it. An error says why it is no Kubernetes object.
    pub fn objects(self) -> Result<Vec<Read>, String> {
        let (fields, items) = match self {
            Self::Empty => return Ok(Vec::new()),
            Self::Other(what) => return Err(what.to_owned()),
            Self::Object { fields, items } => (fields, items),
        };
        let value = Value::Object(fields);
        for field in ["apiVersion", "kind"] {
            if text(&value, field).is_none() {
                return Err(format!("no `{field}`"));
            }
        }
        if !is_list(&value) {
            return Ok(vec![Read::of(&value)]);
        }
        match items {
            Some(items) => Ok(items.into_iter().flat_map(|item| settle(item, &value)).collect()),
            // What is not a list after all is malformed; what is absent is empty.
            None => Ok(flatten(value).iter().map(Read::of).collect()),
        }
    }
}

fn settle(item: Item, list: &Value) -> Vec<Read> {
    match item {
        Item::Settled(read) => vec![read],
        Item::Waiting(value) => {
            let mut around = head(list);
            around.insert("items".to_owned(), Value::Array(vec![value]));
            flatten(Value::Object(around)).iter().map(Read::of).collect()
        }
    }
}

/// Whether the document is a list whose items we would look at: such a list, when empty, flattens
/// to nothing.
fn is_list(value: &Value) -> bool {
    let mut head = head(value);
    head.insert("items".to_owned(), Value::Array(Vec::new()));
    flatten(Value::Object(head)).is_empty()
}

/// Only what the document says it is.
fn head(value: &Value) -> Map<String, Value> {
    let Identity { api_version, kind, .. } = Identity::of(value);
    [("apiVersion".to_owned(), api_version.into()), ("kind".to_owned(), kind.into())]
        .into_iter()
        .collect()
}

fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field)?.as_str().filter(|text| !text.is_empty())
}
