//! Hints by `trafficDistribution`: each ready endpoint for its own zone, or zone and node.
//! Upstream: `trafficdist.ReconcileHints`.

use endpointd_model::{Endpoint, Hints, TrafficDistribution};

use super::rewrite;
use crate::packing::Draft;

pub fn assign(drafts: &mut [Draft], distribution: TrafficDistribution) {
    let wants = |endpoint: &Endpoint| desired(endpoint, distribution);
    rewrite(
        drafts,
        |slice| {
            let mut ready = slice.endpoints.iter().filter(|endpoint| endpoint.is_ready());
            ready.any(|endpoint| endpoint.hints.clone().unwrap_or_default() != wants(endpoint))
        },
        |slice| {
            // Hints of endpoints that are not ready are neither checked nor corrected.
            for endpoint in slice.endpoints.iter_mut().filter(|endpoint| endpoint.is_ready()) {
                let hints = wants(endpoint);
                endpoint.hints = (hints != Hints::default()).then_some(hints);
            }
        },
    );
}

fn desired(endpoint: &Endpoint, distribution: TrafficDistribution) -> Hints {
    let for_nodes = match distribution {
        TrafficDistribution::PreferSameNode => endpoint.node_name.iter().cloned().collect(),
        TrafficDistribution::PreferClose | TrafficDistribution::PreferSameZone => Vec::new(),
    };
    Hints { for_zones: endpoint.zone.iter().cloned().collect(), for_nodes }
}
