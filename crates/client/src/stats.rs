//! What was asked and what came back, in numbers, for metrics.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::Method;

use crate::ask::ApiRequest;

/// Requests that are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKind {
    /// Kubernetes' word: `list`, `watch`, `update`, …
    pub verb: &'static str,
    pub resource: &'static str,
    /// `GET`, `POST`, …
    pub method: &'static str,
    /// The HTTP status; none when there was no answer.
    pub code: Option<u16>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCount {
    pub n_requests: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// From the request to the head of its answer, all together.
    pub waited: Duration,
}

#[derive(Debug, Default)]
pub struct RequestStats {
    // At most verbs × resources × codes: a few dozen.
    counts: Mutex<BTreeMap<RequestKind, RequestCount>>,
}

impl RequestStats {
    /// A copy, in a stable order.
    pub fn snapshot(&self) -> BTreeMap<RequestKind, RequestCount> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn count(&self, ask: &ApiRequest, code: Option<u16>, waited: Duration) {
        let sent_bytes = ask.body.as_ref().map_or(0, |body| body.bytes.len() as u64);
        self.with(ask, code, |count| {
            count.n_requests += 1;
            count.sent_bytes += sent_bytes;
            count.waited += waited;
        });
    }

    pub(crate) fn received(&self, ask: &ApiRequest, code: u16, n_bytes: usize) {
        self.with(ask, Some(code), |count| count.received_bytes += n_bytes as u64);
    }

    fn with(&self, ask: &ApiRequest, code: Option<u16>, change: impl FnOnce(&mut RequestCount)) {
        let ApiRequest { verb, resource, method, .. } = ask;
        let kind = RequestKind { verb, resource, method: method_name(method), code };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        change(counts.entry(kind).or_default());
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
