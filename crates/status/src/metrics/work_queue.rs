//! `workqueue_*`, one series per controller, with upstream's queue names. Upstream:
//! `component-base/metrics/prometheus/workqueue`.

use std::time::Duration;

use endpointd_engine::{ControllerStatus, EngineStatus, KeyState, SyncSummary};
use endpointd_model::Controller;
use prometheus::{Gauge, Histogram, IntCounter, exponential_buckets};

use super::catch_up;
use super::family::Families;
use super::per_controller::PerController;

pub(super) struct WorkQueues(PerController<WorkQueue>);

struct WorkQueue {
    depth: Gauge,
    adds: IntCounter,
    waited: Histogram,
    worked: Histogram,
    unfinished: Gauge,
    longest_running: Gauge,
    retries: IntCounter,
}

impl WorkQueues {
    pub fn register(families: &mut Families) -> Self {
        const NAME: &[&str] = &["name"];
        let buckets = exponential_buckets(10e-9, 10.0, 10).expect("ten growing bounds");
        let depth = families.gauge("workqueue_depth", "Current depth of workqueue", NAME);
        let adds = families.counter(
            "workqueue_adds_total",
            "Total number of adds handled by workqueue",
            NAME,
        );
        let waited = families.histogram(
            "workqueue_queue_duration_seconds",
            "How long in seconds an item stays in workqueue before being requested.",
            NAME,
            &buckets,
        );
        let worked = families.histogram(
            "workqueue_work_duration_seconds",
            "How long in seconds processing an item from workqueue takes.",
            NAME,
            &buckets,
        );
        let unfinished = families.gauge(
            "workqueue_unfinished_work_seconds",
            "How many seconds of work has done that is in progress and hasn't been observed by \
             work_duration. Large values indicate stuck threads. One can deduce the number of \
             stuck threads by observing the rate at which this increases.",
            NAME,
        );
        let longest_running = families.gauge(
            "workqueue_longest_running_processor_seconds",
            "How many seconds has the longest running processor for workqueue been running.",
            NAME,
        );
        let retries = families.counter(
            "workqueue_retries_total",
            "Total number of retries handled by workqueue",
            NAME,
        );
        Self(PerController::of(|controller| {
            let name = &[queue_name(controller)];
            WorkQueue {
                depth: depth.with_label_values(name),
                adds: adds.with_label_values(name),
                waited: waited.with_label_values(name),
                worked: worked.with_label_values(name),
                unfinished: unfinished.with_label_values(name),
                longest_running: longest_running.with_label_values(name),
                retries: retries.with_label_values(name),
            }
        }))
    }

    pub fn record_sync(&self, sync: &SyncSummary) {
        let queue = self.0.get(sync.controller);
        queue.waited.observe(sync.waited.as_secs_f64());
        queue.worked.observe(sync.took.as_secs_f64());
    }

    pub fn set_gauges(&self, status: &EngineStatus, age: Duration) {
        for controller in &status.controllers {
            let queue = self.0.get(controller.controller);
            queue.depth.set(controller.n_waiting as f64);
            catch_up(&queue.adds, controller.n_adds);
            catch_up(&queue.retries, controller.n_retries);
            queue.longest_running.set(longest_running(controller, age).as_secs_f64());
            queue.unfinished.set(unfinished(status, controller, age).as_secs_f64());
        }
    }
}

fn longest_running(controller: &ControllerStatus, age: Duration) -> Duration {
    match controller.n_in_flight {
        0 => Duration::ZERO,
        _ => controller.oldest_in_flight + age,
    }
}

/// The sum over all syncs in flight. The status has a bounded number of rows; when some are missing
/// this is a lower bound.
fn unfinished(status: &EngineStatus, controller: &ControllerStatus, age: Duration) -> Duration {
    let rows = status.keys.iter().filter(|row| row.controller == controller.controller);
    let shown = rows.filter_map(|row| match row.state {
        KeyState::InFlight { since } => Some(since + age),
        KeyState::Waiting { .. } | KeyState::BackingOff { .. } | KeyState::Idle => None,
    });
    shown.sum::<Duration>().max(longest_running(controller, age))
}

fn queue_name(controller: Controller) -> &'static str {
    match controller {
        Controller::Slices => "endpoint_slice",
        Controller::Endpoints => "endpoint",
        Controller::Mirror => "endpoint_slice_mirroring",
        Controller::Import => "endpoint_slice_import",
        Controller::MultiCluster => "multi_cluster",
    }
}
