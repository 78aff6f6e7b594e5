//! Request bodies, with a size limit.

use axum::body::{Body, to_bytes};
use serde_json::Value;

use super::media::Encoding;
use crate::schema::protobuf;
use crate::status_error::StatusError;

pub(super) async fn bytes(body: Body, max_bytes: usize) -> Result<bytes::Bytes, StatusError> {
    to_bytes(body, max_bytes).await.map_err(|_| StatusError::too_large(max_bytes))
}

/// Null when there is none.
pub(super) fn object(encoding: Encoding, schema: &str, bytes: &[u8]) -> Result<Value, StatusError> {
    match encoding {
        Encoding::Json => json(bytes),
        Encoding::Protobuf if bytes.is_empty() => Ok(Value::Null),
        Encoding::Protobuf => protobuf::object(schema, bytes)
            .map_err(|why| StatusError::bad_request(format!("cannot decode protobuf: {why}"))),
    }
}

/// Null when there is none.
pub(super) fn json(bytes: &[u8]) -> Result<Value, StatusError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Null);
    }
    serde_json::from_slice(bytes).map_err(|error| {
        StatusError::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
    })
}
