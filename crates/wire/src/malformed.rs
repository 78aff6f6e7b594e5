//! Errors about objects that cannot be decoded.

use std::fmt;

use serde_json::Value;

/// One object that cannot be decoded. Other objects of the same list are not affected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Malformed {
    /// Boxed, to keep `Result` small.
    pub identity: Box<Identity>,
    /// The field, such as `spec.ports[0].port`; empty if unknown.
    pub path: String,
    pub reason: String,
}

/// Kind, namespace, and name of an object, as far as they are known; unknown parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    pub api_version: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

impl Identity {
    /// The identity in any JSON value; a part of the wrong type counts as unknown.
    pub fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        Self {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { api_version: _, kind, namespace, name } = self;
        let kind = if kind.is_empty() { "object" } else { kind };
        match (namespace.as_str(), name.as_str()) {
            ("", "") => write!(f, "{kind} without a name"),
            ("", name) => write!(f, "{kind} `{name}`"),
            (namespace, name) => write!(f, "{kind} `{namespace}/{name}`"),
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { identity, path, reason } = self;
        match path.as_str() {
            "" | "." => write!(f, "malformed {identity}: {reason}"),
            path => write!(f, "malformed {identity}: `{path}`: {reason}"),
        }
    }
}
