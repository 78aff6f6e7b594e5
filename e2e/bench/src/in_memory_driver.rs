//! Drives an engine without a server: writes are acknowledged immediately. Only the time inside the
//! engine is measured.
//!
//! It does not use `endpointd-memory-api`, which keeps every version of every object decoded in this
//! process and shares strings with the engine: the measured memory would contain both. What is
//! kept here is encoded, and read back as a client would read it.

use std::iter::{self, Peekable};
use std::time::{Duration, Instant};

use endpointd_engine::{Effect, Engine, Input, MonotonicTime, RequestId, Settings};
use endpointd_model::{
    LiveRead, LiveReadResult, Meta, Object, ObjectEvent, PublishedResource, ResourceEvent,
    WatchSignal, WatchedResource, Write, WriteResult,
};
use endpointd_wire::{Bytes, Encoding, decode, encode};

use crate::load::{Layout, PodNumber};
use crate::object_dump::Stored;
use crate::objects::{self, uid};

/// The order of the initial lists.
const LIST_ORDER: [WatchedResource; 5] = [
    WatchedResource::Services,
    WatchedResource::Nodes,
    WatchedResource::Pods,
    WatchedResource::Endpoints,
    WatchedResource::Slices,
];

pub struct InMemoryDriver {
    engine: Engine,
    layout: Layout,
    now: MonotonicTime,
    version: u64,
    is_unready: Vec<bool>,
    /// Objects of an earlier engine that are not listed yet.
    dump: Peekable<Box<dyn Iterator<Item = (PublishedResource, Bytes)>>>,
    /// Written objects, if another engine restarts from them.
    stored: Option<Stored>,
    n_writes: usize,
    busy: Duration,
}

impl InMemoryDriver {
    /// Starts without published objects and does not keep what the engine writes.
    pub fn new(layout: Layout) -> Self {
        Self::restarted(layout, iter::empty())
    }

    /// Starts with the published objects of `dump`.
    pub fn restarted(
        layout: Layout,
        dump: impl Iterator<Item = (PublishedResource, Bytes)> + 'static,
    ) -> Self {
        let dump: Box<dyn Iterator<Item = (PublishedResource, Bytes)>> = Box::new(dump);
        Self {
            engine: Engine::new(Settings::default()),
            now: MonotonicTime::START,
            is_unready: vec![false; layout.n_pods],
            layout,
            version: 1,
            dump: dump.peekable(),
            stored: None,
            n_writes: 0,
            busy: Duration::ZERO,
        }
    }

    /// Keeps what the engine writes.
    pub fn with_store(layout: Layout) -> Self {
        Self { stored: Some(Stored::new()), ..Self::new(layout) }
    }

    /// With other settings than the default ones.
    pub fn with_settings(layout: Layout, settings: Settings) -> Self {
        Self { engine: Engine::new(settings), ..Self::new(layout) }
    }

    pub fn into_stored(self) -> Stored {
        self.stored.unwrap_or_default()
    }

    /// Lists everything, acquires leadership, and runs until the engine has no more effects.
    pub fn start(&mut self) {
        for kind in LIST_ORDER {
            self.handle(Input::Watch(kind, WatchSignal::InitStarted));
            self.list(kind);
            self.handle(Input::Watch(kind, WatchSignal::InitDone(self.version.into())));
        }
        self.handle(Input::LeadershipAcquired);
        self.run_effects();
    }

    pub fn n_writes(&self) -> usize {
        self.n_writes
    }

    /// The time spent in the engine since the last call.
    pub fn take_busy(&mut self) -> Duration {
        std::mem::take(&mut self.busy)
    }

    /// Time passes, and what is due meanwhile happens.
    pub fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.run_effects();
    }

    /// Toggles the readiness of a pod.
    pub fn toggle(&mut self, number: PodNumber) {
        self.is_unready[number] = !self.is_unready[number];
        self.touch(number);
    }

    /// Changes a pod without changing what is published.
    pub fn touch(&mut self, number: PodNumber) {
        self.version += 1;
        self.apply_pod(number);
        self.run_effects();
    }

    fn list(&mut self, kind: WatchedResource) {
        let layout = self.layout;
        match kind {
            WatchedResource::Services => {
                for number in 0..layout.n_services {
                    let service = objects::service(&layout, number, self.version);
                    self.apply(ResourceEvent::Service(ObjectEvent::Applied(service)));
                }
            }
            WatchedResource::Nodes => {
                for number in 0..layout.n_nodes {
                    self.apply(ResourceEvent::Node(ObjectEvent::Applied(objects::node(
                        number,
                        self.version,
                    ))));
                }
            }
            WatchedResource::Pods => (0..layout.n_pods).for_each(|number| self.apply_pod(number)),
            WatchedResource::Endpoints => self.list_dump(PublishedResource::Endpoints),
            WatchedResource::Slices => self.list_dump(PublishedResource::Slices),
            WatchedResource::ReferenceGrants
            | WatchedResource::Namespaces
            | WatchedResource::ServiceExports
            | WatchedResource::ServiceImports
            | WatchedResource::DerivedServices => {}
        }
    }

    fn list_dump(&mut self, resource: PublishedResource) {
        while let Some((_, body)) = self.dump.next_if(|(of, _)| *of == resource) {
            let object = decoded(resource, &body);
            // A list has at least the version of its objects.
            let version = object.meta().resource_version.number();
            self.version = self.version.max(version);
            self.apply(match object {
                Object::Slice(slice) => ResourceEvent::Slice(ObjectEvent::Applied(slice)),
                Object::Endpoints(endpoints) => {
                    ResourceEvent::Endpoints(ObjectEvent::Applied(endpoints))
                }
                Object::ServiceStatus(_) | Object::MultiCluster(_) => continue,
            });
        }
    }

    fn apply_pod(&mut self, number: PodNumber) {
        let pod = objects::pod(&self.layout, number, self.version, !self.is_unready[number]);
        self.apply(ResourceEvent::Pod(ObjectEvent::Applied(pod)));
    }

    fn apply(&mut self, change: ResourceEvent) {
        self.handle(Input::Watch(change.kind(), WatchSignal::Event(Box::new(change))));
    }

    fn handle(&mut self, input: Input) {
        let began = Instant::now();
        self.engine.handle(input, self.now);
        self.busy += began.elapsed();
    }

    fn next(&mut self) -> Option<Effect> {
        let began = Instant::now();
        let effect = self.engine.next(self.now);
        self.busy += began.elapsed();
        effect
    }

    fn run_effects(&mut self) {
        while let Some(effect) = self.next() {
            match effect {
                Effect::Send { id, controller: _, write } => self.store(id, *write),
                Effect::LiveRead { id, read } => {
                    let found = self.live_read(&read);
                    self.handle(Input::LiveReadResult(id, found));
                }
                Effect::Relist(_)
                | Effect::RelistAll
                | Effect::RelistSource { .. }
                | Effect::RecordEvent { .. }
                | Effect::SyncFinished(_) => {}
            }
        }
    }

    fn store(&mut self, id: RequestId, write: Write) {
        self.n_writes += 1;
        self.version += 1;
        let at = (write.resource(), write.key());
        let outcome = match write {
            Write::Create(mut object) | Write::Update(mut object) => {
                self.set_version(&mut object);
                let body: Bytes = encode(Encoding::Protobuf, &object).into();
                let answer = decoded(at.0, &body);
                if let Some(stored) = &mut self.stored {
                    stored.insert(at, body);
                }
                WriteResult::Stored(Box::new(answer))
            }
            Write::Delete(_) => {
                self.stored.iter_mut().for_each(|stored| drop(stored.remove(&at)));
                WriteResult::Deleted
            }
        };
        self.handle(Input::WriteResult(id, outcome));
    }

    fn set_version(&self, object: &mut Object) {
        let meta: &mut Meta = match object {
            Object::Slice(slice) => &mut slice.meta,
            Object::Endpoints(endpoints) => &mut endpoints.meta,
            Object::ServiceStatus(status) => &mut status.meta,
            Object::MultiCluster(object) => object.meta_mut(),
        };
        meta.resource_version = self.version.into();
        if meta.uid.is_empty() {
            meta.uid = uid(3, self.n_writes);
        }
    }

    /// Services and nodes never disappear here, so a live read of one finds nothing.
    fn live_read(&self, read: &LiveRead) -> LiveReadResult {
        match read {
            LiveRead::Object(resource, key) => {
                let stored = self.stored.as_ref();
                let body = stored.and_then(|stored| stored.get(&(*resource, key.clone())));
                body.map_or(LiveReadResult::Absent, |body| {
                    LiveReadResult::Object(Box::new(decoded(*resource, body)))
                })
            }
            LiveRead::Service(_)
            | LiveRead::Node(_)
            | LiveRead::FieldManager(..)
            | LiveRead::Pods(_)
            | LiveRead::Source(..) => LiveReadResult::Absent,
        }
    }
}

/// As received from a server: decoded, without memory shared with the encoded object.
fn decoded(resource: PublishedResource, body: &Bytes) -> Object {
    let read = match resource {
        PublishedResource::Slices => decode(Encoding::Protobuf, body).map(Object::Slice),
        PublishedResource::Endpoints => decode(Encoding::Protobuf, body).map(Object::Endpoints),
        PublishedResource::ServiceStatus | PublishedResource::MultiCluster(_) => {
            unreachable!("no controller of this benchmark writes a condition or an import")
        }
    };
    read.expect("we encoded the object")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object_dump::{ObjectDump, write_dump};
    use std::io;

    #[test]
    fn restart_from_a_dump_writes_nothing() {
        let layout = Layout::spread(4, 40);
        let mut driver = InMemoryDriver::with_store(layout);
        driver.start();
        assert_eq!(driver.n_writes(), 8, "a slice and Endpoints for each Service");
        driver.toggle(3);
        assert_eq!(driver.n_writes(), 10);
        driver.touch(3);
        assert_eq!(driver.n_writes(), 10, "an unpublished change causes no write");
        driver.toggle(3);
        let mut pipe = Vec::new();
        write_dump(&driver.into_stored(), &mut pipe).unwrap();

        let mut another = InMemoryDriver::restarted(layout, ObjectDump(io::Cursor::new(pipe)));
        another.start();
        assert_eq!(another.n_writes(), 0);
        assert!(another.take_busy() > Duration::ZERO);
        another.toggle(3);
        assert_eq!(another.n_writes(), 2, "changes after the restart are written");
    }
}
