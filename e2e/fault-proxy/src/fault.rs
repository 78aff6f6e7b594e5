//! What happens to a request or its response instead of the normal course.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

/// What happens to a request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// This response; the API server does not receive the request.
    Answer(Answer),
    /// The API server applies the request, and the client receives this response.
    ApplyAndAnswer(Answer),
    /// The API server receives the request after this time.
    DelayRequest(Duration),
    /// The API server receives the request at once; the client gets the response after this time.
    DelayResponse(Duration),
    /// The connection is closed before the API server receives the request.
    LoseRequest,
    /// The connection is closed after the API server has applied the request.
    LoseResponse,
    /// Neither a response nor an end: the connection stays open, and the API server does not
    /// receive the request.
    Silence,
    /// Half of the next part of a response body is sent, then the connection is closed. For a watch,
    /// a part is one or more events. Applies to responses that are already being sent, too.
    CutBody,
    /// Parts of response bodies are discarded while the connection stays open. Applies to responses
    /// that are already being sent, too.
    SilenceBody,
    /// From the next part of a response body on nothing is sent while the connection stays open, also
    /// after the fault has ended. Fires once per response, also for those that are already being sent.
    StallBody,
}

/// When the proxy asks whether a fault applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Request,
    BodyPart,
}

impl Fault {
    /// An error response without Retry-After.
    pub fn status(code: u16) -> Self {
        Self::Answer(Answer::error(code))
    }

    pub(crate) fn stage(&self) -> Stage {
        match self {
            Self::Answer(_)
            | Self::ApplyAndAnswer(_)
            | Self::DelayRequest(_)
            | Self::DelayResponse(_)
            | Self::LoseRequest
            | Self::LoseResponse
            | Self::Silence => Stage::Request,
            Self::CutBody | Self::SilenceBody | Self::StallBody => Stage::BodyPart,
        }
    }
}

/// A response that the proxy makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    code: u16,
    retry_after: Option<String>,
    body: Value,
}

impl Answer {
    /// An error with the body that an API server sends with this status code.
    pub fn error(code: u16) -> Self {
        Self { code, retry_after: None, body: status_object(code) }
    }

    /// Any text, because the header can be malformed.
    pub fn retry_after(mut self, text: &str) -> Self {
        self.retry_after = Some(text.to_owned());
        if let Ok(seconds) = text.parse::<u64>() {
            self.body["details"] = json!({"retryAfterSeconds": seconds});
        }
        self
    }

    /// A watch that consists of one `ERROR` event with this status code, as after compaction.
    pub fn watch_error(code: u16) -> Self {
        let body = json!({"type": "ERROR", "object": status_object(code)});
        Self { code: 200, retry_after: None, body }
    }

    /// A streamed list of this kind without objects, at this version; then the watch ends.
    pub fn empty_list(api_version: &str, kind: &str, resource_version: &str) -> Self {
        let annotations = json!({"k8s.io/initial-events-end": "true"});
        let metadata = json!({"resourceVersion": resource_version, "annotations": annotations});
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        let body = json!({"type": "BOOKMARK", "object": object});
        Self { code: 200, retry_after: None, body }
    }

    pub(crate) fn response(&self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(format!("{}\n", self.body)));
        *response.status_mut() = StatusCode::from_u16(self.code).expect("a status code");
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(text) = &self.retry_after {
            let value = HeaderValue::from_str(text).expect("a header value is one line of text");
            headers.insert(RETRY_AFTER, value);
        }
        response
    }
}

fn status_object(code: u16) -> Value {
    let reason = match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    };
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("injected by the fault proxy: {code}"), "reason": reason, "code": code,
    })
}
