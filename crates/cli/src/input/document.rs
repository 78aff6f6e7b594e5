//! One document of a file, independent of its format. List items are converted one by one, so that
//! with compact objects a large dump is never in memory as a tree of JSON values.

use std::fmt;

use endpointd_wire::{AnyObject, Identity, Malformed, flatten};
use serde_json::{Map, Value};

/// What a command keeps of each object: the whole value, or less.
pub trait FromObject {
    fn from_object(value: Value) -> Self;
}

impl FromObject for Value {
    fn from_object(value: Value) -> Self {
        value
    }
}

/// A parsed document.
pub enum Document<T> {
    Empty,
    Object {
        /// Without `items` if it is a list.
        fields: Map<String, Value>,
        items: Option<Vec<Item<T>>>,
    },
    /// Not an object; says what it is instead.
    Other(&'static str),
}

/// An element of a top-level `items`. kubectl writes `items` before `kind`, so the kind of the list
/// is known only at the end of the document.
pub enum Item<T> {
    Converted(T),
    /// Has no `kind`, or is a list itself: needs the kind of the surrounding list.
    Pending(Value),
}

/// The result of decoding one object.
pub enum DecodedObject {
    Known(Box<AnyObject>),
    /// Of a kind that the controllers do not use.
    Ignored(String),
    Malformed(Malformed),
}

/// A syntax error with its position.
#[derive(Debug)]
pub struct ParseError {
    pub line: usize,
    pub column: usize,
    pub reason: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, reason } = self;
        write!(f, "line {line}, column {column}: {reason}")
    }
}

impl<T: FromObject> Item<T> {
    pub fn of(value: Value) -> Self {
        match text(&value, "kind") {
            Some(kind) if !(kind.ends_with("List") && is_list(&value)) => {
                Self::Converted(T::from_object(value))
            }
            Some(_) | None => Self::Pending(value),
        }
    }
}

impl FromObject for DecodedObject {
    fn from_object(value: Value) -> Self {
        match AnyObject::from_value(&value) {
            Ok(Some(object)) => Self::Known(object.into()),
            Ok(None) => Self::Ignored(text(&value, "kind").unwrap_or_default().to_owned()),
            Err(malformed) => Self::Malformed(malformed),
        }
    }
}

impl<T: FromObject> Document<T> {
    /// The objects of the document; the error says why it is not a Kubernetes object.
    pub fn objects(self) -> Result<Vec<T>, String> {
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
            return Ok(vec![T::from_object(value)]);
        }
        match items {
            Some(items) => Ok(items.into_iter().flat_map(|item| resolve(item, &value)).collect()),
            // `items` is missing, or is malformed because it is not a list.
            None => Ok(flatten(value).into_iter().map(T::from_object).collect()),
        }
    }
}

fn resolve<T: FromObject>(item: Item<T>, list: &Value) -> Vec<T> {
    match item {
        Item::Converted(read) => vec![read],
        Item::Pending(value) => {
            let mut around = head(list);
            around.insert("items".to_owned(), Value::Array(vec![value]));
            flatten(Value::Object(around)).into_iter().map(T::from_object).collect()
        }
    }
}

/// Whether the document is a list of a kind that `flatten` expands; an empty one flattens to
/// nothing.
fn is_list(value: &Value) -> bool {
    let mut head = head(value);
    head.insert("items".to_owned(), Value::Array(Vec::new()));
    flatten(Value::Object(head)).is_empty()
}

/// `apiVersion` and `kind` only.
fn head(value: &Value) -> Map<String, Value> {
    let Identity { api_version, kind, .. } = Identity::of(value);
    [("apiVersion".to_owned(), api_version.into()), ("kind".to_owned(), kind.into())]
        .into_iter()
        .collect()
}

fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field)?.as_str().filter(|text| !text.is_empty())
}
