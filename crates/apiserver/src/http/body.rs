//! Bodies of requests, bounded.

use axum::body::{Body, to_bytes};
use serde_json::Value;

use super::media::Encoding;
use crate::refusal::Refusal;
use crate::schema::protobuf;

pub(super) async fn bytes(body: Body, max_bytes: usize) -> Result<bytes::Bytes, Refusal> {
    to_bytes(body, max_bytes).await.map_err(|_| Refusal::too_large(max_bytes))
}

/// Null when there is none.
pub(super) fn object(encoding: Encoding, schema: &str, bytes: &[u8]) -> Result<Value, Refusal> {
    match encoding {
        Encoding::Json => json(bytes),
        Encoding::Protobuf if bytes.is_empty() => Ok(Value::Null),
        Encoding::Protobuf => protobuf::object(schema, bytes)
            .map_err(|why| Refusal::bad_request(format!("cannot decode protobuf: {why}"))),
    }
}

/// Null when there is none.
pub(super) fn json(bytes: &[u8]) -> Result<Value, Refusal> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Null);
    }
    serde_json::from_slice(bytes).map_err(|error| {
        Refusal::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
    })
}
