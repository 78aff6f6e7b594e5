//! Looks on: reads every change of the store, keeps the few numbers people are shown, and measures
//! how long a change of a pod takes to arrive in a slice.

mod facts;
mod meter;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use endpointd_apiserver::http::Shared;
use endpointd_apiserver::store::{Key, Stored};
use endpointd_apiserver::{Kind, kinds};
use tokio::sync::watch;

use crate::cluster::facts::{NodeFacts, ZONE_LABEL, read};
use crate::picture::{
    Conditions, NO_ZONE, Picture, PodCounts, ServicePicture, SliceCounts, SlicePicture, Work,
    WriteCounts, ZoneCounts,
};
use crate::reader::{News, Reader};
use facts::{ServiceFacts, SliceFacts, pod_state};
use meter::{Meter, PodState};

/// Happenings remembered for the view.
const TOLD_MAX: usize = 50;
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
    meter: Meter,
    told: VecDeque<(Duration, String)>,
    milestones: Milestones,
}

struct Slice {
    service: Key,
    address_type: String,
    by_zone: BTreeMap<String, Conditions>,
    n_endpoints: usize,
    pods: Vec<String>,
}

/// When things happened for the first time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Milestones {
    pub first_slice: Option<Duration>,
    /// All pods of the world are ready, and slices show it.
    pub complete: Option<Duration>,
}

impl Observer {
    /// `n_pods` is how many the world has when it is complete.
    pub fn new(n_pods: usize) -> Self {
        let meter = Meter::expecting(n_pods);
        Self { state: Mutex::new(State { meter, ..State::default() }) }
    }

    /// Reads until told to stop.
    pub async fn run(&self, shared: Shared, started: Instant, mut stop: watch::Receiver<bool>) {
        let mut written = shared.written();
        let mut reader = self.begin(&shared, started.elapsed());
        loop {
            written.borrow_and_update();
            match shared.with(|server| reader.read(server)) {
                Ok(news) if !news.is_empty() => {
                    self.lock().see_all(&news, started.elapsed(), IsNew::Yes);
                    continue;
                }
                Ok(_) => {}
                Err(_) => {
                    reader = self.begin(&shared, started.elapsed());
                    continue;
                }
            }
            tokio::select! {
                _ = stop.changed() => return,
                _ = written.changed() => {}
            }
        }
    }

    fn begin(&self, shared: &Shared, now: Duration) -> Reader {
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
        let (reader, news) = shared.with(|server| Reader::start(server, &watched));
        let mut state = self.lock();
        state.nodes.clear();
        state.pods.clear();
        state.services.clear();
        state.slices.clear();
        state.meter.forget_all();
        state.see_all(&news, now, IsNew::No);
        reader
    }

    /// Remembers a sentence about what happened.
    pub fn tell(&self, now: Duration, text: &str) {
        let mut state = self.lock();
        if state.told.len() == TOLD_MAX {
            state.told.pop_front();
        }
        state.told.push_back((now, text.to_owned()));
    }

    pub fn milestones(&self) -> Milestones {
        self.lock().milestones
    }

    pub fn picture(&self, now: Duration, work: Work) -> Picture {
        self.lock().picture(now, work)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Numbers for people: what a panic left behind is good enough to look at.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether something was just written, or was there before we looked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IsNew {
    Yes,
    No,
}

impl State {
    fn see_all(&mut self, news: &[News], now: Duration, is_new: IsNew) {
        for News { shelf, key, object } in news {
            let object = object.as_deref();
            match *shelf {
                "nodes" => self.see_node(key, object),
                "pods" => self.see_pod(key, object, now),
                "services" => self.see_service(key, object),
                "endpointslices" => self.see_slice(key, object, now),
                _ => {}
            }
            if is_new == IsNew::Yes {
                self.meter.count_write(shelf, now);
            }
        }
        self.mark(now, is_new);
    }

    fn mark(&mut self, now: Duration, is_new: IsNew) {
        let Milestones { first_slice, complete } = &mut self.milestones;
        if first_slice.is_none() && is_new == IsNew::Yes && self.meter.n_slice_writes > 0 {
            *first_slice = Some(now);
        }
        if complete.is_none() && first_slice.is_some() && self.meter.is_complete() {
            *complete = Some(now);
        }
    }

    fn see_node(&mut self, key: &Key, object: Option<&Stored>) {
        let Some(stored) = object else {
            self.nodes.remove(key.name());
            return;
        };
        let zone = stored.labels.get(ZONE_LABEL).cloned().unwrap_or_else(|| NO_ZONE.to_owned());
        let is_ready = read::<NodeFacts>(stored).is_ready() == Some(true);
        self.nodes.insert(key.name().to_owned(), (zone, is_ready));
    }

    fn see_pod(&mut self, key: &Key, object: Option<&Stored>, now: Duration) {
        let old = self.pods.get(key).copied();
        let new = object.map(pod_state);
        match new {
            Some(state) => self.pods.insert(key.clone(), state),
            None => self.pods.remove(key),
        };
        self.meter.pod_changed(key, old, new, now);
    }

    fn see_service(&mut self, key: &Key, object: Option<&Stored>) {
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

    fn see_slice(&mut self, key: &Key, object: Option<&Stored>, now: Duration) {
        let old = self.slices.remove(key);
        let slice = object.map(|stored| {
            let service = stored.labels.get(SERVICE_LABEL).map_or("", String::as_str);
            (Key::new(key.namespace(), service), read::<SliceFacts>(stored))
        });
        let shown: Vec<(&str, PodState)> =
            slice.iter().flat_map(|(_, facts)| facts.pods()).collect();
        for (name, state) in &shown {
            self.meter.shown(&Key::new(key.namespace(), name), *state, now);
        }
        for name in old.iter().flat_map(|slice| &slice.pods) {
            self.meter.replaced(&Key::new(key.namespace(), name), now);
        }
        let pods = shown.iter().map(|(name, _)| (*name).to_owned()).collect();
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

    fn picture(&mut self, elapsed: Duration, work: Work) -> Picture {
        let mut zones: BTreeMap<String, ZoneCounts> = BTreeMap::new();
        for (zone, is_ready) in self.nodes.values() {
            let counts = zones.entry(zone.clone()).or_default();
            counts.n_nodes += 1;
            counts.n_ready += usize::from(*is_ready);
        }
        let n_endpoints = self.slices.values().map(|slice| slice.n_endpoints).sum();
        Picture {
            elapsed,
            zones,
            pods: PodCounts {
                n_pods: self.pods.len(),
                n_ready: self.meter.n_ready,
                n_terminating: self.meter.n_terminating,
            },
            services: self.service_pictures(),
            slices: SliceCounts { n_slices: self.slices.len(), n_endpoints },
            writes: WriteCounts {
                n_slice_writes: self.meter.n_slice_writes,
                n_endpoints_writes: self.meter.n_endpoints_writes,
                per_second: self.meter.writes_per_second(elapsed),
            },
            latency: self.meter.latency(),
            work,
            told: self.told.iter().cloned().collect(),
        }
    }

    fn service_pictures(&self) -> Vec<ServicePicture> {
        let mut all: BTreeMap<&Key, ServicePicture> = self
            .services
            .iter()
            .map(|(key, kind)| {
                let (name, kind) = (key.to_string(), kind.clone());
                (key, ServicePicture { name, kind, ..ServicePicture::default() })
            })
            .collect();
        for slice in self.slices.values() {
            let Some(service) = all.get_mut(&slice.service) else { continue };
            for (zone, conditions) in &slice.by_zone {
                service.by_zone.entry(zone.clone()).or_default().add(*conditions);
            }
            let (address_type, n_endpoints) = (slice.address_type.clone(), slice.n_endpoints);
            service.slices.push(SlicePicture { address_type, n_endpoints });
        }
        let mut all: Vec<ServicePicture> = all.into_values().collect();
        all.iter_mut().for_each(|service| service.slices.sort());
        all
    }
}
