//! Which writes of a plan go out at once, and which wait: deletes, and updates that take away what
//! moves, for the writes that publish it elsewhere; a condition for all that it tells of.

use std::collections::BTreeSet;

use endpointd_model::{
    Controller, EndpointSlice, Key, Object, PublishedResource, SharedStr, Write,
};

use crate::moves::{Moves, keep_moving_endpoints};

/// The writes of one plan in the order in which they are sent.
#[derive(Debug, Default, PartialEq)]
pub struct OrderedWrites {
    /// Creates and updates; sent at once, all together.
    pub first: Vec<Write>,
    /// Writes with those of `first` (by index) that they wait for.
    pub deferred: Vec<(Write, Vec<usize>)>,
    /// Updates that the next plan has to complete.
    pub n_incomplete: usize,
}

impl OrderedWrites {
    pub fn iter(&self) -> impl Iterator<Item = &Write> {
        self.first.iter().chain(self.deferred.iter().map(|(write, _)| write))
    }
}

/// `slice` gives a slice as it is in the cache.
pub fn order_writes(
    controller: Controller,
    mut writes: Vec<Write>,
    slice: impl Fn(&Key) -> Option<EndpointSlice>,
) -> OrderedWrites {
    let Moves { waits_for, n_incomplete } = match controller {
        Controller::Import | Controller::MultiCluster => keep_moving_endpoints(&mut writes, &slice),
        // Packing leaves an endpoint in its slice.
        Controller::Slices | Controller::Endpoints | Controller::Mirror => Moves::default(),
    };
    let is_deferred = |at: usize, write: &Write| is_deferred(write) || waits_for.contains_key(&at);
    if writes.iter().enumerate().all(|(at, write)| !is_deferred(at, write)) {
        return OrderedWrites { first: writes, deferred: Vec::new(), n_incomplete };
    }
    let (deferred, first): (Vec<_>, Vec<_>) =
        writes.into_iter().enumerate().partition(|(at, write)| is_deferred(*at, write));
    let index_of = |at: &usize| first.iter().position(|(first, _)| first == at);
    let published: Vec<Vec<SharedStr>> =
        first.iter().map(|(_, write)| written_addresses(write)).collect();
    let depends_on = |at: usize, write: &Write| {
        if let Some(publishers) = waits_for.get(&at) {
            return publishers.iter().filter_map(index_of).collect();
        }
        let deleted = match write.resource() {
            PublishedResource::Slices => slice(&write.key()),
            PublishedResource::Endpoints | PublishedResource::MultiCluster(_) => None,
            PublishedResource::ServiceStatus => return (0..first.len()).collect(),
        };
        let Some(deleted) = deleted else { return Vec::new() };
        let removed: BTreeSet<&SharedStr> =
            deleted.endpoints.iter().flat_map(|endpoint| &endpoint.addresses).collect();
        let keeps = |(_, addresses): &(usize, &Vec<SharedStr>)| {
            addresses.iter().any(|address| removed.contains(address))
        };
        published.iter().enumerate().filter(keeps).map(|(index, _)| index).collect()
    };
    let deferred = deferred
        .into_iter()
        .map(|(at, write)| {
            let depends_on = depends_on(at, &write);
            (write, depends_on)
        })
        .collect();
    let first = first.into_iter().map(|(_, write)| write).collect();
    OrderedWrites { first, deferred, n_incomplete }
}

fn is_deferred(write: &Write) -> bool {
    match write {
        Write::Delete(_) => true,
        Write::Create(object) | Write::Update(object) => match object {
            Object::ServiceStatus(_) => true,
            Object::Slice(_) | Object::Endpoints(_) | Object::MultiCluster(_) => false,
        },
    }
}

/// The addresses that a written slice will hold.
fn written_addresses(write: &Write) -> Vec<SharedStr> {
    match write.object() {
        Some(Object::Slice(slice)) => {
            slice.endpoints.iter().flat_map(|one| one.addresses.iter().cloned()).collect()
        }
        Some(Object::Endpoints(_) | Object::ServiceStatus(_) | Object::MultiCluster(_)) | None => {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use endpointd_model::{DeleteTarget, Endpoint, Meta, ServiceStatus};

    use super::*;

    fn slice(name: &str, addresses: &[&str]) -> EndpointSlice {
        let endpoint = |address: &&str| Endpoint {
            addresses: vec![SharedStr::from(*address)],
            ..Endpoint::default()
        };
        EndpointSlice {
            meta: Meta { namespace: "ns".into(), name: name.into(), ..Meta::default() },
            endpoints: addresses.iter().map(endpoint).collect(),
            ..EndpointSlice::default()
        }
    }

    #[test]
    fn condition_waits_for_every_slice() {
        let create = |one| Write::Create(Object::Slice(one));
        let condition = Write::Update(Object::ServiceStatus(ServiceStatus::default()));
        let writes = vec![create(slice("a", &[])), condition.clone(), create(slice("b", &[]))];
        let ordered = order_writes(Controller::Import, writes, |_| None);
        assert_eq!(ordered.deferred, [(condition, vec![0, 1])]);
        assert_eq!(ordered.first.len(), 2);
    }

    #[test]
    fn delete_depends_on_the_writes_that_publish_its_addresses() {
        let create = |one| Write::Create(Object::Slice(one));
        let delete = Write::Delete(DeleteTarget {
            resource: PublishedResource::Slices,
            key: Key::new("ns", "old"),
            uid: "uid-1".into(),
            resource_version: 7.into(),
        });
        let writes = vec![
            delete.clone(),
            create(slice("a", &["10.0.0.9"])),
            create(slice("b", &["10.0.0.1", "10.0.0.9"])),
        ];
        let first = writes[1..].to_vec();
        let cached = |_: &Key| Some(slice("old", &["10.0.0.1", "10.0.0.2"]));
        let ordered = order_writes(Controller::Slices, writes.clone(), cached);
        let deferred = vec![(delete.clone(), vec![1])];
        assert_eq!(ordered, OrderedWrites { first, deferred, n_incomplete: 0 });
        let unknown = order_writes(Controller::Import, writes, |_| None);
        assert_eq!(unknown.deferred, [(delete, Vec::new())]);
    }
}
