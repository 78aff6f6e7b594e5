//! Assigns the endpoints of one group to slices with as few writes as possible (docs/spec.md, 4.7
//! and 4.11). Both slice controllers use it. Upstream: `reconcileByPortMapping`, `finalize`.

use std::cmp::{Ordering, Reverse};

use endpointd_model::{Endpoint, EndpointSlice, Labels};
/// What the plan does with one slice.
#[derive(Clone, Debug)]
pub enum SliceAction<'a> {
    Create(EndpointSlice),
    Update(EndpointSlice),
    Keep(&'a EndpointSlice),
    Delete(&'a EndpointSlice),
}

impl SliceAction<'_> {
    /// The slice after the action; none if it is deleted.
    pub fn slice(&self) -> Option<&EndpointSlice> {
        match self {
            Self::Create(slice) | Self::Update(slice) => Some(slice),
            Self::Keep(observed) => Some(observed),
            Self::Delete(_) => None,
        }
    }

    /// The content to write, if the action is a create or an update.
    pub fn written(&mut self) -> Option<&mut EndpointSlice> {
        match self {
            Self::Create(slice) | Self::Update(slice) => Some(slice),
            Self::Keep(_) | Self::Delete(_) => None,
        }
    }

    fn n_endpoints(&self) -> usize {
        self.slice().map_or(0, |slice| slice.endpoints.len())
    }
}

/// An endpoint to publish, in whatever form its controller holds it before it is written.
pub trait DesiredEndpoint {
    /// Compares the identity of this endpoint with that of an observed one. Conditions, topology,
    /// and the target's uid are not part of the identity: they can change in place. Upstream:
    /// `hashEndpoint`.
    fn compare(&self, observed: &Endpoint) -> Ordering;

    /// Whether an observed endpoint of the same identity is up to date. Hints are ignored: they
    /// are assigned later, for all slices together. Upstream: `EndpointsEqualBeyondHash`.
    fn is_current(&self, observed: &Endpoint) -> bool;

    fn to_endpoint(&self) -> Endpoint;
}

/// The endpoints of one group, sorted by identity. Each is placed in at most one slice.
#[derive(Clone)]
pub struct DesiredEndpoints<E> {
    endpoints: Vec<E>,
    is_placed: Vec<bool>,
    n_unplaced: usize,
    /// Index of the endpoint found last: neighbours in a slice are often neighbours here.
    last: usize,
}

impl<E: DesiredEndpoint> DesiredEndpoints<E> {
    /// `endpoints` must be sorted by identity and without duplicates.
    pub fn new(endpoints: Vec<E>) -> Self {
        let n_unplaced = endpoints.len();
        Self { is_placed: vec![false; n_unplaced], n_unplaced, last: 0, endpoints }
    }

    pub fn len(&self) -> usize {
        self.endpoints.len()
    }

    pub fn n_unplaced(&self) -> usize {
        self.n_unplaced
    }

    /// Leaves an observed endpoint in its slice. Returns the index of its desired version, or
    /// nothing if it is not desired or an earlier slice already holds it.
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
        if self.endpoints.get(next).is_some_and(|one| one.compare(observed) == Ordering::Equal) {
            return Some(next);
        }
        self.endpoints.binary_search_by(|one| one.compare(observed)).ok()
    }

    /// Moves unplaced endpoints into the slice until it holds `max`.
    pub fn fill(&mut self, slice: &mut Vec<Endpoint>, max: usize) {
        if self.n_unplaced == 0 {
            return;
        }
        for (endpoint, is_placed) in self.endpoints.iter().zip(&mut self.is_placed) {
            if slice.len() >= max || self.n_unplaced == 0 {
                return;
            }
            if !*is_placed {
                *is_placed = true;
                self.n_unplaced -= 1;
                slice.push(endpoint.to_endpoint());
            }
        }
    }
}

/// The endpoints of one observed slice that are still desired.
pub struct RetainedEndpoints {
    /// In observed order, as indexes into the desired endpoints.
    indexes: Vec<usize>,
    pub n_updated: usize,
    pub n_removed: usize,
}

impl RetainedEndpoints {
    pub fn is_changed(&self) -> bool {
        self.n_updated + self.n_removed > 0
    }

    /// The retained endpoints in their desired version.
    pub fn endpoints(&self, desired: &DesiredEndpoints<impl DesiredEndpoint>) -> Vec<Endpoint> {
        self.indexes.iter().map(|at| desired.endpoints[*at].to_endpoint()).collect()
    }
}

/// Retains the endpoints of one observed slice that are still desired.
pub fn retain_desired(
    observed: &EndpointSlice,
    desired: &mut DesiredEndpoints<impl DesiredEndpoint>,
) -> RetainedEndpoints {
    let mut indexes = Vec::with_capacity(observed.endpoints.len());
    let mut n_updated = 0;
    for endpoint in &observed.endpoints {
        if let Some(at) = desired.place(endpoint) {
            n_updated += usize::from(!desired.endpoints[at].is_current(endpoint));
            indexes.push(at);
        }
    }
    let n_removed = observed.endpoints.len() - indexes.len();
    RetainedEndpoints { indexes, n_updated, n_removed }
}

/// The actions for the slices of one group, and how many endpoints they add, update, and remove.
pub struct Packing<'a> {
    pub actions: Vec<SliceAction<'a>>,
    pub n_added: usize,
    pub n_updated: usize,
    pub n_removed: usize,
}

/// Packs one group. `observed` are its slices, sorted by name; `label_update` says which labels a
/// slice should have; `new_slice` makes an empty slice of the group.
pub fn pack<'a>(
    observed: &[&'a EndpointSlice],
    desired: &mut DesiredEndpoints<impl DesiredEndpoint>,
    label_update: impl Fn(&EndpointSlice) -> LabelUpdate,
    new_slice: impl Fn() -> EndpointSlice,
    max: usize,
) -> Packing<'a> {
    let mut packing = Packing { actions: Vec::new(), n_added: 0, n_updated: 0, n_removed: 0 };
    for slice in observed {
        let retained = retain_desired(slice, desired);
        packing.n_updated += retained.n_updated;
        packing.n_removed += retained.n_removed;
        packing.actions.push(rebuild_slice(slice, &retained, desired, label_update(slice)));
    }
    packing.n_added = desired.n_unplaced();
    fill_updated_slices(&mut packing.actions, desired, max);
    place_remaining(&mut packing.actions, desired, new_slice, max);
    packing
}

/// The labels a slice should have, and whether a difference requires a write.
pub struct LabelUpdate {
    pub is_needed: bool,
    pub labels: Labels,
}

fn rebuild_slice<'a>(
    observed: &'a EndpointSlice,
    retained: &RetainedEndpoints,
    desired: &DesiredEndpoints<impl DesiredEndpoint>,
    label_update: LabelUpdate,
) -> SliceAction<'a> {
    if retained.is_changed() && retained.indexes.is_empty() {
        return SliceAction::Delete(observed);
    }
    if !retained.is_changed() && !label_update.is_needed {
        return SliceAction::Keep(observed);
    }
    let mut slice = EndpointSlice {
        meta: observed.meta.clone(),
        address_type: observed.address_type.clone(),
        endpoints: if retained.is_changed() {
            retained.endpoints(desired)
        } else {
            observed.endpoints.clone()
        },
        ports: observed.ports.clone(),
    };
    slice.meta.labels = label_update.labels;
    SliceAction::Update(slice)
}

/// Fills the slices that are updated anyway, fullest first; equally full ones by name.
fn fill_updated_slices(
    actions: &mut [SliceAction],
    desired: &mut DesiredEndpoints<impl DesiredEndpoint>,
    max: usize,
) {
    let mut updated: Vec<&mut EndpointSlice> =
        actions.iter_mut().filter_map(SliceAction::written).collect();
    updated.sort_by_key(|slice| Reverse(slice.endpoints.len()));
    for slice in updated {
        desired.fill(&mut slice.endpoints, max);
    }
}

/// Puts all remaining endpoints into the unchanged slice that they fill best, or else into new
/// slices.
fn place_remaining(
    actions: &mut Vec<SliceAction>,
    desired: &mut DesiredEndpoints<impl DesiredEndpoint>,
    new_slice: impl Fn() -> EndpointSlice,
    max: usize,
) {
    while desired.n_unplaced() > 0 {
        let n_remaining = desired.n_unplaced();
        if n_remaining < max
            && let Some(action) = fullest_slice_with_room(actions, n_remaining, max)
            && let SliceAction::Keep(observed) = *action
        {
            // The labels stay as observed: upstream corrects reserved labels only in a slice that
            // it rebuilds.
            let mut slice = observed.clone();
            desired.fill(&mut slice.endpoints, max);
            *action = SliceAction::Update(slice);
        } else {
            let mut slice = new_slice();
            desired.fill(&mut slice.endpoints, max);
            actions.push(SliceAction::Create(slice));
        }
    }
}

/// The unchanged slice that would be fullest with `n` more endpoints; among equals, the first by
/// name. Upstream: `getSliceToFill`.
fn fullest_slice_with_room<'d, 'a>(
    actions: &'d mut [SliceAction<'a>],
    n: usize,
    max: usize,
) -> Option<&'d mut SliceAction<'a>> {
    actions
        .iter_mut()
        .filter(|action| matches!(action, SliceAction::Keep(_)) && action.n_endpoints() + n <= max)
        .min_by_key(|action| max - n - action.n_endpoints())
}

/// Turns a create and a delete of the same address type into one update that reuses the name, if
/// `may_reuse` accepts the deleted slice. The last create is paired first: while the owner is
/// being deleted, creates are dropped, and this create then survives as an update. Upstream:
/// `finalize`.
pub fn recycle(
    actions: Vec<SliceAction>,
    may_reuse: impl Fn(&EndpointSlice) -> bool,
) -> Vec<SliceAction> {
    let is_reusable =
        |action: &SliceAction| matches!(action, SliceAction::Delete(slice) if may_reuse(slice));
    let (deletes, others): (Vec<_>, Vec<_>) = actions.into_iter().partition(is_reusable);
    let mut deletes: Vec<Option<SliceAction>> = deletes.into_iter().map(Some).collect();
    let mut recycled = Vec::with_capacity(others.len() + deletes.len());
    for action in others.into_iter().rev() {
        let SliceAction::Create(slice) = action else {
            recycled.push(action);
            continue;
        };
        let old = deletes.iter_mut().find_map(|delete| match delete {
            Some(SliceAction::Delete(old)) if old.address_type == slice.address_type => {
                let old = *old;
                *delete = None;
                Some(old)
            }
            _ => None,
        });
        recycled.push(match old {
            Some(old) => SliceAction::Update(reuse_name_of(old, slice)),
            None => SliceAction::Create(slice),
        });
    }
    recycled.reverse();
    recycled.extend(deletes.into_iter().flatten());
    recycled
}

/// The new content under the observed name. Name, uid, resourceVersion, and finalizers are those
/// of the observed object, so that the API server checks the update against it and the finalizers
/// of other clients stay (B8).
pub fn reuse_name_of(observed: &EndpointSlice, mut slice: EndpointSlice) -> EndpointSlice {
    let old = &observed.meta;
    slice.meta.name = old.name.clone();
    slice.meta.uid = old.uid.clone();
    slice.meta.resource_version = old.resource_version;
    slice.meta.generation = old.generation;
    slice.meta.created = old.created;
    slice.meta.finalizers = old.finalizers.clone();
    slice
}
