//! `endpointd_source_cluster_*`: the other clusters whose exports are imported.

use std::time::Duration;

use endpointd_engine::{ImportedCounts, SourceStatus};
use endpointd_plan::{ConflictKind, SourceState};
use prometheus::GaugeVec;

use super::family::Families;

pub(super) struct SourceGauges {
    state: GaugeVec,
    last_contact: GaugeVec,
    exports: GaugeVec,
    slices: GaugeVec,
    endpoints: GaugeVec,
    conflicts: GaugeVec,
}

impl SourceGauges {
    pub fn register(families: &mut Families) -> Self {
        Self {
            state: families.gauge(
                "endpointd_source_cluster_state",
                "1 for the state of another cluster of the set, 0 for all other states",
                &["cluster", "state"],
            ),
            last_contact: families.gauge(
                "endpointd_source_cluster_last_contact_seconds",
                "Time since the lists of another cluster were known to be current",
                &["cluster"],
            ),
            exports: families.gauge(
                "endpointd_source_cluster_exports",
                "ServiceExports of another cluster",
                &["cluster"],
            ),
            slices: families.gauge(
                "endpointd_source_cluster_slices",
                "EndpointSlices of another cluster, those of Services that it does not export \
                 included",
                &["cluster"],
            ),
            endpoints: families.gauge(
                "endpointd_source_cluster_endpoints",
                "Imported endpoints of another cluster, by whether they are ready here",
                &["cluster", "ready"],
            ),
            conflicts: families.gauge(
                "endpointd_import_conflicts",
                "Imports whose exports disagree, by the reason of the condition",
                &["reason"],
            ),
        }
    }

    pub fn set(
        &self,
        sources: &[SourceStatus],
        conflicts: &[(ConflictKind, usize)],
        age: Duration,
    ) {
        let Self { state, last_contact, exports, slices, endpoints, conflicts: by_reason } = self;
        for gauges in [state, last_contact, exports, slices, endpoints, by_reason] {
            gauges.reset();
        }
        for (kind, n) in conflicts {
            by_reason.with_label_values(&[kind.as_str()]).set(*n as f64);
        }
        for source in sources {
            let cluster = source.cluster.as_str();
            for state in SourceState::NAMES {
                let is_it = source.state.as_str() == state;
                let gauge = self.state.with_label_values(&[cluster, state]);
                gauge.set(f64::from(u8::from(is_it)));
            }
            if let Some(contact_age) = source.last_contact_age {
                let gauge = self.last_contact.with_label_values(&[cluster]);
                gauge.set((contact_age + age).as_secs_f64());
            }
            self.exports.with_label_values(&[cluster]).set(source.n_exports as f64);
            let ImportedCounts { n, n_ready } = source.endpoints;
            for (ready, n) in [("true", n_ready), ("false", n - n_ready)] {
                self.endpoints.with_label_values(&[cluster, ready]).set(n as f64);
            }
            self.slices.with_label_values(&[cluster]).set(source.n_slices as f64);
        }
    }
}
