//! The mirroring controller's decision. Upstream: `syncEndpoints` and its reconciler.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use endpointd_model::{
    AddressType, Annotations, Conditions, Endpoint, EndpointAddress, EndpointPort, EndpointSlice,
    Endpoints, EventReason, EventRecord, Family, InvolvedKind, IpStr, Labels, Meta, OwnerRef,
    SharedStr, Subset, SubsetPort, is_forbidden_endpoint_ip, names, parse_ip,
};

use endpointd_mutants::{Mutant, is_on};

use crate::packing::{Desired, Draft, Wanted, keep_wanted, recycle, take_over};
use crate::port_set::PortSet;
use crate::slice_names::{SliceNames, generate_name};
use crate::subsets::{SamePort, repack};
use crate::{Counts, MirrorSnapshot, Plan, Settings, writes};

/// Plans the slices mirrored for one Endpoints object.
pub fn mirror(snapshot: &MirrorSnapshot, settings: &Settings) -> Plan {
    let observed = observed(snapshot);
    match snapshot.endpoints {
        Some(endpoints) if is_mirrored(snapshot) => {
            plan_mirrored(endpoints, snapshot, &observed, settings)
        }
        Some(_) | None => {
            let doomed = observed.into_iter().map(Draft::Doomed).collect();
            Plan { writes: writes::of_drafts(doomed, false, Clone::clone), ..Plan::default() }
        }
    }
}

/// Only hand-written Endpoints are: no selector on the Service, no wish to be left alone, and not
/// a leader election lock. An ExternalName Service without selector counts.
pub fn is_mirrored(snapshot: &MirrorSnapshot) -> bool {
    let wants = |endpoints: &Endpoints| {
        !endpoints.meta.labels.has(names::SKIP_MIRROR, "true")
            && !endpoints.meta.annotations.contains_key(names::LEADER)
    };
    snapshot.endpoints.is_some_and(wants)
        && snapshot.service.is_some_and(|service| {
            service.selector.is_empty() || is_on(Mutant::MirrorDespiteSelector)
        })
}

/// The mirrored slices of this key, sorted by name. One that is being deleted is as good as gone.
fn observed<'a>(snapshot: &MirrorSnapshot<'a>) -> Vec<&'a EndpointSlice> {
    let is_ours = |slice: &&&EndpointSlice| {
        let meta = &slice.meta;
        meta.namespace == snapshot.key.namespace
            && meta.labels.has(names::SERVICE_NAME, &snapshot.key.name)
            && meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_MIRROR)
            && !meta.is_deleting()
    };
    let mut observed: Vec<_> = snapshot.slices.iter().filter(is_ours).copied().collect();
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

    let template = Template::of(endpoints);
    let mut observed_by_group: BTreeMap<Group, Vec<&EndpointSlice>> = BTreeMap::new();
    for slice in observed {
        let group = (slice.address_type.clone(), PortSet::new(slice.ports.clone()));
        observed_by_group.entry(group).or_default().push(slice);
    }
    let mut drafts = Vec::new();
    for ((address_type, ports), endpoints) in collected.endpoints_by_group {
        let group = (address_type, ports);
        let observed = observed_by_group.remove(&group).unwrap_or_default();
        let desired = Desired::new(by_identity(endpoints, max));
        drafts.extend(mirror_group(&template.blank(&group), observed, desired, &mut plan.counts));
    }
    drafts.extend(observed_by_group.into_values().flatten().map(Draft::Doomed));
    let mut drafts = recycle(drafts, |_| true);
    let meta = &endpoints.meta;
    SliceNames::new(&meta.name, &meta.uid, &snapshot.slices).name_new(&mut drafts);
    plan.writes = writes::of_drafts(drafts, meta.is_deleting(), Clone::clone);
    plan
}

/// Address type and port set.
type Group = (AddressType, PortSet);

/// At most one slice a group. One that is right as it is stays; otherwise the first by name is
/// rewritten. The rest go. Upstream: `reconcileByPortMapping`.
fn mirror_group<'a>(
    blank: &EndpointSlice,
    observed: Vec<&'a EndpointSlice>,
    desired: Desired<Endpoint>,
    counts: &mut Counts,
) -> Vec<Draft<'a>> {
    if desired.len() == 0 {
        counts.n_removed += observed.iter().map(|slice| slice.endpoints.len()).sum::<usize>();
        return observed.into_iter().map(Draft::Doomed).collect();
    }
    counts.n_desired += desired.len();
    counts.n_slices += 1;
    counts.n_slices_desired += 1;
    let drawn = |slice: &'a EndpointSlice| draw(blank, slice, desired.clone());
    let at = observed.iter().position(|slice| matches!(drawn(slice).0, Draft::Unchanged(_)));
    let kept = observed.get(at.unwrap_or(0)).copied();
    let (draft, group_counts) = match kept {
        Some(slice) => drawn(slice),
        None => fresh(blank, desired.clone()),
    };
    counts.n_added += group_counts.n_added;
    counts.n_updated += group_counts.n_updated;
    counts.n_removed += group_counts.n_removed;
    let others =
        observed.into_iter().filter(|slice| kept.is_none_or(|kept| !std::ptr::eq(*slice, kept)));
    std::iter::once(draft).chain(others.map(Draft::Doomed)).collect()
}

/// A new slice with all that is desired.
fn fresh<'a>(blank: &EndpointSlice, mut desired: Desired<Endpoint>) -> (Draft<'a>, Counts) {
    let counts = Counts { n_added: desired.len(), ..Counts::default() };
    let mut slice = blank.clone();
    desired.fill(&mut slice.endpoints, usize::MAX);
    (Draft::New(slice), counts)
}

/// The observed slice, as it is if it is right, or else rewritten.
fn draw<'a>(
    blank: &EndpointSlice,
    observed: &'a EndpointSlice,
    mut desired: Desired<Endpoint>,
) -> (Draft<'a>, Counts) {
    let kept = keep_wanted(observed, &mut desired);
    let counts = Counts {
        n_added: desired.n_unplaced(),
        n_updated: kept.n_updated,
        n_removed: kept.n_removed,
        ..Counts::default()
    };
    let is_same = !kept.is_changed() && counts.n_added == 0 && is_same_meta(observed, blank);
    if is_same {
        return (Draft::Unchanged(observed), counts);
    }
    let mut slice = take_over(observed, blank.clone());
    // Upstream sends an update of a kept slice without it; only a recycled one has it.
    slice.meta.generate_name = None;
    slice.endpoints = kept.endpoints(&desired);
    desired.fill(&mut slice.endpoints, usize::MAX);
    (Draft::Changed(slice), counts)
}

/// Labels and annotations must be equal. Of owners only one counts against a slice: Endpoints of
/// the same name with another uid. Upstream: `needRebuildExistingSlices`.
fn is_same_meta(observed: &EndpointSlice, blank: &EndpointSlice) -> bool {
    let is_outdated =
        |owner: &OwnerRef| {
            blank.meta.owners.iter().any(|ours| {
                owner.kind == ours.kind && owner.name == ours.name && owner.uid != ours.uid
            })
        };
    observed.meta.labels == blank.meta.labels
        && observed.meta.annotations == blank.meta.annotations
        && !observed.meta.owners.iter().any(is_outdated)
}

/// The desired endpoints by group, and what could not be mirrored.
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
        for subset in repack(observed, SamePort::ByOccurrence).into_owned() {
            collected.add(subset, max);
        }
        collected
    }

    /// Ready addresses first, by IP text, until the limit is reached.
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
        let mut say = |reason, message| {
            event_records.push(EventRecord {
                reason,
                message,
                involved_kind: InvolvedKind::Endpoints,
            });
        };
        let (n_invalid, n_skipped) = (self.n_invalid, self.n_skipped);
        if n_invalid > 0 {
            say(
                EventReason::InvalidIPAddress,
                format!(
                    "Skipped {n_invalid} invalid IP addresses when mirroring to EndpointSlices"
                ),
            );
        }
        if n_skipped > n_invalid {
            say(
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

/// Upstream: `addressToEndpoint`. Addresses the API server would refuse are invalid here too.
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

/// Of two endpoints with the same identity the later one counts, as in upstream's map; of more
/// than fit into a slice, the first.
fn by_identity(mut endpoints: Vec<Endpoint>, max: usize) -> Vec<Endpoint> {
    endpoints.reverse();
    endpoints.sort_by(|a, b| a.compare(b));
    endpoints.dedup_by(|later, first| later.compare(first) == Ordering::Equal);
    endpoints.truncate(max);
    endpoints
}

/// A mirrored endpoint has one address.
impl Wanted for Endpoint {
    fn compare(&self, observed: &Endpoint) -> Ordering {
        fn identity(endpoint: &Endpoint) -> (&[SharedStr], &str, &str, &str) {
            let target = endpoint.target_ref.as_ref();
            (
                &endpoint.addresses,
                endpoint.hostname.as_deref().unwrap_or(""),
                target.map_or("", |target| &target.namespace),
                target.map_or("", |target| &target.name),
            )
        }
        identity(self).cmp(&identity(observed))
    }

    fn is_current(&self, observed: &Endpoint) -> bool {
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
        self.clone()
    }
}

/// What every slice mirrored from one Endpoints object has in common.
struct Template {
    meta: Meta,
}

impl Template {
    fn of(endpoints: &Endpoints) -> Self {
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
            .with(names::MANAGED_BY, Some(names::MANAGED_BY_MIRROR));
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

    fn blank(&self, (address_type, ports): &Group) -> EndpointSlice {
        EndpointSlice {
            meta: self.meta.clone(),
            address_type: address_type.clone(),
            endpoints: Vec::new(),
            ports: ports.as_slice().to_vec(),
        }
    }
}
