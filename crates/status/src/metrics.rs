//! All metrics. Recording is a few atomic operations; everything that is a state, not an event, is
//! read off a finished report when somebody asks.

mod family;
mod per_controller;

pub(crate) mod own;
mod upstream;
mod work_queue;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use endpointd_engine::{EngineStatus, SyncSummary};
use endpointd_model::{Controller, PublishedResource};
use prometheus::{IntCounter, Registry, TextEncoder};

pub use family::{Family, FamilyKind};

use family::Families;
use own::EndpointdMetrics;
use upstream::Upstream;

/// Clones share one registry.
#[derive(Clone)]
pub struct Metrics(Arc<Registered>);

/// One answered write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedWrite {
    pub controller: Controller,
    /// See [`endpointd_model::Write::verb`].
    pub verb: &'static str,
    pub resource: PublishedResource,
    /// See [`endpointd_model::WriteResult::as_str`].
    pub outcome: &'static str,
    /// From sending it to its answer.
    pub took: Duration,
}

struct Registered {
    registry: Registry,
    families: Vec<Family>,
    upstream: Upstream,
    own: EndpointdMetrics,
    /// Two scrapes at once would mix their reports. Recording never takes it.
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
        let upstream = Upstream::register(&mut families);
        let own = EndpointdMetrics::register(&mut families);
        families.process();
        let Families { registry, known } = families;
        let rendering = Mutex::default();
        Self(Arc::new(Registered { registry, families: known, upstream, own, rendering }))
    }

    /// One finished pass over one key.
    pub fn synced(&self, synced: &SyncSummary) {
        self.0.upstream.synced(synced);
        self.0.own.synced(synced);
    }

    pub fn wrote(&self, wrote: &CompletedWrite) {
        self.0.own.wrote(wrote);
        if matches!(wrote.outcome, "stored" | "deleted") {
            self.0.upstream.changed(wrote);
        }
    }

    /// One HTTP request to the API server; `code` is `<error>` when there was no answer, as in
    /// client-go.
    pub fn request(&self, method: &str, host: &str, code: &str) {
        self.0.upstream.request(method, host, code);
    }

    /// Whether we hold the lease of this name.
    pub fn leading(&self, lease: &str, is_leading: bool) {
        self.0.upstream.leading(lease, is_leading);
    }

    /// Notices since the last call: recorded as Events, and dropped because their budget was spent
    /// or the API server refused them.
    pub fn event_records(&self, n_sent: u64, n_dropped: u64) {
        self.0.own.event_records(n_sent, n_dropped);
    }

    /// All families, in the order they were registered.
    pub fn families(&self) -> &[Family] {
        &self.0.families
    }

    /// The text format of Prometheus. `age` is how old the report is: an engine that stopped
    /// reporting must not look fresh, so everything that ages goes on ageing here.
    pub fn render(&self, report: &EngineStatus, age: Duration) -> String {
        let _alone = self.0.rendering.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.upstream.reported(report, age);
        self.0.own.reported(report, age);
        let gathered = self.0.registry.gather();
        TextEncoder::new().encode_to_string(&gathered).expect("gathered families have names")
    }
}

/// Brings a counter to a total that is counted elsewhere.
fn catch_up(counter: &IntCounter, total: u64) {
    counter.inc_by(total.saturating_sub(counter.get()));
}
