//! All metrics. Recording an event is a few atomic operations; gauges are set from the last
//! published status at each scrape.

mod family;
mod per_controller;

pub(crate) mod endpointd;
mod shadow;
mod sources;
mod upstream;
mod work_queue;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use endpointd_engine::{EngineStatus, SyncSummary};
use endpointd_model::{Controller, PublishedResource, WatchedResource};
use prometheus::{IntCounter, Registry, TextEncoder};

pub use family::{Family, FamilyKind};

use endpointd::EndpointdMetrics;
use family::Families;
use upstream::UpstreamMetrics;

use crate::shadow_status::ShadowStatus;

/// Clones share one registry.
#[derive(Clone)]
pub struct Metrics(Arc<Registered>);

/// One write with its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedWrite {
    pub controller: Controller,
    /// See [`endpointd_model::Write::verb`].
    pub verb: &'static str,
    pub resource: PublishedResource,
    /// See [`endpointd_model::WriteResult::as_str`].
    pub result: &'static str,
    /// From sending it to its response.
    pub took: Duration,
}

struct Registered {
    registry: Registry,
    families: Vec<Family>,
    upstream: UpstreamMetrics,
    own: EndpointdMetrics,
    /// Two concurrent scrapes would mix their snapshots. Recording never locks it.
    rendering: Mutex<()>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    pub fn new() -> Self {
        let mut families = Families::default();
        let upstream = UpstreamMetrics::register(&mut families);
        let own = EndpointdMetrics::register(&mut families);
        families.process();
        let Families { registry, families } = families;
        let rendering = Mutex::default();
        Self(Arc::new(Registered { registry, families, upstream, own, rendering }))
    }

    pub fn record_sync(&self, sync: &SyncSummary) {
        self.0.upstream.record_sync(sync);
        self.0.own.record_sync(sync);
    }

    pub fn record_write(&self, write: &CompletedWrite) {
        self.0.own.record_write(write);
        if matches!(write.result, "stored" | "deleted") {
            self.0.upstream.record_write(write);
        }
    }

    /// `n` HTTP requests to the API server; `code` is `<error>` when there was no response, as in
    /// client-go.
    pub fn record_requests(&self, method: &str, host: &str, code: &str, n: u64) {
        self.0.upstream.record_requests(method, host, code, n);
    }

    pub fn record_request_duration(&self, method: &str, host: &str, took: Duration) {
        self.0.upstream.record_request_duration(method, host, took);
    }

    /// Bytes of the lists and watches of a resource since the start.
    pub fn set_received(&self, resource: WatchedResource, n_bytes: u64) {
        self.0.own.set_received(resource, n_bytes);
    }

    /// Kubernetes Events since the last call: written, and dropped because too many were waiting or
    /// the API server refused them.
    pub fn record_events(&self, n_recorded: u64, n_dropped: u64) {
        self.0.own.record_events(n_recorded, n_dropped);
    }

    /// Whether this process holds the lease of this name.
    pub fn set_leading(&self, lease: &str, is_leading: bool) {
        self.0.upstream.set_leading(lease, is_leading);
    }

    /// What a dry run has found.
    pub fn set_shadow(&self, shadow: &ShadowStatus) {
        self.0.own.set_shadow(shadow);
    }

    /// All families, in the order they were registered.
    pub fn families(&self) -> &[Family] {
        &self.0.families
    }

    /// The text format of Prometheus. `age` is the age of the status: ages in it grow by that much,
    /// so that an engine that stopped publishing does not look fresh.
    pub fn render(&self, status: &EngineStatus, age: Duration) -> String {
        let _guard = self.0.rendering.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.upstream.set_gauges(status, age);
        self.0.own.set_gauges(status, age);
        let gathered = self.0.registry.gather();
        TextEncoder::new().encode_to_string(&gathered).expect("gathered families have names")
    }
}

/// Brings a counter to a total that is counted elsewhere.
fn catch_up(counter: &IntCounter, total: u64) {
    counter.inc_by(total.saturating_sub(counter.get()));
}
