//! Write requests as counted by kube-apiserver's metrics. While a subject is measured no other
//! client writes Endpoints or slices, so all counted requests are the subject's.

use std::collections::BTreeMap;

use anyhow::Result;
use endpointd_control_plane::Api;

use crate::record::Measure;

/// The resources that subjects write.
const RESOURCES: [&str; 2] = ["endpoints", "endpointslices"];
const WRITES: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

/// Counts since the server started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Writes of Endpoints and slices, including rejected ones.
    pub n_writes: u64,
    /// Writes without a 2xx response.
    pub n_rejected: u64,
    /// Writes of Events.
    pub n_events: u64,
    /// Body bytes of writes of Endpoints and slices.
    pub n_bytes: u64,
    /// Bytes of watch events of slices, to all watchers together.
    pub n_watch_bytes: u64,
    /// Watchers of slices now: the subject, the harness, and kube-apiserver itself.
    pub n_watchers: u64,
}

impl Written {
    pub fn so_far(api: &Api) -> Result<Self> {
        Ok(Self::of(&api.text("/metrics")?))
    }

    pub fn since(self, before: Self) -> Self {
        Self {
            n_writes: self.n_writes - before.n_writes,
            n_rejected: self.n_rejected - before.n_rejected,
            n_events: self.n_events - before.n_events,
            n_bytes: self.n_bytes - before.n_bytes,
            n_watch_bytes: self.n_watch_bytes - before.n_watch_bytes,
            n_watchers: self.n_watchers,
        }
    }

    /// What every node receives: a node watches all slices.
    pub fn bytes_per_watcher(self) -> u64 {
        self.n_watch_bytes / self.n_watchers.max(1)
    }

    /// What a write costs a cluster is its bytes times the nodes that watch.
    pub fn watch_measures(self) -> [Measure; 2] {
        const N_NODES: u64 = 1_000;
        let bytes = self.bytes_per_watcher();
        [
            Measure::bytes("slice bytes to one watcher", bytes),
            Measure::bytes("slice bytes to 1,000 nodes", bytes * N_NODES),
        ]
    }

    fn of(metrics: &str) -> Self {
        let mut written = Self::default();
        for line in metrics.lines() {
            if let Some((labels, value)) = sample(line, "apiserver_request_total") {
                written.add_requests(&labels, value);
            }
            if let Some((labels, value)) = sample(line, "apiserver_request_body_size_bytes_sum")
                && labels.get("resource").is_some_and(|one| has_name(one))
            {
                written.n_bytes += value;
            }
            written.add_watches(line);
        }
        written
    }

    fn add_watches(&mut self, line: &str) {
        let of_slices = |metric| {
            let (labels, value) = sample(line, metric)?;
            (labels.get("resource") == Some(&SLICES)).then_some((labels, value))
        };
        if let Some((_, value)) = of_slices("apiserver_watch_events_sizes_sum") {
            self.n_watch_bytes += value;
        }
        if let Some((labels, value)) = of_slices("apiserver_longrunning_requests")
            && labels.get("verb") == Some(&"WATCH")
        {
            self.n_watchers += value;
        }
    }

    fn add_requests(&mut self, labels: &Labels<'_>, value: u64) {
        let label = |name: &str| labels.get(name).copied().unwrap_or_default();
        if !WRITES.contains(&label("verb")) || !label("dry_run").is_empty() {
            return;
        }
        if label("resource") == "events" {
            self.n_events += value;
        }
        if RESOURCES.contains(&label("resource")) {
            self.n_writes += value;
            let is_rejected = !label("code").starts_with('2');
            self.n_rejected += u64::from(is_rejected) * value;
        }
    }
}

/// Of slices, in which these two metrics name the resource.
const SLICES: &str = "endpointslices";

type Labels<'a> = BTreeMap<&'a str, &'a str>;

/// In this metric the group follows the resource name.
fn has_name(resource: &str) -> bool {
    let name = resource.split('.').next().unwrap_or_default();
    RESOURCES.contains(&name)
}

/// Labels and value, if the line is a sample of `metric`.
fn sample<'a>(line: &'a str, metric: &str) -> Option<(Labels<'a>, u64)> {
    let (labels, value) = line.strip_prefix(metric)?.strip_prefix('{')?.rsplit_once("} ")?;
    let labels = labels.split("\",").filter_map(|label| label.split_once("=\""));
    let labels = labels.map(|(name, value)| (name, value.trim_end_matches('"'))).collect();
    // Counters can be formatted as floats: `1.2345e+06`.
    let value: f64 = value.trim().parse().ok()?;
    Some((labels, value as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = r#"
# HELP apiserver_request_total Counter of apiserver requests
apiserver_request_total{code="201",component="apiserver",dry_run="",group="discovery.k8s.io",resource="endpointslices",scope="resource",subresource="",verb="POST",version="v1"} 7
apiserver_request_total{code="409",component="apiserver",dry_run="",group="",resource="endpoints",scope="resource",subresource="",verb="PUT",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="endpoints",scope="cluster",subresource="",verb="LIST",version="v1"} 9
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="status",verb="PUT",version="v1"} 5
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="events",scope="resource",subresource="",verb="POST",version="v1"} 3
apiserver_request_body_size_bytes_bucket{group="",resource="endpoints",verb="create",le="50000"} 2
apiserver_request_body_size_bytes_sum{group="",resource="endpoints",verb="create"} 1.5e+03
apiserver_request_body_size_bytes_sum{resource="endpointslices.discovery.k8s.io",verb="update"} 500
apiserver_request_body_size_bytes_sum{group="",resource="pods",verb="update"} 9
apiserver_watch_events_sizes_sum{group="discovery.k8s.io",resource="endpointslices",version="v1"} 6000
apiserver_watch_events_sizes_sum{group="",resource="pods",version="v1"} 7
apiserver_longrunning_requests{component="apiserver",group="discovery.k8s.io",resource="endpointslices",scope="cluster",subresource="",verb="WATCH",version="v1"} 3
apiserver_longrunning_requests{component="apiserver",group="",resource="pods",scope="cluster",subresource="",verb="WATCH",version="v1"} 1
"#;

    #[test]
    fn written_counts_only_endpoints_and_slices() {
        let want = Written {
            n_writes: 9,
            n_rejected: 2,
            n_events: 3,
            n_bytes: 2000,
            n_watch_bytes: 6000,
            n_watchers: 3,
        };
        assert_eq!(Written::of(METRICS), want);
        assert_eq!(want.bytes_per_watcher(), 2000);
    }
}
