//! Results of writes and live reads, named after the reaction that they require.

use std::collections::BTreeMap;
use std::fmt;

use crate::{ClusterId, Key, Node, Object, PublishedResource, Service, SharedStr, Uid};

/// The result of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteResult {
    /// The stored object. Also the response to a delete that a finalizer delays.
    Stored(Box<Object>),
    /// Deleted, or already gone.
    Deleted,
    /// The stored object is not the one the write was computed from: read it, then plan again.
    Conflict(SharedStr),
    /// The namespace is being deleted or does not exist: wait for the next change.
    NamespaceTerminating(SharedStr),
    /// Too many requests: write no object of this key for this time.
    Throttled { after_secs: u32 },
    /// No response: the write may or may not have been applied. Read the object, then plan again.
    NoResponse(Failure),
    /// Rejected and not applied: back off, then plan again.
    Failed(Failure),
    /// Not sent, because the lease was lost.
    NotLeader,
}

/// The pods of a namespace, by name.
pub type PodUids = BTreeMap<SharedStr, Uid>;

/// The object that a live read gets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LiveRead {
    Service(Key),
    Node(SharedStr),
    Object(PublishedResource, Key),
    /// Of this object: who changed it last, apart from us.
    FieldManager(PublishedResource, Key),
    /// The pods of a namespace.
    Pods(SharedStr),
    /// From the API server of another cluster.
    Source(ClusterId, Box<LiveRead>),
}

/// The result of a live read.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveReadResult {
    Service(Box<Service>),
    Node(Box<Node>),
    Object(Box<Object>),
    /// The field manager; none if all others have been overwritten.
    FieldManager(Option<SharedStr>),
    Pods(PodUids),
    /// A consistent read found no object.
    Absent,
    /// Throttled, rejected, not decodable, or no response: still unknown.
    Failed(Failure),
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// Text for logs and the report.
    pub message: SharedStr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// No connection, or no response in time.
    Unreachable,
    /// 5xx, or 429 without Retry-After.
    ServerError,
    /// 401: the credentials are invalid.
    Unauthorized,
    /// 403: a permission, a quota, or an admission policy.
    Forbidden,
    /// 400, 413, 422: the object itself is rejected.
    Invalid,
    /// A response that cannot be decoded, or an unexpected status.
    Unreadable,
}

impl FailureKind {
    pub const ALL: [Self; 6] = [
        Self::Unreachable,
        Self::ServerError,
        Self::Unauthorized,
        Self::Forbidden,
        Self::Invalid,
        Self::Unreadable,
    ];

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

    /// Whether the failure ends when the API server recovers, without any other change.
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
    /// One word for metrics, JSON, and logs. A write that was not answered definitely is counted
    /// by the cause: `no_response` is a timeout or a lost connection, `server_error` a 5xx.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Stored(_) => "stored",
            Self::Deleted => "deleted",
            Self::Conflict(_) => "conflict",
            Self::NamespaceTerminating(_) => "namespace_terminating",
            Self::Throttled { .. } => "throttled",
            Self::NoResponse(Failure { kind: FailureKind::Unreachable, .. }) => "no_response",
            Self::NoResponse(failure) | Self::Failed(failure) => failure.kind.as_str(),
            Self::NotLeader => "not_leader",
        }
    }
}
