//! The families of kube-controller-manager v1.36 for these controllers, with its names, so that
//! dashboards and alerts keep working. Upstream: `endpointslice/metrics`,
//! `endpointslicemirroring/metrics`, and `component-base/metrics/prometheus`.

use std::time::Duration;

use endpointd_engine::{EngineStatus, HintsKind, SyncResult, SyncSummary};
use endpointd_model::{Controller, PublishedResource, TopologyMode};
use prometheus::{
    DEFAULT_BUCKETS, Gauge, GaugeVec, Histogram, HistogramVec, IntCounter, IntCounterVec,
    exponential_buckets,
};

use super::CompletedWrite;
use super::family::Families;
use super::work_queue::WorkQueues;

pub(super) struct UpstreamMetrics {
    slices: PublishingMetrics,
    slices_changed: HistogramVec,
    syncs: IntCounterVec,
    services_by_traffic_distribution: GaugeVec,
    mirror: PublishingMetrics,
    mirror_updated: Histogram,
    mirror_skipped: Histogram,
    mirror_duration: Histogram,
    queues: WorkQueues,
    leader: GaugeVec,
    requests: IntCounterVec,
    request_durations: HistogramVec,
}

/// Families that both slice controllers have, with different prefixes.
struct PublishingMetrics {
    added: Histogram,
    removed: Histogram,
    desired: Gauge,
    n_slices: Gauge,
    n_slices_desired: Gauge,
    created: IntCounter,
    updated: IntCounter,
    deleted: IntCounter,
}

const SLICES: &str = "endpoint_slice_controller";
const MIRROR: &str = "endpoint_slice_mirroring_controller";
/// Upstream: `requestLatency` in component-base/metrics/prometheus/restclient.
const REQUEST_SECONDS: [f64; 12] =
    [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

impl UpstreamMetrics {
    pub fn register(families: &mut Families) -> Self {
        let per_sync = powers_of_two();
        let slices = PublishingMetrics::register(families, SLICES, "Service");
        let slices_changed = families.histogram(
            "endpoint_slice_controller_endpointslices_changed_per_sync",
            "Number of EndpointSlices changed on each Service sync",
            &["topology", "traffic_distribution"],
            DEFAULT_BUCKETS,
        );
        let syncs = families.counter(
            "endpoint_slice_controller_syncs",
            "Number of EndpointSlice syncs",
            &["result"],
        );
        let services_by_traffic_distribution = families.gauge(
            "endpoint_slice_controller_services_count_by_traffic_distribution",
            "Number of Services using some specific trafficDistribution",
            &["traffic_distribution"],
        );
        let mirror = PublishingMetrics::register(families, MIRROR, "Endpoints");
        let mut of_mirror = |name: &str, help: &str, buckets: &[f64]| {
            let name = format!("{MIRROR}_{name}");
            families.histogram(&name, help, &[], buckets).with_label_values(NO_LABELS)
        };
        Self {
            slices,
            slices_changed,
            syncs,
            services_by_traffic_distribution,
            mirror,
            mirror_updated: of_mirror(
                "endpoints_updated_per_sync",
                "Number of endpoints updated on each Endpoints sync",
                &per_sync,
            ),
            mirror_skipped: of_mirror(
                "addresses_skipped_per_sync",
                "Number of addresses skipped on each Endpoints sync due to being invalid or \
                 exceeding MaxEndpointsPerSubset",
                &per_sync,
            ),
            mirror_duration: of_mirror(
                "endpoints_sync_duration",
                "Duration of syncEndpoints() in seconds",
                &exponential_buckets(0.001, 2.0, 15).expect("fifteen growing bounds"),
            ),
            queues: WorkQueues::register(families),
            leader: families.gauge(
                "leader_election_master_status",
                "Gauge of if the reporting system is master of the relevant lease, 0 indicates \
                 backup, 1 indicates master. 'name' is the string used to identify the lease. \
                 Please make sure to group by name.",
                &["name"],
            ),
            requests: families.counter(
                "rest_client_requests_total",
                "Number of HTTP requests, partitioned by status code, method, and host.",
                &["code", "method", "host"],
            ),
            request_durations: families.histogram(
                "rest_client_request_duration_seconds",
                "Request latency in seconds. Broken down by verb, and host.",
                &["verb", "host"],
                &REQUEST_SECONDS,
            ),
        }
    }

    pub fn record_sync(&self, sync: &SyncSummary) {
        self.queues.record_sync(sync);
        match sync.controller {
            Controller::Slices => self.record_slices_sync(sync),
            Controller::Endpoints | Controller::Import | Controller::MultiCluster => {}
            Controller::Mirror => self.record_mirror_sync(sync),
        }
    }

    fn record_slices_sync(&self, sync: &SyncSummary) {
        self.slices.record_sync(sync);
        if let Some(result) = upstream_result(&sync.result) {
            self.syncs.with_label_values(&[result]).inc();
        }
        match sync.result {
            SyncResult::Unchanged | SyncResult::Written | SyncResult::NamespaceTerminating => {
                let n_changed = sync.n_creates + sync.n_updates + sync.n_deletes;
                let labels = hints_labels(sync.hints);
                self.slices_changed.with_label_values(&labels).observe(n_changed as f64);
            }
            // Upstream counts only syncs that succeed.
            SyncResult::ConflictRetry
            | SyncResult::Throttled
            | SyncResult::Failed(_)
            | SyncResult::LeadershipLost => {}
        }
    }

    fn record_mirror_sync(&self, sync: &SyncSummary) {
        self.mirror.record_sync(sync);
        self.mirror_updated.observe(sync.counts.n_updated as f64);
        self.mirror_skipped.observe(sync.counts.n_skipped as f64);
        self.mirror_duration.observe(sync.took.as_secs_f64());
    }

    /// A write that the API server applied.
    pub fn record_write(&self, write: &CompletedWrite) {
        match (write.controller, write.resource) {
            (Controller::Slices, PublishedResource::Slices) => self.slices.record_write(write.verb),
            (Controller::Mirror, PublishedResource::Slices) => self.mirror.record_write(write.verb),
            (Controller::Endpoints | Controller::Import | Controller::MultiCluster, _)
            | (
                _,
                PublishedResource::Endpoints
                | PublishedResource::ServiceStatus
                | PublishedResource::MultiCluster(_),
            ) => {}
        }
    }

    pub fn record_requests(&self, method: &str, host: &str, code: &str, n: u64) {
        self.requests.with_label_values(&[code, method, host]).inc_by(n);
    }

    pub fn record_request_duration(&self, method: &str, host: &str, took: Duration) {
        self.request_durations.with_label_values(&[method, host]).observe(took.as_secs_f64());
    }

    pub fn set_leading(&self, lease: &str, is_leading: bool) {
        self.leader.with_label_values(&[lease]).set(f64::from(u8::from(is_leading)));
    }

    /// Sets the gauges from a status that is `age` old.
    pub fn set_gauges(&self, status: &EngineStatus, age: Duration) {
        self.queues.set_gauges(status, age);
        self.services_by_traffic_distribution.reset();
        for controller in &status.controllers {
            let publishing = match controller.controller {
                Controller::Slices => &self.slices,
                Controller::Mirror => &self.mirror,
                Controller::Endpoints | Controller::Import | Controller::MultiCluster => continue,
            };
            publishing.desired.set(controller.n_endpoints_desired as f64);
            publishing.n_slices.set(controller.n_slices as f64);
            publishing.n_slices_desired.set(controller.n_slices_desired as f64);
            // Upstream counts only Services that set the field.
            for (distribution, n) in &controller.n_by_traffic_distribution {
                let Some(distribution) = distribution else { continue };
                let gauge =
                    self.services_by_traffic_distribution.with_label_values(&[*distribution]);
                gauge.set(*n as f64);
            }
        }
    }
}

impl PublishingMetrics {
    fn register(families: &mut Families, prefix: &str, of: &str) -> Self {
        let mut per_sync = |name: &str, what: &str| {
            let name = format!("{prefix}_{name}");
            let help = format!("Number of endpoints {what} on each {of} sync");
            families.histogram(&name, &help, &[], &powers_of_two()).with_label_values(NO_LABELS)
        };
        let (added, removed) = (
            per_sync("endpoints_added_per_sync", "added"),
            per_sync("endpoints_removed_per_sync", "removed"),
        );
        let mut gauge = |name: &str, help: &str| {
            families.gauge(&format!("{prefix}_{name}"), help, &[]).with_label_values(NO_LABELS)
        };
        let desired = gauge("endpoints_desired", "Number of endpoints desired");
        let n_slices = gauge("num_endpoint_slices", "Number of EndpointSlices");
        let n_slices_desired = gauge(
            "desired_endpoint_slices",
            "Number of EndpointSlices that would exist with perfect endpoint allocation",
        );
        let changes = families.counter(
            &format!("{prefix}_changes"),
            "Number of EndpointSlice changes",
            &["operation"],
        );
        let [created, updated, deleted] =
            ["create", "update", "delete"].map(|verb| changes.with_label_values(&[verb]));
        Self { added, removed, desired, n_slices, n_slices_desired, created, updated, deleted }
    }

    fn record_sync(&self, sync: &SyncSummary) {
        self.added.observe(sync.counts.n_added as f64);
        self.removed.observe(sync.counts.n_removed as f64);
    }

    fn record_write(&self, verb: &str) {
        match verb {
            "create" => self.created.inc(),
            "update" => self.updated.inc(),
            _ => self.deleted.inc(),
        }
    }
}

pub(super) const NO_LABELS: &[&str] = &[];

fn powers_of_two() -> Vec<f64> {
    exponential_buckets(2.0, 2.0, 15).expect("fifteen growing bounds")
}

/// Upstream: `trackSync`. A sync that ends because leadership was lost is not counted there.
fn upstream_result(result: &SyncResult) -> Option<&'static str> {
    match result {
        SyncResult::Unchanged | SyncResult::Written | SyncResult::NamespaceTerminating => {
            Some("success")
        }
        SyncResult::ConflictRetry => Some("stale"),
        SyncResult::Throttled | SyncResult::Failed(_) => Some("error"),
        SyncResult::LeadershipLost => None,
    }
}

/// The annotation overrides the field. Upstream: the end of `finalize` in reconciler.go.
fn hints_labels(hints: HintsKind) -> [&'static str; 2] {
    match hints.topology {
        TopologyMode::Auto => ["Auto", ""],
        TopologyMode::Off => {
            let distribution = endpointd_engine::distribution_label(hints.traffic_distribution);
            ["Disabled", distribution.unwrap_or("")]
        }
    }
}
