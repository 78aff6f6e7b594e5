//! How many endpoints each zone should have, and how many hints move from which zone to which.

use std::collections::BTreeMap;

use endpointd_model::SharedStr;

use super::{CountByZone, Topology};

/// Overload threshold: by how much the traffic of one endpoint may exceed its share.
const OVERLOAD_MAX: f64 = 0.2;

#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    pub maximum: usize,
    pub desired: f64,
}

pub type Allocations = BTreeMap<SharedStr, Allocation>;

/// The fewest endpoints that carry this share without exceeding the overload threshold.
pub fn minimum(desired: f64) -> usize {
    (desired * (1.0 / (1.0 + OVERLOAD_MAX))).ceil() as usize
}

/// Upstream: `getAllocations`. An error is the reason for the refusal, in upstream's words.
pub fn allocate(topology: &Topology, n_ready: usize) -> Result<Allocations, String> {
    let ratios = match topology {
        Topology::Unseen => return Err("Nodes only ready in one zone".into()),
        Topology::Insufficient => {
            return Err("Insufficient Node information: allocatable CPU or zone not specified \
                        on one or more nodes"
                .into());
        }
        Topology::Zones(ratios) => ratios,
    };
    let n_zones = ratios.len();
    let numbers = format!("({n_ready} endpoints, {n_zones} zones)");
    if n_zones > n_ready {
        return Err(format!("Insufficient number of endpoints {numbers}"));
    }
    let desired = |ratio: &f64| ratio * n_ready as f64;
    let n_minimum: usize = ratios.values().map(|ratio| minimum(desired(ratio))).sum();
    if n_minimum > n_ready {
        return Err(format!(
            "Unable to allocate minimum required endpoints to each zone without exceeding \
             overload threshold {numbers}"
        ));
    }
    let allocation = |(zone, ratio): (&SharedStr, &f64)| {
        let minimum = minimum(desired(ratio));
        let maximum = minimum + n_ready - n_minimum;
        let desired = desired(ratio).max(minimum as f64);
        (zone.clone(), Allocation { maximum, desired })
    };
    Ok(ratios.iter().map(allocation).collect())
}

/// Hints to give and to receive, by zone. They move one at a time from the zone with the largest
/// surplus to the zone with the largest deficit, until surplus or deficit is below 0.5 or both are
/// below 1. Upstream: `getGivingAndReceivingZones`.
pub fn moves(allocations: &Allocations, counts: &CountByZone) -> (CountByZone, CountByZone) {
    let mut surplus: BTreeMap<&SharedStr, f64> = BTreeMap::new();
    let mut deficit: BTreeMap<&SharedStr, f64> = BTreeMap::new();
    for (zone, allocation) in allocations {
        let n = counts.get(zone).copied().unwrap_or(0) as f64;
        if n > allocation.desired {
            surplus.insert(zone, n - allocation.desired);
        } else if n < allocation.desired {
            deficit.insert(zone, allocation.desired - n);
        }
    }
    let (mut giving, mut receiving) = (CountByZone::new(), CountByZone::new());
    while let (Some((from, surplus)), Some((to, deficit))) =
        (largest(&mut surplus), largest(&mut deficit))
    {
        if (*surplus < 1.0 && *deficit < 1.0) || *surplus < 0.5 || *deficit < 0.5 {
            break;
        }
        *giving.entry(from.clone()).or_default() += 1;
        *surplus -= 1.0;
        *receiving.entry(to.clone()).or_default() += 1;
        *deficit -= 1.0;
    }
    (giving, receiving)
}

/// The zone with the largest positive amount; among equals, the first by name.
fn largest<'m, 'z>(
    amounts: &'m mut BTreeMap<&'z SharedStr, f64>,
) -> Option<(&'z SharedStr, &'m mut f64)> {
    let mut best: Option<(&SharedStr, &mut f64)> = None;
    for (zone, amount) in amounts.iter_mut() {
        if *amount > best.as_ref().map_or(0.0, |(_, most)| **most) {
            best = Some((zone, amount));
        }
    }
    best
}
