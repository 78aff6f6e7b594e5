//! Plans the mirroring controller (docs/spec.md, section 6). Upstream: `syncEndpoints` and its
//! reconciler.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use endpointd_model::{
    AddressType, Annotations, Conditions, Endpoint, EndpointAddress, EndpointPort, EndpointSlice,
    Endpoints, EventReason, EventRecord, Family, InvolvedKind, IpStr, Labels, Meta, OwnerRef,
    Service, SharedStr, Subset, SubsetPort, is_forbidden_endpoint_ip, names, parse_ip,
};

use crate::packing::{
    DesiredEndpoint, DesiredEndpoints, RetainedEndpoints, SliceAction, recycle, retain_desired,
    reuse_name_of,
};
use crate::port_set::PortSet;
use crate::slice_names::{SliceNames, generate_name};
use crate::subsets::{PortIdentity, repack};
use crate::{Counts, MirrorSnapshot, Plan, ServicesSeen, Settings, writes};

/// Plans the slices mirrored for one Endpoints object.
pub fn mirror(snapshot: &MirrorSnapshot, settings: &Settings) -> Plan {
    match (settings.services_seen, snapshot.service) {
        // It may belong to another instance.
        (ServicesSeen::Selected, None) => return Plan::default(),
        (ServicesSeen::Selected, Some(_)) | (ServicesSeen::All, _) => {}
    }
    let manager = &settings.managers.mirror;
    let observed = observed(snapshot, manager);
    match snapshot.endpoints {
        Some(endpoints) if should_mirror(endpoints, snapshot.service) => {
            plan_mirrored(endpoints, snapshot, &observed, settings)
        }
        Some(_) | None => {
            let deletes = observed.into_iter().map(SliceAction::Delete).collect();
            Plan { writes: writes::of_actions(deletes, false, Clone::clone), ..Plan::default() }
        }
    }
}

/// Whether the Endpoints object is mirrored (6.1). Objects with the leader annotation are leader
/// election locks. An ExternalName Service without a selector qualifies.
fn should_mirror(endpoints: &Endpoints, service: Option<&Service>) -> bool {
    !endpoints.meta.labels.has(names::SKIP_MIRROR, "true")
        && !endpoints.meta.annotations.contains_key(names::LEADER)
        && service.is_some_and(|service| service.selector.is_empty())
}

/// The mirrored slices of this key, sorted by name. Slices that are being deleted are ignored
/// (B19).
fn observed<'a>(snapshot: &MirrorSnapshot<'a>, manager: &str) -> Vec<&'a EndpointSlice> {
    let is_managed = |slice: &&&EndpointSlice| {
        let meta = &slice.meta;
        meta.namespace == snapshot.key.namespace
            && meta.labels.has(names::SERVICE_NAME, &snapshot.key.name)
            && meta.labels.has(names::MANAGED_BY, manager)
            && !meta.is_deleting()
    };
    let mut observed: Vec<_> = snapshot.slices.iter().filter(is_managed).copied().collect();
    observed.sort_by(|a, b| a.meta.name.cmp(&b.meta.name));
    observed
}

fn plan_mirrored(
    endpoints: &Endpoints,
    snapshot: &MirrorSnapshot,
    observed: &[&EndpointSlice],
    settings: &Settings,
) -> Plan {
    let max = settings.mirrored_per_subset_max;
    let mut plan = Plan::default();
    let collected = Collected::of(endpoints, max);
    plan.event_records = collected.event_records(max);
    plan.counts.n_skipped = collected.n_skipped;

    let template = Template::of(endpoints, &settings.managers.mirror);
    let mut observed_by_group: BTreeMap<Group, Vec<&EndpointSlice>> = BTreeMap::new();
    for slice in observed {
        let group = (slice.address_type.clone(), PortSet::new(slice.ports.clone()));
        observed_by_group.entry(group).or_default().push(slice);
    }
    let mut actions = Vec::new();
    for ((address_type, ports), endpoints) in collected.endpoints_by_group {
        let group = (address_type, ports);
        let observed = observed_by_group.remove(&group).unwrap_or_default();
        let endpoints = by_identity(endpoints, max);
        let new_slice = template.new_slice(&group);
        actions.extend(mirror_group(&new_slice, observed, &endpoints, &mut plan.counts));
    }
    actions.extend(observed_by_group.into_values().flatten().map(SliceAction::Delete));
    let mut actions = recycle(actions, |_| true);
    let meta = &endpoints.meta;
    SliceNames::new(&meta.name, &meta.uid, snapshot.names_in_use)
        .with(&snapshot.slices)
        .name_new(&mut actions);
    plan.writes = writes::of_actions(actions, meta.is_deleting(), Clone::clone);
    plan
}

/// Address type and port set.
type Group = (AddressType, PortSet);

/// At most one slice per group (6.3). A slice that is already correct is kept; otherwise the first
/// by name is updated. The others are deleted. Upstream: `reconcileByPortMapping`.
fn mirror_group<'a>(
    new_slice: &EndpointSlice,
    observed: Vec<&'a EndpointSlice>,
    endpoints: &[Endpoint],
    counts: &mut Counts,
) -> Vec<SliceAction<'a>> {
    if endpoints.is_empty() {
        counts.n_removed += observed.iter().map(|slice| slice.endpoints.len()).sum::<usize>();
        return observed.into_iter().map(SliceAction::Delete).collect();
    }
    counts.n_desired += endpoints.len();
    counts.n_slices += 1;
    counts.n_slices_desired += 1;
    let mut updates: Vec<SliceUpdate> =
        observed.iter().map(|slice| update_slice(new_slice, slice, endpoints)).collect();
    let correct = updates.iter().position(|one| matches!(one.action, SliceAction::Keep(_)));
    let chosen = correct.unwrap_or(0);
    let update = if updates.is_empty() {
        create_slice(new_slice, endpoints)
    } else {
        updates.swap_remove(chosen)
    };
    counts.n_added += update.n_added;
    counts.n_updated += update.n_updated;
    counts.n_removed += update.n_removed;
    let others = observed.into_iter().enumerate().filter(|(at, _)| *at != chosen);
    std::iter::once(update.action)
        .chain(others.map(|(_, slice)| SliceAction::Delete(slice)))
        .collect()
}

/// The action for the one slice of a group, and how many endpoints it changes.
struct SliceUpdate<'a> {
    action: SliceAction<'a>,
    n_added: usize,
    n_updated: usize,
    n_removed: usize,
}

fn create_slice<'a>(new_slice: &EndpointSlice, endpoints: &[Endpoint]) -> SliceUpdate<'a> {
    let slice = EndpointSlice { endpoints: endpoints.to_vec(), ..new_slice.clone() };
    let action = SliceAction::Create(slice);
    SliceUpdate { action, n_added: endpoints.len(), n_updated: 0, n_removed: 0 }
}

/// Keeps the observed slice if it is correct, and updates it otherwise.
fn update_slice<'a>(
    new_slice: &EndpointSlice,
    observed: &'a EndpointSlice,
    endpoints: &[Endpoint],
) -> SliceUpdate<'a> {
    let mut desired = DesiredEndpoints::new(endpoints.iter().collect());
    let retained = retain_desired(observed, &mut desired);
    let n_added = desired.n_unplaced();
    let RetainedEndpoints { n_updated, n_removed, .. } = retained;
    let action = if !retained.is_changed() && n_added == 0 && is_same_meta(observed, new_slice) {
        SliceAction::Keep(observed)
    } else {
        let mut slice = reuse_name_of(observed, new_slice.clone());
        // Upstream updates an existing slice without generateName; only a recycled one has it.
        slice.meta.generate_name = None;
        slice.endpoints = retained.endpoints(&desired);
        desired.fill(&mut slice.endpoints, usize::MAX);
        SliceAction::Update(slice)
    };
    SliceUpdate { action, n_added, n_updated, n_removed }
}

/// Labels and annotations must be equal, and no owner may be an Endpoints object of the same name
/// with another uid. A missing or unrelated owner is accepted. Upstream:
/// `needRebuildExistingSlices`.
fn is_same_meta(observed: &EndpointSlice, new_slice: &EndpointSlice) -> bool {
    let is_outdated =
        |owner: &OwnerRef| {
            new_slice.meta.owners.iter().any(|ours| {
                owner.kind == ours.kind && owner.name == ours.name && owner.uid != ours.uid
            })
        };
    observed.meta.labels == new_slice.meta.labels
        && observed.meta.annotations == new_slice.meta.annotations
        && !observed.meta.owners.iter().any(is_outdated)
}

/// The desired endpoints by group, and how many addresses are not mirrored.
struct Collected {
    endpoints_by_group: BTreeMap<Group, Vec<Endpoint>>,
    n_invalid: usize,
    /// Invalid, or over the limit.
    n_skipped: usize,
}

impl Collected {
    fn of(endpoints: &Endpoints, max: usize) -> Self {
        let mut collected =
            Self { endpoints_by_group: BTreeMap::new(), n_invalid: 0, n_skipped: 0 };
        let observed = Cow::Borrowed(endpoints.subsets.as_slice());
        for subset in repack(observed, PortIdentity::Position).into_owned() {
            collected.add(subset, max);
        }
        collected
    }

    /// Takes ready, then not-ready addresses, each in IP text order, until the limit is reached.
    fn add(&mut self, subset: Subset, max: usize) {
        let ports = PortSet::new(subset.ports.into_iter().map(slice_port).collect());
        let ready = subset.addresses.into_iter().map(|address| (address, true));
        let not_ready = subset.not_ready_addresses.into_iter().map(|address| (address, false));
        let mut n_mirrored = 0;
        for (address, is_ready) in ready.chain(not_ready) {
            if n_mirrored >= max {
                self.n_skipped += 1;
                continue;
            }
            match endpoint(address, is_ready) {
                Some((address_type, endpoint)) => {
                    n_mirrored += 1;
                    let group = (address_type, ports.clone());
                    self.endpoints_by_group.entry(group).or_default().push(endpoint);
                }
                None => {
                    self.n_invalid += 1;
                    self.n_skipped += 1;
                }
            }
        }
    }

    fn event_records(&self, max: usize) -> Vec<EventRecord> {
        let mut event_records = Vec::new();
        let mut record = |reason, message| {
            event_records.push(EventRecord {
                reason,
                message,
                involved_kind: InvolvedKind::Endpoints,
            });
        };
        let (n_invalid, n_skipped) = (self.n_invalid, self.n_skipped);
        if n_invalid > 0 {
            record(
                EventReason::InvalidIPAddress,
                format!(
                    "Skipped {n_invalid} invalid IP addresses when mirroring to EndpointSlices"
                ),
            );
        }
        if n_skipped > n_invalid {
            record(
                EventReason::TooManyAddressesToMirror,
                format!(
                    "A max of {max} addresses can be mirrored to EndpointSlices per Endpoints \
                     subset. {n_skipped} addresses were skipped"
                ),
            );
        }
        event_records
    }
}

fn slice_port(port: SubsetPort) -> EndpointPort {
    let SubsetPort { name, port, protocol, app_protocol } = port;
    EndpointPort { name: Some(name), port: Some(port), protocol: Some(protocol), app_protocol }
}

/// Upstream: `addressToEndpoint`. Addresses that the API server would reject count as invalid (B9).
fn endpoint(address: EndpointAddress, is_ready: bool) -> Option<(AddressType, Endpoint)> {
    let EndpointAddress { ip, hostname, node_name, target_ref } = address;
    let ip = parse_ip(&ip).filter(|ip| is_forbidden_endpoint_ip(*ip).is_none())?;
    let endpoint = Endpoint {
        addresses: vec![IpStr::new(ip).into()],
        conditions: Conditions { ready: Some(is_ready), ..Conditions::default() },
        hostname,
        node_name,
        target_ref,
        ..Endpoint::default()
    };
    Some((Family::of(ip).into(), endpoint))
}

/// Of two endpoints with the same identity the later one wins, as in upstream's map. If there are
/// more than `max`, the first stay.
fn by_identity(mut endpoints: Vec<Endpoint>, max: usize) -> Vec<Endpoint> {
    endpoints.reverse();
    endpoints.sort_by(|a, b| identity(a).cmp(&identity(b)));
    endpoints.dedup_by(|later, first| identity(later) == identity(first));
    endpoints.truncate(max);
    endpoints
}

fn identity(endpoint: &Endpoint) -> (&[SharedStr], &str, &str, &str) {
    let target = endpoint.target_ref.as_ref();
    (
        &endpoint.addresses,
        endpoint.hostname.as_deref().unwrap_or(""),
        target.map_or("", |target| &target.namespace),
        target.map_or("", |target| &target.name),
    )
}

/// A mirrored endpoint has one address, so its addresses need no sorting.
impl DesiredEndpoint for &Endpoint {
    fn compare(&self, observed: &Endpoint) -> Ordering {
        identity(self).cmp(&identity(observed))
    }

    fn is_current(&self, observed: &Endpoint) -> bool {
        // Addresses and hostname are part of the identity, which is equal here.
        let Endpoint {
            addresses: _,
            hostname: _,
            hints: _,
            deprecated_topology: _,
            conditions,
            node_name,
            target_ref,
            zone,
        } = self;
        let same_target = match (target_ref, &observed.target_ref) {
            (Some(ours), Some(theirs)) => ours.same_object(theirs),
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        };
        let rest = (&observed.conditions, &observed.node_name, &observed.zone);
        same_target && (conditions, node_name, zone) == rest
    }

    fn to_endpoint(&self) -> Endpoint {
        (*self).clone()
    }
}

/// The metadata of every slice mirrored from one Endpoints object.
struct Template {
    meta: Meta,
}

impl Template {
    fn of(endpoints: &Endpoints, manager: &str) -> Self {
        let meta = &endpoints.meta;
        let owner = OwnerRef {
            api_version: "v1".into(),
            kind: "Endpoints".into(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        let labels: Labels = meta
            .labels
            .with(names::SERVICE_NAME, Some(&meta.name))
            .with(names::MANAGED_BY, Some(manager));
        let annotations: Annotations =
            meta.annotations.with(names::TRIGGER_TIME, None).with(names::LAST_APPLIED, None);
        Self {
            meta: Meta {
                namespace: meta.namespace.clone(),
                generate_name: Some(generate_name(&meta.name).into()),
                labels,
                annotations,
                owners: vec![owner],
                ..Meta::default()
            },
        }
    }

    /// A new slice without endpoints.
    fn new_slice(&self, (address_type, ports): &Group) -> EndpointSlice {
        EndpointSlice {
            meta: self.meta.clone(),
            address_type: address_type.clone(),
            endpoints: Vec::new(),
            ports: ports.as_slice().to_vec(),
        }
    }
}
