//! `endpointd_source_cluster_*`: the other clusters whose exports are imported.

use std::time::Duration;

use endpointd_engine::SourceStatus;
use endpointd_plan::SourceState;
use prometheus::GaugeVec;

use super::family::Families;

pub(super) struct SourceGauges {
    state: GaugeVec,
    last_contact: GaugeVec,
    exports: GaugeVec,
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
        }
    }

    pub fn set(&self, sources: &[SourceStatus], age: Duration) {
        for gauges in [&self.state, &self.last_contact, &self.exports] {
            gauges.reset();
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
        }
    }
}
