//! `endpointd_*`: families that upstream does not have. Latency from a change to its last write,
//! freshness of the watches, excluded pods by reason, sizes.

use std::collections::BTreeMap;
use std::time::Duration;

use endpointd_engine::{
    ControllerStatus, DeletionLimiterStatus, EngineStatus, Sizes, SyncResult, SyncSummary,
    WatchStatus,
};
use endpointd_model::WatchedResource;
use endpointd_plan::ExclusionReason;
use prometheus::{Gauge, GaugeVec, Histogram, HistogramVec, IntCounter, IntCounterVec};

use super::family::Families;
use super::per_controller::PerController;
use super::shadow::ShadowGauges;
use super::sources::SourceGauges;
use super::upstream::NO_LABELS;
use super::{CompletedWrite, catch_up};
use crate::shadow_status::ShadowStatus;

/// One millisecond is what a local API server takes; one minute pages somebody.
const LATENCY_BUCKETS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

pub(super) struct EndpointdMetrics {
    removals: PerController<Histogram>,
    other_changes: PerController<Histogram>,
    syncs: IntCounterVec,
    writes: IntCounterVec,
    write_duration: HistogramVec,
    events_recorded: IntCounter,
    events_dropped: IntCounter,
    received: IntCounterVec,
    shadow: ShadowGauges,
    sources: SourceGauges,
    gauges: Gauges,
}

/// Set from a published status at each scrape.
struct Gauges {
    snapshot_age: Gauge,
    is_ready: Gauge,
    is_leader: GaugeVec,
    throttled: Gauge,
    keys: GaugeVec,
    oldest_wait: GaugeVec,
    excluded_pods: GaugeVec,
    consumers: GaugeVec,
    watch_event_age: GaugeVec,
    watch_connected: GaugeVec,
    watch_synced: GaugeVec,
    decode_errors: GaugeVec,
    cache_objects: GaugeVec,
    cache_entries: GaugeVec,
    cache_bytes: Gauge,
    cache_bytes_per_pod: Gauge,
    deletion_limiter: DeletionLimiterGauges,
}

struct DeletionLimiterGauges {
    is_active: Gauge,
    deletions_last_minute: Gauge,
    delayed_keys: Gauge,
    deletions_per_minute_limit: Gauge,
}

impl EndpointdMetrics {
    pub fn register(families: &mut Families) -> Self {
        let latency = families.histogram(
            "endpointd_trigger_to_write_seconds",
            "From the first change that triggered a sync to the response to its last write, by \
             whether the sync removed a ready endpoint (endpoint_removal) or not (other)",
            &["controller", "change"],
            LATENCY_BUCKETS,
        );
        let by_change = |change: &'static str| {
            PerController::of(|controller| latency.with_label_values(&[controller.name(), change]))
        };
        let events = families.counter(
            "endpointd_events_recorded_total",
            "Kubernetes Events, by whether they were written (recorded) or not (dropped)",
            &["result"],
        );
        Self {
            removals: by_change("endpoint_removal"),
            other_changes: by_change("other"),
            syncs: families.counter(
                "endpointd_syncs_total",
                "Finished syncs, by result",
                &["controller", "result"],
            ),
            writes: families.counter(
                "endpointd_writes_total",
                "Finished writes, by result",
                &["controller", "verb", "resource", "result"],
            ),
            write_duration: families.histogram(
                "endpointd_write_duration_seconds",
                "From sending a write to its response",
                &["verb", "resource"],
                LATENCY_BUCKETS,
            ),
            events_recorded: events.with_label_values(&["recorded"]),
            events_dropped: events.with_label_values(&["dropped"]),
            received: families.counter(
                "endpointd_watch_received_bytes_total",
                "Bytes of lists and watches that the API server has sent, before objects out of the \
                 scope are dropped",
                &["resource"],
            ),
            shadow: ShadowGauges::register(families),
            sources: SourceGauges::register(families),
            gauges: Gauges::register(families),
        }
    }

    pub fn set_shadow(&self, shadow: &ShadowStatus) {
        self.shadow.set(shadow);
    }

    pub fn record_sync(&self, sync: &SyncSummary) {
        let SyncSummary { controller, result, waited, took, is_removal, .. } = sync;
        self.syncs.with_label_values(&[controller.name(), result.as_str()]).inc();
        match result {
            SyncResult::Written => {
                let histograms = if *is_removal { &self.removals } else { &self.other_changes };
                histograms.get(*controller).observe((*waited + *took).as_secs_f64());
            }
            // The change has not arrived yet; the next sync of the key records its latency.
            SyncResult::Unchanged
            | SyncResult::NamespaceTerminating
            | SyncResult::ConflictRetry
            | SyncResult::Throttled
            | SyncResult::Failed(_)
            | SyncResult::LeadershipLost => {}
        }
    }

    pub fn record_write(&self, write: &CompletedWrite) {
        let CompletedWrite { controller, verb, resource, result, took } = *write;
        let resource = resource.as_str();
        self.writes.with_label_values(&[controller.name(), verb, resource, result]).inc();
        if result != "not_leader" {
            self.write_duration.with_label_values(&[verb, resource]).observe(took.as_secs_f64());
        }
    }

    pub fn record_events(&self, n_recorded: u64, n_dropped: u64) {
        self.events_recorded.inc_by(n_recorded);
        self.events_dropped.inc_by(n_dropped);
    }

    pub fn set_received(&self, resource: WatchedResource, n_bytes: u64) {
        catch_up(&self.received.with_label_values(&[resource.as_str()]), n_bytes);
    }

    pub fn set_gauges(&self, status: &EngineStatus, age: Duration) {
        self.sources.set(&status.sources, &status.import_conflicts, age);
        let gauges = &self.gauges;
        gauges.snapshot_age.set(age.as_secs_f64());
        // A status without watches is the default one: nothing is watched yet.
        gauges.is_ready.set(flag(!status.watches.is_empty() && status.is_ready()));
        let throttled = status.throttled_for.unwrap_or_default().saturating_sub(age);
        gauges.throttled.set(throttled.as_secs_f64());
        gauges.excluded_pods.reset();
        gauges.consumers.reset();
        for (reason, n) in &status.n_consumers {
            gauges.consumers.with_label_values(&[reason.as_str()]).set(*n as f64);
        }
        for controller in &status.controllers {
            let name = controller.controller.name();
            gauges.is_leader.with_label_values(&[name]).set(flag(status.is_leading));
            gauges.set_controller(controller, age);
        }
        status.watches.iter().for_each(|watch| gauges.set_watch(watch, age));
        gauges.set_sizes(&status.sizes, n_pods(status));
        gauges.deletion_limiter.set(&status.deletion_limiter);
    }
}

impl Gauges {
    fn register(families: &mut Families) -> Self {
        const CONTROLLER: &[&str] = &["controller"];
        const RESOURCE: &[&str] = &["resource"];
        let mut of = |name: &str, help: &str, labels: &[&str]| {
            families.gauge(&format!("endpointd_{name}"), help, labels)
        };
        Self {
            keys: of("keys", "Keys, by state", &["controller", "state"]),
            oldest_wait: of(
                "queue_oldest_seconds",
                "How long the oldest key in the queue has waited",
                CONTROLLER,
            ),
            excluded_pods: of(
                "pods_excluded",
                "Pods that a Service selects and that are not published, by reason",
                &["controller", "reason"],
            ),
            consumers: of(
                "import_services",
                "Services that ask for the endpoints of another one, by the reason of their \
                 condition endpointd/EndpointsFrom",
                &["reason"],
            ),
            watch_event_age: of(
                "watch_last_event_age_seconds",
                "Time since the last event of a watch, bookmarks included",
                RESOURCE,
            ),
            watch_connected: of("watch_connected", "1 while the watch is connected", RESOURCE),
            watch_synced: of("watch_synced", "1 once the initial list is complete", RESOURCE),
            decode_errors: of(
                "object_decode_errors",
                "Objects that could not be decoded; their last known version is kept",
                RESOURCE,
            ),
            cache_objects: of("cache_objects", "Objects in the cache", RESOURCE),
            cache_entries: of("cache_entries", "Cache entries other than objects", &["kind"]),
            cache_bytes: single(&mut of, "cache_bytes", "Estimated size of the cache"),
            cache_bytes_per_pod: single(
                &mut of,
                "cache_bytes_per_pod",
                "Estimated size of the cache, divided by the pods in it",
            ),
            snapshot_age: single(
                &mut of,
                "status_snapshot_age_seconds",
                "Age of the status snapshot that the gauges are set from",
            ),
            is_ready: single(
                &mut of,
                "ready",
                "1 when all initial lists are complete and all watches are connected",
            ),
            is_leader: of(
                "is_leader",
                "1 while this process plans and writes for the controller",
                CONTROLLER,
            ),
            throttled: single(
                &mut of,
                "throttled_seconds",
                "How much longer writes pause because the API server asked for it",
            ),
            deletion_limiter: DeletionLimiterGauges::register(&mut of),
        }
    }

    fn set_controller(&self, controller: &ControllerStatus, age: Duration) {
        let name = controller.controller.name();
        let states = [
            ("waiting", controller.n_waiting),
            ("in_flight", controller.n_in_flight),
            ("backing_off", controller.n_backing_off),
            ("contested", controller.n_contested),
        ];
        for (state, n) in states {
            self.keys.with_label_values(&[name, state]).set(n as f64);
        }
        let oldest_wait = match controller.n_waiting {
            0 => Duration::ZERO,
            _ => controller.oldest_wait + age,
        };
        self.oldest_wait.with_label_values(&[name]).set(oldest_wait.as_secs_f64());
        for (reason, n) in by_reason_label(&controller.excluded_pods) {
            self.excluded_pods.with_label_values(&[name, reason]).set(n as f64);
        }
    }

    fn set_watch(&self, watch: &WatchStatus, age: Duration) {
        let label = &[watch.resource.as_str()];
        let event_age = watch.last_event_age + age;
        self.watch_event_age.with_label_values(label).set(event_age.as_secs_f64());
        let is_connected = watch.disconnected_reason.is_none();
        self.watch_connected.with_label_values(label).set(flag(is_connected));
        self.watch_synced.with_label_values(label).set(flag(watch.is_synced));
        self.decode_errors.with_label_values(label).set(watch.decode_errors.len() as f64);
        self.cache_objects.with_label_values(label).set(watch.n_objects as f64);
    }

    fn set_sizes(&self, sizes: &Sizes, n_pods: usize) {
        let Sizes { n_label_sets, n_interned_strings, n_tombstones, n_tracked_keys, cache_bytes } =
            *sizes;
        let entries = [
            ("label_sets", n_label_sets),
            ("interned_strings", n_interned_strings),
            ("tombstones", n_tombstones),
            ("tracked_keys", n_tracked_keys),
        ];
        for (kind, n) in entries {
            self.cache_entries.with_label_values(&[kind]).set(n as f64);
        }
        self.cache_bytes.set(cache_bytes as f64);
        self.cache_bytes_per_pod.set(cache_bytes as f64 / n_pods.max(1) as f64);
    }
}

impl DeletionLimiterGauges {
    fn register(of: &mut impl FnMut(&str, &str, &[&str]) -> GaugeVec) -> Self {
        let mut gauge =
            |name: &str, help: &str| single(of, &format!("deletion_limiter_{name}"), help);
        Self {
            is_active: gauge("active", "1 while deletions caused by missing objects are delayed"),
            deletions_last_minute: gauge(
                "deletions_last_minute",
                "Deletions caused by missing objects in the last minute",
            ),
            delayed_keys: gauge("delayed_keys", "Keys whose deletions are delayed"),
            deletions_per_minute_limit: gauge(
                "deletions_per_minute_limit",
                "Deletions caused by missing objects that are allowed per minute",
            ),
        }
    }

    fn set(&self, status: &DeletionLimiterStatus) {
        let DeletionLimiterStatus {
            is_active,
            n_deletions_last_minute,
            n_delayed_keys,
            deletions_per_minute_max,
        } = *status;
        self.is_active.set(flag(is_active));
        self.deletions_last_minute.set(n_deletions_last_minute as f64);
        self.delayed_keys.set(n_delayed_keys as f64);
        self.deletions_per_minute_limit.set(deletions_per_minute_max as f64);
    }
}

/// Reasons that differ only in detail share a label.
pub(crate) fn by_reason_label(
    excluded_pods: &BTreeMap<ExclusionReason, usize>,
) -> BTreeMap<&'static str, usize> {
    let mut n_by_label = BTreeMap::new();
    for (reason, n) in excluded_pods {
        *n_by_label.entry(reason.as_str()).or_default() += n;
    }
    n_by_label
}

fn single(of: &mut impl FnMut(&str, &str, &[&str]) -> GaugeVec, name: &str, help: &str) -> Gauge {
    of(name, help, &[]).with_label_values(NO_LABELS)
}

fn n_pods(status: &EngineStatus) -> usize {
    let pods = status.watches.iter().find(|watch| watch.resource == WatchedResource::Pods);
    pods.map_or(0, |watch| watch.n_objects)
}

fn flag(is_set: bool) -> f64 {
    f64::from(u8::from(is_set))
}
