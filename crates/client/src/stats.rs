//! Counts of requests, for metrics.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use http::Method;

use crate::request::ApiRequest;

/// Requests that are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKind {
    /// The Kubernetes verb: `list`, `watch`, `update`, …
    pub verb: &'static str,
    pub resource: &'static str,
    /// The HTTP method: `GET`, `POST`, …
    pub method: &'static str,
    /// The HTTP status; `None` when there was no response.
    pub code: Option<u16>,
}

#[derive(Debug, Default)]
pub struct RequestStats {
    // At most verbs × resources × codes: a few dozen.
    counts: Mutex<BTreeMap<RequestKind, u64>>,
}

impl RequestStats {
    /// The totals since the start.
    pub fn snapshot(&self) -> BTreeMap<RequestKind, u64> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn count(&self, request: &ApiRequest, code: Option<u16>) {
        let ApiRequest { verb, resource, method, .. } = request;
        let kind = RequestKind { verb, resource, method: method_name(method), code };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(kind).or_default() += 1;
    }
}

fn method_name(method: &Method) -> &'static str {
    match method.as_str() {
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "PATCH" => "PATCH",
        _ => "GET",
    }
}
