//! What is published, as one watch of the harness sees it. Start at [`Observer::start`].

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

use crate::flips::{Ended, Flips};
use crate::load::{Layout, PodNumber, Readiness, number_of_pod, number_of_service};

/// Which Service a slice belongs to.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// Endpoints hold no more.
const LISTED_MAX: usize = 1000;
const NEWS_MAX: usize = 1024;
const POLL: Duration = Duration::from_millis(10);
const FIRST_PICTURE_MAX: Duration = Duration::from_secs(120);

/// What should be there.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub layout: Layout,
    /// Pods before this one are to be gone.
    pub first_pod: PodNumber,
}

impl Wanted {
    pub fn all(layout: Layout) -> Self {
        Self { layout, first_pod: 0 }
    }
}

/// The state of publication.
#[derive(Debug)]
pub struct Published {
    wanted: Wanted,
    slices: HashMap<Key, (usize, Counts)>,
    sliced: Vec<Counts>,
    listed: Vec<Counts>,
    /// Of each Service, pods that are not to be ready.
    n_unready: Vec<usize>,
    n_whole: usize,
    whole_at: Option<Instant>,
    n_kinds_listed: usize,
    flips: Flips,
}

/// Endpoints of pods that should be there, and of those that should not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    n_ready: usize,
    n_unwanted: usize,
}

impl Published {
    pub fn new(wanted: Wanted) -> Self {
        let nothing = vec![Counts::default(); wanted.layout.n_services];
        let n_unready = vec![0; wanted.layout.n_services];
        Self {
            n_unready,
            wanted,
            slices: HashMap::new(),
            sliced: nothing.clone(),
            listed: nothing,
            n_whole: 0,
            whole_at: None,
            n_kinds_listed: 0,
            flips: Flips::default(),
        }
    }

    /// A pod is about to change: its slice may be written before the answer is here.
    pub fn flip(&mut self, pod: PodNumber, readiness: Readiness, now: Instant) {
        self.flips.begin(pod, readiness, now);
        let service = self.wanted.layout.service_of(pod);
        self.change(service, |this| match readiness {
            Readiness::Ready => this.n_unready[service] -= 1,
            Readiness::Unready => this.n_unready[service] += 1,
        });
        self.note_whole(now);
    }

    /// It has changed.
    pub fn flipped(&mut self, pod: PodNumber, readiness: Readiness, now: Instant) {
        self.flips.stored(pod, readiness, now);
    }

    pub fn n_waiting(&self) -> usize {
        self.flips.n_waiting()
    }

    /// The flips that were shown or taken back since the last time.
    pub fn take_flips(&mut self) -> Vec<Ended> {
        self.flips.take_ended()
    }

    /// When every Service had complete slices and Endpoints.
    pub fn whole_at(&self) -> Option<Instant> {
        self.whole_at
    }

    /// Complete, and every flip was seen.
    pub fn is_settled(&self) -> bool {
        self.whole_at.is_some() && self.flips.n_waiting() == 0
    }

    pub fn n_slices(&self) -> usize {
        self.slices.len()
    }

    /// How many Services are complete, of how many.
    pub fn progress(&self) -> (usize, usize) {
        (self.n_whole, self.wanted.layout.n_services)
    }

    fn hear(&mut self, news: &WatchSignal, now: Instant) {
        match news {
            WatchSignal::Event(change) => match change.as_ref() {
                ResourceEvent::Slice(ObjectEvent::Applied(slice)) => self.see_slice(slice, now),
                ResourceEvent::Slice(ObjectEvent::Deleted(slice)) => self.lose_slice(slice),
                ResourceEvent::Endpoints(ObjectEvent::Applied(endpoints)) => {
                    self.see_endpoints(endpoints)
                }
                ResourceEvent::Endpoints(ObjectEvent::Deleted(endpoints)) => {
                    if let Some(service) = self.service(&endpoints.meta.name) {
                        self.change(service, |this| this.listed[service] = Counts::default());
                    }
                }
                ResourceEvent::Service(_) | ResourceEvent::Pod(_) | ResourceEvent::Node(_) => {}
            },
            WatchSignal::InitDone(_) => self.n_kinds_listed += 1,
            WatchSignal::InitStarted
            | WatchSignal::DecodeError { .. }
            | WatchSignal::Bookmark(_)
            | WatchSignal::Disconnected(_)
            | WatchSignal::Reconnected => {}
        }
        self.note_whole(now);
    }

    fn note_whole(&mut self, now: Instant) {
        let is_whole = self.n_whole == self.wanted.layout.n_services;
        self.whole_at = is_whole.then(|| self.whole_at.unwrap_or(now));
    }

    fn see_slice(&mut self, slice: &EndpointSlice, now: Instant) {
        let name = slice.meta.labels.get(SERVICE_LABEL);
        let Some(service) = name.and_then(|name| self.service(name)) else { return };
        let mut counts = Counts::default();
        for endpoint in &slice.endpoints {
            let target = endpoint.target_ref.as_ref();
            let Some(pod) = target.and_then(|target| number_of_pod(&target.name)) else { continue };
            let is_ready = endpoint.is_ready();
            let readiness = if is_ready { Readiness::Ready } else { Readiness::Unready };
            self.flips.published(pod, readiness, now);
            if pod < self.wanted.first_pod {
                counts.n_unwanted += 1;
            } else if is_ready {
                counts.n_ready += 1;
            }
        }
        let old = self.slices.insert(slice.meta.key(), (service, counts));
        let (_, old) = old.unwrap_or_default();
        self.change(service, |this| this.sliced[service].exchange(old, counts));
    }

    fn lose_slice(&mut self, slice: &EndpointSlice) {
        if let Some((service, old)) = self.slices.remove(&slice.meta.key()) {
            self.change(service, |this| this.sliced[service].exchange(old, Counts::default()));
        }
    }

    fn see_endpoints(&mut self, endpoints: &Endpoints) {
        let Some(service) = self.service(&endpoints.meta.name) else { return };
        let mut counts = Counts::default();
        for address in endpoints.subsets.iter().flat_map(|subset| &subset.addresses) {
            let target = address.target_ref.as_ref();
            match target.and_then(|target| number_of_pod(&target.name)) {
                Some(pod) if pod >= self.wanted.first_pod => counts.n_ready += 1,
                Some(_) => counts.n_unwanted += 1,
                None => {}
            }
        }
        self.change(service, |this| this.listed[service] = counts);
    }

    fn service(&self, name: &SharedStr) -> Option<usize> {
        number_of_service(name).filter(|&number| number < self.wanted.layout.n_services)
    }

    /// Changes one Service, and keeps count of those that are whole.
    fn change(&mut self, service: usize, change: impl FnOnce(&mut Self)) {
        self.n_whole -= usize::from(self.is_whole(service));
        change(self);
        self.n_whole += usize::from(self.is_whole(service));
    }

    fn is_whole(&self, service: usize) -> bool {
        let n_pods = self.wanted.layout.n_pods_of(service) - self.n_unready[service];
        let exactly = |n_ready| Counts { n_ready, n_unwanted: 0 };
        self.sliced[service] == exactly(n_pods)
            && self.listed[service] == exactly(n_pods.min(LISTED_MAX))
    }
}

impl Counts {
    fn exchange(&mut self, old: Self, new: Self) {
        self.n_ready = self.n_ready + new.n_ready - old.n_ready;
        self.n_unwanted = self.n_unwanted + new.n_unwanted - old.n_unwanted;
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
    /// Returns when it has seen all that is there.
    pub async fn start(kubeconfig: &Path, wanted: Wanted) -> Result<Self> {
        let client = Client::connect(ConnectOptions {
            kubeconfig: Some(kubeconfig.to_owned()),
            user_agent: "endpointd-bench".to_owned(),
            ..ConnectOptions::default()
        });
        let client = client.await?;
        let published = Arc::new(Mutex::new(Published::new(wanted)));
        let (sender, mut receiver) = mpsc::channel::<(WatchedResource, WatchSignal)>(NEWS_MAX);
        let mut tasks = Vec::new();
        let kinds = [WatchedResource::Slices, WatchedResource::Endpoints];
        for kind in kinds {
            tasks.push(tokio::spawn(client.clone().feed(kind, sender.clone())).abort_handle());
        }
        let heard = published.clone();
        let hear = async move {
            while let Some((_, news)) = receiver.recv().await {
                lock(&heard).hear(&news, Instant::now());
            }
        };
        tasks.push(tokio::spawn(hear).abort_handle());
        let observer = Self { published, _tasks: Arc::new(Tasks(tasks)) };
        let seen = |published: &Published| published.n_kinds_listed == kinds.len();
        observer.wait_until(FIRST_PICTURE_MAX, seen).await.context("no first picture")?;
        Ok(observer)
    }

    pub fn with<R>(&self, look: impl FnOnce(&mut Published) -> R) -> R {
        look(&mut lock(&self.published))
    }

    /// When everything was complete.
    pub async fn wait_until_whole(&self, limit: Duration) -> Result<Instant> {
        let is_whole = |published: &Published| published.whole_at.is_some();
        self.wait_until(limit, is_whole).await.with_context(|| {
            let (n_whole, n) = self.with(|published| published.progress());
            format!("{n_whole} of {n} Services are complete")
        })?;
        self.with(|published| published.whole_at()).context("it was complete a moment ago")
    }

    pub async fn wait_until(
        &self,
        limit: Duration,
        is_so: impl Fn(&Published) -> bool,
    ) -> Result<()> {
        let started = Instant::now();
        while !is_so(&lock(&self.published)) {
            if started.elapsed() > limit {
                bail!("not so after {} seconds", limit.as_secs());
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
