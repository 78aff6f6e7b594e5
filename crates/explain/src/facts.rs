//! What is known about one Service: its raw object, its pods, the plan, and what is published.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{
    AddressType, Conditions, Controller, EndpointSlice, Key, Object, Pod, PublishedResource,
    Service, SharedStr, Timestamp, Write, names,
};
use endpointd_plan::{
    CarriedState, ExclusionReason, IndexedCluster, Plan, Settings, publishes_not_ready,
};
use serde_json::Value;

use crate::cluster_set::{self, ClusterSetFacts};
use crate::finding::ObjectName;
use crate::objects::Objects;

/// What all explanations of one run share.
pub struct Context<'a> {
    pub objects: &'a Objects,
    /// Of `objects.cluster()`.
    pub indexed: &'a IndexedCluster<'a>,
    pub now: Timestamp,
    pub settings: Settings,
    /// What a running endpointd reports, if one was asked.
    pub controller: Option<&'a ControllerState>,
    pub mode: Mode,
}

/// Whether the objects are as they are, or as they would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Observed,
    /// Some objects have not been applied yet, so nothing can be published for them.
    WhatIf,
}

/// The state of one key in a running endpointd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerState {
    /// The state of the key, such as `backing_off`.
    pub key_state: String,
    pub last_error: Option<String>,
    pub is_deletion_limiter_active: bool,
    /// The other clusters, if it imports Services.
    pub clusters: Vec<SourceReport>,
}

/// Another cluster, as a running endpointd sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceReport {
    pub cluster: String,
    /// Such as `Demoted`.
    pub state: String,
    pub last_contact: Option<Timestamp>,
    pub is_denied: bool,
}

pub(crate) struct ServiceFacts<'a> {
    pub context: &'a Context<'a>,
    pub key: Key,
    pub raw: &'a Value,
    pub service: &'a Service,
    /// The pods that the selector matches, by name.
    pub pods: Vec<PodFacts<'a>>,
    pub plan: Plan,
    pub endpoints_plan: Plan,
    pub mirror_plan: Plan,
    /// The slices of the controller as they are.
    pub published: Vec<&'a EndpointSlice>,
    /// The slices of the controller after the plan.
    pub desired: Vec<EndpointSlice>,
    /// Slices of the Service that another program writes, without mirrored ones.
    pub foreign: Vec<&'a EndpointSlice>,
    /// Slices with the endpoints of another Service.
    pub imported: Vec<&'a EndpointSlice>,
    /// If several clusters may export it.
    pub cluster_set: Option<ClusterSetFacts<'a>>,
    /// Whether its endpoints are those of an import.
    pub is_derived: bool,
}

pub(crate) struct PodFacts<'a> {
    pub raw: &'a Value,
    pub pod: &'a Pod,
    pub state: PodState,
}

/// What the plan makes of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodState {
    /// In a slice, ready, with a port if the Service has ports.
    Ready,
    NotReady(Conditions),
    /// In a slice without ports, because none of the Service's ports resolves on the pod.
    WithoutPort,
    Excluded(ExclusionReason),
    /// A Service that is being deleted gets no new slices.
    ServiceDeleting,
}

impl<'a> ServiceFacts<'a> {
    /// `None`: there is no such Service, or it cannot be decoded.
    pub fn of(context: &'a Context<'a>, key: &Key) -> Option<Self> {
        let objects = context.objects;
        let raw = objects.get("Service", &key.namespace, &key.name)?;
        let service = objects.cluster.services.get(key)?;
        let carried = CarriedState::default();
        let plan_of =
            |controller| context.indexed.plan(controller, key, &carried, &context.settings);
        let snapshot = context.indexed.slice_snapshot(key, &carried);
        let labelled = objects.cluster.slices.values().filter(|slice| {
            slice.meta.namespace == key.namespace
                && slice.meta.labels.has(names::SERVICE_NAME, &key.name)
        });
        let (mut published, mut imported, mut foreign) = (Vec::new(), Vec::new(), Vec::new());
        for slice in labelled {
            match context.settings.managers.controller(&slice.meta.labels) {
                Some(Controller::Slices) => published.push(slice),
                Some(Controller::Import) => imported.push(slice),
                Some(Controller::Mirror | Controller::Endpoints | Controller::MultiCluster) => {}
                None if slice
                    .meta
                    .labels
                    .has(names::MANAGED_BY, names::MANAGED_BY_CLUSTER_IMPORT) => {}
                None => foreign.push(slice),
            }
        }
        let plan = plan_of(Controller::Slices);
        let desired = after(&plan, &published);
        let mut selected: Vec<Key> = snapshot.pods.iter().map(|one| one.pod.key()).collect();
        selected.sort();
        let states = PodStates::of(service, &plan, &desired);
        let pod_facts = |key: Key| {
            let pod = objects.cluster.pods.get(&key)?;
            let raw = objects.get("Pod", &key.namespace, &key.name)?;
            Some(PodFacts { raw, pod, state: states.get(&pod.name) })
        };
        let pods = selected.into_iter().filter_map(pod_facts).collect();
        Some(Self {
            context,
            key: key.clone(),
            raw,
            service,
            pods,
            cluster_set: ClusterSetFacts::of(context, key, Some(service)),
            is_derived: cluster_set::imported_by(context, key).is_some(),
            endpoints_plan: plan_of(Controller::Endpoints),
            mirror_plan: plan_of(Controller::Mirror),
            foreign,
            imported,
            plan,
            desired,
            published,
        })
    }

    pub fn object(&self) -> ObjectName {
        ObjectName::new("Service", &self.key.namespace, &self.key.name)
    }

    pub fn endpoints_object(&self) -> ObjectName {
        ObjectName::new("Endpoints", &self.key.namespace, &self.key.name)
    }

    /// `Service shop/web`.
    pub fn name(&self) -> &str {
        &self.key.name
    }

    pub fn raw_endpoints(&self) -> Option<&'a Value> {
        self.context.objects.get("Endpoints", &self.key.namespace, &self.key.name)
    }

    pub fn publishes_not_ready(&self) -> bool {
        publishes_not_ready(self.service, &self.context.settings)
    }

    pub fn n_ready(&self) -> usize {
        self.pods.iter().filter(|pod| pod.state == PodState::Ready).count()
    }

    /// The pods with a published endpoint that is ready.
    pub fn published_ready(&self) -> BTreeSet<&SharedStr> {
        ready_pods(self.published.iter().copied())
    }

    pub fn desired_ready(&self) -> BTreeSet<&SharedStr> {
        ready_pods(self.desired.iter())
    }
}

impl PodFacts<'_> {
    pub fn object(&self) -> ObjectName {
        ObjectName::new("Pod", &self.pod.namespace, &self.pod.name)
    }

    pub fn name(&self) -> &str {
        &self.pod.name
    }
}

fn ready_pods<'s>(slices: impl Iterator<Item = &'s EndpointSlice>) -> BTreeSet<&'s SharedStr> {
    let endpoints = slices.flat_map(|slice| &slice.endpoints);
    let ready = endpoints.filter(|endpoint| endpoint.is_ready());
    ready.filter_map(|endpoint| Some(&endpoint.target_ref.as_ref()?.name)).collect()
}

/// The slices of the controller after the writes of its plan.
fn after(plan: &Plan, published: &[&EndpointSlice]) -> Vec<EndpointSlice> {
    let by_name = published.iter().map(|slice| (slice.meta.name.clone(), (*slice).clone()));
    let mut slices: BTreeMap<SharedStr, EndpointSlice> = by_name.collect();
    for write in &plan.writes {
        match write {
            Write::Create(Object::Slice(slice)) | Write::Update(Object::Slice(slice)) => {
                slices.insert(slice.meta.name.clone(), slice.clone());
            }
            Write::Delete(target) if target.resource == PublishedResource::Slices => {
                slices.remove(&target.key.name);
            }
            Write::Create(
                Object::Endpoints(_) | Object::ServiceStatus(_) | Object::MultiCluster(_),
            )
            | Write::Update(
                Object::Endpoints(_) | Object::ServiceStatus(_) | Object::MultiCluster(_),
            )
            | Write::Delete(_) => {}
        }
    }
    slices.into_values().collect()
}

/// What the plan makes of each pod, by name.
struct PodStates<'p> {
    published: BTreeMap<&'p SharedStr, PodState>,
    excluded: BTreeMap<&'p SharedStr, ExclusionReason>,
}

impl<'p> PodStates<'p> {
    fn of(service: &Service, plan: &'p Plan, desired: &'p [EndpointSlice]) -> Self {
        let mut published: BTreeMap<&SharedStr, PodState> = BTreeMap::new();
        for slice in desired.iter().filter(|slice| is_ip(&slice.address_type)) {
            let has_port = !slice.ports.is_empty() || service.ports.is_empty();
            for endpoint in &slice.endpoints {
                let Some(target) = &endpoint.target_ref else { continue };
                let state = match (has_port, endpoint.is_ready()) {
                    (false, _) => PodState::WithoutPort,
                    (true, true) => PodState::Ready,
                    (true, false) => PodState::NotReady(endpoint.conditions),
                };
                let kept = published.entry(&target.name).or_insert(state);
                if rank(state) < rank(*kept) {
                    *kept = state;
                }
            }
        }
        let mut excluded = BTreeMap::new();
        for one in &plan.excluded_pods {
            let kept = excluded.entry(&one.pod).or_insert(one.reason);
            // A dual-stack Service excludes a pod once per family: an invalid address says more.
            if let ExclusionReason::InvalidAddress(_) = one.reason {
                *kept = one.reason;
            }
        }
        Self { published, excluded }
    }

    /// A pod of a dual-stack Service can be published in one family and excluded in the other.
    fn get(&self, pod: &SharedStr) -> PodState {
        let excluded = || self.excluded.get(pod).copied().map(PodState::Excluded);
        let published = self.published.get(pod).copied();
        published.or_else(excluded).unwrap_or(PodState::ServiceDeleting)
    }
}

/// The best of several endpoints of one pod counts.
fn rank(state: PodState) -> usize {
    match state {
        PodState::Ready => 0,
        PodState::NotReady(_) => 1,
        PodState::WithoutPort => 2,
        PodState::Excluded(_) | PodState::ServiceDeleting => 3,
    }
}

fn is_ip(address_type: &AddressType) -> bool {
    match address_type {
        AddressType::IPv4 | AddressType::IPv6 => true,
        AddressType::Fqdn | AddressType::Other(_) => false,
    }
}
