//! Plans the endpoints controller (docs/spec.md, section 3). Upstream: `Controller.syncService`.

mod truncation;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{
    BadAddress, ClusterIp, DeleteTarget, EndpointAddress, Endpoints, Family, IpStr, Labels, Meta,
    Object, Pod, PodIp, PublishedResource, Selection, Service, SharedStr, Subset, SubsetPort,
    Write, names,
};

use self::truncation::{Capacity, truncate};
use crate::pods::{self, invalid_address_event};
use crate::port_set::{PortResolver, PortSet};
use crate::subsets::{PortIdentity, repack, same_subsets, sort_addresses};
use crate::{
    EndpointsSnapshot, ExcludedPod, ExclusionReason, OrphanPolicy, Plan, ServicesSeen, Settings,
    endpoints_left_behind, tolerate_unready, trigger,
};

/// Plans the Endpoints of one Service.
pub fn endpoints(snapshot: &EndpointsSnapshot, settings: &Settings) -> Plan {
    let Some(service) = snapshot.service else {
        return match settings.services_seen {
            ServicesSeen::All => plan_for_missing_service(snapshot),
            ServicesSeen::Selected => Plan::default(),
        };
    };
    match service.selection() {
        Selection::Pods(_) => {
            plan_pods(&tolerate_unready::effective(service, settings), snapshot, settings)
        }
        Selection::Manual | Selection::External => {
            let target = match settings.orphan_policy {
                OrphanPolicy::Keep => None,
                OrphanPolicy::Delete => endpoints_left_behind(service, snapshot.endpoints),
            };
            let writes = target.into_iter().map(Write::Delete).collect();
            Plan { writes, ..Plan::nothing(snapshot.carried) }
        }
    }
}

/// Deletes the Endpoints of a Service that does not exist, if the snapshot has them: a delete must
/// name the observed uid and resourceVersion (B8).
fn plan_for_missing_service(snapshot: &EndpointsSnapshot) -> Plan {
    // An object that is already being deleted waits only for its finalizers.
    let observed = snapshot.endpoints.filter(|endpoints| !endpoints.meta.is_deleting());
    let target =
        observed.map(|endpoints| DeleteTarget::of(PublishedResource::Endpoints, &endpoints.meta));
    Plan { writes: target.map(Write::Delete).into_iter().collect(), ..Plan::default() }
}

fn plan_pods(service: &Service, snapshot: &EndpointsSnapshot, settings: &Settings) -> Plan {
    let carried = snapshot.carried;
    let (time, trigger) =
        trigger::observe(carried.trigger.as_ref(), service, snapshot.pods.iter().copied());
    let mut plan = Plan { carried: carried.clone(), ..Plan::default() };
    plan.carried.trigger = Some(trigger);
    let is_reported = &mut plan.carried.has_reported_annotation;
    plan.event_records.extend(tolerate_unready::invalid_event(service, settings, is_reported));
    let published = publish(service, &snapshot.pods, &mut plan);
    plan.counts.n_ready = truncation::n_ready(&published);
    let (subsets, capacity) = truncate(published);
    if capacity == Capacity::Over {
        plan.excluded_pods.extend(beyond_capacity(&subsets, &snapshot.pods, &plan.excluded_pods));
    }
    plan.excluded_pods.sort();
    plan.counts.n_desired = truncation::n_addresses(&subsets);

    let labels = labels(service);
    if let Some(observed) = snapshot.endpoints
        && is_up_to_date(observed, &subsets, &labels, capacity)
    {
        return plan;
    }
    let mut meta = snapshot.endpoints.map_or_else(|| new_meta(service), |old| old.meta.clone());
    meta.labels = labels;
    meta.annotations = trigger::annotate(&meta.annotations, time)
        .with(names::OVER_CAPACITY, capacity.annotation());
    let object = Object::Endpoints(Endpoints { meta, subsets });
    let is_new = snapshot.endpoints.is_none();
    plan.writes.push(if is_new { Write::Create(object) } else { Write::Update(object) });
    plan
}

/// The pods as subsets in canonical form. Records a reason for each pod that is not in them.
fn publish(service: &Service, pods: &[&Pod], plan: &mut Plan) -> Vec<Subset> {
    let mut sorted: Vec<&Pod> = pods.to_vec();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut resolver = PortResolver::new(service);
    let mut published: Vec<(usize, &Pod, SharedStr)> = Vec::with_capacity(pods.len());
    let mut invalid_by_pod = BTreeMap::new();
    for pod in sorted {
        let address = first_address(service, pod, &mut invalid_by_pod);
        match address.and_then(|ip| Ok((resolver.resolve(pod)?, pod, ip))) {
            Ok(one) => published.push(one),
            Err(reason) => plan.excluded_pods.push(ExcludedPod { pod: pod.name.clone(), reason }),
        }
    }
    plan.event_records
        .extend(invalid_address_event(&invalid_by_pod, &mut plan.carried.reported_invalid_pods));
    let mut subsets: Vec<Subset> = resolver.into_port_sets().iter().map(subset_of).collect();
    if let [only] = &mut *subsets {
        only.addresses.reserve_exact(published.len());
    }
    for (port_set, pod, ip) in published {
        let subset = &mut subsets[port_set];
        if subset.ports.is_empty() && !service.ports.is_empty() {
            plan.excluded_pods
                .push(ExcludedPod { pod: pod.name.clone(), reason: ExclusionReason::NoPort });
        } else if service.publish_not_ready || pod.is_ready() {
            subset.addresses.push(address(service, pod, ip));
        } else {
            subset.not_ready_addresses.push(address(service, pod, ip));
        }
    }
    subsets.iter_mut().for_each(sort_addresses);
    repack(Cow::Owned(subsets), PortIdentity::Value).into_owned()
}

/// One address per pod: the first valid one of the Service's primary family (3.3).
fn first_address(
    service: &Service,
    pod: &Pod,
    invalid_by_pod: &mut BTreeMap<SharedStr, BadAddress>,
) -> Result<SharedStr, ExclusionReason> {
    if let Some(reason) = pods::ineligible(pod) {
        return Err(reason);
    }
    if pod.is_terminating && !service.publish_not_ready {
        return Err(ExclusionReason::Terminating);
    }
    if service.ports.is_empty() && service.cluster_ip != ClusterIp::Headless {
        return Err(ExclusionReason::ServiceWithoutPorts);
    }
    let family = primary_family(service, pod);
    let addresses = pods::addresses(pod, family);
    invalid_by_pod.extend(addresses.bad.map(|bad| (pod.name.clone(), bad)));
    let first = addresses.first.ok_or_else(|| addresses.why_none(family))?;
    Ok(IpStr::new(first).into())
}

/// The first of `ipFamilies`, else the family of the ClusterIP, else that of the pod's own address.
/// Upstream: `podToEndpointAddressForService`.
fn primary_family(service: &Service, pod: &Pod) -> Family {
    match (service.families.first(), service.cluster_ip) {
        (Some(family), _) => *family,
        (None, ClusterIp::Ip(family)) => family,
        (None, ClusterIp::Headless | ClusterIp::Unset) => {
            pod.ips.primary.as_ref().map_or(Family::V4, PodIp::family)
        }
    }
}

fn address(service: &Service, pod: &Pod, ip: SharedStr) -> EndpointAddress {
    EndpointAddress {
        ip,
        hostname: pods::hostname(pod, service).cloned(),
        // Always set; empty for a pod without a node.
        node_name: Some(pod.node_name.clone().unwrap_or_default()),
        target_ref: Some(pods::object_ref(pod)),
    }
}

fn subset_of(ports: &PortSet) -> Subset {
    let ports = ports.as_slice().iter().map(|port| SubsetPort {
        name: port.name.clone().unwrap_or_default(),
        port: port.port.unwrap_or_default(),
        protocol: port.protocol.clone().unwrap_or_default(),
        app_protocol: port.app_protocol.clone(),
    });
    Subset { ports: ports.collect(), ..Subset::default() }
}

/// The pods whose addresses truncation dropped.
fn beyond_capacity(
    kept: &[Subset],
    pods: &[&Pod],
    excluded_pods: &[ExcludedPod],
) -> Vec<ExcludedPod> {
    let addresses =
        kept.iter().flat_map(|one| one.addresses.iter().chain(&one.not_ready_addresses));
    let published: BTreeSet<&SharedStr> =
        addresses.filter_map(|address| Some(&address.target_ref.as_ref()?.name)).collect();
    let explained: BTreeSet<&SharedStr> = excluded_pods.iter().map(|one| &one.pod).collect();
    pods.iter()
        .filter(|pod| !published.contains(&pod.name) && !explained.contains(&pod.name))
        .map(|pod| ExcludedPod { pod: pod.name.clone(), reason: ExclusionReason::OverCapacity })
        .collect()
}

/// The Service's labels and the labels that the controller sets.
fn labels(service: &Service) -> Labels {
    let headless = service.is_labelled_headless().then_some("");
    service
        .labels
        .with(names::HEADLESS, headless)
        .with(names::ENDPOINTS_MANAGED_BY, Some(names::MANAGED_BY_ENDPOINTS))
}

fn new_meta(service: &Service) -> Meta {
    Meta { namespace: service.namespace.clone(), name: service.name.clone(), ..Meta::default() }
}

/// Whether the stored object equals what would be written (3.6). Upstream compares with the subsets
/// before truncation and with the Service's labels before adding its own, and can therefore write
/// in every sync; here both sides are what is written (B18). The headless label alone causes no
/// write.
fn is_up_to_date(
    observed: &Endpoints,
    subsets: &[Subset],
    labels: &Labels,
    capacity: Capacity,
) -> bool {
    let annotation = observed.meta.annotations.get(names::OVER_CAPACITY).map(AsRef::as_ref);
    annotation == capacity.annotation()
        && observed.meta.labels.with(names::HEADLESS, None) == labels.with(names::HEADLESS, None)
        && same_subsets(&repack(Cow::Borrowed(&observed.subsets), PortIdentity::Position), subsets)
}
