//! Which writes of a plan may wait. A Service with many ready endpoints loses little if a new one
//! gets traffic a second later, and every write of a slice goes to every node. So a removal sends
//! only the slices that it changes, and the other writes wait for the cooldown of additions. What
//! the removed endpoint's slice gains goes along.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{EndpointSlice, Key, Object, SharedStr, Write};

/// Takes the writes out of a plan that take no ready endpoint away. Takes none if one of them
/// publishes an endpoint that a remaining one removes: then they belong together.
/// `published` gives a slice as it is in the cache.
pub fn take_additions(
    writes: &mut Vec<Write>,
    published: impl Fn(&Key) -> Option<EndpointSlice>,
) -> Vec<Write> {
    let removed: Vec<BTreeSet<SharedStr>> =
        writes.iter().map(|write| removed_addresses(write, &published)).collect();
    let removed_by: BTreeMap<&SharedStr, usize> =
        (0..).zip(&removed).flat_map(|(by, all)| all.iter().map(move |one| (one, by))).collect();
    let moves = |(at, write): (usize, &Write)| {
        addresses(written_slice(write)).any(|one| removed_by.get(one).is_some_and(|by| *by != at))
    };
    if writes.iter().enumerate().any(moves) {
        return Vec::new();
    }
    let mut is_removal = removed.iter().map(|addresses| !addresses.is_empty());
    let all = std::mem::take(writes);
    let (removals, additions) =
        all.into_iter().partition(|_| is_removal.next().unwrap_or_default());
    *writes = removals;
    additions
}

/// What this write takes out of its slice, if a ready endpoint is among it.
fn removed_addresses(
    write: &Write,
    published: impl Fn(&Key) -> Option<EndpointSlice>,
) -> BTreeSet<SharedStr> {
    let before = published(&write.key());
    let after: BTreeSet<&SharedStr> = ready_addresses(written_slice(write)).collect();
    let unready = ready_addresses(before.as_ref()).filter(|address| !after.contains(address));
    let mut removed: BTreeSet<SharedStr> = unready.cloned().collect();
    if !removed.is_empty() {
        let after: BTreeSet<&SharedStr> = addresses(written_slice(write)).collect();
        let gone = addresses(before.as_ref()).filter(|address| !after.contains(address));
        removed.extend(gone.cloned());
    }
    removed
}

pub fn addresses(slice: Option<&EndpointSlice>) -> impl Iterator<Item = &SharedStr> {
    slice.into_iter().flat_map(|slice| &slice.endpoints).flat_map(|endpoint| &endpoint.addresses)
}

fn ready_addresses(slice: Option<&EndpointSlice>) -> impl Iterator<Item = &SharedStr> {
    let endpoints = slice.into_iter().flat_map(|slice| &slice.endpoints);
    endpoints.filter(|endpoint| endpoint.is_ready()).flat_map(|endpoint| &endpoint.addresses)
}

/// None for a delete.
pub fn written_slice(write: &Write) -> Option<&EndpointSlice> {
    match write.object() {
        Some(Object::Slice(slice)) => Some(slice),
        Some(Object::Endpoints(_) | Object::ServiceStatus(_) | Object::MultiCluster(_)) | None => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use endpointd_model::{Conditions, DeleteTarget, Endpoint, Meta, PublishedResource};

    use super::*;

    fn slice(name: &str, addresses: &[(&str, bool)]) -> EndpointSlice {
        let endpoint = |(address, is_ready): &(&str, bool)| Endpoint {
            addresses: vec![SharedStr::from(*address)],
            conditions: Conditions { ready: Some(*is_ready), ..Conditions::default() },
            ..Endpoint::default()
        };
        EndpointSlice {
            meta: Meta { namespace: "ns".into(), name: name.into(), ..Meta::default() },
            endpoints: addresses.iter().map(endpoint).collect(),
            ..EndpointSlice::default()
        }
    }

    fn update(name: &str, addresses: &[(&str, bool)]) -> Write {
        Write::Update(Object::Slice(slice(name, addresses)))
    }

    /// The names of the slices that are written now, and of those that are written later.
    fn split(published: &[EndpointSlice], mut writes: Vec<Write>) -> (Vec<String>, Vec<String>) {
        let find = |key: &Key| published.iter().find(|slice| slice.meta.key() == *key).cloned();
        let later = take_additions(&mut writes, find);
        let names =
            |writes: &[Write]| writes.iter().map(|one| one.key().name.to_string()).collect();
        (names(&writes), names(&later))
    }

    #[test]
    fn only_slices_that_lose_a_ready_endpoint_are_written_now() {
        let published = [
            slice("becomes-unready", &[("10.0.0.1", true)]),
            slice("grows", &[("10.0.0.2", true)]),
            slice("loses-unready", &[("10.0.0.3", true), ("10.0.0.4", false)]),
            slice("loses-and-grows", &[("10.0.0.5", true)]),
            slice("deleted", &[("10.0.0.6", true)]),
            slice("deleted-unready", &[("10.0.0.7", false)]),
        ];
        let delete = |at: usize| {
            Write::Delete(DeleteTarget::of(PublishedResource::Slices, &published[at].meta))
        };
        let writes = vec![
            Write::Create(Object::Slice(slice("new", &[("10.0.0.8", true)]))),
            update("becomes-unready", &[("10.0.0.1", false)]),
            update("grows", &[("10.0.0.2", true), ("10.0.0.9", true)]),
            update("loses-unready", &[("10.0.0.3", true)]),
            update("loses-and-grows", &[("10.0.0.10", true)]),
            delete(4),
            delete(5),
        ];
        let (now, later) = split(&published, writes);
        assert_eq!(now, ["becomes-unready", "loses-and-grows", "deleted"]);
        assert_eq!(later, ["new", "grows", "loses-unready", "deleted-unready"]);
    }

    #[test]
    fn an_endpoint_that_moves_is_not_removed_before_it_is_added() {
        let from = [("10.0.0.1", true), ("10.0.0.2", true), ("10.0.0.3", false)];
        let published = [slice("from", &from)];
        let create = Write::Create(Object::Slice(slice("to", &[("10.0.0.2", true)])));
        let writes = vec![create, update("from", &[("10.0.0.1", true)])];
        let (now, later) = split(&published, writes);
        assert_eq!((now.len(), later.len()), (2, 0));

        let create = Write::Create(Object::Slice(slice("to", &[("10.0.0.3", false)])));
        let (now, later) = split(&published, vec![create, update("from", &[("10.0.0.1", true)])]);
        assert_eq!((now.len(), later.len()), (2, 0), "nor one that is not ready");

        // The slice is replaced because it has no owner any more, and its endpoint is not ready now.
        let create = Write::Create(Object::Slice(slice("to", &[("10.0.0.1", false)])));
        let delete = Write::Delete(DeleteTarget::of(PublishedResource::Slices, &published[0].meta));
        let (now, later) = split(&published, vec![create, delete]);
        assert_eq!((now.len(), later.len()), (2, 0));
    }
}
