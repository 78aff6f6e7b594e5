//! Hints by the topology annotation: endpoints in proportion to each zone's CPU.
//! Upstream: `topologycache`.

mod allocation;
mod nodes;

use std::borrow::Cow;
use std::collections::BTreeMap;

use endpointd_model::{EndpointSlice, Hints, SharedStr};

use self::allocation::{Allocations, allocate, moves};
pub use self::nodes::{Topology, is_overloaded};
use super::CountByZone;
use crate::packing::Draft;

const NO_ZONE: &str = "One or more endpoints do not have a zone specified";

/// Gives every ready endpoint a zone. An error is the reason why there can be no hints; then
/// nothing was changed.
pub fn assign(drafts: &mut [Draft], topology: &Topology) -> Result<CountByZone, String> {
    // New slices first, as upstream has it; then by name, so that the same slices are looked at in
    // the same order next time.
    drafts.sort_by(|a, b| (rank(a), name(a)).cmp(&(rank(b), name(b))));
    let sheets: Vec<Sheet> = drafts.iter().map(Sheet::of).collect();
    let n_ready = sheets.iter().map(|sheet| sheet.ready.len()).sum();
    let mut board = Board { sheets, allocations: allocate(topology, n_ready)? };
    board.assign()?;
    board.settle();
    let count_by_zone = board.count_by_zone();
    let decided: Vec<Decided> = board.sheets.into_iter().map(Sheet::into_decided).collect();
    for (draft, hints) in drafts.iter_mut().zip(decided) {
        apply(draft, hints);
    }
    Ok(count_by_zone)
}

fn name<'d>(draft: &'d Draft) -> Option<&'d SharedStr> {
    draft.slice().map(|slice| &slice.meta.name)
}

fn rank(draft: &Draft) -> u8 {
    match draft {
        Draft::New(_) => 0,
        Draft::Changed(_) => 1,
        Draft::Unchanged(_) | Draft::Doomed(_) => 2,
    }
}

/// The ready endpoints of one slice and the zones they are hinted for.
struct Sheet<'a> {
    ready: Vec<Ready<'a>>,
    /// Written anyway, or with hints that cannot stay.
    is_open: bool,
}

#[derive(Clone)]
struct Ready<'a> {
    /// Index in the slice.
    at: usize,
    own: Option<&'a SharedStr>,
    hinted: Cow<'a, [SharedStr]>,
}

/// What became of a sheet: zones by index, or nothing new.
type Decided = Option<Vec<(usize, SharedStr)>>;

impl<'a> Sheet<'a> {
    fn of(draft: &'a Draft) -> Self {
        let is_open = matches!(draft, Draft::New(_) | Draft::Changed(_));
        let endpoints = draft.slice().map_or(&[][..], |slice| &slice.endpoints);
        let ready = endpoints.iter().enumerate().filter(|(_, endpoint)| endpoint.is_ready());
        let ready = ready.map(|(at, endpoint)| Ready {
            at,
            own: endpoint.zone.as_ref().filter(|zone| !zone.is_empty()),
            hinted: endpoint.hints.as_ref().map_or(&[][..], |hints| &hints.for_zones).into(),
        });
        Self { ready: ready.collect(), is_open }
    }

    fn lacks_zone(&self) -> bool {
        self.ready.iter().any(|ready| ready.own.is_none())
    }

    fn into_decided(self) -> Decided {
        let zone_of = |ready: Ready| match ready.hinted {
            Cow::Owned(zones) => zones.into_iter().next().map(|zone| (ready.at, zone)),
            Cow::Borrowed(_) => None,
        };
        self.is_open.then(|| self.ready.into_iter().filter_map(zone_of).collect())
    }
}

struct Board<'a> {
    sheets: Vec<Sheet<'a>>,
    allocations: Allocations,
}

impl Board<'_> {
    /// The one pass that upstream makes when there is something to write: what stays stays, the
    /// rest is dealt anew.
    fn assign(&mut self) -> Result<(), String> {
        for at in 0..self.sheets.len() {
            self.sheets[at].is_open |= !self.is_valid(&self.sheets[at]);
        }
        if self.sheets.iter().all(|sheet| !sheet.is_open) {
            return Ok(());
        }
        for at in self.overfull(|sheet| !sheet.is_open) {
            self.sheets[at].is_open = true;
        }
        let open: Vec<usize> =
            (0..self.sheets.len()).filter(|at| self.sheets[*at].is_open).collect();
        if open.iter().any(|at| self.sheets[*at].lacks_zone()) {
            return Err(NO_ZONE.into());
        }
        self.deal(&open);
        Ok(())
    }

    /// Deals slices anew that exceed a maximum, or else all, as long as that leaves fewer
    /// endpoints above the maximum of their zone. Upstream deals the former on every sync, whether
    /// it helps or not, and so may write some slices for ever.
    fn settle(&mut self) {
        let all: Vec<usize> = (0..self.sheets.len()).collect();
        while self.improve(&self.overfull(|_| true)) || self.improve(&all) {}
    }

    /// Deals these sheets anew if that helps.
    fn improve(&mut self, open: &[usize]) -> bool {
        let before = n_over(&self.count_by_zone(), &self.allocations);
        if before == 0 || open.iter().any(|at| self.sheets[*at].lacks_zone()) {
            return false;
        }
        let saved: Vec<Vec<Ready>> = open.iter().map(|at| self.sheets[*at].ready.clone()).collect();
        self.deal(open);
        let helps = n_over(&self.count_by_zone(), &self.allocations) < before;
        for (at, ready) in open.iter().zip(saved) {
            if helps {
                self.sheets[*at].is_open = true;
            } else {
                self.sheets[*at].ready = ready;
            }
        }
        helps
    }

    /// Every ready endpoint has a hint, each for a zone with an allocation or for its own.
    ///
    /// The latter is ours: upstream hints endpoints of a zone without usable nodes for that zone,
    /// and then takes offence at it on every sync.
    fn is_valid(&self, sheet: &Sheet) -> bool {
        sheet.ready.iter().all(|ready| {
            let is_allowed =
                |zone: &SharedStr| self.allocations.contains_key(zone) || ready.own == Some(zone);
            !ready.hinted.is_empty() && ready.hinted.iter().all(is_allowed)
        })
    }

    /// Of the sheets that count, those whose hints would push a zone over its maximum, in order.
    fn overfull(&self, counts: impl Fn(&Sheet) -> bool) -> Vec<usize> {
        let mut sum = CountByZone::new();
        let mut overfull = Vec::new();
        for (at, sheet) in self.sheets.iter().enumerate().filter(|(_, sheet)| counts(sheet)) {
            let mut with_sheet = sum.clone();
            count(&sheet.ready, &mut with_sheet);
            if self.allocations.iter().any(|(zone, allocation)| {
                let before = sum.get(zone).copied().unwrap_or(0);
                let after = with_sheet.get(zone).copied().unwrap_or(0);
                after > before && after > allocation.maximum
            }) {
                overfull.push(at);
            } else {
                sum = with_sheet;
            }
        }
        overfull
    }

    /// Each endpoint for its own zone, then as many moved as the zones' shares ask for.
    fn deal(&mut self, open: &[usize]) {
        for at in open {
            for ready in &mut self.sheets[*at].ready {
                ready.hinted = Cow::Owned(ready.own.into_iter().cloned().collect());
            }
        }
        let (mut giving, mut receiving) = moves(&self.allocations, &self.count_by_zone());
        for at in open {
            for ready in &mut self.sheets[*at].ready {
                redirect(ready, &mut giving, &mut receiving);
            }
        }
    }

    fn count_by_zone(&self) -> CountByZone {
        let mut counts = CountByZone::new();
        for sheet in &self.sheets {
            count(&sheet.ready, &mut counts);
        }
        counts
    }
}

/// By how many endpoints zones are over their maximum, in all.
fn n_over(counts: &CountByZone, allocations: &Allocations) -> usize {
    let over = |(zone, n): (&SharedStr, &usize)| {
        allocations.get(zone).map_or(0, |allocation| n.saturating_sub(allocation.maximum))
    };
    counts.iter().map(over).sum()
}

fn count(ready: &[Ready], counts: &mut CountByZone) {
    for zone in ready.iter().flat_map(|ready| ready.hinted.iter()) {
        match counts.get_mut(zone) {
            Some(n) => *n += 1,
            None => {
                counts.insert(zone.clone(), 1);
            }
        }
    }
}

/// Hands the endpoint to the first zone in need, if its own has any to give.
fn redirect(
    ready: &mut Ready,
    giving: &mut BTreeMap<SharedStr, usize>,
    receiving: &mut BTreeMap<SharedStr, usize>,
) {
    let Some(n_to_give) = ready.own.and_then(|zone| giving.get_mut(zone)) else { return };
    let Some((zone, n_to_receive)) = receiving.iter_mut().find(|(_, n)| **n > 0) else { return };
    if *n_to_give > 0 {
        *n_to_give -= 1;
        *n_to_receive -= 1;
        ready.hinted = Cow::Owned(vec![zone.clone()]);
    }
}

/// Writes what was decided into the draft; an observed slice that already says so stays as it is.
fn apply(draft: &mut Draft, decided: Decided) {
    let Some(decided) = decided else { return };
    match draft {
        Draft::New(slice) | Draft::Changed(slice) => set(slice, decided),
        Draft::Unchanged(observed) => {
            let mut slice = observed.clone();
            set(&mut slice, decided);
            if slice.endpoints != observed.endpoints {
                *draft = Draft::Changed(slice);
            }
        }
        Draft::Doomed(_) => {}
    }
}

fn set(slice: &mut EndpointSlice, decided: Vec<(usize, SharedStr)>) {
    for (at, zone) in decided {
        let hints = Hints { for_zones: vec![zone], for_nodes: Vec::new() };
        slice.endpoints[at].hints = Some(hints);
    }
}
