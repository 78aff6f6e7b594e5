//! An engine and the least world it can live in: what it writes is stored and acknowledged at once.
//! Time counts only while the engine works.

use std::iter::{self, Peekable};
use std::time::{Duration, Instant};

use endpointd_engine::{Effect, Engine, Input, MonotonicTime, RequestId, Settings};
use endpointd_model::{
    LiveRead, LiveReadResult, Meta, Object, ObjectEvent, PublishedResource, ResourceEvent,
    WatchSignal, WatchedResource, Write, WriteResult,
};
use endpointd_wire::{Bytes, Encoding, decode, encode};

use crate::load::{Layout, PodNumber};
use crate::objects::{self, uid};
use crate::past::Stored;

/// Listed in this order.
const KINDS: [WatchedResource; 5] = [
    WatchedResource::Services,
    WatchedResource::Nodes,
    WatchedResource::Pods,
    WatchedResource::Endpoints,
    WatchedResource::Slices,
];

pub struct Puppet {
    engine: Engine,
    layout: Layout,
    version: u64,
    /// Pods that are not ready.
    is_out: Vec<bool>,
    /// What an engine before this one has left, until it is listed.
    past: Peekable<Box<dyn Iterator<Item = (PublishedResource, Bytes)>>>,
    /// What was written, where another one is to start on it.
    stored: Option<Stored>,
    n_writes: usize,
    busy: Duration,
}

impl Puppet {
    /// Nothing is published, and what it writes is forgotten.
    pub fn new(layout: Layout) -> Self {
        Self::after(layout, iter::empty())
    }

    /// Everything that is in `past` is published.
    pub fn after(
        layout: Layout,
        past: impl Iterator<Item = (PublishedResource, Bytes)> + 'static,
    ) -> Self {
        let past: Box<dyn Iterator<Item = (PublishedResource, Bytes)>> = Box::new(past);
        Self {
            engine: Engine::new(Settings::default()),
            is_out: vec![false; layout.n_pods],
            layout,
            version: 1,
            past: past.peekable(),
            stored: None,
            n_writes: 0,
            busy: Duration::ZERO,
        }
    }

    /// Keeps what it writes.
    pub fn with_store(layout: Layout) -> Self {
        Self { stored: Some(Stored::new()), ..Self::new(layout) }
    }

    /// What it wrote and kept.
    pub fn into_stored(self) -> Stored {
        self.stored.unwrap_or_default()
    }

    /// Lists everything, leads, and publishes until nothing is left to do.
    pub fn start(&mut self) {
        for kind in KINDS {
            self.tell(Input::Watch(kind, WatchSignal::InitStarted));
            self.list(kind);
            self.tell(Input::Watch(kind, WatchSignal::InitDone(self.version.into())));
        }
        self.tell(Input::LeadershipAcquired);
        self.work();
    }

    pub fn n_writes(&self) -> usize {
        self.n_writes
    }

    /// For how long the engine has worked since the last time.
    pub fn take_busy(&mut self) -> Duration {
        std::mem::take(&mut self.busy)
    }

    /// A pod becomes ready if it was not, and the other way round.
    pub fn flip(&mut self, number: PodNumber) {
        self.is_out[number] = !self.is_out[number];
        self.touch(number);
    }

    /// A pod changes in a way that does not show.
    pub fn touch(&mut self, number: PodNumber) {
        self.version += 1;
        self.see_pod(number);
        self.work();
    }

    fn list(&mut self, kind: WatchedResource) {
        let layout = self.layout;
        match kind {
            WatchedResource::Services => {
                for number in 0..layout.n_services {
                    let service = objects::service(&layout, number, self.version);
                    self.see(ResourceEvent::Service(ObjectEvent::Applied(service)));
                }
            }
            WatchedResource::Nodes => {
                for number in 0..layout.n_nodes {
                    self.see(ResourceEvent::Node(ObjectEvent::Applied(objects::node(
                        number,
                        self.version,
                    ))));
                }
            }
            WatchedResource::Pods => (0..layout.n_pods).for_each(|number| self.see_pod(number)),
            WatchedResource::Endpoints => self.list_past(PublishedResource::Endpoints),
            WatchedResource::Slices => self.list_past(PublishedResource::Slices),
        }
    }

    fn list_past(&mut self, resource: PublishedResource) {
        while let Some((_, body)) = self.past.next_if(|(of, _)| *of == resource) {
            let object = as_read(resource, &body);
            // No list is older than what is in it.
            let version = object.meta().resource_version.number();
            self.version = self.version.max(version);
            self.see(match object {
                Object::Slice(slice) => ResourceEvent::Slice(ObjectEvent::Applied(slice)),
                Object::Endpoints(endpoints) => {
                    ResourceEvent::Endpoints(ObjectEvent::Applied(endpoints))
                }
            });
        }
    }

    fn see_pod(&mut self, number: PodNumber) {
        let pod = objects::pod(&self.layout, number, self.version, !self.is_out[number]);
        self.see(ResourceEvent::Pod(ObjectEvent::Applied(pod)));
    }

    fn see(&mut self, change: ResourceEvent) {
        self.tell(Input::Watch(change.kind(), WatchSignal::Event(Box::new(change))));
    }

    fn tell(&mut self, input: Input) {
        let began = Instant::now();
        self.engine.handle(input, MonotonicTime::START);
        self.busy += began.elapsed();
    }

    fn next(&mut self) -> Option<Effect> {
        let began = Instant::now();
        let effect = self.engine.next(MonotonicTime::START);
        self.busy += began.elapsed();
        effect
    }

    fn work(&mut self) {
        while let Some(effect) = self.next() {
            match effect {
                Effect::Send { id, controller: _, write } => self.store(id, *write),
                Effect::LiveRead { id, read } => {
                    let found = self.look(&read);
                    self.tell(Input::LiveReadResult(id, found));
                }
                Effect::Relist(_) | Effect::RecordEvent { .. } | Effect::SyncFinished(_) => {}
            }
        }
    }

    fn store(&mut self, id: RequestId, write: Write) {
        self.n_writes += 1;
        self.version += 1;
        let at = (write.resource(), write.key());
        let outcome = match write {
            Write::Create(mut object) | Write::Update(mut object) => {
                self.stamp(&mut object);
                let body: Bytes = encode(Encoding::Protobuf, &object).into();
                let answer = as_read(at.0, &body);
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
        self.tell(Input::WriteResult(id, outcome));
    }

    fn stamp(&self, object: &mut Object) {
        let meta: &mut Meta = match object {
            Object::Slice(slice) => &mut slice.meta,
            Object::Endpoints(endpoints) => &mut endpoints.meta,
        };
        meta.resource_version = self.version.into();
        if meta.uid.is_empty() {
            meta.uid = uid(3, self.n_writes);
        }
    }

    /// Nothing is ever missing here but what was never there.
    fn look(&self, read: &LiveRead) -> LiveReadResult {
        match read {
            LiveRead::Object(resource, key) => {
                let stored = self.stored.as_ref();
                let body = stored.and_then(|stored| stored.get(&(*resource, key.clone())));
                body.map_or(LiveReadResult::Absent, |body| {
                    LiveReadResult::Object(Box::new(as_read(*resource, body)))
                })
            }
            LiveRead::Service(_) | LiveRead::Node(_) => LiveReadResult::Absent,
        }
    }
}

/// As it comes from a server: decoded anew, sharing nothing.
fn as_read(resource: PublishedResource, body: &Bytes) -> Object {
    let read = match resource {
        PublishedResource::Slices => decode(Encoding::Protobuf, body).map(Object::Slice),
        PublishedResource::Endpoints => decode(Encoding::Protobuf, body).map(Object::Endpoints),
    };
    read.expect("what was encoded can be decoded")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::past::{Past, leave};
    use std::io;

    #[test]
    fn everything_is_published_and_a_restart_writes_nothing() {
        let layout = Layout::spread(4, 40);
        let mut puppet = Puppet::with_store(layout);
        puppet.start();
        assert_eq!(puppet.n_writes(), 8, "a slice and Endpoints for each Service");
        puppet.flip(3);
        assert_eq!(puppet.n_writes(), 10);
        puppet.touch(3);
        assert_eq!(puppet.n_writes(), 10, "what does not show is not written");
        puppet.flip(3);
        let mut pipe = Vec::new();
        leave(&puppet.into_stored(), &mut pipe).unwrap();

        let mut another = Puppet::after(layout, Past(io::Cursor::new(pipe)));
        another.start();
        assert_eq!(another.n_writes(), 0);
        assert!(another.take_busy() > Duration::ZERO);
        another.flip(3);
        assert_eq!(another.n_writes(), 2, "it goes on where the other one ended");
    }
}
