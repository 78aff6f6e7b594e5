//! What an explanation consists of.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::code::{Code, Level};

/// An object by kind, namespace, and name; a node has no namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectName {
    pub kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
}

impl ObjectName {
    pub fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Ordered by kind, namespace, and name, for finding one of many.
    pub(crate) fn is(&self, kind: &str, namespace: &str) -> bool {
        self.kind == kind && self.namespace == namespace
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// One cause, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub code: Code,
    pub level: Level,
    pub object: ObjectName,
    pub message: String,
    /// The fields and objects that the sentence is based on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// What was probably meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_miss: Option<String>,
    /// A command that is safe to try.
    #[serde(default, rename = "try", skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Finding {
    pub fn new(code: Code, object: ObjectName, message: impl Into<String>) -> Self {
        Self {
            code,
            level: code.level(),
            object,
            message: message.into(),
            evidence: Vec::new(),
            near_miss: None,
            command: None,
        }
    }

    #[must_use]
    pub fn evidence(mut self, fact: impl Into<String>) -> Self {
        self.evidence.push(fact.into());
        self
    }

    #[must_use]
    pub fn near_miss(mut self, text: Option<String>) -> Self {
        self.near_miss = text;
        self
    }

    #[must_use]
    pub fn command(mut self, command: Option<String>) -> Self {
        self.command = command;
        self
    }

    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
}

/// A pod that gets traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadyEndpoint {
    pub pod: String,
    /// With ports, such as `10.0.0.1:8080`.
    pub addresses: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The slices that publish it; empty if none does yet.
    pub slices: Vec<String>,
}

/// The explanation of one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    pub object: ObjectName,
    /// The answer in one sentence.
    pub verdict: String,
    /// The pods that should get traffic, by name.
    pub endpoints: Vec<ReadyEndpoint>,
    /// Worst first.
    pub findings: Vec<Finding>,
    /// What could not be read, so that the explanation may be incomplete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_read: Vec<String>,
}

impl Findings {
    /// Sorts the findings: errors first, then by code and object.
    pub(crate) fn sort(&mut self) {
        self.findings.sort_by(|a, b| {
            (a.level, a.code, &a.object, &a.message).cmp(&(b.level, b.code, &b.object, &b.message))
        });
        self.findings.dedup();
    }

    /// Whether something should be done; what is by design does not count.
    pub fn has_problems(&self) -> bool {
        self.findings.iter().any(|finding| match finding.level {
            Level::Error | Level::Warning => true,
            Level::Info => false,
        })
    }
}
