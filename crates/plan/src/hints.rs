//! Hints say which zones or nodes should use an endpoint. They are assigned per family after
//! packing, over all slices of the family, so that a change moves as few hints as possible.

mod topology;
mod traffic;

use std::collections::BTreeMap;

use endpointd_model::{
    AddressType, EndpointSlice, EventReason, EventRecord, Family, InvolvedKind, Service, SharedStr,
    TopologyMode,
};

use crate::packing::SliceAction;
pub use topology::{Topology, is_overloaded};

/// Number of endpoints by the zone they are hinted for.
type CountByZone = BTreeMap<SharedStr, usize>;

/// The last result of the topology annotation, per family. Events are recorded only when it changes
/// (B14), and a node change finds the Services it affects by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarriedHints {
    pub(crate) allocated: BTreeMap<Family, CountByZone>,
    refused: BTreeMap<Family, String>,
}

impl CarriedHints {
    /// The annotation is on and hints were refused. A node change can end the refusal.
    pub fn is_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Drops the families that the Service no longer has.
    pub(crate) fn keep_only(&mut self, families: &[Family]) {
        self.allocated.retain(|family, _| families.contains(family));
        self.refused.retain(|family, _| families.contains(family));
    }
}

/// The Service and family whose hints are assigned.
pub struct Context<'a> {
    pub service: &'a Service,
    pub topology: &'a Topology,
    pub family: Family,
}

/// Sets, moves, or removes the hints of one family. The topology annotation wins over
/// `trafficDistribution`.
pub fn assign(
    actions: &mut [SliceAction],
    context: &Context,
    carried: &mut CarriedHints,
) -> Option<EventRecord> {
    let Context { service, topology, family } = context;
    match service.topology {
        TopologyMode::Auto => {
            let assigned = topology::assign(actions, topology);
            if assigned.is_err() {
                remove(actions);
            }
            remember(carried, *family, assigned)
        }
        TopologyMode::Off => {
            match service.traffic_distribution {
                Some(distribution) => traffic::assign(actions, distribution),
                None => remove(actions),
            }
            turn_off(carried, *family)
        }
    }
}

fn remember(
    carried: &mut CarriedHints,
    family: Family,
    assigned: Result<CountByZone, String>,
) -> Option<EventRecord> {
    match assigned {
        Ok(count_by_zone) => {
            let is_first = carried.allocated.is_empty();
            carried.allocated.insert(family, count_by_zone);
            carried.refused.remove(&family);
            is_first.then(|| {
                let text = "Topology Aware Hints has been enabled";
                record(EventReason::TopologyAwareHintsEnabled, text, family)
            })
        }
        Err(reason) => {
            carried.allocated.remove(&family);
            let is_new = carried.refused.insert(family, reason.clone()).as_ref() != Some(&reason);
            is_new.then(|| record(EventReason::TopologyAwareHintsDisabled, &reason, family))
        }
    }
}

/// The annotation is off. One event, for the first family, reports that it was on before.
fn turn_off(carried: &mut CarriedHints, family: Family) -> Option<EventRecord> {
    let was_on = !carried.allocated.is_empty();
    *carried = CarriedHints::default();
    was_on.then(|| {
        let text = "Topology Aware Hints has been disabled";
        record(EventReason::TopologyAwareHintsDisabled, text, family)
    })
}

fn record(reason: EventReason, text: &str, family: Family) -> EventRecord {
    let message = format!("{text}, addressType: {}", AddressType::from(family));
    EventRecord { reason, message, involved_kind: InvolvedKind::Service }
}

/// Removes all hints, also those of endpoints that are not ready.
fn remove(actions: &mut [SliceAction]) {
    rewrite(
        actions,
        |slice| slice.endpoints.iter().any(|endpoint| endpoint.hints.is_some()),
        |slice| slice.endpoints.iter_mut().for_each(|endpoint| endpoint.hints = None),
    );
}

/// Applies `set` to the slices that are written anyway, and rewrites those of the others for which
/// `is_wrong` holds.
fn rewrite(
    actions: &mut [SliceAction],
    is_wrong: impl Fn(&EndpointSlice) -> bool,
    set: impl Fn(&mut EndpointSlice),
) {
    for action in actions {
        match action {
            SliceAction::Create(slice) | SliceAction::Update(slice) => set(slice),
            SliceAction::Keep(observed) if is_wrong(observed) => {
                let mut slice = observed.clone();
                set(&mut slice);
                *action = SliceAction::Update(slice);
            }
            SliceAction::Keep(_) | SliceAction::Delete(_) => {}
        }
    }
}
