//! What became of a write or a live read, named after the reaction it asks for.

use std::fmt;

use crate::{Key, Node, Object, PublishedResource, Service, SharedStr};

/// What became of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteResult {
    /// Stored; this is how the API server has it now. A delete that a finalizer holds up answers
    /// with the object, too.
    Stored(Box<Object>),
    /// Deleted, or already gone.
    Deleted,
    /// The object is not what the write was decided on: look at it, then plan again.
    Conflict(SharedStr),
    /// The namespace is going or gone: nothing to do until something changes.
    NamespaceTerminating(SharedStr),
    /// Too many requests: come back after this time, with everything.
    Throttled { after_secs: u32 },
    /// No answer: it may have happened or not. Look, then plan again.
    NoResponse(Failure),
    /// Refused, and so not done: back off, then plan again.
    Failed(Failure),
    /// Never sent, because we may not write any more.
    NotLeader,
}

/// What a live read asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LiveRead {
    Service(Key),
    Node(SharedStr),
    Object(PublishedResource, Key),
}

/// What a live read found.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveReadResult {
    Service(Box<Service>),
    Node(Box<Node>),
    Object(Box<Object>),
    /// A consistent read says that there is none.
    Absent,
    /// Throttled, refused, unreadable, or not answered: still not known.
    Failed(Failure),
}

/// Why the API server did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// For people.
    pub message: SharedStr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// No connection, or no answer in time.
    Unreachable,
    /// 5xx, or 429 without more.
    ServerError,
    /// 401: our credentials are not taken.
    Unauthorized,
    /// 403: a permission, a quota, or an admission policy.
    Forbidden,
    /// 400, 413, 422: the object itself is refused.
    Invalid,
    /// An answer that makes no sense.
    Unreadable,
}

impl FailureKind {
    /// One word for metrics, JSON, and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::ServerError => "server_error",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::Invalid => "invalid",
            Self::Unreadable => "unreadable",
        }
    }

    /// Whether it passes when the API server gets well, without anyone changing anything.
    pub fn is_outage(self) -> bool {
        match self {
            Self::Unreachable | Self::ServerError | Self::Unauthorized => true,
            Self::Forbidden | Self::Invalid | Self::Unreadable => false,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl WriteResult {
    /// One word for metrics, JSON, and logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Stored(_) => "stored",
            Self::Deleted => "deleted",
            Self::Conflict(_) => "conflict",
            Self::NamespaceTerminating(_) => "namespace_terminating",
            Self::Throttled { .. } => "throttled",
            Self::NoResponse(_) => "no_response",
            Self::Failed(failure) => failure.kind.as_str(),
            Self::NotLeader => "not_leader",
        }
    }
}
