//! Publishes the status of the engine for the pages, and brings metrics and log up to date.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use endpointd_client::recorder::Recorder;
use endpointd_client::{Client, RequestDuration, RequestKind};
use endpointd_engine::{Engine, MonotonicTime, SyncResult, SyncSummary};
use endpointd_model::WatchedResource;
use endpointd_status::{LeadershipStatus, Metrics, StatusHandle};

use crate::shadow::Shadow;
use crate::state_log::StateChangeLogger;

/// Minimum time between two snapshots of an engine that changes, and of one that does not.
const PERIOD_BUSY: Duration = Duration::from_secs(1);
const PERIOD_IDLE: Duration = Duration::from_secs(10);

pub struct StatusPublisher {
    handle: StatusHandle,
    metrics: Metrics,
    client: Client,
    recorder: Recorder,
    log: StateChangeLogger,
    /// In a dry run.
    shadow: Option<Shadow>,
    published: Instant,
    /// Something happened since then that the snapshot may show.
    is_changed: bool,
    /// Totals that the metrics have already.
    n_requests: BTreeMap<RequestKind, u64>,
    n_events: (u64, u64),
}

impl StatusPublisher {
    pub fn new(
        handle: StatusHandle,
        metrics: Metrics,
        client: Client,
        recorder: Recorder,
        shadow: Option<Shadow>,
    ) -> Self {
        Self {
            handle,
            metrics,
            client,
            recorder,
            log: StateChangeLogger::default(),
            shadow,
            published: Instant::now(),
            is_changed: true,
            n_requests: BTreeMap::new(),
            n_events: (0, 0),
        }
    }

    pub fn note_change(&mut self) {
        self.is_changed = true;
    }

    pub fn on_sync(&mut self, sync: &SyncSummary) {
        self.is_changed = true;
        if let Some(shadow) = &mut self.shadow {
            shadow.on_sync(sync, Instant::now());
            // Nothing was written.
            let compared = SyncSummary { n_creates: 0, n_updates: 0, n_deletes: 0, ..sync.clone() };
            let compared = SyncSummary { result: SyncResult::Unchanged, ..compared };
            return self.metrics.record_sync(&compared);
        }
        self.metrics.record_sync(sync);
        self.log.on_sync(sync);
    }

    pub fn on_leadership(&mut self, leadership: LeadershipStatus) {
        self.is_changed = true;
        if let Some(lease) = leadership.lease() {
            self.metrics.set_leading(lease, leadership.is_leading());
        }
        self.handle.set_leadership(leadership);
    }

    /// The process cannot go on.
    pub fn on_failure(&self, reason: String) {
        self.handle.fail(reason);
    }

    /// When the next snapshot is due.
    pub fn next_due(&self) -> Instant {
        self.published + if self.is_changed { PERIOD_BUSY } else { PERIOD_IDLE }
    }

    /// Sends a heartbeat, and publishes a snapshot if one is due.
    pub fn publish_if_due(&mut self, engine: &Engine, now: MonotonicTime) {
        self.handle.heartbeat();
        if self.next_due() <= Instant::now() {
            self.publish(engine, now);
        }
    }

    pub fn publish(&mut self, engine: &Engine, now: MonotonicTime) {
        self.published = Instant::now();
        self.is_changed = false;
        let status = engine.report(now);
        self.log.on_status(&status);
        if let Some(shadow) = &self.shadow {
            let shadow = shadow.status(status.sizes.n_tracked_keys, self.published);
            self.metrics.set_shadow(&shadow);
            self.handle.set_shadow(shadow);
        }
        self.handle.publish(status);
        self.record_requests();
        self.record_events();
    }

    /// The client counts its requests; the metrics get what is new.
    fn record_requests(&mut self) {
        let totals = self.client.stats().snapshot();
        let server = self.client.server();
        for (kind, total) in &totals {
            let recorded = self.n_requests.get(kind).copied().unwrap_or_default();
            let code = kind.code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
            self.metrics.record_requests(kind.method, &server, &code, total - recorded);
        }
        self.n_requests = totals;
        for resource in WatchedResource::ALL {
            self.metrics.set_received(resource, self.client.stats().received(resource));
        }
        for RequestDuration { method, took } in self.client.stats().take_durations() {
            self.metrics.record_request_duration(method, &server, took);
        }
    }

    fn record_events(&mut self) {
        let recorder = &self.recorder;
        let totals = (recorder.n_written(), recorder.n_dropped() + recorder.n_failed());
        let (n_recorded, n_dropped) = self.n_events;
        self.metrics.record_events(totals.0 - n_recorded, totals.1 - n_dropped);
        self.n_events = totals;
    }
}
