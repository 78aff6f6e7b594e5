//! Errors of the API: a `Status` as kube-apiserver writes it. Upstream:
//! `apimachinery/pkg/api/errors`.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::kinds::Kind;

/// A failed request. [`StatusError::to_status`] is the body of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusError {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub details: Box<Details>,
    /// For an expired page: the token to continue with an inconsistent list.
    pub continue_token: String,
}

/// `status.details`; empty fields are not written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    pub name: String,
    pub group: String,
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
    pub retry_after_secs: u32,
    /// Whether an empty value is written: upstream writes `details: {}` for some errors only.
    pub shown: bool,
}

/// One entry of `status.details.causes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub reason: &'static str,
    pub message: String,
    pub field: String,
}

impl StatusError {
    fn plain(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Box::default(),
            continue_token: String::new(),
        }
    }

    fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        self.details.group = group.to_owned();
        self.details.kind = kind.to_owned();
        self.details.name = name.to_owned();
        self.details.shown = true;
        self
    }

    pub(crate) fn caused_by(mut self, reason: &'static str, message: &str, field: &str) -> Self {
        let cause = Cause { reason, message: message.to_owned(), field: field.to_owned() };
        self.details.causes.push(cause);
        self
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.qualified_resource());
        Self::plain(404, "NotFound", message).about(kind.group, kind.resource, name)
    }

    /// During an outage that a test or the playground has asked for.
    pub(crate) fn unavailable() -> Self {
        Self::plain(503, "ServiceUnavailable", "the API server is not available")
    }

    pub(crate) fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::plain(404, "NotFound", message).about("", "", "")
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.qualified_resource());
        Self::plain(409, "AlreadyExists", message).about(kind.group, kind.resource, name)
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let resource = kind.qualified_resource();
        let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {why}");
        Self::plain(409, "Conflict", message).about(kind.group, kind.resource, name)
    }

    pub(crate) fn modified_since_read(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(kind, name, why)
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let resource = kind.qualified_resource();
        let message = if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} \"{name}\" is forbidden: {why}")
        };
        Self::plain(403, "Forbidden", message).about(kind.group, kind.resource, name)
    }

    /// Upstream: `NewInvalid`; equal messages occur once in the text.
    pub(crate) fn invalid(kind: &Kind, name: &str, causes: Vec<Cause>) -> Self {
        let mut sentences: Vec<String> = Vec::new();
        for cause in &causes {
            let sentence = format!("{}: {}", cause.field, cause.message);
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
        let sentences = match sentences.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let message = format!("{} \"{name}\" is invalid: {sentences}", kind.qualified_kind());
        let mut error = Self::plain(422, "Invalid", message).about(kind.group, kind.kind, name);
        error.details.causes = causes;
        error
    }

    /// A patch that can be read but not applied. Upstream: `NewGenericServerResponse` with 422.
    pub(crate) fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::plain(422, "Invalid", message).about("", "", "")
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::plain(400, "BadRequest", message)
    }

    /// An internal error of upstream: the text of the inner error, and no reason.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::plain(500, "", message)
    }

    /// Contradictory options. Upstream: `NewInvalid` with `metav1` kinds.
    pub(crate) fn invalid_options(options: &str, causes: Vec<Cause>) -> Self {
        let sentences: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let sentences = sentences.join(", ");
        let message = format!("{options}.meta.k8s.io \"\" is invalid: {sentences}");
        let mut error = Self::plain(422, "Invalid", message).about("meta.k8s.io", options, "");
        error.details.causes = causes;
        error
    }

    /// With another group and kind: some errors of upstream name the resource instead.
    pub(crate) fn naming(mut self, group: &str, kind: &str) -> Self {
        let shown = |group: &str, kind: &str| match group {
            "" => kind.to_owned(),
            group => format!("{kind}.{group}"),
        };
        let known = shown(&self.details.group, &self.details.kind);
        self.message = self.message.replacen(&known, &shown(group, kind), 1);
        self.details.group = group.to_owned();
        self.details.kind = kind.to_owned();
        self
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::plain(405, "MethodNotAllowed", message).about("", "", "")
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::plain(410, "Expired", message)
    }

    pub(crate) fn continuing_with(mut self, token: String) -> Self {
        self.continue_token = token;
        self
    }

    pub(crate) fn too_old(requested: u64, floor: u64) -> Self {
        Self::expired(format!("too old resource version: {requested} ({floor})"))
    }

    /// The requested version is in the future. Upstream: `NewTooLargeResourceVersionError`.
    pub(crate) fn too_new(requested: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {requested}, current: {current}");
        let mut error = Self::plain(504, "Timeout", format!("Timeout: {message}"));
        error.details.shown = true;
        error.details.retry_after_secs = 1;
        error.caused_by("ResourceVersionTooLarge", "Too large resource version", "")
    }

    pub(crate) fn not_acceptable() -> Self {
        let message = "406: Not Acceptable\n\nAvailable representations: application/json, \
                       application/json;stream=watch";
        Self::plain(406, "NotAcceptable", message).about("", "", "")
    }

    pub(crate) fn unsupported_patch_type() -> Self {
        let message = "415: Unsupported Media Type";
        Self::plain(415, "UnsupportedMediaType", message).about("", "", "")
    }

    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: \
             {accepted}"
        );
        Self::plain(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn too_large(limit_bytes: usize) -> Self {
        let message = format!("limit is {limit_bytes}");
        Self::plain(413, "RequestEntityTooLarge", format!("Request entity too large: {message}"))
    }

    pub fn to_status(&self) -> Value {
        let Self { code, reason, message, details, continue_token } = self;
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "code": code,
        });
        if !reason.is_empty() {
            status["reason"] = json!(reason);
        }
        if details.shown || !details.causes.is_empty() {
            status["details"] = details.to_json();
        }
        if !continue_token.is_empty() {
            status["metadata"]["continue"] = json!(continue_token);
        }
        status
    }
}

impl Details {
    pub(crate) fn to_json(&self) -> Value {
        let Self { name, group, kind, uid, causes, retry_after_secs, shown: _ } = self;
        let mut shown = Map::new();
        for (field, text) in [("name", name), ("group", group), ("kind", kind), ("uid", uid)] {
            if !text.is_empty() {
                shown.insert(field.to_owned(), json!(text));
            }
        }
        if !causes.is_empty() {
            shown.insert("causes".to_owned(), causes.iter().map(Cause::to_json).collect());
        }
        if *retry_after_secs > 0 {
            shown.insert("retryAfterSeconds".to_owned(), json!(retry_after_secs));
        }
        Value::Object(shown)
    }
}

impl Cause {
    fn to_json(&self) -> Value {
        let Self { reason, message, field } = self;
        let mut shown = Map::new();
        shown.insert("reason".to_owned(), json!(reason));
        shown.insert("message".to_owned(), json!(message));
        if !field.is_empty() {
            shown.insert("field".to_owned(), json!(field));
        }
        Value::Object(shown)
    }
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StatusError {}
