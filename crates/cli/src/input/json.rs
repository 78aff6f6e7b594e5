//! Parses a stream of JSON documents, with or without whitespace between them.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Value};

use super::document::{Document, FromObject, Item, ParseError};

/// Why a text is not a stream of JSON documents.
pub enum JsonError {
    /// The input ends inside a document.
    Truncated(ParseError),
    /// It may be YAML instead.
    Invalid(ParseError),
}

pub fn documents<T: FromObject>(bytes: &[u8]) -> Result<Vec<Document<T>>, JsonError> {
    serde_json::Deserializer::from_slice(bytes).into_iter().collect::<Result<_, _>>().map_err(
        |error: serde_json::Error| match error.classify() {
            Category::Eof => JsonError::Truncated(parse_error(&error)),
            Category::Io | Category::Syntax | Category::Data => {
                JsonError::Invalid(parse_error(&error))
            }
        },
    )
}

fn parse_error(error: &serde_json::Error) -> ParseError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let reason = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
    ParseError { line, column, reason: reason.to_owned() }
}

impl<'de, T: FromObject> Deserialize<'de> for Document<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor(PhantomData))
    }
}

struct DocumentVisitor<T>(PhantomData<T>);

macro_rules! scalars {
    ($($method:ident: $type:ty => $give:expr;)*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<Self::Value, E> {
            Ok($give(value))
        }
    )*};
}

impl<'de, T: FromObject> Visitor<'de> for DocumentVisitor<T> {
    type Value = Document<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Kubernetes object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Document<T>, A::Error> {
        let mut fields = Map::new();
        let mut items = None;
        while let Some(key) = entries.next_key::<String>()? {
            if key != "items" {
                fields.insert(key, entries.next_value()?);
                continue;
            }
            match entries.next_value()? {
                Items::List(list) => items = Some(list),
                Items::Other(value) => drop(fields.insert(key, value)),
            }
        }
        Ok(Document::Object { fields, items })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Document<T>, A::Error> {
        while entries.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Document::Other("a bare list"))
    }

    fn visit_unit<E: Error>(self) -> Result<Document<T>, E> {
        Ok(Document::Empty)
    }

    scalars! {
        visit_bool: bool => |_| Document::Other("a bare boolean");
        visit_i64: i64 => |_| Document::Other("a bare number");
        visit_u64: u64 => |_| Document::Other("a bare number");
        visit_f64: f64 => |_| Document::Other("a bare number");
        visit_str: &str => |_| Document::Other("bare text");
    }
}

/// The value of a top-level `items`.
enum Items<T> {
    List(Vec<Item<T>>),
    Other(Value),
}

impl<'de, T: FromObject> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemsVisitor(PhantomData))
    }
}

struct ItemsVisitor<T>(PhantomData<T>);

impl<'de, T: FromObject> Visitor<'de> for ItemsVisitor<T> {
    type Value = Items<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Items<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(value) = entries.next_element()? {
            items.push(Item::of(value));
        }
        Ok(Items::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Items<T>, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(entries)).map(Items::Other)
    }

    fn visit_unit<E: Error>(self) -> Result<Items<T>, E> {
        Ok(Items::Other(Value::Null))
    }

    scalars! {
        visit_bool: bool => |value: bool| Items::Other(value.into());
        visit_i64: i64 => |value: i64| Items::Other(value.into());
        visit_u64: u64 => |value: u64| Items::Other(value.into());
        visit_f64: f64 => |value: f64| Items::Other(value.into());
        visit_str: &str => |value: &str| Items::Other(value.into());
    }
}
