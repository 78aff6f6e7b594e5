//! `endpointd_*`: what upstream does not tell. How long a change takes to arrive, whether what we
//! know is fresh, what is left out and why, what it costs.

use std::collections::BTreeMap;
use std::time::Duration;

use endpointd_engine::{
    ControllerStatus, DeletionLimiterStatus, EngineStatus, Sizes, SyncResult, SyncSummary,
    WatchStatus,
};
use endpointd_model::WatchedResource;
use endpointd_plan::ExclusionReason;
use prometheus::{Gauge, GaugeVec, Histogram, HistogramVec, IntCounter, IntCounterVec};

use super::CompletedWrite;
use super::family::Families;
use super::per_controller::PerController;
use super::upstream::NO_LABELS;

/// From a millisecond, which a local API server needs, to the minute that wakes people.
const LATENCY_BUCKETS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

pub(super) struct EndpointdMetrics {
    removals: PerController<Histogram>,
    other_changes: PerController<Histogram>,
    syncs: IntCounterVec,
    writes: IntCounterVec,
    write_duration: HistogramVec,
    notices_sent: IntCounter,
    notices_dropped: IntCounter,
    gauges: Gauges,
}

/// What is read off a report.
struct Gauges {
    report_age: Gauge,
    is_ready: Gauge,
    is_leading: Gauge,
    throttled: Gauge,
    keys: GaugeVec,
    oldest_wait: GaugeVec,
    excluded_pods: GaugeVec,
    watch_age: GaugeVec,
    watch_alive: GaugeVec,
    watch_listed: GaugeVec,
    unreadable: GaugeVec,
    cache_objects: GaugeVec,
    cache_entries: GaugeVec,
    cache_bytes: Gauge,
    cache_bytes_per_pod: Gauge,
    brake_on: Gauge,
    brake_deletions: Gauge,
    brake_held: Gauge,
    brake_limit: Gauge,
}

impl EndpointdMetrics {
    pub fn register(families: &mut Families) -> Self {
        let latency = families.histogram(
            "endpointd_trigger_to_write_seconds",
            "From the first change that asked for a sync to the answer to its last write, by \
             whether the sync took a ready endpoint out (removal) or not (other)",
            &["controller", "change"],
            LATENCY_BUCKETS,
        );
        let by_change = |change: &'static str| {
            PerController::of(|controller| latency.with_label_values(&[controller.name(), change]))
        };
        let event_records = families.counter(
            "endpointd_notices_total",
            "Events about keys, by whether they were recorded (sent) or not (dropped)",
            &["result"],
        );
        Self {
            removals: by_change("removal"),
            other_changes: by_change("other"),
            syncs: families.counter(
                "endpointd_syncs_total",
                "Finished syncs, by how they ended",
                &["controller", "result"],
            ),
            writes: families.counter(
                "endpointd_writes_total",
                "Answered writes, by what became of them",
                &["controller", "verb", "resource", "result"],
            ),
            write_duration: families.histogram(
                "endpointd_write_duration_seconds",
                "From sending a write to its answer",
                &["verb", "resource"],
                LATENCY_BUCKETS,
            ),
            notices_sent: event_records.with_label_values(&["sent"]),
            notices_dropped: event_records.with_label_values(&["dropped"]),
            gauges: Gauges::register(families),
        }
    }

    pub fn synced(&self, synced: &SyncSummary) {
        let SyncSummary { controller, result, waited, took, is_removal, .. } = synced;
        self.syncs.with_label_values(&[controller.name(), result.as_str()]).inc();
        match result {
            SyncResult::Written => {
                let histograms = if *is_removal { &self.removals } else { &self.other_changes };
                histograms.get(*controller).observe((*waited + *took).as_secs_f64());
            }
            // Nothing arrived, so there is no latency to tell; the next sync of the key has it.
            SyncResult::Unchanged
            | SyncResult::NamespaceTerminating
            | SyncResult::ConflictRetry
            | SyncResult::Throttled
            | SyncResult::Failed(_)
            | SyncResult::LeadershipLost => {}
        }
    }

    pub fn wrote(&self, wrote: &CompletedWrite) {
        let CompletedWrite { controller, verb, resource, outcome, took } = *wrote;
        let resource = resource.as_str();
        self.writes.with_label_values(&[controller.name(), verb, resource, outcome]).inc();
        if outcome != "unsent" {
            self.write_duration.with_label_values(&[verb, resource]).observe(took.as_secs_f64());
        }
    }

    pub fn event_records(&self, n_sent: u64, n_dropped: u64) {
        self.notices_sent.inc_by(n_sent);
        self.notices_dropped.inc_by(n_dropped);
    }

    pub fn reported(&self, report: &EngineStatus, age: Duration) {
        let gauges = &self.gauges;
        gauges.report_age.set(age.as_secs_f64());
        // A report without watches is none: nothing is watched yet.
        gauges.is_ready.set(flag(!report.watches.is_empty() && report.is_ready()));
        gauges.is_leading.set(flag(report.is_leading));
        let throttled = report.throttled_for.unwrap_or_default().saturating_sub(age);
        gauges.throttled.set(throttled.as_secs_f64());
        gauges.excluded_pods.reset();
        report.controllers.iter().for_each(|controller| gauges.controller(controller, age));
        report.watches.iter().for_each(|kind| gauges.kind(kind, age));
        gauges.sizes(&report.sizes, n_pods(report));
        gauges.deletion_limiter(&report.deletion_limiter);
    }
}

impl Gauges {
    fn register(families: &mut Families) -> Self {
        const CONTROLLER: &[&str] = &["controller"];
        const KIND: &[&str] = &["kind"];
        let mut of = |name: &str, help: &str, labels: &[&str]| {
            families.gauge(&format!("endpointd_{name}"), help, labels)
        };
        Self {
            keys: of("keys", "Keys, by what they wait for", &["controller", "state"]),
            oldest_wait: of(
                "queue_oldest_seconds",
                "How long the oldest waiting key has waited",
                CONTROLLER,
            ),
            excluded_pods: of(
                "pods_left_out",
                "Pods that a Service selects and that are not published, by reason",
                &["controller", "reason"],
            ),
            watch_age: of(
                "watch_age_seconds",
                "Since a watch was last heard of, bookmarks included",
                KIND,
            ),
            watch_alive: of("watch_alive", "1 while the watch is alive", KIND),
            watch_listed: of("watch_listed", "1 once there was a complete picture", KIND),
            unreadable: of("unreadable_objects", "Objects that could not be read", KIND),
            cache_objects: of("cache_objects", "Objects in the cache", KIND),
            cache_entries: of(
                "cache_entries",
                "What the cache shares or remembers besides objects",
                &["what"],
            ),
            cache_bytes: single(&mut of, "cache_bytes", "An estimate of what the cache occupies"),
            cache_bytes_per_pod: single(
                &mut of,
                "cache_bytes_per_pod",
                "The estimate divided by the pods in the cache",
            ),
            report_age: single(
                &mut of,
                "report_age_seconds",
                "How old the report is that the gauges are read off",
            ),
            is_ready: single(
                &mut of,
                "ready",
                "1 when all pictures are complete and all watches alive",
            ),
            is_leading: single(&mut of, "leading", "1 while this process plans and writes"),
            throttled: single(
                &mut of,
                "throttled_seconds",
                "How much longer writes are held back because the API server asked for it",
            ),
            brake_on: single(
                &mut of,
                "brake_on",
                "1 while deletions decided on from an absence are held back",
            ),
            brake_deletions: single(
                &mut of,
                "brake_deletions_last_minute",
                "Deletions of the last minute decided on because something is absent",
            ),
            brake_held: single(&mut of, "brake_held_keys", "Keys the deletion_limiter holds back"),
            brake_limit: single(
                &mut of,
                "brake_deletions_limit",
                "Such deletions a minute at which the deletion_limiter goes on",
            ),
        }
    }

    fn controller(&self, controller: &ControllerStatus, age: Duration) {
        let name = controller.controller.name();
        let states = [
            ("waiting", controller.n_waiting),
            ("in_flight", controller.n_in_flight),
            ("backing_off", controller.n_backing_off),
        ];
        for (state, n) in states {
            self.keys.with_label_values(&[name, state]).set(n as f64);
        }
        let oldest_wait = match controller.n_waiting {
            0 => Duration::ZERO,
            _ => controller.oldest_wait + age,
        };
        self.oldest_wait.with_label_values(&[name]).set(oldest_wait.as_secs_f64());
        for (reason, n) in by_word(&controller.excluded_pods) {
            self.excluded_pods.with_label_values(&[name, reason]).set(n as f64);
        }
    }

    fn kind(&self, kind: &WatchStatus, age: Duration) {
        let label = &[kind.resource.as_str()];
        self.watch_age.with_label_values(label).set((kind.last_event_age + age).as_secs_f64());
        self.watch_alive.with_label_values(label).set(flag(kind.disconnected_reason.is_none()));
        self.watch_listed.with_label_values(label).set(flag(kind.is_synced));
        self.unreadable.with_label_values(label).set(kind.decode_errors.len() as f64);
        self.cache_objects.with_label_values(label).set(kind.n_objects as f64);
    }

    fn sizes(&self, sizes: &Sizes, n_pods: usize) {
        let Sizes { n_label_sets, n_interned_strings, n_tombstones, n_tracked_keys, cache_bytes } =
            *sizes;
        let entries = [
            ("label_sets", n_label_sets),
            ("texts", n_interned_strings),
            ("tombstones", n_tombstones),
            ("remembered_keys", n_tracked_keys),
        ];
        for (what, n) in entries {
            self.cache_entries.with_label_values(&[what]).set(n as f64);
        }
        self.cache_bytes.set(cache_bytes as f64);
        self.cache_bytes_per_pod.set(cache_bytes as f64 / n_pods.max(1) as f64);
    }

    fn deletion_limiter(&self, deletion_limiter: &DeletionLimiterStatus) {
        let DeletionLimiterStatus {
            is_active,
            n_deletions_last_minute,
            n_delayed_keys,
            deletions_per_minute_max,
        } = *deletion_limiter;
        self.brake_on.set(flag(is_active));
        self.brake_deletions.set(n_deletions_last_minute as f64);
        self.brake_held.set(n_delayed_keys as f64);
        self.brake_limit.set(deletions_per_minute_max as f64);
    }
}

/// Reasons that differ only in detail share a word.
pub(crate) fn by_word(
    excluded_pods: &BTreeMap<ExclusionReason, usize>,
) -> BTreeMap<&'static str, usize> {
    let mut n_by_word = BTreeMap::new();
    for (reason, n) in excluded_pods {
        *n_by_word.entry(reason.as_str()).or_default() += n;
    }
    n_by_word
}

fn single(of: &mut impl FnMut(&str, &str, &[&str]) -> GaugeVec, name: &str, help: &str) -> Gauge {
    of(name, help, &[]).with_label_values(NO_LABELS)
}

fn n_pods(report: &EngineStatus) -> usize {
    let pods = report.watches.iter().find(|kind| kind.resource == WatchedResource::Pods);
    pods.map_or(0, |kind| kind.n_objects)
}

fn flag(is_set: bool) -> f64 {
    f64::from(u8::from(is_set))
}
