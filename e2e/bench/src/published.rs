//! The published Endpoints and slices, as observed by one watch of the harness. Start at
//! [`Observer::start`].

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use endpointd_client::{Client, ConnectOptions};
use endpointd_model::{
    EndpointSlice, Endpoints, Key, ObjectEvent, ResourceEvent, SharedStr, WatchSignal,
    WatchedResource,
};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::load::{Layout, PodNumber, Readiness, number_of_pod, number_of_service};
use crate::toggle_tracker::{CompletedToggle, ToggleTracker};

/// The label that names the Service of a slice.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// The capacity of Endpoints.
const ENDPOINTS_CAPACITY: usize = 1000;
const SIGNALS_MAX: usize = 1024;
const POLL: Duration = Duration::from_millis(10);
const FIRST_LIST_MAX: Duration = Duration::from_secs(120);

/// The state in which everything is published.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedState {
    pub layout: Layout,
    /// Pods with lower numbers must be gone.
    pub first_pod: PodNumber,
}

impl ExpectedState {
    pub fn all(layout: Layout) -> Self {
        Self { layout, first_pod: 0 }
    }
}

/// The observed objects, and which Services are complete.
#[derive(Debug)]
pub struct Published {
    expected: ExpectedState,
    slices: HashMap<Key, (usize, Counts)>,
    counts_in_slices: Vec<Counts>,
    counts_in_endpoints: Vec<Counts>,
    /// For each Service, the number of pods that are not ready.
    n_unready: Vec<usize>,
    n_complete: usize,
    complete_at: Option<Instant>,
    n_kinds_listed: usize,
    tracker: ToggleTracker,
}

/// Numbers of expected ready endpoints, and of endpoints that must be gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    n_ready: usize,
    n_unexpected: usize,
}

impl Published {
    pub fn new(expected: ExpectedState) -> Self {
        let nothing = vec![Counts::default(); expected.layout.n_services];
        let n_unready = vec![0; expected.layout.n_services];
        Self {
            n_unready,
            expected,
            slices: HashMap::new(),
            counts_in_slices: nothing.clone(),
            counts_in_endpoints: nothing,
            n_complete: 0,
            complete_at: None,
            n_kinds_listed: 0,
            tracker: ToggleTracker::default(),
        }
    }

    /// To be called before the status update is sent, because the slice event can precede the
    /// response.
    pub fn toggle_started(&mut self, pod: PodNumber, readiness: Readiness, now: Instant) {
        self.tracker.started(pod, readiness, now);
        let service = self.expected.layout.service_of(pod);
        self.change(service, |this| match readiness {
            Readiness::Ready => this.n_unready[service] -= 1,
            Readiness::Unready => this.n_unready[service] += 1,
        });
        self.update_complete_at(now);
    }

    /// The status update was acknowledged.
    pub fn toggle_acknowledged(&mut self, pod: PodNumber, readiness: Readiness, now: Instant) {
        self.tracker.acknowledged(pod, readiness, now);
    }

    pub fn n_waiting(&self) -> usize {
        self.tracker.n_waiting()
    }

    /// The toggles published or superseded since the last call.
    pub fn take_completed(&mut self) -> Vec<CompletedToggle> {
        self.tracker.take_completed()
    }

    /// When the slices and Endpoints of every Service were complete.
    pub fn complete_at(&self) -> Option<Instant> {
        self.complete_at
    }

    /// Complete, and every toggle is published.
    pub fn is_converged(&self) -> bool {
        self.complete_at.is_some() && self.tracker.n_waiting() == 0
    }

    pub fn n_slices(&self) -> usize {
        self.slices.len()
    }

    /// The number of complete Services, and of all Services.
    pub fn progress(&self) -> (usize, usize) {
        (self.n_complete, self.expected.layout.n_services)
    }

    fn on_watch_signal(&mut self, signal: &WatchSignal, now: Instant) {
        match signal {
            WatchSignal::Event(change) => match change.as_ref() {
                ResourceEvent::Slice(ObjectEvent::Applied(slice)) => self.apply_slice(slice, now),
                ResourceEvent::Slice(ObjectEvent::Deleted(slice)) => self.remove_slice(slice),
                ResourceEvent::Endpoints(ObjectEvent::Applied(endpoints)) => {
                    self.apply_endpoints(endpoints)
                }
                ResourceEvent::Endpoints(ObjectEvent::Deleted(endpoints)) => {
                    if let Some(service) = self.service(&endpoints.meta.name) {
                        self.change(service, |this| {
                            this.counts_in_endpoints[service] = Counts::default()
                        });
                    }
                }
                ResourceEvent::Service(_)
                | ResourceEvent::Pod(_)
                | ResourceEvent::Node(_)
                | ResourceEvent::ReferenceGrant(_)
                | ResourceEvent::Namespace(_)
                | ResourceEvent::ServiceExport(_)
                | ResourceEvent::ServiceImport(_)
                | ResourceEvent::DerivedService(_) => {}
            },
            WatchSignal::InitDone(_) => self.n_kinds_listed += 1,
            WatchSignal::InitStarted
            | WatchSignal::DecodeError { .. }
            | WatchSignal::Bookmark(_)
            | WatchSignal::Disconnected(_)
            | WatchSignal::Reconnected => {}
        }
        self.update_complete_at(now);
    }

    fn update_complete_at(&mut self, now: Instant) {
        let is_complete = self.n_complete == self.expected.layout.n_services;
        self.complete_at = is_complete.then(|| self.complete_at.unwrap_or(now));
    }

    fn apply_slice(&mut self, slice: &EndpointSlice, now: Instant) {
        let name = slice.meta.labels.get(SERVICE_LABEL);
        let Some(service) = name.and_then(|name| self.service(name)) else { return };
        let mut counts = Counts::default();
        for endpoint in &slice.endpoints {
            let target = endpoint.target_ref.as_ref();
            let Some(pod) = target.and_then(|target| number_of_pod(&target.name)) else { continue };
            let is_ready = endpoint.is_ready();
            let readiness = if is_ready { Readiness::Ready } else { Readiness::Unready };
            self.tracker.published(pod, readiness, now);
            if pod < self.expected.first_pod {
                counts.n_unexpected += 1;
            } else if is_ready {
                counts.n_ready += 1;
            }
        }
        let old = self.slices.insert(slice.meta.key(), (service, counts));
        let (_, old) = old.unwrap_or_default();
        self.change(service, |this| this.counts_in_slices[service].exchange(old, counts));
    }

    fn remove_slice(&mut self, slice: &EndpointSlice) {
        if let Some((service, old)) = self.slices.remove(&slice.meta.key()) {
            self.change(service, |this| {
                this.counts_in_slices[service].exchange(old, Counts::default())
            });
        }
    }

    fn apply_endpoints(&mut self, endpoints: &Endpoints) {
        let Some(service) = self.service(&endpoints.meta.name) else { return };
        let mut counts = Counts::default();
        for address in endpoints.subsets.iter().flat_map(|subset| &subset.addresses) {
            let target = address.target_ref.as_ref();
            match target.and_then(|target| number_of_pod(&target.name)) {
                Some(pod) if pod >= self.expected.first_pod => counts.n_ready += 1,
                Some(_) => counts.n_unexpected += 1,
                None => {}
            }
        }
        self.change(service, |this| this.counts_in_endpoints[service] = counts);
    }

    fn service(&self, name: &SharedStr) -> Option<usize> {
        number_of_service(name).filter(|&number| number < self.expected.layout.n_services)
    }

    /// Changes one Service and updates the number of complete ones.
    fn change(&mut self, service: usize, change: impl FnOnce(&mut Self)) {
        self.n_complete -= usize::from(self.is_complete(service));
        change(self);
        self.n_complete += usize::from(self.is_complete(service));
    }

    fn is_complete(&self, service: usize) -> bool {
        let n_pods = self.expected.layout.n_pods_of(service) - self.n_unready[service];
        let exactly = |n_ready| Counts { n_ready, n_unexpected: 0 };
        self.counts_in_slices[service] == exactly(n_pods)
            && self.counts_in_endpoints[service] == exactly(n_pods.min(ENDPOINTS_CAPACITY))
    }
}

impl Counts {
    fn exchange(&mut self, old: Self, new: Self) {
        self.n_ready = self.n_ready + new.n_ready - old.n_ready;
        self.n_unexpected = self.n_unexpected + new.n_unexpected - old.n_unexpected;
    }
}

/// Watches slices and Endpoints until the last clone is dropped.
#[derive(Clone)]
pub struct Observer {
    published: Arc<Mutex<Published>>,
    _tasks: Arc<Tasks>,
}

struct Tasks(Vec<AbortHandle>);

impl Observer {
    /// Returns when the initial lists are complete.
    pub async fn start(kubeconfig: &Path, expected: ExpectedState) -> Result<Self> {
        let client = Client::connect(ConnectOptions {
            kubeconfig: Some(kubeconfig.to_owned()),
            user_agent: "endpointd-bench".to_owned(),
            ..ConnectOptions::default()
        });
        let client = client.await?;
        let published = Arc::new(Mutex::new(Published::new(expected)));
        let (sender, mut receiver) = mpsc::channel::<(WatchedResource, WatchSignal)>(SIGNALS_MAX);
        let mut tasks = Vec::new();
        let kinds = [WatchedResource::Slices, WatchedResource::Endpoints];
        for kind in kinds {
            tasks.push(tokio::spawn(client.clone().watch(kind, sender.clone())).abort_handle());
        }
        let shared = published.clone();
        let receive = async move {
            while let Some((_, signal)) = receiver.recv().await {
                lock(&shared).on_watch_signal(&signal, Instant::now());
            }
        };
        tasks.push(tokio::spawn(receive).abort_handle());
        let observer = Self { published, _tasks: Arc::new(Tasks(tasks)) };
        let are_listed = |published: &Published| published.n_kinds_listed == kinds.len();
        observer
            .wait_until(FIRST_LIST_MAX, are_listed)
            .await
            .context("the initial lists are not complete")?;
        Ok(observer)
    }

    pub fn with<R>(&self, access: impl FnOnce(&mut Published) -> R) -> R {
        access(&mut lock(&self.published))
    }

    /// Waits until every Service is complete, and returns that time.
    pub async fn wait_until_complete(&self, limit: Duration) -> Result<Instant> {
        let is_complete = |published: &Published| published.complete_at.is_some();
        self.wait_until(limit, is_complete).await.with_context(|| {
            let (n_complete, n) = self.with(|published| published.progress());
            format!("{n_complete} of {n} Services are complete")
        })?;
        self.with(|published| published.complete_at()).context("a pod changed meanwhile")
    }

    pub async fn wait_until(
        &self,
        limit: Duration,
        condition: impl Fn(&Published) -> bool,
    ) -> Result<()> {
        let started = Instant::now();
        while !condition(&lock(&self.published)) {
            if started.elapsed() > limit {
                bail!("timed out after {} seconds", limit.as_secs());
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

fn lock(published: &Mutex<Published>) -> MutexGuard<'_, Published> {
    published.lock().unwrap_or_else(PoisonError::into_inner)
}
