//! The verbs of a [`Server`](crate::Server), one file each, and their shared types.

mod create;
mod delete;
mod gc;
mod list;
mod namespaces;
mod patch;
mod read;
mod scale;
mod update;
mod watch;

pub use delete::{DeleteOptions, Deletion, Propagation};
pub use list::{ListOptions, Page, VersionMatch};
pub(crate) use patch::Patch;
pub use patch::PatchType;
pub(crate) use update::Part;
pub use watch::{WatchOptions, WatchStart};

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};

use crate::defaults::events;
use crate::kinds::Kind;
use crate::store::{Key, Stored};

/// The target of a request: a collection or one object.
#[derive(Clone)]
pub struct Target {
    pub kind: &'static Kind,
    /// Empty: all namespaces, or a cluster-scoped kind.
    pub namespace: String,
    /// Empty: the collection.
    pub name: String,
}

impl Target {
    pub fn collection(kind: &'static Kind, namespace: &str) -> Self {
        Self { kind, namespace: namespace.to_owned(), name: String::new() }
    }

    pub fn object(kind: &'static Kind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub(crate) fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }
}

/// Options of create, update, and patch.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Does everything except storing the object.
    pub dry_run: bool,
    pub field_validation: FieldValidation,
}

/// How unknown fields are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

#[derive(Debug)]
pub struct WriteOutcome {
    pub object: ResponseObject,
    pub is_new: bool,
    pub warnings: Vec<String>,
}

/// The object of a response: stored, or computed for the response only (dry run, binding).
#[derive(Clone, Debug)]
pub enum ResponseObject {
    Stored(Arc<Stored>),
    Value(Value),
}

impl ResponseObject {
    pub fn value(&self) -> Value {
        match self {
            Self::Stored(stored) => stored.value(),
            Self::Value(value) => value.clone(),
        }
    }

    /// As the body of a response, with `kind` and `apiVersion`.
    pub(crate) fn bytes(&self, kind: &Kind) -> Bytes {
        match self {
            Self::Stored(stored) => present(kind, stored),
            Self::Value(value) => {
                let mut value = shown_as(kind, value.clone());
                if value.get("kind").is_none() {
                    value["kind"] = json!(kind.kind);
                    value["apiVersion"] = json!(kind.api_version());
                }
                value.to_string().into()
            }
        }
    }
}

/// A list item: the shared bytes, unless this kind needs a conversion.
pub(crate) fn item(kind: &Kind, stored: &Stored) -> Bytes {
    if is_converted(kind) {
        return shown_as(kind, stored.value()).to_string().into();
    }
    stored.bytes().clone()
}

/// A complete object: `kind` and `apiVersion` before the shared bytes.
pub(crate) fn present(kind: &Kind, stored: &Stored) -> Bytes {
    let item = item(kind, stored);
    let head = format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", kind.kind, kind.api_version());
    let mut whole = BytesMut::with_capacity(head.len() + item.len());
    whole.extend_from_slice(head.as_bytes());
    whole.extend_from_slice(&item[1..]);
    whole.freeze()
}

/// Events of `events.k8s.io` are stored in their core form.
pub(crate) fn is_converted(kind: &Kind) -> bool {
    kind.group == "events.k8s.io"
}

pub(crate) fn shown_as(kind: &Kind, value: Value) -> Value {
    if is_converted(kind) { events::from_core(value) } else { value }
}
