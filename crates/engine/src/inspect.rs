//! What a page shows of Services. Computed only when somebody asks: an overview decodes the slices
//! of one Service, a detail plans it as well.

use std::collections::BTreeMap;

use endpointd_model::{
    Condition, ConditionStatus, Controller, EndpointSlice, Key, Selection, Service, SharedStr,
    Timestamp, names,
};
use endpointd_plan::{ExcludedPod, ExclusionReason};

use crate::cache::EncodedSlice;
use crate::engine::Engine;
use crate::key_stats::KeyStats;
use crate::planning;
use crate::{KeyStatus, MonotonicTime};

/// Slices of which an overview has the number of endpoints; the others are counted.
pub const SLICES_SHOWN_MAX: usize = 24;

/// One Service in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceOverview {
    pub source: EndpointSource,
    pub is_deleting: bool,
    /// Set if it asks for the endpoints of another Service.
    pub import: Option<RequestedImport>,
    /// Published endpoints by zone; `None` for those without a zone.
    pub by_zone: BTreeMap<Option<SharedStr>, EndpointCounts>,
    /// Endpoints of each slice, sorted by name, at most [`SLICES_SHOWN_MAX`].
    pub slice_sizes: Vec<usize>,
    pub n_slices: usize,
    /// Selected pods that slices do not publish, by reason.
    pub excluded_pods: BTreeMap<ExclusionReason, usize>,
    /// The newest trigger time on a slice.
    pub last_trigger: Option<Timestamp>,
}

/// The endpoints of another Service that one asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedImport {
    /// The source, as the annotation has it.
    pub from: SharedStr,
    /// What came of it; `None` if no controller has said so yet.
    pub condition: Option<Condition>,
}

/// A Service that asks for the endpoints of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    pub key: Key,
    pub import: RequestedImport,
    /// Endpoints that it has now, of which so many are ready.
    pub n_endpoints: usize,
    pub n_ready: usize,
}

/// Where the endpoints of a Service come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndpointSource {
    Pods,
    Manual,
    ExternalName,
}

/// Published endpoints by condition. Terminating ones that are ready count as terminating.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounts {
    pub n_ready: usize,
    pub n_not_ready: usize,
    pub n_terminating: usize,
}

/// Everything that the engine knows about one Service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceDetail {
    pub service: Service,
    /// Sorted by name.
    pub slices: Vec<EndpointSlice>,
    /// The state of the key in each controller that tracks it.
    pub keys: Vec<KeyStatus>,
    /// Selected pods that are not published, with the reason in each controller.
    pub excluded_pods: Vec<(Controller, ExcludedPod)>,
    /// Writes of a plan made now, by controller; zero when it is settled.
    pub n_planned_writes: BTreeMap<Controller, usize>,
    /// Services that ask for its endpoints; known if the import controller runs.
    pub consumers: Vec<Consumer>,
}

impl EndpointSource {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pods => "pods",
            Self::Manual => "manual",
            Self::ExternalName => "external_name",
        }
    }

    fn of(service: &Service) -> Self {
        match service.selection() {
            Selection::Pods(_) => Self::Pods,
            Selection::Manual => Self::Manual,
            Selection::External => Self::ExternalName,
        }
    }
}

impl RequestedImport {
    /// `None`: it asks for none.
    pub fn of(service: &Service) -> Option<Self> {
        let cross = service.cross_namespace.as_ref()?;
        Some(Self { from: cross.from.clone()?, condition: cross.condition().cloned() })
    }

    /// The source is published as it should be.
    pub fn is_complete(&self) -> bool {
        self.condition.as_ref().is_some_and(|one| one.status == ConditionStatus::True)
    }
}

impl EndpointCounts {
    fn count(&mut self, endpoint: &endpointd_model::Endpoint) {
        let conditions = &endpoint.conditions;
        if conditions.terminating == Some(true) {
            self.n_terminating += 1;
        } else if conditions.ready.unwrap_or(true) {
            // Kubernetes: consumers interpret an absent condition as ready.
            self.n_ready += 1;
        } else {
            self.n_not_ready += 1;
        }
    }
}

impl Engine {
    /// The keys of all Services, sorted.
    pub fn service_keys(&self) -> Vec<Key> {
        self.observed().cache().service_keys()
    }

    /// `None`: there is no such Service.
    pub fn service_overview(&self, key: &Key) -> Option<ServiceOverview> {
        let service = self.observed().cache().service(key)?;
        let slices = self.service_slices(key);
        let mut by_zone: BTreeMap<Option<SharedStr>, EndpointCounts> = BTreeMap::new();
        for endpoint in slices.iter().flat_map(|slice| &slice.endpoints) {
            by_zone.entry(endpoint.zone.clone()).or_default().count(endpoint);
        }
        let sizes = slices.iter().map(|slice| slice.endpoints.len());
        let stats = self.controllers().get(Controller::Slices);
        let stats = stats.and_then(|controller| controller.keys.stats(key));
        Some(ServiceOverview {
            source: EndpointSource::of(service),
            is_deleting: service.is_deleting,
            import: RequestedImport::of(service),
            by_zone,
            slice_sizes: sizes.take(SLICES_SHOWN_MAX).collect(),
            n_slices: slices.len(),
            excluded_pods: stats.map(KeyStats::excluded_pods).unwrap_or_default(),
            last_trigger: slices.iter().filter_map(trigger_time).max(),
        })
    }

    /// Plans the Service in each controller and throws the plans away. `None`: there is no such
    /// Service.
    pub fn service_detail(&self, key: &Key, now: MonotonicTime) -> Option<ServiceDetail> {
        let cache = self.observed().cache();
        let service = cache.service(key)?.clone();
        let mut excluded_pods = Vec::new();
        let mut n_planned_writes = BTreeMap::new();
        for state in self.controllers().iter() {
            let controller = state.settings.controller;
            let planned =
                planning::plan((cache, self.sources()), state, self.plan_settings(), key, now);
            let Ok(planned) = planned else { continue };
            let excluded = planned.plan.excluded_pods.into_iter();
            excluded_pods.extend(excluded.map(|one| (controller, one)));
            n_planned_writes.insert(controller, planned.plan.writes.len());
        }
        Some(ServiceDetail {
            service,
            slices: self.service_slices(key),
            keys: self.report_key(key, now),
            excluded_pods,
            n_planned_writes,
            consumers: cache.consumers_of(key).filter_map(|one| self.consumer(one)).collect(),
        })
    }

    /// Services that ask for the endpoints of others, those that do not have them first; at most
    /// `max`, and how many more there are.
    pub fn consumers(&self, max: usize) -> (Vec<Consumer>, usize) {
        let mut keys: Vec<(bool, Key)> = Vec::new();
        for service in self.observed().cache().services() {
            if let Some(import) = RequestedImport::of(service) {
                keys.push((import.is_complete(), service.key()));
            }
        }
        keys.sort_unstable();
        let n_more = keys.len().saturating_sub(max);
        let consumers = keys.iter().take(max).filter_map(|(_, key)| self.consumer(key));
        (consumers.collect(), n_more)
    }

    fn consumer(&self, key: &Key) -> Option<Consumer> {
        let import = RequestedImport::of(self.observed().cache().service(key)?)?;
        let (mut n_endpoints, mut n_ready) = (0, 0);
        for slice in self.service_slices(key) {
            if slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_IMPORT) {
                n_endpoints += slice.endpoints.len();
                n_ready += slice.endpoints.iter().filter(|one| one.is_ready()).count();
            }
        }
        Some(Consumer { key: key.clone(), import, n_endpoints, n_ready })
    }

    /// The slice as it was last observed or written.
    pub fn slice(&self, key: &Key) -> Option<EndpointSlice> {
        self.observed().cache().slice(key)
    }

    /// As [`Self::slice`], to be decoded on another thread.
    pub fn encoded_slice(&self, key: &Key) -> Option<EncodedSlice> {
        self.observed().cache().encoded_slice(key)
    }

    fn service_slices(&self, key: &Key) -> Vec<EndpointSlice> {
        let mut slices = self.observed().cache().slices_of(key);
        slices.sort_by(|a, b| a.meta.name.cmp(&b.meta.name));
        slices
    }
}

fn trigger_time(slice: &EndpointSlice) -> Option<Timestamp> {
    slice.meta.annotations.get(names::TRIGGER_TIME)?.parse().ok()
}
