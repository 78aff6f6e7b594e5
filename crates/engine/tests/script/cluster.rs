//! A cluster in one thread for an engine in a script: a store with resourceVersions, watches that
//! can be held back, and answers that can go wrong. Time passes only when the script says so.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use endpointd_engine::{
    Effect, Engine, EngineStatus, Input, MonotonicTime, RequestId, Settings, SyncResult,
};
use endpointd_model::{
    EndpointSlice, Endpoints, EventRecord, Failure, FailureKind, Key, LiveRead, LiveReadResult,
    Meta, Node, Object, ObjectEvent, Pod, PublishedResource, ResourceEvent, ResourceVersion,
    Service, SharedStr, Uid, WatchSignal, WatchedResource, Write, WriteResult,
};

/// Whatever takes longer never ends.
const STEPS_MAX: usize = 100_000;
const WAKES_MAX: usize = 2_000;

pub struct Cluster {
    pub engine: Engine,
    pub now: MonotonicTime,
    pub services: BTreeMap<Key, Service>,
    pub pods: BTreeMap<Key, Pod>,
    pub nodes: BTreeMap<SharedStr, Node>,
    pub objects: BTreeMap<(PublishedResource, Key), Object>,
    version: u64,
    /// What the watches have yet to tell, in order, per kind.
    pending: VecDeque<(WatchedResource, WatchSignal)>,
    held: Vec<WatchedResource>,
    /// What happens to the next writes; after that all goes well.
    pub write_faults: VecDeque<WriteFault>,
    /// Decides over every write.
    pub rejects: Option<fn(&Write) -> bool>,
    /// Answers come only after everything the watches have to tell.
    pub responses_last: bool,
    /// Time that passes before a write is answered.
    pub write_takes: Duration,
    delayed: VecDeque<Input>,
    /// Live reads fail.
    pub reads_fail: bool,
    /// `verb resource name`, as sent.
    pub sent: Vec<String>,
    pub live_reads: Vec<LiveRead>,
    pub event_records: Vec<EventRecord>,
    pub results: Vec<&'static str>,
}

/// What can become of a write besides success.
#[derive(Clone, Debug)]
pub enum WriteFault {
    /// Fine after all.
    None,
    AppliedNoResponse,
    DroppedNoResponse,
    Unreachable,
    Throttled(u32),
    Terminating,
}

impl Cluster {
    pub fn new(settings: Settings) -> Self {
        Self {
            engine: Engine::new(settings),
            now: MonotonicTime::START,
            services: BTreeMap::new(),
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            objects: BTreeMap::new(),
            version: 100,
            pending: VecDeque::new(),
            held: Vec::new(),
            write_faults: VecDeque::new(),
            rejects: None,
            responses_last: false,
            write_takes: Duration::ZERO,
            delayed: VecDeque::new(),
            reads_fail: false,
            sent: Vec::new(),
            live_reads: Vec::new(),
            event_records: Vec::new(),
            results: Vec::new(),
        }
    }

    /// Lists everything and leads.
    pub fn start(&mut self) {
        for kind in self.engine.watched_resources() {
            self.list(kind);
        }
        self.handle(Input::LeadershipAcquired);
        self.run();
    }

    /// A new engine, as after a crash, on the same cluster.
    pub fn restart(&mut self) {
        self.engine = Engine::new(Settings::default());
        self.pending.clear();
        self.held.clear();
        self.delayed.clear();
        self.clear_log();
        self.start();
    }

    pub fn clear_log(&mut self) {
        self.sent.clear();
        self.live_reads.clear();
        self.results.clear();
        self.event_records.clear();
    }

    pub fn list(&mut self, kind: WatchedResource) {
        self.pending.retain(|(of, _)| *of != kind);
        self.handle(Input::Watch(kind, WatchSignal::InitStarted));
        for change in self.changes(kind) {
            self.handle(Input::Watch(kind, WatchSignal::Event(Box::new(change))));
        }
        self.handle(Input::Watch(kind, WatchSignal::InitDone(self.version.into())));
    }

    fn changes(&self, kind: WatchedResource) -> Vec<ResourceEvent> {
        let published = |resource| {
            let objects = self.objects.iter().filter(move |((of, _), _)| *of == resource);
            objects.map(|(_, object)| applied(object.clone()))
        };
        match kind {
            WatchedResource::Services => {
                let all = self.services.values().cloned();
                all.map(|one| ResourceEvent::Service(ObjectEvent::Applied(one))).collect()
            }
            WatchedResource::Pods => {
                let all = self.pods.values().cloned();
                all.map(|one| ResourceEvent::Pod(ObjectEvent::Applied(one))).collect()
            }
            WatchedResource::Nodes => {
                let all = self.nodes.values().cloned();
                all.map(|one| ResourceEvent::Node(ObjectEvent::Applied(one))).collect()
            }
            WatchedResource::Endpoints => published(PublishedResource::Endpoints).collect(),
            WatchedResource::Slices => published(PublishedResource::Slices).collect(),
        }
    }

    /// Until nothing is left to do at this moment.
    pub fn run(&mut self) {
        for _ in 0..STEPS_MAX {
            if !self.step() {
                return;
            }
        }
        panic!("no rest after {STEPS_MAX} steps: {:?}", &self.sent[self.sent.len() - 10..]);
    }

    /// One thing that is to be done, told, or answered; whether there was one.
    pub fn step(&mut self) -> bool {
        if let Some(effect) = self.engine.next(self.now) {
            self.perform(effect);
            return true;
        }
        if self.deliver() {
            return true;
        }
        let answer = self.delayed.pop_front();
        let has_answer = answer.is_some();
        answer.into_iter().for_each(|answer| self.handle(answer));
        has_answer
    }

    /// One thing after the other, until it is so.
    pub fn step_until(&mut self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            assert!(self.step(), "nothing is left to do after {:?}", self.sent);
        }
    }

    pub fn step_until_sent(&mut self, n_writes: usize) {
        self.step_until(|cluster| cluster.sent.len() >= n_writes);
    }

    /// Lets time pass, acting whenever something is due.
    pub fn advance(&mut self, time: Duration) {
        let end = self.now + time;
        self.run();
        for _ in 0..WAKES_MAX {
            let Some(due) = self.engine.wake_at().filter(|due| *due <= end) else {
                // Writes take time as well, and it never goes back.
                self.now = self.now.max(end);
                return self.run();
            };
            self.now = self.now.max(due);
            self.run();
        }
        panic!("woken {WAKES_MAX} times, and there is still something due at {:?}", self.now);
    }

    pub fn hold_watch(&mut self, kind: WatchedResource) {
        self.held.push(kind);
    }

    pub fn release_watches(&mut self) {
        self.held.clear();
        self.run();
    }

    /// What the watch of a kind has yet to tell is never told.
    pub fn drop_pending_events(&mut self, kind: WatchedResource) {
        self.pending.retain(|(of, _)| *of != kind);
    }

    pub fn version(&self) -> ResourceVersion {
        self.version.into()
    }

    pub fn handle(&mut self, input: Input) {
        self.engine.handle(input, self.now);
    }

    pub fn report(&self) -> EngineStatus {
        self.engine.report(self.now)
    }

    /// Stores and announces; the uid is the name unless there is one.
    pub fn put_service(&mut self, mut service: Service) {
        service.resource_version = self.bump();
        if service.uid.is_empty() {
            service.uid = Uid::from(format!("svc-{}", service.name).as_str());
        }
        self.services.insert(service.key(), service.clone());
        self.announce(ResourceEvent::Service(ObjectEvent::Applied(service)));
    }

    pub fn remove_service(&mut self, key: &Key) {
        let mut service = self.services.remove(key).expect("there is such a Service");
        service.resource_version = self.bump();
        self.announce(ResourceEvent::Service(ObjectEvent::Deleted(service)));
    }

    pub fn put_pod(&mut self, mut pod: Pod) {
        pod.resource_version = self.bump();
        self.pods.insert(pod.key(), pod.clone());
        self.announce(ResourceEvent::Pod(ObjectEvent::Applied(pod)));
    }

    pub fn change_pod(&mut self, key: &Key, change: impl FnOnce(&mut Pod)) {
        let mut pod = self.pods[key].clone();
        change(&mut pod);
        self.put_pod(pod);
    }

    pub fn remove_pod(&mut self, key: &Key) {
        let mut pod = self.pods.remove(key).expect("there is such a pod");
        pod.resource_version = self.bump();
        self.announce(ResourceEvent::Pod(ObjectEvent::Deleted(pod)));
    }

    pub fn put_node(&mut self, mut node: Node) {
        node.resource_version = self.bump();
        self.nodes.insert(node.name.clone(), node.clone());
        self.announce(ResourceEvent::Node(ObjectEvent::Applied(node)));
    }

    pub fn remove_node(&mut self, name: &str) {
        let mut node = self.nodes.remove(name).expect("there is such a node");
        node.resource_version = self.bump();
        self.announce(ResourceEvent::Node(ObjectEvent::Deleted(node)));
    }

    /// Someone else writes an object we publish.
    pub fn put_object(&mut self, object: Object) -> Object {
        let stored = self.store(object);
        self.announce(applied(stored.clone()));
        stored
    }

    pub fn put_endpoints(&mut self, name: &str) {
        let meta = Meta { namespace: "ns".into(), name: name.into(), ..Meta::default() };
        self.put_object(Object::Endpoints(Endpoints { meta, subsets: Vec::new() }));
    }

    pub fn remove_object(&mut self, resource: PublishedResource, key: &Key) {
        let mut object = self.objects.remove(&(resource, key.clone())).expect("it is there");
        meta_mut(&mut object).resource_version = self.bump();
        self.announce(deleted(object));
    }

    pub fn slices(&self) -> Vec<&EndpointSlice> {
        let mut slices = Vec::new();
        for object in self.objects.values() {
            if let Object::Slice(slice) = object {
                slices.push(slice);
            }
        }
        slices
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
            Effect::RecordEvent { record, .. } => self.event_records.push(record),
            Effect::SyncFinished(synced) => {
                assert!(synced.result != SyncResult::Unchanged || synced.n_creates == 0);
                self.results.push(synced.result.as_str());
            }
        }
    }

    fn answer(&mut self, id: RequestId, write: &Write) {
        let failure = |kind, message: &str| Failure { kind, message: message.into() };
        let lost = || WriteResult::NoResponse(failure(FailureKind::ServerError, "no answer"));
        let outcome = match self.write_faults.pop_front().unwrap_or(WriteFault::None) {
            WriteFault::None if self.rejects.is_some_and(|refuses| refuses(write)) => {
                WriteResult::Failed(failure(FailureKind::Forbidden, "quota exceeded"))
            }
            WriteFault::None => self.apply(write),
            WriteFault::AppliedNoResponse => {
                self.apply(write);
                lost()
            }
            WriteFault::DroppedNoResponse => lost(),
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

    /// As an API server does it: versions and uids are checked.
    fn apply(&mut self, write: &Write) -> WriteResult {
        let at = (write.resource(), write.key());
        let known = self.objects.get(&at).map(|object| object.meta().clone());
        match (write, known) {
            (Write::Create(_), Some(_)) => WriteResult::Conflict("already exists".into()),
            (Write::Update(_), None) => WriteResult::Conflict("not found".into()),
            (Write::Delete(_), None) => WriteResult::Deleted,
            (Write::Create(object), None) => {
                WriteResult::Stored(Box::new(self.put_object(object.clone())))
            }
            (Write::Update(object), Some(known)) => {
                if known.resource_version != object.meta().resource_version {
                    return WriteResult::Conflict("conflict".into());
                }
                WriteResult::Stored(Box::new(self.put_object(object.clone())))
            }
            (Write::Delete(target), Some(known)) => {
                if (&known.uid, &known.resource_version) != (&target.uid, &target.resource_version)
                {
                    return WriteResult::Conflict("precondition failed".into());
                }
                self.remove_object(at.0, &at.1);
                WriteResult::Deleted
            }
        }
    }

    pub fn read_now(&self, read: &LiveRead) -> LiveReadResult {
        if self.reads_fail {
            let message = "no answer".into();
            return LiveReadResult::Failed(Failure { kind: FailureKind::ServerError, message });
        }
        let found = match read {
            LiveRead::Service(key) => {
                self.services.get(key).map(|one| LiveReadResult::Service(Box::new(one.clone())))
            }
            LiveRead::Node(name) => {
                self.nodes.get(name).map(|one| LiveReadResult::Node(Box::new(one.clone())))
            }
            LiveRead::Object(resource, key) => self
                .objects
                .get(&(*resource, key.clone()))
                .map(|one| LiveReadResult::Object(Box::new(one.clone()))),
        };
        found.unwrap_or(LiveReadResult::Absent)
    }

    fn store(&mut self, mut object: Object) -> Object {
        let version = self.bump();
        let meta = meta_mut(&mut object);
        if meta.uid.is_empty() {
            meta.uid = Uid::from(format!("uid-{version}").as_str());
        }
        meta.resource_version = version;
        self.objects.insert((object.resource(), object.meta().key()), object.clone());
        object
    }

    fn announce(&mut self, change: ResourceEvent) {
        self.pending.push_back((change.kind(), WatchSignal::Event(Box::new(change))));
    }

    pub fn deliver(&mut self) -> bool {
        let held = &self.held;
        let Some(at) = self.pending.iter().position(|(kind, _)| !held.contains(kind)) else {
            return false;
        };
        let (kind, news) = self.pending.remove(at).expect("just found");
        self.handle(Input::Watch(kind, news));
        true
    }

    fn bump(&mut self) -> ResourceVersion {
        self.version += 1;
        self.version.into()
    }
}

fn applied(object: Object) -> ResourceEvent {
    match object {
        Object::Slice(slice) => ResourceEvent::Slice(ObjectEvent::Applied(slice)),
        Object::Endpoints(endpoints) => ResourceEvent::Endpoints(ObjectEvent::Applied(endpoints)),
    }
}

fn deleted(object: Object) -> ResourceEvent {
    match object {
        Object::Slice(slice) => ResourceEvent::Slice(ObjectEvent::Deleted(slice)),
        Object::Endpoints(endpoints) => ResourceEvent::Endpoints(ObjectEvent::Deleted(endpoints)),
    }
}

fn meta_mut(object: &mut Object) -> &mut Meta {
    match object {
        Object::Slice(slice) => &mut slice.meta,
        Object::Endpoints(endpoints) => &mut endpoints.meta,
    }
}
