//! Hints: which zone or node an endpoint is for. Decided per family after packing, over all its
//! slices, so that a change moves as few hints as possible.

mod topology;
mod traffic;

use std::collections::BTreeMap;

use endpointd_model::{
    AddressType, EndpointSlice, EventReason, EventRecord, Family, InvolvedKind, Service, SharedStr,
    TopologyMode,
};

use crate::packing::Draft;
pub use topology::{Topology, is_overloaded};

/// Endpoints by zone they are hinted for.
type CountByZone = BTreeMap<SharedStr, usize>;

/// What the topology annotation led to, per family; kept so that people are told of transitions
/// only, and so that a change of nodes finds the Services it concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarriedHints {
    pub(crate) allocated: BTreeMap<Family, CountByZone>,
    refused: BTreeMap<Family, String>,
}

impl CarriedHints {
    /// Hints were asked for and could not be given; other nodes may change that.
    pub fn is_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Forgets the families the Service does not have any more.
    pub(crate) fn keep_only(&mut self, families: &[Family]) {
        self.allocated.retain(|family, _| families.contains(family));
        self.refused.retain(|family, _| families.contains(family));
    }
}

/// Whose hints are decided.
pub struct Context<'a> {
    pub service: &'a Service,
    pub topology: &'a Topology,
    pub family: Family,
}

/// Sets, moves, or removes the hints of one family. The topology annotation wins over
/// `trafficDistribution`.
pub fn assign(
    drafts: &mut [Draft],
    context: &Context,
    carried: &mut CarriedHints,
) -> Option<EventRecord> {
    let Context { service, topology, family } = context;
    match service.topology {
        TopologyMode::Auto => {
            let assigned = topology::assign(drafts, topology);
            if assigned.is_err() {
                remove(drafts);
            }
            remember(carried, *family, assigned)
        }
        TopologyMode::Off => {
            match service.traffic_distribution {
                Some(distribution) => traffic::assign(drafts, distribution),
                None => remove(drafts),
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
            let is_news = carried.refused.insert(family, reason.clone()).as_ref() != Some(&reason);
            is_news.then(|| record(EventReason::TopologyAwareHintsDisabled, &reason, family))
        }
    }
}

/// The annotation is off: said once, for the first family that event_records.
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

/// Removes all hints, those of endpoints that are not ready included.
fn remove(drafts: &mut [Draft]) {
    rewrite(
        drafts,
        |slice| slice.endpoints.iter().any(|endpoint| endpoint.hints.is_some()),
        |slice| slice.endpoints.iter_mut().for_each(|endpoint| endpoint.hints = None),
    );
}

/// Applies `set` to the slices that are written anyway, and to those of the others that are
/// `wrong` as they are.
fn rewrite(
    drafts: &mut [Draft],
    wrong: impl Fn(&EndpointSlice) -> bool,
    set: impl Fn(&mut EndpointSlice),
) {
    for draft in drafts {
        match draft {
            Draft::New(slice) | Draft::Changed(slice) => set(slice),
            Draft::Unchanged(observed) if wrong(observed) => {
                let mut slice = observed.clone();
                set(&mut slice);
                *draft = Draft::Changed(slice);
            }
            Draft::Unchanged(_) | Draft::Doomed(_) => {}
        }
    }
}
