//! Which Services publish the endpoints of which, and the ReferenceGrants that permit it. Only kept
//! if the import controller runs.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{
    Controller, EndpointSlice, Key, ReferenceGrant, Selection, Service, SharedStr, SourceReason,
    is_imported_copy, names,
};

use super::cached::{Cached, Freshness, put_newer};
use super::{Cache, ChangeDelay, ChangeKind, DirtyKey, DirtyKeys, ListEpoch, Origin};
use crate::queue::Priority;

#[derive(Debug, Default)]
pub struct Imports {
    /// The consumers of each source, whether they may publish its endpoints or not.
    consumers: BTreeMap<Key, BTreeSet<Key>>,
    pub(super) grants: BTreeMap<Key, Cached<ReferenceGrant>>,
}

impl Imports {
    /// The sources of one namespace with their consumers.
    fn sources_in(&self, namespace: &SharedStr) -> impl Iterator<Item = (&Key, &BTreeSet<Key>)> {
        let from = Key::new(namespace.clone(), SharedStr::default());
        self.consumers.range(from..).take_while(move |(source, _)| source.namespace == *namespace)
    }

    fn follow(&mut self, consumer: &Key, old: Option<Key>, new: Option<Key>) {
        if old == new {
            return;
        }
        if let Some(old) = old
            && let Some(consumers) = self.consumers.get_mut(&old)
        {
            consumers.remove(consumer);
            if consumers.is_empty() {
                self.consumers.remove(&old);
            }
        }
        if let Some(new) = new {
            self.consumers.entry(new).or_default().insert(consumer.clone());
        }
    }
}

impl Cache {
    /// For an engine in which the import controller runs.
    pub fn follow_sources(mut self) -> Self {
        self.imports = Some(Box::default());
        self
    }

    /// Services that ask for the endpoints of this one, sorted.
    pub fn consumers_of(&self, source: &Key) -> impl Iterator<Item = &Key> {
        let imports = self.imports.as_deref();
        imports.and_then(|imports| imports.consumers.get(source)).into_iter().flatten()
    }

    /// How many consumers have which condition.
    pub fn n_consumers_by_reason(&self) -> BTreeMap<SourceReason, usize> {
        let mut counts = BTreeMap::new();
        let imports = self.imports.as_deref();
        for consumer in imports.into_iter().flat_map(|one| one.consumers.values().flatten()) {
            let cross = self.service(consumer).and_then(|one| one.cross_namespace.as_ref());
            let condition = cross.and_then(|cross| cross.condition());
            if let Some(reason) = condition.and_then(|one| SourceReason::parse(&one.reason)) {
                *counts.entry(reason).or_default() += 1;
            }
        }
        counts
    }

    /// The grants of one namespace, sorted by name.
    pub fn grants_in(&self, namespace: &SharedStr) -> Vec<&ReferenceGrant> {
        let from = Key::new(namespace.clone(), SharedStr::default());
        let imports = self.imports.as_deref();
        let grants = imports.into_iter().flat_map(|imports| imports.grants.range(from.clone()..));
        let in_namespace = grants.take_while(|(key, _)| key.namespace == *namespace);
        in_namespace.map(|(_, cached)| &cached.object).collect()
    }

    /// A Service was cached, replaced, or removed: it may be a consumer, a source, or both.
    pub(super) fn follow_imports(
        &mut self,
        key: &Key,
        old: Option<&Service>,
        new: Option<&Service>,
        dirty: &mut DirtyKeys,
    ) {
        let Some(imports) = &mut self.imports else { return };
        imports.follow(key, old.and_then(Service::source), new.and_then(Service::source));
        if old.map(SourceFacts::of) != new.map(SourceFacts::of) {
            let may_use = |service: Option<&Service>, consumer: &Key| {
                service.is_some_and(|service| {
                    let cross = service.cross_namespace.as_ref();
                    consumer.namespace == key.namespace
                        || cross.is_some_and(|cross| cross.permits(&consumer.namespace))
                })
            };
            let consumers = imports.consumers.get(key).into_iter().flatten();
            add_consumers(dirty, consumers, |consumer| {
                priority(may_use(old, consumer) && !may_use(new, consumer))
            });
        }
    }

    pub fn put_grant(&mut self, grant: ReferenceGrant, epoch: ListEpoch, dirty: &mut DirtyKeys) {
        let Some(imports) = &mut self.imports else { return };
        let freshness = Freshness::new(grant.resource_version, epoch);
        let key = grant.key();
        if let Some(old) = put_newer(&mut imports.grants, key.clone(), grant, freshness) {
            self.add_affected_by_grant(&key, old.as_ref(), dirty);
        }
    }

    pub fn remove_grant(&mut self, key: &Key, dirty: &mut DirtyKeys) {
        let Some(imports) = &mut self.imports else { return };
        let old = imports.grants.remove(key).map(|cached| cached.object);
        self.add_affected_by_grant(key, old.as_ref(), dirty);
    }

    pub(super) fn n_grants(&self) -> usize {
        self.imports.as_ref().map_or(0, |imports| imports.grants.len())
    }

    /// Consumers that a grant permitted before or permits now, but not both.
    fn add_affected_by_grant(
        &self,
        key: &Key,
        old: Option<&ReferenceGrant>,
        dirty: &mut DirtyKeys,
    ) {
        let Some(imports) = &self.imports else { return };
        let new = imports.grants.get(key).map(|cached| &cached.object);
        for (source, consumers) in imports.sources_in(&key.namespace) {
            let permits = |grant: Option<&ReferenceGrant>, consumer: &Key| {
                grant.is_some_and(|one| one.permits_service(&consumer.namespace, &source.name))
            };
            let is_affected = |consumer: &&Key| permits(old, consumer) != permits(new, consumer);
            let affected = consumers.iter().filter(is_affected);
            add_consumers(dirty, affected, |consumer| priority(permits(old, consumer)));
        }
    }

    /// The cached slice of this key, if the plan of another key may read it.
    pub(super) fn slice_before(&self, key: &Key) -> Option<EndpointSlice> {
        self.slice_of_source(key).or_else(|| self.slice_of_clusters(key))
    }

    /// A slice was cached or removed, by whichever controller.
    pub(super) fn add_readers_of_slice(
        &self,
        old: Option<&EndpointSlice>,
        new: Option<&EndpointSlice>,
        origin: Origin,
        dirty: &mut DirtyKeys,
    ) {
        self.add_affected_by_source_slice(old, new, dirty);
        self.add_affected_by_slice_of_clusters(old, new, origin, dirty);
    }

    /// The cached slice of this key, if consumers publish its endpoints.
    fn slice_of_source(&self, key: &Key) -> Option<EndpointSlice> {
        self.imports.as_ref()?;
        let slice = self.slice(key)?;
        let source = source_of(&slice)?;
        self.consumers_of(&source).next().is_some().then_some(slice)
    }

    fn add_affected_by_source_slice(
        &self,
        old: Option<&EndpointSlice>,
        new: Option<&EndpointSlice>,
        dirty: &mut DirtyKeys,
    ) {
        if self.imports.is_none() || (old.is_some() && old.map(content) == new.map(content)) {
            return;
        }
        let (before, after) = (old.and_then(source_of), new.and_then(source_of));
        let is_removal = match before == after {
            true => is_removal(old, new),
            false => is_removal(old, None),
        };
        let sources =
            before.iter().chain(after.iter().filter(|after| before.as_ref() != Some(*after)));
        for source in sources {
            add_consumers(dirty, self.consumers_of(source), |_| priority(is_removal));
        }
    }
}

/// What a plan of a consumer reads of the source Service.
#[derive(PartialEq)]
struct SourceFacts<'a> {
    ports: &'a [endpointd_model::ServicePort],
    consent: Option<&'a SharedStr>,
    asks: bool,
    is_manual: bool,
}

impl<'a> SourceFacts<'a> {
    fn of(service: &'a Service) -> Self {
        let cross = service.cross_namespace.as_ref();
        Self {
            ports: &service.ports,
            consent: cross.and_then(|cross| cross.to.as_ref()),
            asks: cross.is_some_and(|cross| cross.from.is_some()),
            is_manual: service.selection() == Selection::Manual,
        }
    }
}

/// Each consumer has its turn: other keys do not wait for all of them.
fn add_consumers<'a>(
    dirty: &mut DirtyKeys,
    consumers: impl Iterator<Item = &'a Key>,
    priority: impl Fn(&Key) -> Priority,
) {
    for (turn, consumer) in (0u32..).zip(consumers) {
        dirty.0.push(DirtyKey {
            controller: Controller::Import,
            key: consumer.clone(),
            priority: priority(consumer),
            delay: ChangeDelay::Turn(turn),
            kind: ChangeKind::Any,
        });
    }
}

pub(super) fn priority(is_removal: bool) -> Priority {
    if is_removal { Priority::Removal } else { Priority::Live }
}

/// The Service whose endpoints the slice has. A copy has none of its own.
fn source_of(slice: &EndpointSlice) -> Option<Key> {
    let EndpointSlice { meta, .. } = slice;
    let service = meta.labels.get(names::SERVICE_NAME)?;
    (!is_imported_copy(&meta.labels)).then(|| Key::new(meta.namespace.clone(), service.clone()))
}

/// What is copied, or decides whether it is copied.
fn content(slice: &EndpointSlice) -> impl PartialEq {
    let EndpointSlice { meta, address_type, endpoints, ports } = slice;
    (source_of(slice), meta.name.clone(), address_type.clone(), endpoints.clone(), ports.clone())
}

/// An address was ready, and is so no more.
pub(super) fn is_removal(old: Option<&EndpointSlice>, new: Option<&EndpointSlice>) -> bool {
    let ready: BTreeSet<&SharedStr> = new.into_iter().flat_map(ready_addresses).collect();
    old.into_iter().flat_map(ready_addresses).any(|address| !ready.contains(address))
}

fn ready_addresses(slice: &EndpointSlice) -> impl Iterator<Item = &SharedStr> {
    slice.endpoints.iter().filter(|one| one.is_ready()).flat_map(|one| &one.addresses)
}

#[cfg(test)]
mod tests {
    use endpointd_model::{CrossNamespace, SliceManagers};

    use super::*;
    use crate::cache::published::CachedSlice;

    /// Pods have a test of their own, beside their records.
    #[test]
    fn without_the_controller_a_service_has_one_pointer_more_and_a_slice_nothing() {
        assert_eq!(size_of::<Option<Box<CrossNamespace>>>(), size_of::<usize>());
        // The controller and the mark of a copy share the last eight bytes.
        assert_eq!(size_of::<CachedSlice>(), 72);
        assert!(Cache::new(&SliceManagers::default()).imports.is_none());
    }
}
