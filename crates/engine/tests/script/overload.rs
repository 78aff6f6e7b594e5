//! More changes than the API server can take writes for: which of them are published first, and how
//! long everything takes when the changes end.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use endpointd_engine::{Effect, MonotonicTime, RequestId, Settings};
use endpointd_memory_api::NamespaceState;
use endpointd_model::{
    EndpointAddress, Key, Object, ObjectRef, Pod, Readiness, Service, Subset, Write,
};
use endpointd_rng::SplitMix64;

use crate::cluster::Cluster;
use crate::objects::{node, pod, service};

const N_NAMESPACES: u64 = 20;
const SERVICES_PER_NAMESPACE: u64 = 10;
const PODS_PER_SERVICE: u64 = 5;
/// What the server needs for each write, one after the other: 200 writes a second.
const PER_WRITE: Duration = Duration::from_millis(5);
const STORM: Duration = Duration::from_secs(15);

/// By pod: when it changed, and whether it is ready now.
type Changes = BTreeMap<Key, (MonotonicTime, bool)>;

/// An API server that handles one write at a time.
struct SlowServer {
    cluster: Cluster,
    requests: VecDeque<(MonotonicTime, RequestId, Write)>,
    /// Changes that no stored slice shows yet.
    unpublished: Changes,
    /// Likewise, of Endpoints.
    not_in_endpoints: Changes,
    removals: Vec<Duration>,
    additions: Vec<Duration>,
    endpoints: Vec<Duration>,
    n_writes: usize,
}

impl SlowServer {
    fn start(settings: Settings) -> Self {
        let mut cluster = Cluster::new(settings);
        cluster.put_node(node("n"));
        for namespace in 0..N_NAMESPACES {
            let namespace = format!("ns-{namespace}");
            cluster.api.namespaces.insert(namespace.as_str().into(), NamespaceState::Active);
            for number in 0..SERVICES_PER_NAMESPACE {
                let name = format!("web{number}");
                let namespace = namespace.as_str().into();
                cluster.put_service(Service { namespace, ..service(&name) });
            }
        }
        for (key, pod) in all_pods() {
            cluster.put_pod(Pod { namespace: key.namespace, ..pod });
        }
        cluster.start();
        cluster.advance(Duration::from_secs(5));
        Self {
            cluster,
            requests: VecDeque::new(),
            unpublished: BTreeMap::new(),
            not_in_endpoints: BTreeMap::new(),
            removals: Vec::new(),
            additions: Vec::new(),
            endpoints: Vec::new(),
            n_writes: 0,
        }
    }

    fn toggle(&mut self, key: &Key) {
        let mut is_ready = false;
        self.cluster.change_pod(key, |pod| {
            is_ready = !pod.is_ready();
            pod.readiness = Some(Readiness { is_ready, since: None });
        });
        for pending in [&mut self.unpublished, &mut self.not_in_endpoints] {
            // What is published may be right again.
            if pending.remove(key).is_none() {
                pending.insert(key.clone(), (self.cluster.now, is_ready));
            }
        }
    }

    /// Sends what the engine wants to send now.
    fn send(&mut self) {
        while self.cluster.deliver() {}
        while let Some(effect) = self.cluster.engine.next(self.cluster.now) {
            match effect {
                Effect::Send { id, write, .. } => {
                    let now = self.cluster.now;
                    let free_at = self.requests.back().map_or(now, |(done, ..)| *done);
                    self.requests.push_back((free_at.max(now) + PER_WRITE, id, *write));
                }
                other => self.cluster.perform(other),
            }
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.cluster.now + time;
        loop {
            self.send();
            let answered = self.requests.front().map(|(done, ..)| *done);
            let next = answered.into_iter().chain(self.cluster.engine.wake_at()).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.cluster.now = end;
                return self.send();
            };
            self.cluster.now = self.cluster.now.max(next);
            if answered.is_some_and(|done| done <= self.cluster.now)
                && let Some((_, id, write)) = self.requests.pop_front()
            {
                self.n_writes += 1;
                self.cluster.respond(id, &write);
                self.note(&write);
            }
        }
    }

    /// Which changes this write publishes.
    fn note(&mut self, write: &Write) {
        let now = self.cluster.now;
        match write.object() {
            Some(Object::Slice(slice)) => {
                for one in &slice.endpoints {
                    let is_ready = one.is_ready();
                    let delay = take_delay(&mut self.unpublished, &one.target_ref, is_ready, now);
                    let delays = if is_ready { &mut self.additions } else { &mut self.removals };
                    delays.extend(delay);
                }
            }
            Some(Object::Endpoints(endpoints)) => {
                for (one, is_ready) in endpoints.subsets.iter().flat_map(addresses) {
                    let changes = &mut self.not_in_endpoints;
                    self.endpoints.extend(take_delay(changes, &one.target_ref, is_ready, now));
                }
            }
            Some(Object::ServiceStatus(_) | Object::MultiCluster(_)) | None => {}
        }
    }

    /// Nothing is in flight, and what is published is the state of the pods.
    fn is_settled(&self) -> bool {
        let api = &self.cluster.api;
        let is_right = |target: &Option<ObjectRef>, is_ready: bool| {
            self.cluster.pod(&pod_key(target)).is_ready() == is_ready
        };
        let mut in_slices = api.slices.values().flat_map(|slice| &slice.endpoints);
        let subsets = api.endpoints.values().flat_map(|endpoints| &endpoints.subsets);
        self.requests.is_empty()
            && in_slices.all(|one| is_right(&one.target_ref, one.is_ready()))
            && subsets.flat_map(addresses).all(|(one, ready)| is_right(&one.target_ref, ready))
    }

    /// Changes pods at this rate, and returns how long everything takes afterwards.
    fn storm(&mut self, per_second: u32) -> Duration {
        let pods: Vec<Key> = all_pods().map(|(key, _)| key).collect();
        let mut rng = SplitMix64::new(u64::from(per_second));
        for _ in 0..per_second * STORM.as_secs() as u32 {
            self.toggle(&pods[rng.below(pods.len() as u64) as usize]);
            self.run(Duration::from_secs(1) / per_second);
        }
        let end = self.cluster.now;
        while !self.is_settled() {
            self.run(Duration::from_millis(10));
            assert!(self.cluster.now.since(end) < Duration::from_secs(60), "it does not settle");
        }
        self.cluster.now.since(end)
    }
}

fn all_pods() -> impl Iterator<Item = (Key, Pod)> {
    let n_services = N_NAMESPACES * SERVICES_PER_NAMESPACE;
    (0..n_services * PODS_PER_SERVICE).map(move |number| {
        let of = number % n_services;
        let (namespace, service) = (of % N_NAMESPACES, of / N_NAMESPACES);
        let pod = pod(&format!("web{service}-{number}"));
        (Key::new(format!("ns-{namespace}"), pod.name.clone()), pod)
    })
}

fn pod_key(target: &Option<ObjectRef>) -> Key {
    let target = target.as_ref().expect("all are pods");
    Key::new(target.namespace.clone(), target.name.clone())
}

/// Each with whether it is ready.
fn addresses(subset: &Subset) -> impl Iterator<Item = (&EndpointAddress, bool)> {
    let ready = subset.addresses.iter().map(|one| (one, true));
    ready.chain(subset.not_ready_addresses.iter().map(|one| (one, false)))
}

/// How long ago the change happened that this endpoint publishes, if it does.
fn take_delay(
    changes: &mut Changes,
    target: &Option<ObjectRef>,
    is_ready: bool,
    now: MonotonicTime,
) -> Option<Duration> {
    let key = pod_key(target);
    let (since, _) = *changes.get(&key).filter(|(_, wanted)| *wanted == is_ready)?;
    changes.remove(&key);
    Some(now.since(since))
}

fn percentile(delays: &[Duration], percent: usize) -> Duration {
    let mut sorted = delays.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() - 1) * percent / 100]
}

/// 200 changes a second, each of one slice and of Endpoints, and 200 writes.
fn overloaded(syncs_max: usize) -> (SlowServer, Duration) {
    let mut settings = Settings::default();
    settings.controllers.iter_mut().for_each(|one| one.syncs_max = syncs_max);
    let mut server = SlowServer::start(settings);
    let settled = server.storm(200);
    (server, settled)
}

#[test]
fn slices_come_before_endpoints_if_the_server_is_too_slow() {
    let (server, settled) = overloaded(5);
    let SlowServer { removals, additions, endpoints, n_writes, .. } = &server;
    // 795 ms and 2.5 s if both controllers dequeue their keys in turns.
    assert!(percentile(removals, 99) <= Duration::from_millis(200));
    assert!(percentile(additions, 99) <= Duration::from_millis(600));
    assert!(percentile(removals, 50) < percentile(additions, 50));
    assert!(percentile(additions, 99) < percentile(endpoints, 50));
    assert!(settled <= Duration::from_secs(2), "settled after {settled:?}");
    assert!(endpoints.len() >= 1000, "Endpoints starve: {}", endpoints.len());
    assert!(*n_writes <= 3600, "{n_writes} writes for 3,000 changes of two objects each");
}

/// The keys of both controllers are in flight, and their writes wait for seats.
#[test]
fn writes_of_slices_get_seats_before_those_of_endpoints() {
    let (server, _) = overloaded(100);
    let SlowServer { removals, additions, endpoints, .. } = &server;
    // 3.8 s and 1.3 s if the writes of both have the same priority.
    assert!(percentile(removals, 99) <= Duration::from_secs(2));
    assert!(percentile(additions, 50) < percentile(endpoints, 50));
    assert!(endpoints.len() >= 1000, "Endpoints starve: {}", endpoints.len());
}
