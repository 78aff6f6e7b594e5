//! Writes of the endpointslice controller.

use endpointd_model::{
    AddressType, EndpointSlice, Family, Key, Node, Pod, PublishedResource, WatchedResource, names,
};

use super::{Breach, Check, CheckedWrite, owner_uids};
use crate::coverage::Rule;
use crate::oracle::left_behind::is_slice_left;
use crate::oracle::slices::{Entry, entry, publishes};
use crate::oracle::slices_of;

pub const CHECKS: [(Rule, Check); 3] = [
    (Rule::NoForeignObject, check_target),
    (Rule::NoWrongAddress, check_addresses),
    (Rule::NoLoss, check_loss),
];

fn check_target(case: &CheckedWrite) -> Result<(), Breach> {
    let foreign = |text: String| Err((Rule::NoForeignObject, text));
    if case.known_slice().is_none() && case.new_slice().is_none() {
        return foreign(format!("{} is no slice", case.write.key()));
    }
    case.check_manager(names::MANAGED_BY_SLICES)?;
    if case.known_slice().is_some_and(|slice| slice.meta.is_deleting()) {
        return foreign(format!("{} is being deleted", case.write.key()));
    }
    let (services, others): (Vec<_>, Vec<_>) =
        case.services().into_iter().flatten().partition(|service| publishes(service));
    if case.may_delete_left_behind()
        && let Some(slice) = case.known_slice()
        && others.iter().any(|service| is_slice_left(service, slice))
    {
        return Ok(());
    }
    if services.is_empty() {
        return foreign(format!("{} publishes nothing", case.key));
    }
    let Some(slice) = case.new_slice() else { return Ok(()) };
    let owners = owner_uids(slice);
    let mut owning = services.iter().filter(|service| owners.contains(&&service.uid));
    if owning.clone().next().is_none() {
        return foreign(format!("{} has no known owner", case.write.key()));
    }
    if case.is_create() && owning.all(|service| service.is_deleting) {
        return foreign(format!("{} is created for a deleting Service", case.write.key()));
    }
    Ok(())
}

/// Every version of a pod and of its node that the engine may have observed.
fn pods_on_nodes<'a>(
    case: &CheckedWrite<'a>,
    name: &str,
) -> Vec<Option<(&'a Pod, Option<&'a Node>)>> {
    let key = Key::new(case.key.namespace.clone(), name);
    let mut all = Vec::new();
    for pod in case.api.pods.window(&key, case.observed.of(WatchedResource::Pods)) {
        let Some(pod) = pod else {
            all.push(None);
            continue;
        };
        let Some(node) = &pod.node_name else {
            all.push(Some((pod, None)));
            continue;
        };
        let nodes = case
            .api
            .nodes
            .window(&Key::new("", node.clone()), case.observed.of(WatchedResource::Nodes));
        all.extend(nodes.into_iter().map(|node| Some((pod, node))));
    }
    all
}

fn family(address_type: &AddressType) -> Option<Family> {
    [Family::V4, Family::V6].into_iter().find(|family| AddressType::from(*family) == *address_type)
}

fn entries(slice: &EndpointSlice) -> impl Iterator<Item = Entry> + '_ {
    slice.endpoints.iter().map(|endpoint| Entry::of(slice, endpoint))
}

fn check_addresses(case: &CheckedWrite) -> Result<(), Breach> {
    let Some(slice) = case.new_slice() else { return Ok(()) };
    for published in entries(slice) {
        if !is_justified(case, &published) {
            let text = format!("{} publishes {published:?}", slice.meta.key());
            return Err((Rule::NoWrongAddress, text));
        }
    }
    Ok(())
}

fn is_justified(case: &CheckedWrite, published: &Entry) -> bool {
    let Some(family) = family(&published.address_type) else { return false };
    let is_published = || case.api.slices.ever(|slice| publishes_pod(case, slice, published));
    let somewhere = Node::default();
    for service in case.services().into_iter().flatten() {
        for (pod, node) in pods_on_nodes(case, &published.pod).into_iter().flatten() {
            // An unknown node keeps published endpoints (B10).
            let node = node.or_else(|| is_published().then_some(&somewhere));
            let Some(desired) = entry(service, pod, node, family) else { continue };
            if desired.is_same_place(published)
                && desired.conditions == published.conditions
                && desired.node == published.node
            {
                return true;
            }
        }
    }
    false
}

fn publishes_pod(case: &CheckedWrite, slice: &EndpointSlice, published: &Entry) -> bool {
    slice.meta.namespace == case.key.namespace
        && slice.meta.labels.has(names::SERVICE_NAME, &case.key.name)
        && entries(slice).any(|entry| entry.uid == published.uid)
}

fn check_loss(case: &CheckedWrite) -> Result<(), Breach> {
    let Some(known) = case.known_slice() else { return Ok(()) };
    let remaining: Vec<Entry> = slices_of(case.api, &case.key, names::MANAGED_BY_SLICES)
        .filter(|slice| slice.meta.name != known.meta.name)
        .chain(case.new_slice())
        .flat_map(entries)
        .collect();
    for lost in entries(known).filter(|lost| !lost.pod.is_empty()) {
        let is_elsewhere = remaining.iter().any(|entry| entry.is_same_place(&lost));
        if !is_elsewhere && is_desired_throughout(case, &lost) && !was_moved(case, known, &lost) {
            let text = format!("{} loses {lost:?}", known.meta.key());
            return Err((Rule::NoLoss, text));
        }
    }
    Ok(())
}

/// Another slice published the endpoint when the plan was made or later, and another client
/// removed it there.
fn was_moved(case: &CheckedWrite, known: &EndpointSlice, lost: &Entry) -> bool {
    let planned = case.observed.of(WatchedResource::Slices);
    let shows_it = |slice: &EndpointSlice| {
        slice.meta.name != known.meta.name
            && publishes_pod(case, slice, lost)
            && entries(slice).any(|entry| entry.is_same_place(lost))
    };
    let is_externally_modified =
        |key: &Key| case.api.is_externally_modified(PublishedResource::Slices, key, planned);
    let mut before = case.api.slices.list_at(planned).into_iter();
    case.api.slices.since(planned).any(shows_it)
        || before.any(|entry| shows_it(&entry.object) && is_externally_modified(&entry.key))
}

/// In every version that the engine may have observed.
fn is_desired_throughout(case: &CheckedWrite, lost: &Entry) -> bool {
    let Some(family) = family(&lost.address_type) else { return false };
    case.services().into_iter().all(|service| {
        // A deleting Service gets no new slices, so an endpoint that must move is lost.
        let Some(service) = service.filter(|one| !one.is_deleting) else { return false };
        let wants = |pod: Option<(&Pod, Option<&Node>)>| {
            let desired = pod.and_then(|(pod, node)| entry(service, pod, node, family));
            desired.is_some_and(|desired| desired.is_same_place(lost))
        };
        pods_on_nodes(case, &lost.pod).into_iter().all(wants)
    })
}
