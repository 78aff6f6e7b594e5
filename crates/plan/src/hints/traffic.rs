//! Hints for `trafficDistribution`: each ready endpoint is hinted for its own zone, or its zone and
//! node (docs/spec.md, 4.10). Upstream: `trafficdist.ReconcileHints`.

use endpointd_model::{Endpoint, Hints, TrafficDistribution};

use super::rewrite;
use crate::packing::SliceAction;

pub fn assign(actions: &mut [SliceAction], distribution: TrafficDistribution) {
    let wants = |endpoint: &Endpoint| desired(endpoint, distribution);
    rewrite(
        actions,
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
