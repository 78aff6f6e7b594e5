//! Writes of the endpointslice controller.

use endpointd_model::{
    AddressType, EndpointSlice, Family, Key, Node, Pod, PublishedResource, WatchedResource, names,
};

use super::{Case, Check, Complaint, owner_uids};
use crate::census::Rule;
use crate::oracle::slices::{Entry, entry, publishes};
use crate::oracle::slices_of;

pub const CHECKS: [(Rule, Check); 3] = [
    (Rule::NoForeignObject, check_target),
    (Rule::NoWrongAddress, check_addresses),
    (Rule::NoLoss, check_loss),
];

fn check_target(case: &Case) -> Result<(), Complaint> {
    let foreign = |text: String| Err((Rule::NoForeignObject, text));
    if case.known_slice().is_none() && case.new_slice().is_none() {
        return foreign(format!("{} is no slice", case.write.key()));
    }
    case.check_manager(names::MANAGED_BY_SLICES)?;
    if case.known_slice().is_some_and(|slice| slice.meta.is_deleting()) {
        return foreign(format!("{} is being deleted", case.write.key()));
    }
    let services: Vec<_> =
        case.services().into_iter().flatten().filter(|service| publishes(service)).collect();
    if services.is_empty() {
        return foreign(format!("{} publishes nothing", case.key));
    }
    let Some(slice) = case.new_slice() else { return Ok(()) };
    let owners = owner_uids(slice);
    let mut owning = services.iter().filter(|service| owners.contains(&&service.uid));
    if owning.clone().next().is_none() {
        return foreign(format!("{} is owned by nobody known", case.write.key()));
    }
    if case.is_create() && owning.all(|service| service.is_deleting) {
        return foreign(format!("{} is created for a Service that goes", case.write.key()));
    }
    Ok(())
}

/// Every version of a pod and of its node that may be known.
fn pods_on_nodes<'a>(case: &Case<'a>, name: &str) -> Vec<Option<(&'a Pod, Option<&'a Node>)>> {
    let key = Key::new(case.key.namespace.clone(), name);
    let mut all = Vec::new();
    for pod in case.api.pods.window(&key, case.view.since(WatchedResource::Pods)) {
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
            .window(&Key::new("", node.clone()), case.view.since(WatchedResource::Nodes));
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

fn check_addresses(case: &Case) -> Result<(), Complaint> {
    let Some(slice) = case.new_slice() else { return Ok(()) };
    for published in entries(slice) {
        if !is_justified(case, &published) {
            let text = format!("{} publishes {published:?}", slice.meta.key());
            return Err((Rule::NoWrongAddress, text));
        }
    }
    Ok(())
}

fn is_justified(case: &Case, published: &Entry) -> bool {
    let Some(family) = family(&published.address_type) else { return false };
    let is_published = || case.api.slices.ever(|slice| publishes_pod(case, slice, published));
    let somewhere = Node::default();
    for service in case.services().into_iter().flatten() {
        for (pod, node) in pods_on_nodes(case, &published.pod).into_iter().flatten() {
            // A node that is not known keeps what is published (B10).
            let node = node.or_else(|| is_published().then_some(&somewhere));
            let Some(wanted) = entry(service, pod, node, family) else { continue };
            if wanted.is_same_place(published)
                && wanted.conditions == published.conditions
                && wanted.node == published.node
            {
                return true;
            }
        }
    }
    false
}

fn publishes_pod(case: &Case, slice: &EndpointSlice, published: &Entry) -> bool {
    slice.meta.namespace == case.key.namespace
        && slice.meta.labels.has(names::SERVICE_NAME, &case.key.name)
        && entries(slice).any(|entry| entry.uid == published.uid)
}

fn check_loss(case: &Case) -> Result<(), Complaint> {
    let Some(known) = case.known_slice() else { return Ok(()) };
    let remaining: Vec<Entry> = slices_of(case.api, &case.key, names::MANAGED_BY_SLICES)
        .filter(|slice| slice.meta.name != known.meta.name)
        .chain(case.new_slice())
        .flat_map(entries)
        .collect();
    for lost in entries(known).filter(|lost| !lost.pod.is_empty()) {
        let is_elsewhere = remaining.iter().any(|entry| entry.is_same_place(&lost));
        if !is_elsewhere && is_wanted_throughout(case, &lost) && !was_moved(case, known, &lost) {
            let text = format!("{} loses {lost:?}", known.meta.key());
            return Err((Rule::NoLoss, text));
        }
    }
    Ok(())
}

/// It was published elsewhere when the plan was made or since then, and someone else took it away
/// there.
fn was_moved(case: &Case, known: &EndpointSlice, lost: &Entry) -> bool {
    let planned = case.view.since(WatchedResource::Slices);
    let shows_it = |slice: &EndpointSlice| {
        slice.meta.name != known.meta.name
            && publishes_pod(case, slice, lost)
            && entries(slice).any(|entry| entry.is_same_place(lost))
    };
    let is_meddled_with =
        |key: &Key| case.api.is_meddled_with(PublishedResource::Slices, key, planned);
    let mut before = case.api.slices.list_at(planned).into_iter();
    case.api.slices.since(planned).any(shows_it)
        || before.any(|entry| shows_it(&entry.object) && is_meddled_with(&entry.key))
}

/// In every version that may be known.
fn is_wanted_throughout(case: &Case, lost: &Entry) -> bool {
    let Some(family) = family(&lost.address_type) else { return false };
    case.services().into_iter().all(|service| {
        // A Service that goes gets no new slices: what cannot stay is lost.
        let Some(service) = service.filter(|one| !one.is_deleting) else { return false };
        let wants = |pod: Option<(&Pod, Option<&Node>)>| {
            let wanted = pod.and_then(|(pod, node)| entry(service, pod, node, family));
            wanted.is_some_and(|wanted| wanted.is_same_place(lost))
        };
        pods_on_nodes(case, &lost.pod).into_iter().all(wants)
    })
}
