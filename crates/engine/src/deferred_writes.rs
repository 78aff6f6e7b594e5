//! Which writes of a plan go out at once, and which wait: deletes for the writes that publish
//! elsewhere what they remove, and a condition for all that it tells of.

use std::collections::BTreeSet;

use endpointd_model::{EndpointSlice, Key, Object, PublishedResource, SharedStr, Write};

/// The writes of one plan in the order in which they are sent.
#[derive(Debug, Default, PartialEq)]
pub struct OrderedWrites {
    /// Creates and updates; sent at once, all together.
    pub first: Vec<Write>,
    /// Deletes and conditions, each with the writes of `first` (by index) that it waits for.
    pub deferred: Vec<(Write, Vec<usize>)>,
}

impl OrderedWrites {
    pub fn iter(&self) -> impl Iterator<Item = &Write> {
        self.first.iter().chain(self.deferred.iter().map(|(write, _)| write))
    }
}

/// `slice` gives a slice as it is in the cache.
pub fn order_writes(
    writes: Vec<Write>,
    slice: impl Fn(&Key) -> Option<EndpointSlice>,
) -> OrderedWrites {
    let (deferred, first): (Vec<Write>, Vec<Write>) = writes.into_iter().partition(is_deferred);
    if deferred.is_empty() {
        return OrderedWrites { first, deferred: Vec::new() };
    }
    let published: Vec<Vec<SharedStr>> = first.iter().map(written_addresses).collect();
    let depends_on = |write: &Write| {
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
        .map(|write| {
            let depends_on = depends_on(&write);
            (write, depends_on)
        })
        .collect();
    OrderedWrites { first, deferred }
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
        let ordered = order_writes(writes, |_| None);
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
        let ordered = order_writes(writes.clone(), cached);
        assert_eq!(ordered, OrderedWrites { first, deferred: vec![(delete.clone(), vec![1])] });
        let unknown = order_writes(writes, |_| None);
        assert_eq!(unknown.deferred, [(delete, Vec::new())]);
    }
}
