//! `Status`, the body of an unsuccessful response.

use prost::bytes::Bytes;
use serde::Deserialize;

use crate::decode::read_json;
use crate::envelope::{Encoding, Unknown};
use crate::malformed::{Identity, Malformed};

/// `metav1.Status`.
#[derive(Clone, PartialEq, Eq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    /// `Success` or `Failure`.
    #[prost(string, tag = "2")]
    pub status: String,
    #[prost(string, tag = "3")]
    pub message: String,
    /// Machine-readable reason, such as `AlreadyExists`.
    #[prost(string, tag = "4")]
    pub reason: String,
    #[prost(message, required, tag = "5")]
    pub details: StatusDetails,
    /// The HTTP status.
    #[prost(int32, tag = "6")]
    pub code: i32,
}

/// `metav1.StatusDetails`.
#[derive(Clone, PartialEq, Eq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StatusDetails {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub group: String,
    #[prost(string, tag = "3")]
    pub kind: String,
    #[prost(message, repeated, tag = "4")]
    pub causes: Vec<StatusCause>,
    #[prost(int32, tag = "5")]
    pub retry_after_seconds: i32,
    #[prost(string, tag = "6")]
    pub uid: String,
}

/// `metav1.StatusCause`.
#[derive(Clone, PartialEq, Eq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StatusCause {
    #[prost(string, tag = "1")]
    pub reason: String,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(string, tag = "3")]
    pub field: String,
}

const STATUS_KIND: &str = "Status";

impl Status {
    /// Upstream: `errors.HasStatusCause`.
    pub fn has_cause(&self, reason: &str) -> bool {
        self.details.causes.iter().any(|cause| cause.reason == reason)
    }
}

/// Decodes the body of an unsuccessful response.
pub fn decode_status(encoding: Encoding, body: &Bytes) -> Result<Status, Malformed> {
    let status = match encoding {
        Encoding::Json => read_json(body),
        Encoding::Protobuf => Unknown::open(body).and_then(|unknown| unknown.read()),
    };
    status.map_err(|reason| {
        let identity = Identity { kind: STATUS_KIND.to_owned(), ..Default::default() };
        Malformed { identity: identity.into(), path: String::new(), reason }
    })
}
