//! Which existing slices are copies of one owner, and the names of new ones. A copy has its name from
//! its source, so a plan finds it without state.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{AddressType, EndpointSlice, SharedStr, Uid, names};

use crate::slice_names::ORDINALS_AFTER_FREE;

/// What the copies of one owner have in common.
pub struct CopyOwner<'a> {
    pub namespace: &'a str,
    /// The value of the managed-by label.
    pub manager: &'a str,
    /// Labels that name the owner; one of them is enough.
    pub name_labels: &'a [(&'a str, &'a str)],
    /// None if the owner does not exist yet.
    pub uid: Option<&'a Uid>,
}

/// The slices of the owner's namespace.
pub struct ObservedCopies<'a> {
    /// By name.
    ours: BTreeMap<SharedStr, &'a EndpointSlice>,
    /// Names that this plan must not use: those of other slices, and those it has used.
    taken: BTreeSet<SharedStr>,
}

impl<'a> ObservedCopies<'a> {
    /// A copy has the label of its manager, and a label or an ownerReference that names its owner. Of
    /// the slices that the owner owns and that have another manager or none, those with a name of a
    /// copy were copies until somebody edited them. `name` gives the name of each source for an ordinal.
    pub fn of<S>(
        owner: &CopyOwner,
        slices: &[&'a EndpointSlice],
        sources: &[S],
        name: impl Fn(&S, u64) -> SharedStr,
    ) -> Self {
        let mut observed = Self { ours: BTreeMap::new(), taken: BTreeSet::new() };
        let mut relabelled = Vec::new();
        let in_namespace = |slice: &&&EndpointSlice| *slice.meta.namespace == *owner.namespace;
        for slice in slices.iter().filter(in_namespace) {
            let EndpointSlice { meta, .. } = slice;
            let is_managed = meta.labels.has(names::MANAGED_BY, owner.manager);
            let is_named = owner.name_labels.iter().any(|(key, value)| meta.labels.has(key, value));
            let is_owned =
                owner.uid.is_some_and(|uid| meta.owners.iter().any(|owner| owner.uid == *uid));
            match (meta.is_deleting(), is_managed && (is_named || is_owned), is_owned) {
                (false, true, _) => drop(observed.ours.insert(meta.name.clone(), slice)),
                (false, false, true) => relabelled.push(*slice),
                (true, ..) | (false, false, false) => {
                    observed.taken.insert(meta.name.clone());
                }
            }
        }
        if relabelled.is_empty() {
            return observed;
        }
        let names: BTreeSet<SharedStr> = sources
            .iter()
            .flat_map(|source| (0..=ORDINALS_AFTER_FREE).map(move |ordinal| (source, ordinal)))
            .map(|(source, ordinal)| name(source, ordinal))
            .collect();
        for slice in relabelled {
            let name = slice.meta.name.clone();
            if names.contains(&name) {
                observed.ours.insert(name, slice);
            } else {
                observed.taken.insert(name);
            }
        }
        observed
    }

    /// The existing copy, or the name of a new one: the first that is free. No update changes the
    /// addressType, so a slice of another type is not the copy.
    pub fn copy_or_name(
        &mut self,
        address_type: &AddressType,
        name: impl Fn(u64) -> SharedStr,
    ) -> Result<&'a EndpointSlice, SharedStr> {
        let mut free = None;
        for ordinal in 0.. {
            let name = name(ordinal);
            match self.ours.get(&name) {
                Some(ours) if ours.address_type == *address_type => {
                    let ours = *ours;
                    self.ours.remove(&name);
                    self.taken.insert(name);
                    return Ok(ours);
                }
                Some(_) => continue,
                None => {}
            }
            match &free {
                None if !self.taken.contains(&name) => free = Some((ordinal, name)),
                Some((first, name)) if ordinal >= first + ORDINALS_AFTER_FREE => {
                    let name = name.clone();
                    self.taken.insert(name.clone());
                    return Err(name);
                }
                None | Some(_) => {}
            }
        }
        unreachable!("there are more ordinals than names taken")
    }

    /// Leaves these slices as they are; their names stay taken.
    pub fn leave(&mut self, is_left: impl Fn(&EndpointSlice) -> bool) {
        let Self { ours, taken } = self;
        ours.retain(|name, slice| {
            let is_left = is_left(slice);
            if is_left {
                taken.insert(name.clone());
            }
            !is_left
        });
    }

    /// The copies of sources that are gone.
    pub fn rest(self) -> impl Iterator<Item = &'a EndpointSlice> {
        self.ours.into_values()
    }
}
