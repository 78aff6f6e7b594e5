//! Each zone's share of usable CPU, computed from the nodes.

use std::collections::BTreeMap;

use endpointd_model::{Node, SharedStr};

use super::CountByZone;
use super::allocation::{allocate, minimum};
use crate::CarriedHints;

/// Each zone's share of the CPU that pods can use, if the nodes determine it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Topology {
    /// No node was ever observed.
    #[default]
    Unseen,
    /// A usable node lacks its zone or CPU, or there are fewer than two zones.
    Insufficient,
    Zones(BTreeMap<SharedStr, f64>),
}

impl Topology {
    /// Upstream: `SetNodes`.
    pub fn of<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> Self {
        let mut cpu_by_zone: BTreeMap<&SharedStr, i128> = BTreeMap::new();
        for node in nodes {
            if node.is_control_plane || !node.is_ready {
                continue;
            }
            match &node.zone {
                Some(zone) if node.cpu_nanos != 0 => {
                    *cpu_by_zone.entry(zone).or_default() += node.cpu_nanos;
                }
                Some(_) | None => return Self::Insufficient,
            }
        }
        let total = millis(cpu_by_zone.values().sum());
        if cpu_by_zone.len() < 2 || total == 0.0 {
            return Self::Insufficient;
        }
        let share = |(zone, cpu): (&SharedStr, i128)| (zone.clone(), millis(cpu) / total);
        Self::Zones(cpu_by_zone.into_iter().map(share).collect())
    }

    /// The smallest number of ready endpoints, from `at_least` on, for which hints are given.
    /// `None`: the nodes allow no hints, or the number is unreasonably large.
    pub fn enough_endpoints(&self, at_least: usize) -> Option<usize> {
        const TRIES_MAX: usize = 1000;
        (at_least..at_least + TRIES_MAX).find(|n_ready| allocate(self, *n_ready).is_ok())
    }
}

/// Rounded up, as `Quantity.MilliValue` does.
fn millis(nanos: i128) -> f64 {
    const NANOS_PER_MILLI: i128 = 1_000_000;
    let rounded =
        nanos.div_euclid(NANOS_PER_MILLI) + i128::from(nanos.rem_euclid(NANOS_PER_MILLI) > 0);
    rounded as f64
}

/// Whether a zone now has fewer endpoints hinted for it than its minimum, so that the Service
/// must be planned again. Upstream: `serviceOverloaded`.
pub fn is_overloaded(carried: &CarriedHints, topology: &Topology) -> bool {
    let Topology::Zones(ratios) = topology else { return !carried.allocated.is_empty() };
    let lacks = |counts: &CountByZone| {
        let total: usize = counts.values().sum();
        ratios.iter().any(|(zone, ratio)| {
            counts.get(zone).is_none_or(|n| *n < minimum(*ratio * total as f64))
        })
    };
    carried.allocated.values().any(|counts| !counts.is_empty() && lacks(counts))
}
