//! Hints for the topology annotation: ready endpoints are assigned to zones in proportion to each
//! zone's CPU (docs/spec.md, section 5). Upstream: package `topologycache`.

mod allocation;
mod nodes;

use std::borrow::Cow;
use std::collections::BTreeMap;

use endpointd_model::{EndpointSlice, Hints, SharedStr};

use self::allocation::{Allocations, allocate, moves};
pub use self::nodes::{Topology, is_overloaded};
use super::CountByZone;
use crate::packing::SliceAction;

const NO_ZONE: &str = "One or more endpoints do not have a zone specified";

/// Gives every ready endpoint a zone. An error is the reason why hints are refused; `actions` then
/// still have their old hints.
pub fn assign(actions: &mut [SliceAction], topology: &Topology) -> Result<CountByZone, String> {
    // Upstream goes through new slices first. Within one kind of action we go by name, so that the
    // next sync sees the same slices in the same order.
    actions.sort_by(|a, b| (rank(a), name(a)).cmp(&(rank(b), name(b))));
    let slices: Vec<SliceHints> = actions.iter().map(SliceHints::of).collect();
    let n_ready = slices.iter().map(|slice| slice.ready.len()).sum();
    let mut allocator = HintAllocator { slices, allocations: allocate(topology, n_ready)? };
    allocator.assign()?;
    allocator.rebalance();
    let count_by_zone = allocator.count_by_zone();
    let new_hints: Vec<NewHints> =
        allocator.slices.into_iter().map(SliceHints::into_new_hints).collect();
    for (action, hints) in actions.iter_mut().zip(new_hints) {
        apply(action, hints);
    }
    Ok(count_by_zone)
}

fn name<'d>(action: &'d SliceAction) -> Option<&'d SharedStr> {
    action.slice().map(|slice| &slice.meta.name)
}

fn rank(action: &SliceAction) -> u8 {
    match action {
        SliceAction::Create(_) => 0,
        SliceAction::Update(_) => 1,
        SliceAction::Keep(_) | SliceAction::Delete(_) => 2,
    }
}

/// The ready endpoints of one slice with their hints.
struct SliceHints<'a> {
    ready: Vec<ReadyEndpoint<'a>>,
    /// The slice is written anyway, or its hints cannot stay.
    is_rewritable: bool,
}

#[derive(Clone)]
struct ReadyEndpoint<'a> {
    /// Index in the slice.
    at: usize,
    zone: Option<&'a SharedStr>,
    /// Borrowed: as observed. Owned: assigned by this plan.
    hints: Cow<'a, [SharedStr]>,
}

/// The zones assigned by this plan, by index of the endpoint; none if the slice is not rewritten.
type NewHints = Option<Vec<(usize, SharedStr)>>;

impl<'a> SliceHints<'a> {
    fn of(action: &'a SliceAction) -> Self {
        let is_rewritable = matches!(action, SliceAction::Create(_) | SliceAction::Update(_));
        let endpoints = action.slice().map_or(&[][..], |slice| &slice.endpoints);
        let ready = endpoints.iter().enumerate().filter(|(_, endpoint)| endpoint.is_ready());
        let ready = ready.map(|(at, endpoint)| ReadyEndpoint {
            at,
            zone: endpoint.zone.as_ref().filter(|zone| !zone.is_empty()),
            hints: endpoint.hints.as_ref().map_or(&[][..], |hints| &hints.for_zones).into(),
        });
        Self { ready: ready.collect(), is_rewritable }
    }

    fn lacks_zone(&self) -> bool {
        self.ready.iter().any(|ready| ready.zone.is_none())
    }

    fn into_new_hints(self) -> NewHints {
        let assigned = |ready: ReadyEndpoint| match ready.hints {
            Cow::Owned(zones) => zones.into_iter().next().map(|zone| (ready.at, zone)),
            Cow::Borrowed(_) => None,
        };
        self.is_rewritable.then(|| self.ready.into_iter().filter_map(assigned).collect())
    }
}

struct HintAllocator<'a> {
    slices: Vec<SliceHints<'a>>,
    allocations: Allocations,
}

impl HintAllocator<'_> {
    /// Upstream's single pass: slices with valid hints stay, the others are redistributed.
    fn assign(&mut self) -> Result<(), String> {
        for at in 0..self.slices.len() {
            self.slices[at].is_rewritable |= !self.is_valid(&self.slices[at]);
        }
        if self.slices.iter().all(|slice| !slice.is_rewritable) {
            return Ok(());
        }
        for at in self.slices_over_max(|slice| !slice.is_rewritable) {
            self.slices[at].is_rewritable = true;
        }
        let rewritable: Vec<usize> =
            (0..self.slices.len()).filter(|at| self.slices[*at].is_rewritable).collect();
        if rewritable.iter().any(|at| self.slices[*at].lacks_zone()) {
            return Err(NO_ZONE.into());
        }
        self.redistribute(&rewritable);
        Ok(())
    }

    /// Redistributes the slices that exceed a maximum, or else all slices, as long as that leaves
    /// fewer endpoints above the maximum of their zone. Upstream redistributes the former in every
    /// sync, whether it helps or not, and can therefore write a slice in every sync (B18).
    fn rebalance(&mut self) {
        let all: Vec<usize> = (0..self.slices.len()).collect();
        while self.try_redistribute(&self.slices_over_max(|_| true)) || self.try_redistribute(&all)
        {
        }
    }

    /// Redistributes these slices, and undoes it if no zone gains by it.
    fn try_redistribute(&mut self, indexes: &[usize]) -> bool {
        let before = n_above_maximum(&self.count_by_zone(), &self.allocations);
        if before == 0 || indexes.iter().any(|at| self.slices[*at].lacks_zone()) {
            return false;
        }
        let saved: Vec<Vec<ReadyEndpoint>> =
            indexes.iter().map(|at| self.slices[*at].ready.clone()).collect();
        self.redistribute(indexes);
        let helps = n_above_maximum(&self.count_by_zone(), &self.allocations) < before;
        for (at, ready) in indexes.iter().zip(saved) {
            if helps {
                self.slices[*at].is_rewritable = true;
            } else {
                self.slices[*at].ready = ready;
            }
        }
        helps
    }

    /// Every ready endpoint has a hint, and each hint names a zone with an allocation or the
    /// endpoint's own zone.
    ///
    /// Upstream does not accept the latter: it hints endpoints of a zone without usable nodes for
    /// that zone, and then rejects the hint in every sync (B18).
    fn is_valid(&self, slice: &SliceHints) -> bool {
        slice.ready.iter().all(|ready| {
            let is_allowed =
                |zone: &SharedStr| self.allocations.contains_key(zone) || ready.zone == Some(zone);
            !ready.hints.is_empty() && ready.hints.iter().all(is_allowed)
        })
    }

    /// Of the slices that `counts` accepts, those whose hints take a zone above its maximum. The
    /// hints of earlier slices count, except those of slices already in the result.
    fn slices_over_max(&self, counts: impl Fn(&SliceHints) -> bool) -> Vec<usize> {
        let mut sum = CountByZone::new();
        let mut over_max = Vec::new();
        for (at, slice) in self.slices.iter().enumerate().filter(|(_, slice)| counts(slice)) {
            let mut with_slice = sum.clone();
            count(&slice.ready, &mut with_slice);
            if self.allocations.iter().any(|(zone, allocation)| {
                let before = sum.get(zone).copied().unwrap_or(0);
                let after = with_slice.get(zone).copied().unwrap_or(0);
                after > before && after > allocation.maximum
            }) {
                over_max.push(at);
            } else {
                sum = with_slice;
            }
        }
        over_max
    }

    /// Hints each endpoint for its own zone, then moves as many hints as the zones' shares require.
    fn redistribute(&mut self, indexes: &[usize]) {
        for at in indexes {
            for ready in &mut self.slices[*at].ready {
                ready.hints = Cow::Owned(ready.zone.into_iter().cloned().collect());
            }
        }
        let (mut giving, mut receiving) = moves(&self.allocations, &self.count_by_zone());
        for at in indexes {
            for ready in &mut self.slices[*at].ready {
                move_hint(ready, &mut giving, &mut receiving);
            }
        }
    }

    fn count_by_zone(&self) -> CountByZone {
        let mut counts = CountByZone::new();
        for slice in &self.slices {
            count(&slice.ready, &mut counts);
        }
        counts
    }
}

/// Endpoints above the maximum of their zone, summed over all zones.
fn n_above_maximum(counts: &CountByZone, allocations: &Allocations) -> usize {
    let above = |(zone, n): (&SharedStr, &usize)| {
        allocations.get(zone).map_or(0, |allocation| n.saturating_sub(allocation.maximum))
    };
    counts.iter().map(above).sum()
}

fn count(ready: &[ReadyEndpoint], counts: &mut CountByZone) {
    for zone in ready.iter().flat_map(|ready| ready.hints.iter()) {
        match counts.get_mut(zone) {
            Some(n) => *n += 1,
            None => {
                counts.insert(zone.clone(), 1);
            }
        }
    }
}

/// Moves the endpoint's hint to the first receiving zone, if its own zone still has hints to give.
fn move_hint(
    ready: &mut ReadyEndpoint,
    giving: &mut BTreeMap<SharedStr, usize>,
    receiving: &mut BTreeMap<SharedStr, usize>,
) {
    let Some(n_to_give) = ready.zone.and_then(|zone| giving.get_mut(zone)) else { return };
    let Some((zone, n_to_receive)) = receiving.iter_mut().find(|(_, n)| **n > 0) else { return };
    if *n_to_give > 0 {
        *n_to_give -= 1;
        *n_to_receive -= 1;
        ready.hints = Cow::Owned(vec![zone.clone()]);
    }
}

/// Writes the new hints into the action. An observed slice that already has them is kept.
fn apply(action: &mut SliceAction, new_hints: NewHints) {
    let Some(new_hints) = new_hints else { return };
    match action {
        SliceAction::Create(slice) | SliceAction::Update(slice) => set(slice, new_hints),
        SliceAction::Keep(observed) => {
            let mut slice = observed.clone();
            set(&mut slice, new_hints);
            if slice.endpoints != observed.endpoints {
                *action = SliceAction::Update(slice);
            }
        }
        SliceAction::Delete(_) => {}
    }
}

fn set(slice: &mut EndpointSlice, new_hints: Vec<(usize, SharedStr)>) {
    for (at, zone) in new_hints {
        let hints = Hints { for_zones: vec![zone], for_nodes: Vec::new() };
        slice.endpoints[at].hints = Some(hints);
    }
}
