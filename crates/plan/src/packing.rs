//! Packing: which endpoint goes into which slice of its group, with as few writes as possible.
//! Both slice controllers use it. Upstream: `reconcileByPortMapping`.

use std::cmp::{Ordering, Reverse};

use endpointd_model::{Endpoint, EndpointSlice, Labels};
use endpointd_mutants::{Mutant, is_on};

/// A slice on its way through a plan.
#[derive(Clone, Debug)]
pub enum Draft<'a> {
    New(EndpointSlice),
    Changed(EndpointSlice),
    Unchanged(&'a EndpointSlice),
    Doomed(&'a EndpointSlice),
}

impl Draft<'_> {
    /// The slice as it will be; a doomed one will not be.
    pub fn slice(&self) -> Option<&EndpointSlice> {
        match self {
            Self::New(slice) | Self::Changed(slice) => Some(slice),
            Self::Unchanged(observed) => Some(observed),
            Self::Doomed(_) => None,
        }
    }

    /// The slice to write, if it is to be written.
    pub fn written(&mut self) -> Option<&mut EndpointSlice> {
        match self {
            Self::New(slice) | Self::Changed(slice) => Some(slice),
            Self::Unchanged(_) | Self::Doomed(_) => None,
        }
    }

    fn n_endpoints(&self) -> usize {
        self.slice().map_or(0, |slice| slice.endpoints.len())
    }
}

/// An endpoint that should be published, however it is held until it is written.
pub trait Wanted {
    /// How this one's identity compares with that of an observed endpoint: all but conditions,
    /// topology, and the target's uid, which can change in place. Upstream: `hashEndpoint`.
    fn compare(&self, observed: &Endpoint) -> Ordering;

    /// Whether an observed endpoint of the same identity is up to date, hints excepted: those are
    /// decided afterwards, for all slices together. Upstream: `EndpointsEqualBeyondHash`.
    fn is_current(&self, observed: &Endpoint) -> bool;

    fn to_endpoint(&self) -> Endpoint;
}

/// The endpoints a group should hold, sorted by identity, each placed at most once.
#[derive(Clone)]
pub struct Desired<W> {
    wanted: Vec<W>,
    is_placed: Vec<bool>,
    n_unplaced: usize,
    /// The last place found: neighbours in a slice are often neighbours here.
    last: usize,
}

impl<W: Wanted> Desired<W> {
    /// `wanted` must be sorted by identity and without repetition.
    pub fn new(wanted: Vec<W>) -> Self {
        Self { is_placed: vec![false; wanted.len()], n_unplaced: wanted.len(), last: 0, wanted }
    }

    pub fn len(&self) -> usize {
        self.wanted.len()
    }

    pub fn n_unplaced(&self) -> usize {
        self.n_unplaced
    }

    /// Places the desired version of an observed endpoint where it was, if it is still wanted
    /// and was not found in an earlier slice.
    fn place(&mut self, observed: &Endpoint) -> Option<usize> {
        let at = self.find(observed)?;
        self.last = at;
        if self.is_placed[at] {
            return None;
        }
        self.is_placed[at] = true;
        self.n_unplaced -= 1;
        Some(at)
    }

    fn find(&self, observed: &Endpoint) -> Option<usize> {
        let next = self.last + 1;
        if self.wanted.get(next).is_some_and(|one| one.compare(observed) == Ordering::Equal) {
            return Some(next);
        }
        self.wanted.binary_search_by(|one| one.compare(observed)).ok()
    }

    /// Adds unplaced endpoints until the slice is full.
    pub fn fill(&mut self, slice: &mut Vec<Endpoint>, max: usize) {
        if self.n_unplaced == 0 {
            return;
        }
        for (wanted, is_placed) in self.wanted.iter().zip(&mut self.is_placed) {
            if slice.len() >= max || self.n_unplaced == 0 {
                return;
            }
            if !*is_placed {
                *is_placed = true;
                self.n_unplaced -= 1;
                slice.push(wanted.to_endpoint());
            }
        }
    }
}

/// What remains of one observed slice.
pub struct Kept {
    /// The wanted endpoints, in observed order, as indexes into the desired ones.
    places: Vec<usize>,
    pub n_updated: usize,
    pub n_removed: usize,
}

impl Kept {
    pub fn is_changed(&self) -> bool {
        self.n_updated + self.n_removed > 0
    }

    /// The wanted endpoints in their desired version.
    pub fn endpoints(&self, desired: &Desired<impl Wanted>) -> Vec<Endpoint> {
        self.places.iter().map(|at| desired.wanted[*at].to_endpoint()).collect()
    }
}

/// Keeps the wanted endpoints of one observed slice and drops the rest.
pub fn keep_wanted(observed: &EndpointSlice, desired: &mut Desired<impl Wanted>) -> Kept {
    let mut places = Vec::with_capacity(observed.endpoints.len());
    let mut n_updated = 0;
    for endpoint in &observed.endpoints {
        if let Some(at) = desired.place(endpoint) {
            n_updated += usize::from(!desired.wanted[at].is_current(endpoint));
            places.push(at);
        }
    }
    let n_gone = observed.endpoints.len() - places.len();
    let n_removed = if is_on(Mutant::KeepUnwanted) { 0 } else { n_gone };
    Kept { places, n_updated, n_removed }
}

/// One group packed.
pub struct Packing<'a> {
    pub drafts: Vec<Draft<'a>>,
    pub n_added: usize,
    pub n_updated: usize,
    pub n_removed: usize,
}

/// Packs one group. `observed` are its slices, sorted by name; `relabel` gives a slice its labels
/// when they are out of date; `blank` makes a new slice of the group.
pub fn pack<'a>(
    observed: &[&'a EndpointSlice],
    desired: &mut Desired<impl Wanted>,
    relabel: impl Fn(&EndpointSlice) -> Relabel,
    blank: impl Fn() -> EndpointSlice,
    max: usize,
) -> Packing<'a> {
    let mut packing = Packing { drafts: Vec::new(), n_added: 0, n_updated: 0, n_removed: 0 };
    for slice in observed {
        let kept = keep_wanted(slice, desired);
        packing.n_updated += kept.n_updated;
        packing.n_removed += kept.n_removed;
        packing.drafts.push(redraft(slice, &kept, desired, relabel(slice)));
    }
    packing.n_added = desired.n_unplaced();
    top_up_changed(&mut packing.drafts, desired, max);
    place_rest(&mut packing.drafts, desired, blank, max);
    packing
}

/// Whether a slice's labels are out of date, and what they should be.
pub struct Relabel {
    pub is_due: bool,
    pub labels: Labels,
}

fn redraft<'a>(
    observed: &'a EndpointSlice,
    kept: &Kept,
    desired: &Desired<impl Wanted>,
    relabel: Relabel,
) -> Draft<'a> {
    if kept.is_changed() && kept.places.is_empty() {
        return Draft::Doomed(observed);
    }
    if !kept.is_changed() && !relabel.is_due {
        return Draft::Unchanged(observed);
    }
    let mut slice = EndpointSlice {
        meta: observed.meta.clone(),
        address_type: observed.address_type.clone(),
        endpoints: if kept.is_changed() {
            kept.endpoints(desired)
        } else {
            observed.endpoints.clone()
        },
        ports: observed.ports.clone(),
    };
    slice.meta.labels = relabel.labels;
    Draft::Changed(slice)
}

/// Fills the slices that are written anyway, fullest first; among equals, by name.
fn top_up_changed(drafts: &mut [Draft], desired: &mut Desired<impl Wanted>, max: usize) {
    let mut changed: Vec<&mut EndpointSlice> =
        drafts.iter_mut().filter_map(Draft::written).collect();
    changed.sort_by_key(|slice| Reverse(slice.endpoints.len()));
    for slice in changed {
        desired.fill(&mut slice.endpoints, max);
    }
}

/// Puts the rest into the one unchanged slice it fills best, or else into new ones.
fn place_rest(
    drafts: &mut Vec<Draft>,
    desired: &mut Desired<impl Wanted>,
    blank: impl Fn() -> EndpointSlice,
    max: usize,
) {
    while desired.n_unplaced() > 0 {
        let n_left = desired.n_unplaced();
        if n_left < max
            && let Some(draft) = fullest_with_room(drafts, n_left, max)
            && let Draft::Unchanged(observed) = *draft
        {
            // The labels stay as they are: upstream corrects reserved ones only when it rebuilds.
            let mut slice = observed.clone();
            desired.fill(&mut slice.endpoints, max);
            *draft = Draft::Changed(slice);
        } else {
            let mut slice = blank();
            desired.fill(&mut slice.endpoints, max);
            drafts.push(Draft::New(slice));
        }
    }
}

/// The unchanged slice that would be fullest with `n` more; among equals, the first by name.
/// Upstream: `getSliceToFill`.
fn fullest_with_room<'d, 'a>(
    drafts: &'d mut [Draft<'a>],
    n: usize,
    max: usize,
) -> Option<&'d mut Draft<'a>> {
    drafts
        .iter_mut()
        .filter(|draft| matches!(draft, Draft::Unchanged(_)) && draft.n_endpoints() + n <= max)
        .min_by_key(|draft| max - n - draft.n_endpoints())
}

/// Lets new slices take over the names of doomed ones of the same address type that `may_reuse`
/// accepts, so that a create and a delete become one update. The last new slice goes first: where
/// nothing may be created it is the one that is kept. Upstream: `finalize`.
pub fn recycle(drafts: Vec<Draft>, may_reuse: impl Fn(&EndpointSlice) -> bool) -> Vec<Draft> {
    let is_reusable = |draft: &Draft| matches!(draft, Draft::Doomed(slice) if may_reuse(slice));
    let (doomed, others): (Vec<_>, Vec<_>) = drafts.into_iter().partition(is_reusable);
    let mut doomed: Vec<Option<Draft>> = doomed.into_iter().map(Some).collect();
    let mut recycled = Vec::with_capacity(others.len() + doomed.len());
    for draft in others.into_iter().rev() {
        let Draft::New(slice) = draft else {
            recycled.push(draft);
            continue;
        };
        let old = doomed.iter_mut().find_map(|place| match place {
            Some(Draft::Doomed(old)) if old.address_type == slice.address_type => {
                let old = *old;
                *place = None;
                Some(old)
            }
            _ => None,
        });
        recycled.push(match old {
            Some(old) => Draft::Changed(take_over(old, slice)),
            None => Draft::New(slice),
        });
    }
    recycled.reverse();
    recycled.extend(doomed.into_iter().flatten());
    recycled
}

/// The new content under the old name: identity and finalizers are the old object's, so that the
/// update is checked against it and no one's claim on it is dropped.
pub fn take_over(observed: &EndpointSlice, mut slice: EndpointSlice) -> EndpointSlice {
    let old = &observed.meta;
    slice.meta.name = old.name.clone();
    slice.meta.uid = old.uid.clone();
    slice.meta.resource_version = old.resource_version;
    slice.meta.generation = old.generation;
    slice.meta.created = old.created;
    slice.meta.finalizers = old.finalizers.clone();
    slice
}
