//! Server-side tables for `kubectl get`. Upstream:
//! pkg/printers/internalversion.

pub(crate) mod age;
pub(crate) mod cluster;
pub(crate) mod network;
pub(crate) mod workloads;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::schema::{META, type_named};

/// The columns of a kind.
pub(crate) struct Columns {
    pub columns: &'static [Column],
    pub cells: fn(&Value, Timestamp) -> Vec<Value>,
}

pub(crate) struct Column {
    pub name: &'static str,
    pub of: &'static str,
    pub format: &'static str,
    /// Zero: always shown; one: only with `-o wide`.
    pub priority: u8,
}

pub(crate) const NAME: Column = Column { name: "Name", of: "string", format: "name", priority: 0 };
pub(crate) const AGE: Column = text("Age");

pub(crate) const fn text(name: &'static str) -> Column {
    Column { name, of: "string", format: "", priority: 0 }
}

pub(crate) const fn wide(name: &'static str) -> Column {
    Column { name, of: "string", format: "", priority: 1 }
}

pub(crate) const fn number(name: &'static str) -> Column {
    Column { name, of: "integer", format: "", priority: 0 }
}

pub(crate) static NAME_AND_AGE: Columns =
    Columns { columns: &[NAME, AGE], cells: |object, now| vec![name(object), age(object, now)] };

/// How much of its object a row contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    Metadata,
    Object,
}

impl Columns {
    /// The column definitions of a table.
    pub(crate) fn definitions(&self) -> Value {
        let doc = |field: &str| {
            let meta = type_named(&format!("{META}ObjectMeta"));
            meta.field(field).map(|field| field.doc.clone()).unwrap_or_default()
        };
        let shown = |column: &Column| {
            let description = match column.name {
                "Name" => doc("name"),
                "Age" => doc("creationTimestamp"),
                other => other.to_owned(),
            };
            json!({
                "name": column.name, "type": column.of, "format": column.format,
                "description": description, "priority": column.priority,
            })
        };
        self.columns.iter().map(shown).collect()
    }

    pub(crate) fn row(&self, object: &Value, now: Timestamp, shown: Value) -> Value {
        json!({"cells": (self.cells)(object, now), "object": shown})
    }
}

pub(crate) fn name(object: &Value) -> Value {
    object["metadata"]["name"].clone()
}

pub(crate) fn age(object: &Value, now: Timestamp) -> Value {
    json!(age::since(&object["metadata"]["creationTimestamp"], now))
}

/// The text, or a placeholder if it is empty.
pub(crate) fn or(value: &Value, placeholder: &str) -> Value {
    match value.as_str() {
        None | Some("") => json!(placeholder),
        Some(text) => json!(text),
    }
}

pub(crate) fn int(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}
