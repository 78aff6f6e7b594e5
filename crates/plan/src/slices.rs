//! Plans the endpointslice controller (docs/spec.md, section 4). Upstream: `Reconciler.Reconcile`.

mod desired;
mod in_place;
mod published;
mod template;

use std::collections::BTreeMap;

use endpointd_model::{
    AddressType, ClusterIp, EndpointSlice, EventReason, EventRecord, Family, InvolvedKind,
    Selection, Service, Write,
};

use self::desired::{Groups, PodsByName};
pub use self::in_place::{
    InPlacePlan, InPlaceSnapshot, PlacedSlice, SliceWithPods, placement, slices_in_place,
};
use self::template::Template;
pub(crate) use self::template::owns;
use crate::packing::{DesiredEndpoints, SliceAction, pack, recycle};
use crate::port_set::PortSet;
use crate::slice_names::SliceNames;
use crate::{
    CarriedState, Counts, OrphanPolicy, Plan, Retry, Settings, SliceSnapshot, hints,
    slices_left_behind, tolerate_unready, trigger, writes,
};

/// Plans the slices of one Service.
///
/// ```
/// use endpointd_plan::{CarriedState, Settings, SliceSnapshot, Topology, slices};
///
/// // A Service that does not exist: the garbage collector deletes its slices.
/// let snapshot = SliceSnapshot {
///     service: None,
///     pods: Vec::new(),
///     topology: &Topology::default(),
///     slices: Vec::new(),
///     names_in_use: &(),
///     carried: &CarriedState::default(),
/// };
/// assert!(slices(&snapshot, &Settings::default()).writes.is_empty());
/// ```
pub fn slices(snapshot: &SliceSnapshot, settings: &Settings) -> Plan {
    // Without a Service the garbage collector deletes the slices through their ownerReference, and
    // the carried state is dropped (4.1).
    let Some(service) = snapshot.service else { return Plan::default() };
    match service.selection() {
        Selection::Pods(_) => {
            plan_pods(&tolerate_unready::effective(service, settings), snapshot, settings)
        }
        Selection::Manual | Selection::External => {
            let writes = match settings.orphan_policy {
                OrphanPolicy::Keep => Vec::new(),
                OrphanPolicy::Delete => slices_left_behind(service, &snapshot.slices, settings),
            };
            let writes = writes.into_iter().map(Write::Delete).collect();
            Plan { writes, ..Plan::nothing(snapshot.carried) }
        }
    }
}

fn plan_pods(service: &Service, snapshot: &SliceSnapshot, settings: &Settings) -> Plan {
    let matched = snapshot.pods.iter().map(|pod| pod.pod);
    let (time, trigger) = trigger::observe(snapshot.carried.trigger.as_ref(), service, matched);
    let template = Template::of(service, &settings.managers.slices);
    let observed = template.observed(&snapshot.slices);
    let mut pods = PodsByName::of(service, &snapshot.pods);
    let mut names =
        SliceNames::new(&service.name, &service.uid, snapshot.names_in_use).with(&snapshot.slices);
    let mut carried = CarriedState { trigger: Some(trigger), ..snapshot.carried.clone() };
    let mut plan = Plan::default();
    let is_reported = &mut carried.has_reported_annotation;
    plan.event_records.extend(tolerate_unready::invalid_event(service, settings, is_reported));
    let mut actions = Vec::new();
    let families = families(service);
    carried.hints.keep_only(&families);
    for &family in &families {
        let of_family: Vec<_> = of_type(&observed, &family.into()).collect();
        let groups = pods.publish(family, &of_family);
        let mut packed = pack_family(&template, &of_family, groups, settings, &mut plan.counts);
        // Before recycling, because upstream treats slices to create differently from others here.
        let context = hints::Context { service, topology: snapshot.topology, family };
        plan.event_records.extend(hints::assign(&mut packed, &context, &mut carried.hints));
        packed = recycle(packed, |slice| template.owns(slice));
        names.name_new(&mut packed);
        actions.extend(packed);
    }
    let is_unsupported = |slice: &&&EndpointSlice| {
        families.iter().all(|family| slice.address_type != AddressType::from(*family))
    };
    actions.extend(observed.iter().filter(is_unsupported).map(|slice| SliceAction::Delete(slice)));
    plan.writes = writes::of_actions(actions, service.is_deleting, |annotations| {
        trigger::annotate(annotations, time)
    });
    pods.report(&mut carried, &mut plan);
    plan.counts.n_slices_desired = plan.counts.n_slices_desired.max(1);
    plan.carried = carried;
    plan
}

/// The address types of a Service. Upstream: `getAddressTypesForService`.
pub(crate) fn families(service: &Service) -> Vec<Family> {
    let mut families = service.families.clone();
    if families.is_empty() {
        families = match service.cluster_ip {
            ClusterIp::Ip(family) => vec![family],
            // The API server has not set defaults yet. Both families, so that no traffic is cut
            // off.
            ClusterIp::Headless | ClusterIp::Unset => vec![Family::V4, Family::V6],
        };
    }
    families.sort_unstable();
    families.dedup();
    families
}

fn of_type<'s, 'a>(
    slices: &'s [&'a EndpointSlice],
    address_type: &'s AddressType,
) -> impl Iterator<Item = &'a EndpointSlice> + 's {
    slices.iter().copied().filter(move |slice| slice.address_type == *address_type)
}

/// Packs every group of one family. Slices that the Service does not own (4.5), and slices of port
/// sets that no pod uses, are deleted. Upstream: `reconcileByAddressType`.
fn pack_family<'a>(
    template: &Template,
    observed: &[&'a EndpointSlice],
    groups: Groups,
    settings: &Settings,
    counts: &mut Counts,
) -> Vec<SliceAction<'a>> {
    let max = settings.endpoints_per_slice_max;
    let (owned, not_owned): (Vec<&EndpointSlice>, Vec<&EndpointSlice>) =
        observed.iter().partition(|slice| template.owns(slice));
    let mut observed_by_ports: BTreeMap<PortSet, Vec<&EndpointSlice>> = BTreeMap::new();
    for slice in owned {
        observed_by_ports.entry(PortSet::new(slice.ports.clone())).or_default().push(slice);
    }
    let mut actions: Vec<SliceAction> = not_owned.into_iter().map(SliceAction::Delete).collect();
    for (ports, published) in groups.pods_by_ports {
        let observed = observed_by_ports.remove(&ports).unwrap_or_default();
        counts.n_ready += published.iter().filter(|pod| pod.is_ready()).count();
        let mut desired = DesiredEndpoints::new(published);
        let new_slice = || template.new_slice(groups.family, &ports);
        let label_update = |slice: &EndpointSlice| template.label_update(slice);
        let packing = pack(&observed, &mut desired, label_update, new_slice, max);
        count_group(counts, &packing, desired.len(), max);
        actions.extend(packing.actions);
    }
    actions.extend(observed_by_ports.into_values().flatten().map(SliceAction::Delete));
    with_placeholder(actions, template, groups.family, counts)
}

fn count_group(counts: &mut Counts, packing: &crate::packing::Packing, n: usize, max: usize) {
    counts.n_added += packing.n_added;
    counts.n_updated += packing.n_updated;
    counts.n_removed += packing.n_removed;
    counts.n_desired += n;
    counts.n_slices += packing.actions.iter().filter(|action| action.slice().is_some()).count();
    counts.n_slices_desired += n.div_ceil(max);
}

/// A family without endpoints gets a slice without ports and endpoints (4.8). Without any slice,
/// clients could not distinguish "no endpoints" from "not processed yet".
fn with_placeholder<'a>(
    mut actions: Vec<SliceAction<'a>>,
    template: &Template,
    family: Family,
    counts: &mut Counts,
) -> Vec<SliceAction<'a>> {
    if actions.iter().any(|action| action.slice().is_some()) {
        return actions;
    }
    counts.n_slices += 1;
    let placeholder = template.new_slice(family, &PortSet::default());
    match actions.as_slice() {
        // Recognised by content alone: upstream keeps one whatever its owner.
        [SliceAction::Delete(only)] if template::is_same_placeholder(only, &placeholder) => {
            vec![SliceAction::Keep(only)]
        }
        _ => {
            actions.push(SliceAction::Create(placeholder));
            actions
        }
    }
}

/// The event that upstream records when a sync excludes pods for their node (4.13).
fn missing_nodes_event(service: &Service, retry: &Retry) -> EventRecord {
    EventRecord {
        reason: EventReason::FailedToUpdateEndpointSlices,
        message: format!("Error updating Endpoint Slices for Service {}: {retry}", service.key()),
        involved_kind: InvolvedKind::Service,
    }
}
