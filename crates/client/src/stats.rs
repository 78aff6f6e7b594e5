//! Counts and durations of requests, and bytes of watches, for metrics.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use endpointd_model::WatchedResource;
use http::Method;

use crate::request::ApiRequest;

/// Durations kept until the next [`RequestStats::take_durations`]; those of further requests are not
/// recorded.
const DURATIONS_MAX: usize = 10_000;

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
    durations: Mutex<Vec<RequestDuration>>,
    received: [AtomicU64; WatchedResource::ALL.len()],
}

/// How long one request took, until the head of its response or an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestDuration {
    /// The HTTP method.
    pub method: &'static str,
    pub took: Duration,
}

impl RequestStats {
    /// The totals since the start.
    pub fn snapshot(&self) -> BTreeMap<RequestKind, u64> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Of the requests since the last call.
    pub fn take_durations(&self) -> Vec<RequestDuration> {
        mem::take(&mut *self.durations.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Bytes of the lists and watches of a resource since the start.
    pub fn received(&self, resource: WatchedResource) -> u64 {
        self.received[resource as usize].load(Ordering::Relaxed)
    }

    /// A part of a list or watch, before it is decoded and before the scope drops any of it.
    pub(crate) fn count_received(&self, resource: WatchedResource, n_bytes: usize) {
        let n_bytes = u64::try_from(n_bytes).unwrap_or(u64::MAX);
        self.received[resource as usize].fetch_add(n_bytes, Ordering::Relaxed);
    }

    pub(crate) fn count(&self, request: &ApiRequest, code: Option<u16>, took: Duration) {
        let ApiRequest { verb, resource, method, .. } = request;
        let method = method_name(method);
        let kind = RequestKind { verb, resource, method, code };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(kind).or_default() += 1;
        let mut durations = self.durations.lock().unwrap_or_else(PoisonError::into_inner);
        if durations.len() < DURATIONS_MAX {
            durations.push(RequestDuration { method, took });
        }
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
