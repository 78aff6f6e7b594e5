//! An engine and the in-memory API server on one thread. A script can hold back watches and let
//! requests fail; time advances only when the script says so.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use endpointd_engine::{
    Effect, Engine, EngineStatus, Input, MonotonicTime, RequestId, Settings, SyncResult,
};
use endpointd_memory_api::{MemoryApi, NamespaceState, write_result};
use endpointd_model::{
    ClusterId, EndpointSlice, Endpoints, EventRecord, Failure, FailureKind, Key, LiveRead,
    LiveReadResult, Meta, Node, Object, Pod, PublishedResource, ResourceVersion, Service, Uid,
    WatchSignal, WatchedResource, Write, WriteResult,
};

/// A script that takes more steps does not converge.
const STEPS_MAX: usize = 100_000;
const WAKES_MAX: usize = 2_000;

pub struct Cluster {
    pub engine: Engine,
    pub now: MonotonicTime,
    pub api: MemoryApi,
    /// The revision up to which each watch has delivered, in the order of `WatchedResource::ALL`.
    delivered: [u64; WatchedResource::ALL.len()],
    held: BTreeSet<WatchedResource>,
    /// The faults of the next writes; later writes succeed.
    pub write_faults: VecDeque<WriteFault>,
    /// Writes that the API server rejects.
    pub rejects: Option<fn(&Write) -> bool>,
    /// How it rejects them.
    pub rejection: WriteFault,
    /// Responses arrive only after all watch events.
    pub responses_last: bool,
    /// Time from a write to its response.
    pub write_takes: Duration,
    delayed: VecDeque<Input>,
    /// Live reads fail.
    pub reads_fail: bool,
    /// Live reads that fail.
    pub rejects_read: Option<fn(&LiveRead) -> bool>,
    /// `verb resource name`, as sent.
    pub sent: Vec<String>,
    pub live_reads: Vec<LiveRead>,
    pub event_records: Vec<EventRecord>,
    pub results: Vec<&'static str>,
    /// Of each of them, whether it is a difference that has lasted, in a dry run.
    pub lasting: Vec<bool>,
    pub cannot_be_listed: Option<WatchedResource>,
    /// How often everything was listed again.
    pub n_relists: usize,
    /// The API servers of other clusters; those that are not here do not answer.
    pub sources: BTreeMap<ClusterId, MemoryApi>,
    pub source_relists: Vec<(ClusterId, Option<WatchedResource>)>,
}

#[derive(Clone, Debug)]
pub enum WriteFault {
    /// The write succeeds.
    None,
    AppliedNoResponse,
    DroppedNoResponse,
    Unreachable,
    Forbidden,
    Throttled(u32),
    Terminating,
}

impl Cluster {
    pub fn new(settings: Settings) -> Self {
        let mut api = MemoryApi::default();
        api.namespaces.insert("ns".into(), NamespaceState::Active);
        Self {
            engine: Engine::new(settings),
            now: MonotonicTime::START,
            api,
            delivered: [0; WatchedResource::ALL.len()],
            held: BTreeSet::new(),
            write_faults: VecDeque::new(),
            rejects: None,
            rejection: WriteFault::Forbidden,
            responses_last: false,
            write_takes: Duration::ZERO,
            delayed: VecDeque::new(),
            reads_fail: false,
            rejects_read: None,
            sent: Vec::new(),
            live_reads: Vec::new(),
            event_records: Vec::new(),
            results: Vec::new(),
            lasting: Vec::new(),
            cannot_be_listed: None,
            n_relists: 0,
            sources: BTreeMap::new(),
            source_relists: Vec::new(),
        }
    }

    /// Lists all resources and acquires leadership.
    pub fn start(&mut self) {
        for kind in self.engine.watched_resources() {
            self.list(kind);
        }
        self.handle(Input::LeadershipAcquired);
        self.run();
    }

    /// A new engine, as after a crash, on the same objects.
    pub fn restart(&mut self) {
        self.restart_with(Settings::default());
    }

    pub fn restart_with(&mut self, settings: Settings) {
        self.engine = Engine::new(settings);
        self.held.clear();
        self.delayed.clear();
        self.clear_log();
        self.start();
    }

    pub fn clear_log(&mut self) {
        self.sent.clear();
        self.live_reads.clear();
        self.results.clear();
        self.lasting.clear();
        self.event_records.clear();
    }

    /// A relist: all current objects, and no event from before it.
    pub fn list(&mut self, resource: WatchedResource) {
        let revision = self.api.revision();
        self.delivered[resource as usize] = revision;
        self.handle(Input::Watch(resource, WatchSignal::InitStarted));
        for signal in self.api.list_at(resource, revision) {
            self.handle(Input::Watch(resource, signal));
        }
        self.handle(Input::Watch(resource, WatchSignal::InitDone(self.version())));
    }

    /// A list that wrongly contains no object.
    pub fn list_nothing(&mut self, resource: WatchedResource) {
        self.drop_pending_events(resource);
        self.handle(Input::Watch(resource, WatchSignal::InitStarted));
        self.handle(Input::Watch(resource, WatchSignal::InitDone(self.version())));
    }

    /// Steps until nothing is left to do at the current time.
    pub fn run(&mut self) {
        for _ in 0..STEPS_MAX {
            if !self.step() {
                return;
            }
        }
        panic!("no quiescence after {STEPS_MAX} steps: {:?}", &self.sent[self.sent.len() - 10..]);
    }

    /// One effect, watch event, or response; whether there was one.
    pub fn step(&mut self) -> bool {
        if let Some(effect) = self.engine.next(self.now) {
            self.perform(effect);
            return true;
        }
        if self.deliver() {
            return true;
        }
        let response = self.delayed.pop_front();
        let has_response = response.is_some();
        response.into_iter().for_each(|response| self.handle(response));
        has_response
    }

    pub fn step_until(&mut self, is_reached: impl Fn(&Self) -> bool) {
        while !is_reached(self) {
            assert!(self.step(), "nothing to do after {:?}", self.sent);
        }
    }

    pub fn step_until_sent(&mut self, n_writes: usize) {
        self.step_until(|cluster| cluster.sent.len() >= n_writes);
    }

    /// Advances time and handles everything that becomes due.
    pub fn advance(&mut self, time: Duration) {
        let end = self.now + time;
        self.run();
        for _ in 0..WAKES_MAX {
            let Some(due) = self.engine.wake_at().filter(|due| *due <= end) else {
                // Writes take time as well: the end may have passed.
                self.now = self.now.max(end);
                return self.run();
            };
            self.now = self.now.max(due);
            self.run();
        }
        panic!("woken {WAKES_MAX} times, and still due at {:?}", self.now);
    }

    pub fn hold_watch(&mut self, resource: WatchedResource) {
        self.held.insert(resource);
    }

    pub fn release_watches(&mut self) {
        self.held.clear();
        self.run();
    }

    /// Events that a watch has not delivered yet are never delivered.
    pub fn drop_pending_events(&mut self, resource: WatchedResource) {
        self.delivered[resource as usize] = self.api.revision();
    }

    pub fn version(&self) -> ResourceVersion {
        self.api.revision().into()
    }

    pub fn handle(&mut self, input: Input) {
        self.engine.handle(input, self.now);
    }

    pub fn report(&self) -> EngineStatus {
        self.engine.report(self.now)
    }

    /// The uid is derived from the name unless the Service has one.
    pub fn put_service(&mut self, mut service: Service) {
        if service.uid.is_empty() {
            service.uid = Uid::from(format!("svc-{}", service.name).as_str());
        }
        self.api.put_service(service);
    }

    pub fn remove_service(&mut self, key: &Key) {
        assert!(self.api.services.contains(key), "no Service {key}");
        self.api.remove_service(key);
    }

    pub fn service(&self, key: &Key) -> Option<&Service> {
        self.api.services.get(key).map(AsRef::as_ref)
    }

    pub fn put_pod(&mut self, pod: Pod) {
        self.api.put_pod(pod);
    }

    pub fn change_pod(&mut self, key: &Key, change: impl FnOnce(&mut Pod)) {
        let mut pod = self.pod(key);
        change(&mut pod);
        self.put_pod(pod);
    }

    pub fn remove_pod(&mut self, key: &Key) {
        assert!(self.api.pods.contains(key), "no pod {key}");
        self.api.remove_pod(key);
    }

    pub fn pod(&self, key: &Key) -> Pod {
        Pod::clone(self.api.pods.get(key).expect("the pod exists"))
    }

    pub fn put_node(&mut self, node: Node) {
        self.api.put_node(node);
    }

    pub fn remove_node(&mut self, name: &str) {
        assert!(self.has_node(name), "no node {name}");
        self.api.remove_node(name);
    }

    pub fn has_node(&self, name: &str) -> bool {
        self.api.nodes.contains(&Key::new("", name))
    }

    /// A write by another client.
    pub fn put_object(&mut self, object: Object) -> Object {
        let (resource, key) = (object.resource(), object.meta().key());
        self.api.force(object);
        self.object(resource, &key).expect("just stored")
    }

    pub fn put_endpoints(&mut self, name: &str) {
        let meta = Meta { namespace: "ns".into(), name: name.into(), ..Meta::default() };
        self.put_object(Object::Endpoints(Endpoints { meta, subsets: Vec::new() }));
    }

    /// A delete by another client.
    pub fn remove_object(&mut self, resource: PublishedResource, key: &Key) {
        assert!(self.object(resource, key).is_some(), "no {} {key}", resource.as_str());
        self.api.remove(resource, key);
    }

    pub fn object(&self, resource: PublishedResource, key: &Key) -> Option<Object> {
        self.api.object(resource, key)
    }

    /// All published objects.
    pub fn published(&self) -> Vec<(PublishedResource, Key)> {
        let slices = self.api.slices.keys().into_iter();
        let endpoints = self.api.endpoints.keys().into_iter();
        let slices = slices.map(|key| (PublishedResource::Slices, key));
        slices.chain(endpoints.map(|key| (PublishedResource::Endpoints, key))).collect()
    }

    pub fn slices(&self) -> Vec<&EndpointSlice> {
        self.api.slices.values().collect()
    }

    pub fn answer_read(&mut self, id: RequestId, read: &LiveRead) {
        self.live_reads.push(read.clone());
        let found = self.read_now(read);
        self.handle(Input::LiveReadResult(id, found));
    }

    pub fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Send { id, write, .. } => {
                let name = write.key().name;
                self.sent.push(format!("{} {} {name}", write.verb(), write.resource().as_str()));
                self.answer(id, &write);
            }
            Effect::LiveRead { id, read } => self.answer_read(id, &read),
            Effect::Relist(kind) => self.list(kind),
            Effect::RelistSource { cluster, resource } => {
                self.source_relists.push((cluster, resource));
            }
            Effect::RelistAll => {
                self.n_relists += 1;
                for resource in self.engine.watched_resources() {
                    if self.cannot_be_listed != Some(resource) {
                        self.list(resource);
                    }
                }
            }
            Effect::RecordEvent { record, .. } => self.event_records.push(record),
            Effect::SyncFinished(synced) => {
                assert!(synced.result != SyncResult::Unchanged || synced.n_creates == 0);
                self.results.push(synced.result.as_str());
                self.lasting.push(synced.has_lasted);
            }
        }
    }

    fn answer(&mut self, id: RequestId, write: &Write) {
        let failure = |kind, message: &str| Failure { kind, message: message.into() };
        let no_response =
            || WriteResult::NoResponse(failure(FailureKind::ServerError, "no response"));
        let is_rejected = self.rejects.is_some_and(|rejects| rejects(write));
        let default = if is_rejected { self.rejection.clone() } else { WriteFault::None };
        let outcome = match self.write_faults.pop_front().unwrap_or(default) {
            WriteFault::None => self.apply(write),
            WriteFault::Forbidden => {
                WriteResult::Failed(failure(FailureKind::Forbidden, "quota exceeded"))
            }
            WriteFault::AppliedNoResponse => {
                self.apply(write);
                no_response()
            }
            WriteFault::DroppedNoResponse => no_response(),
            WriteFault::Unreachable => {
                WriteResult::Failed(failure(FailureKind::Unreachable, "connection refused"))
            }
            WriteFault::Throttled(after_secs) => WriteResult::Throttled { after_secs },
            WriteFault::Terminating => {
                WriteResult::NamespaceTerminating("namespace is being terminated".into())
            }
        };
        let answer = Input::WriteResult(id, outcome);
        self.now = self.now + self.write_takes;
        if self.responses_last { self.delayed.push_back(answer) } else { self.handle(answer) }
    }

    /// The response to a write that the script has kept back.
    pub fn respond(&mut self, id: RequestId, write: &Write) {
        let result = self.apply(write);
        self.handle(Input::WriteResult(id, result));
    }

    fn apply(&mut self, write: &Write) -> WriteResult {
        write_result(write, self.api.write(write))
    }

    pub fn read_now(&self, read: &LiveRead) -> LiveReadResult {
        if self.reads_fail || self.rejects_read.is_some_and(|rejects| rejects(read)) {
            let message = "no response".into();
            return LiveReadResult::Failed(Failure { kind: FailureKind::ServerError, message });
        }
        let api = match read {
            LiveRead::Source(cluster, _) => match self.sources.get(cluster) {
                Some(api) => api,
                None => {
                    let (kind, message) = (FailureKind::Unreachable, "no response".into());
                    return LiveReadResult::Failed(Failure { kind, message });
                }
            },
            _ => &self.api,
        };
        api.read(read).expect("no script corrupts an object")
    }

    /// Delivers the oldest pending event of a watch that is not held.
    pub fn deliver(&mut self) -> bool {
        let watches = WatchedResource::ALL.into_iter().filter(|one| !self.held.contains(one));
        let next = watches.filter_map(|resource| {
            let (revision, _, signal) =
                self.api.next_signal(resource, self.delivered[resource as usize])?;
            Some((revision, resource, signal))
        });
        let Some((revision, resource, signal)) = next.min_by_key(|(revision, ..)| *revision) else {
            return false;
        };
        self.delivered[resource as usize] = revision;
        self.handle(Input::Watch(resource, signal));
        true
    }
}
