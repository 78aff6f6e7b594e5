//! The slices of a consumer: one for each slice of the source that has a port left (N5, N7, N8).

use std::collections::BTreeMap;

use endpointd_model::{
    AddressType, Endpoint, EndpointSlice, Key, Labels, Meta, OwnerRef, Selection, Service,
    SharedStr, is_forbidden_endpoint_ip, is_imported_copy, names, parse_ip,
};

use super::ImportSnapshot;
use super::ports::PortMap;
use crate::observed_copies::{CopyOwner, ObservedCopies};
use crate::packing::{SliceAction, reuse_name_of};
use crate::slice_names::{generate_name, imported_name};
use crate::slices::families;
use crate::{Plan, hints, writes};

#[derive(Default)]
pub struct Copies<'a>(Vec<Copy<'a>>);

struct Copy<'a> {
    source: &'a EndpointSlice,
    /// Without name and hints.
    slice: EndpointSlice,
}

impl<'a> Copies<'a> {
    pub fn of(
        (service, manager): (&Service, &str),
        key: &Key,
        ports: &PortMap,
        source_slices: &[&'a EndpointSlice],
    ) -> Self {
        let meta = meta(service, manager);
        let types: Vec<AddressType> = families(service).into_iter().map(Into::into).collect();
        let is_source = |slice: &&&EndpointSlice| {
            slice.meta.namespace == key.namespace
                && slice.meta.labels.has(names::SERVICE_NAME, &key.name)
                && !is_imported_copy(&slice.meta.labels)
                && types.contains(&slice.address_type)
        };
        let mut sources: Vec<&EndpointSlice> =
            source_slices.iter().filter(is_source).copied().collect();
        sources.sort_by(|a, b| a.meta.name.cmp(&b.meta.name));
        let copies = sources
            .into_iter()
            .filter_map(|source| copy(source, &meta, ports).map(|slice| Copy { source, slice }));
        Self(copies.collect())
    }

    pub fn n_slices(&self) -> usize {
        self.0.len()
    }

    pub fn n_endpoints(&self) -> usize {
        self.0.iter().map(|copy| copy.slice.endpoints.len()).sum()
    }

    /// The writes that lead from the observed slices to these.
    pub fn plan(self, service: &Service, snapshot: &ImportSnapshot, manager: &str) -> Plan {
        let mut plan = Plan { carried: snapshot.carried.clone(), ..Plan::default() };
        plan.counts.n_desired = self.n_endpoints();
        plan.counts.n_slices = self.n_slices();
        plan.counts.n_slices_desired = self.n_slices();
        let mut by_type: BTreeMap<AddressType, Vec<SliceAction>> = BTreeMap::new();
        for action in self.actions(service, snapshot, manager) {
            let address_type = match &action {
                SliceAction::Create(slice) | SliceAction::Update(slice) => &slice.address_type,
                SliceAction::Keep(slice) | SliceAction::Delete(slice) => &slice.address_type,
            };
            by_type.entry(address_type.clone()).or_default().push(action);
        }
        let families = families(service);
        plan.carried.hints.keep_only(&families);
        for family in families {
            let Some(actions) = by_type.get_mut(&AddressType::from(family)) else { continue };
            let context = hints::Context { service, topology: snapshot.topology, family };
            plan.event_records.extend(hints::assign(actions, &context, &mut plan.carried.hints));
        }
        let actions = by_type.into_values().flatten().collect();
        plan.writes = writes::of_actions(actions, service.is_deleting, Clone::clone);
        plan
    }

    fn actions<'s>(
        self,
        service: &Service,
        snapshot: &ImportSnapshot<'s>,
        manager: &str,
    ) -> Vec<SliceAction<'s>> {
        let owner = CopyOwner {
            namespace: &service.namespace,
            manager,
            name_labels: &[(names::SERVICE_NAME, &service.name)],
            uid: Some(&service.uid),
        };
        let name = |source: &&EndpointSlice, ordinal| imported_name(&service.name, source, ordinal);
        // A copy that somebody labelled as one of the endpointslice controller is that controller's as
        // soon as the Service has a selector.
        let has_pods = matches!(service.selection(), Selection::Pods(_));
        let is_ours = |slice: &&EndpointSlice| {
            !has_pods || !slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_SLICES)
        };
        let slices: Vec<&EndpointSlice> = snapshot.slices.iter().copied().filter(is_ours).collect();
        let former = former_sources(&slices);
        let sources: Vec<&EndpointSlice> =
            snapshot.source_slices.iter().copied().chain(&former).collect();
        let mut observed = ObservedCopies::of(&owner, &slices, &sources, name);
        let mut actions: Vec<SliceAction> = Vec::new();
        for Copy { source, mut slice } in self.0 {
            let existing =
                observed.copy_or_name(&source.address_type, |ordinal| name(&source, ordinal));
            actions.push(match existing {
                Ok(old) => update(old, slice),
                Err(name) => {
                    slice.meta.name = name;
                    SliceAction::Create(slice)
                }
            });
        }
        actions.extend(observed.rest().map(SliceAction::Delete));
        actions
    }
}

/// The source slices that slices of the consumer's namespace name, with what their copies are called
/// after. A copy whose labels somebody edited is known by its name although its source is gone.
fn former_sources(slices: &[&EndpointSlice]) -> Vec<EndpointSlice> {
    let source = |copy: &&EndpointSlice| {
        let (namespace, name) = copy.meta.annotations.get(names::SOURCE_SLICE)?.split_once('/')?;
        let meta = Meta { namespace: namespace.into(), name: name.into(), ..Meta::default() };
        let address_type = copy.address_type.clone();
        Some(EndpointSlice { meta, address_type, ..EndpointSlice::default() })
    };
    slices.iter().filter_map(source).collect()
}

/// The metadata of every copy. Labels are only ours: those of the source are not the consumer's.
fn meta(service: &Service, manager: &str) -> Meta {
    let headless = service.is_labelled_headless().then_some((names::HEADLESS, ""));
    let labels: Labels =
        [(names::SERVICE_NAME, service.name.as_ref()), (names::MANAGED_BY, manager)]
            .into_iter()
            .chain(headless)
            .collect();
    let owner = OwnerRef {
        api_version: "v1".into(),
        kind: "Service".into(),
        name: service.name.clone(),
        uid: service.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    Meta {
        namespace: service.namespace.clone(),
        generate_name: Some(generate_name(&service.name).into()),
        labels,
        owners: vec![owner],
        ..Meta::default()
    }
}

fn copy(source: &EndpointSlice, meta: &Meta, ports: &PortMap) -> Option<EndpointSlice> {
    let ports = ports.ports_of(source)?;
    let trigger_time = source.meta.annotations.get(names::TRIGGER_TIME);
    let source_slice = source.meta.key().to_string();
    let annotations = trigger_time.map(|time| (names::TRIGGER_TIME, time.as_ref()));
    let annotations = annotations.into_iter().chain([(names::SOURCE_SLICE, source_slice.as_ref())]);
    let is_valid = |endpoint: &&Endpoint| endpoint.addresses.iter().all(is_allowed);
    let endpoints = source.endpoints.iter().filter(is_valid).map(without_hints);
    Some(EndpointSlice {
        meta: Meta { annotations: annotations.collect(), ..meta.clone() },
        address_type: source.address_type.clone(),
        endpoints: endpoints.collect(),
        ports,
    })
}

/// The API server would reject the whole copy because of one such address (B9).
pub fn is_allowed(address: &SharedStr) -> bool {
    parse_ip(address).is_some_and(|ip| is_forbidden_endpoint_ip(ip).is_none())
}

/// Hints are decided for the consumer, not copied.
fn without_hints(endpoint: &Endpoint) -> Endpoint {
    let Endpoint {
        addresses,
        conditions,
        hostname,
        node_name,
        target_ref,
        zone,
        hints: _,
        deprecated_topology: _,
    } = endpoint;
    Endpoint {
        addresses: addresses.clone(),
        conditions: *conditions,
        hostname: hostname.clone(),
        node_name: node_name.clone(),
        target_ref: target_ref.clone(),
        zone: zone.clone(),
        hints: None,
        deprecated_topology: Labels::default(),
    }
}

/// Keeps the slice if only annotations or hints differ. Hints that stay move fewest endpoints.
fn update<'a>(observed: &'a EndpointSlice, mut slice: EndpointSlice) -> SliceAction<'a> {
    let meta = &observed.meta;
    let is_current = meta.labels == slice.meta.labels
        && meta.owners == slice.meta.owners
        && observed.ports == slice.ports
        && observed.endpoints.iter().map(without_hints).eq(slice.endpoints.iter().cloned());
    if is_current {
        return SliceAction::Keep(observed);
    }
    let hints: BTreeMap<&[SharedStr], _> =
        observed.endpoints.iter().map(|one| (&*one.addresses, &one.hints)).collect();
    for endpoint in &mut slice.endpoints {
        endpoint.hints = hints.get(&*endpoint.addresses).and_then(|hints| (*hints).clone());
    }
    let mut slice = reuse_name_of(observed, slice);
    slice.meta.generate_name = None;
    SliceAction::Update(slice)
}
