//! Which writes of a plan go out at once, and what the deletes wait for.

use std::collections::BTreeSet;

use endpointd_model::{EndpointSlice, Key, Object, PublishedResource, SharedStr, Write};

/// The writes of one plan in the order in which they are sent.
#[derive(Debug, Default, PartialEq)]
pub struct OrderedWrites {
    /// Creates and updates; sent at once, all together.
    pub first: Vec<Write>,
    /// Deletes, each with the writes of `first` (by index) that publish elsewhere what it removes.
    pub deletes: Vec<(Write, Vec<usize>)>,
}

impl OrderedWrites {
    pub fn iter(&self) -> impl Iterator<Item = &Write> {
        self.first.iter().chain(self.deletes.iter().map(|(write, _)| write))
    }
}

/// `slice` gives a slice as it is in the cache.
pub fn order_writes(
    writes: Vec<Write>,
    slice: impl Fn(&Key) -> Option<EndpointSlice>,
) -> OrderedWrites {
    let (deletes, first): (Vec<Write>, Vec<Write>) =
        writes.into_iter().partition(|write| matches!(write, Write::Delete(_)));
    if deletes.is_empty() {
        return OrderedWrites { first, deletes: Vec::new() };
    }
    let published: Vec<Vec<SharedStr>> = first.iter().map(written_addresses).collect();
    let depends_on = |delete: &Write| {
        let is_slice = delete.resource() == PublishedResource::Slices;
        let Some(deleted) = is_slice.then(|| slice(&delete.key())).flatten() else {
            return Vec::new();
        };
        let removed: BTreeSet<&SharedStr> =
            deleted.endpoints.iter().flat_map(|endpoint| &endpoint.addresses).collect();
        let keeps = |(_, addresses): &(usize, &Vec<SharedStr>)| {
            addresses.iter().any(|address| removed.contains(address))
        };
        published.iter().enumerate().filter(keeps).map(|(index, _)| index).collect()
    };
    let deletes = deletes
        .into_iter()
        .map(|delete| {
            let depends_on = depends_on(&delete);
            (delete, depends_on)
        })
        .collect();
    OrderedWrites { first, deletes }
}

/// The addresses that a written slice will hold.
fn written_addresses(write: &Write) -> Vec<SharedStr> {
    match write.object() {
        Some(Object::Slice(slice)) => {
            slice.endpoints.iter().flat_map(|one| one.addresses.iter().cloned()).collect()
        }
        Some(Object::Endpoints(_)) | None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use endpointd_model::{DeleteTarget, Endpoint, Meta};

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
        assert_eq!(ordered, OrderedWrites { first, deletes: vec![(delete.clone(), vec![1])] });
        let unknown = order_writes(writes, |_| None);
        assert_eq!(unknown.deletes, [(delete, Vec::new())]);
    }
}
