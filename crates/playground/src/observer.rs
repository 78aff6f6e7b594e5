//! Reads every change of the store, counts objects and writes, and measures the latency from the
//! change of a pod to a slice that shows it.

mod facts;
mod latency;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use endpointd_apiserver::http::Shared;
use endpointd_apiserver::store::{Key, Stored};
use endpointd_apiserver::{Kind, kinds};
use tokio::sync::watch;

use crate::cluster::facts::{NodeFacts, ZONE_LABEL, read};
use crate::store_reader::{StoreChange, StoreReader};
use crate::view_state::{
    Conditions, NO_ZONE, PodCounts, ServiceView, SliceCounts, SliceView, ViewState, Work,
    WriteCounts, ZoneCounts,
};
use facts::{ServiceFacts, SliceFacts, pod_state};
use latency::{LatencyTracker, PodState};

/// Log lines kept for the view.
const LOG_MAX: usize = 50;
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

pub struct Observer {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    nodes: BTreeMap<String, (String, bool)>,
    pods: BTreeMap<Key, PodState>,
    services: BTreeMap<Key, String>,
    slices: BTreeMap<Key, Slice>,
    tracker: LatencyTracker,
    log: VecDeque<(Duration, String)>,
    milestones: Milestones,
}

struct Slice {
    service: Key,
    address_type: String,
    by_zone: BTreeMap<String, Conditions>,
    n_endpoints: usize,
    pods: Vec<String>,
}

/// The times of first occurrences.
#[derive(Clone, Copy, Debug, Default)]
pub struct Milestones {
    pub first_slice: Option<Duration>,
    /// All initial pods are ready and published.
    pub complete: Option<Duration>,
}

impl Observer {
    /// `n_pods` is the initial number of pods.
    pub fn new(n_pods: usize) -> Self {
        let tracker = LatencyTracker::expecting(n_pods);
        Self { state: Mutex::new(State { tracker, ..State::default() }) }
    }

    /// Reads until `stop` is signalled.
    pub async fn run(&self, shared: Shared, started: Instant, mut stop: watch::Receiver<bool>) {
        let mut written = shared.written();
        let mut reader = self.start_reading(&shared, started.elapsed());
        loop {
            written.borrow_and_update();
            match shared.with(|server| reader.read(server)) {
                Ok(changes) if !changes.is_empty() => {
                    self.lock().apply_all(&changes, started.elapsed(), Origin::Write);
                    continue;
                }
                Ok(_) => {}
                Err(_) => {
                    reader = self.start_reading(&shared, started.elapsed());
                    continue;
                }
            }
            tokio::select! {
                _ = stop.changed() => return,
                _ = written.changed() => {}
            }
        }
    }

    fn start_reading(&self, shared: &Shared, now: Duration) -> StoreReader {
        let watched: Vec<&'static Kind> = [
            ("", "nodes"),
            ("", "pods"),
            ("", "services"),
            ("", "endpoints"),
            ("discovery.k8s.io", "endpointslices"),
        ]
        .iter()
        .map(|(group, resource)| kinds::find(group, resource).expect("it is served"))
        .collect();
        let (reader, changes) = shared.with(|server| StoreReader::start(server, &watched));
        let mut state = self.lock();
        state.nodes.clear();
        state.pods.clear();
        state.services.clear();
        state.slices.clear();
        state.tracker.reset();
        state.apply_all(&changes, now, Origin::Initial);
        reader
    }

    /// Adds a line to the log of the view.
    pub fn log(&self, now: Duration, text: &str) {
        let mut state = self.lock();
        if state.log.len() == LOG_MAX {
            state.log.pop_front();
        }
        state.log.push_back((now, text.to_owned()));
    }

    pub fn milestones(&self) -> Milestones {
        self.lock().milestones
    }

    pub fn view_state(&self, now: Duration, work: Work) -> ViewState {
        self.lock().view_state(now, work)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is only displayed; after a panic it may be inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a change is a new write or part of the initial list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Write,
    Initial,
}

impl State {
    fn apply_all(&mut self, changes: &[StoreChange], now: Duration, origin: Origin) {
        for StoreChange { resource, key, object } in changes {
            let object = object.as_deref();
            match *resource {
                "nodes" => self.apply_node(key, object),
                "pods" => self.apply_pod(key, object, now),
                "services" => self.apply_service(key, object),
                "endpointslices" => self.apply_slice(key, object, now),
                _ => {}
            }
            if origin == Origin::Write {
                self.tracker.count_write(resource, now);
            }
        }
        self.update_milestones(now, origin);
    }

    fn update_milestones(&mut self, now: Duration, origin: Origin) {
        let Milestones { first_slice, complete } = &mut self.milestones;
        if first_slice.is_none() && origin == Origin::Write && self.tracker.n_slice_writes > 0 {
            *first_slice = Some(now);
        }
        if complete.is_none() && first_slice.is_some() && self.tracker.is_complete() {
            *complete = Some(now);
        }
    }

    fn apply_node(&mut self, key: &Key, object: Option<&Stored>) {
        let Some(stored) = object else {
            self.nodes.remove(key.name());
            return;
        };
        let zone = stored.labels.get(ZONE_LABEL).cloned().unwrap_or_else(|| NO_ZONE.to_owned());
        let is_ready = read::<NodeFacts>(stored).is_ready() == Some(true);
        self.nodes.insert(key.name().to_owned(), (zone, is_ready));
    }

    fn apply_pod(&mut self, key: &Key, object: Option<&Stored>, now: Duration) {
        let old = self.pods.get(key).copied();
        let new = object.map(pod_state);
        match new {
            Some(state) => self.pods.insert(key.clone(), state),
            None => self.pods.remove(key),
        };
        self.tracker.pod_changed(key, old, new, now);
    }

    fn apply_service(&mut self, key: &Key, object: Option<&Stored>) {
        match object {
            Some(stored) => {
                let kind = read::<ServiceFacts>(stored).kind();
                self.services.insert(key.clone(), kind);
            }
            None => {
                self.services.remove(key);
            }
        }
    }

    fn apply_slice(&mut self, key: &Key, object: Option<&Stored>, now: Duration) {
        let old = self.slices.remove(key);
        let slice = object.map(|stored| {
            let service = stored.labels.get(SERVICE_LABEL).map_or("", String::as_str);
            (Key::new(key.namespace(), service), read::<SliceFacts>(stored))
        });
        let published: Vec<(&str, PodState)> =
            slice.iter().flat_map(|(_, facts)| facts.pods()).collect();
        for (name, state) in &published {
            self.tracker.pod_published(&Key::new(key.namespace(), name), *state, now);
        }
        for name in old.iter().flat_map(|slice| &slice.pods) {
            self.tracker.slice_replaced(&Key::new(key.namespace(), name), now);
        }
        let pods = published.iter().map(|(name, _)| (*name).to_owned()).collect();
        if let Some((service, facts)) = slice {
            let slice = Slice {
                service,
                by_zone: facts.by_zone(),
                n_endpoints: facts.n_endpoints(),
                address_type: facts.address_type,
                pods,
            };
            self.slices.insert(key.clone(), slice);
        }
    }

    fn view_state(&mut self, elapsed: Duration, work: Work) -> ViewState {
        let mut zones: BTreeMap<String, ZoneCounts> = BTreeMap::new();
        for (zone, is_ready) in self.nodes.values() {
            let counts = zones.entry(zone.clone()).or_default();
            counts.n_nodes += 1;
            counts.n_ready += usize::from(*is_ready);
        }
        let n_endpoints = self.slices.values().map(|slice| slice.n_endpoints).sum();
        ViewState {
            elapsed,
            zones,
            pods: PodCounts {
                n_pods: self.pods.len(),
                n_ready: self.tracker.n_ready,
                n_terminating: self.tracker.n_terminating,
            },
            services: self.service_views(),
            slices: SliceCounts { n_slices: self.slices.len(), n_endpoints },
            writes: WriteCounts {
                n_slice_writes: self.tracker.n_slice_writes,
                n_endpoints_writes: self.tracker.n_endpoints_writes,
                per_second: self.tracker.writes_per_second(elapsed),
            },
            latency: self.tracker.latency(),
            work,
            log: self.log.iter().cloned().collect(),
        }
    }

    fn service_views(&self) -> Vec<ServiceView> {
        let mut all: BTreeMap<&Key, ServiceView> = self
            .services
            .iter()
            .map(|(key, kind)| {
                let (name, kind) = (key.to_string(), kind.clone());
                (key, ServiceView { name, kind, ..ServiceView::default() })
            })
            .collect();
        for slice in self.slices.values() {
            let Some(service) = all.get_mut(&slice.service) else { continue };
            for (zone, conditions) in &slice.by_zone {
                service.by_zone.entry(zone.clone()).or_default().add(*conditions);
            }
            let (address_type, n_endpoints) = (slice.address_type.clone(), slice.n_endpoints);
            service.slices.push(SliceView { address_type, n_endpoints });
        }
        let mut all: Vec<ServiceView> = all.into_values().collect();
        all.iter_mut().for_each(|service| service.slices.sort());
        all
    }
}
