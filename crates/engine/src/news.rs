//! What the watches tell.

use endpointd_model::{
    Key, LiveRead, Object, ObjectEvent, PublishedResource, ResourceEvent, ResourceVersion,
    SharedStr, WatchSignal, WatchedResource,
};

use endpointd_mutants::{Mutant, is_on};
use endpointd_plan::CarriedState;

use crate::cache::{Marks, Origin, Picture};
use crate::engine::Engine;
use crate::flights::Echo;
use crate::queue::{Place, Priority};
use crate::{Effect, MonotonicTime};

impl Engine {
    pub(crate) fn hear(&mut self, kind: WatchedResource, news: WatchSignal, now: MonotonicTime) {
        let Some(at) = self.streams.iter().position(|stream| stream.kind == kind) else { return };
        let stream = &mut self.streams[at];
        match news {
            WatchSignal::Disconnected(reason) => return stream.lose(reason),
            WatchSignal::Reconnected => self.end_outage(now),
            WatchSignal::InitStarted => stream.begin_picture(),
            WatchSignal::Event(change) => self.see(at, *change, now),
            WatchSignal::DecodeError { key, reason } => {
                stream.note_unreadable(key.clone(), reason);
                let picture = stream.picture;
                self.keep(kind, &key, picture);
            }
            WatchSignal::InitDone(version) => self.complete_picture(at, version, now),
            WatchSignal::Bookmark(version) => stream.passed = stream.passed.max(version),
        }
        self.streams[at].hear(now);
    }

    fn see(&mut self, at: usize, change: ResourceEvent, now: MonotonicTime) {
        let stream = &mut self.streams[at];
        let (key, version) = identity(&change);
        stream.note_readable(&key);
        if stream.is_replay(version) {
            return;
        }
        if self.is_doubtful(at, &change, &key, version) {
            return self.streams[at].doubtful.push(change);
        }
        self.take_in(at, change, key, now);
    }

    fn take_in(&mut self, at: usize, change: ResourceEvent, key: Key, now: MonotonicTime) {
        let picture = self.streams[at].picture;
        let is_endpoints_gone = matches!(change, ResourceEvent::Endpoints(ObjectEvent::Deleted(_)));
        let mut marks = Marks::default();
        match change {
            ResourceEvent::Service(ObjectEvent::Applied(service)) => {
                if self.cache.put_service(service, picture, &mut marks) {
                    self.forget(&key, now);
                }
                self.look_again_after_flight(&key, now);
            }
            ResourceEvent::Service(ObjectEvent::Deleted(_)) => {
                self.flights.outdate(|read| *read == LiveRead::Service(key.clone()));
                self.cache.remove_service(&key, &mut marks);
                self.forget(&key, now);
            }
            ResourceEvent::Pod(ObjectEvent::Applied(pod)) => {
                self.cache.put_pod(pod, picture, &mut marks)
            }
            ResourceEvent::Pod(ObjectEvent::Deleted(_)) => self.cache.remove_pod(&key, &mut marks),
            ResourceEvent::Node(ObjectEvent::Applied(node)) => {
                self.sought_nodes.remove(&key.name);
                self.cache.put_node(node, picture, &mut marks);
            }
            ResourceEvent::Node(ObjectEvent::Deleted(_)) => self.lose_node(&key.name, &mut marks),
            ResourceEvent::Endpoints(sight) => {
                self.see_object(sight_of(sight, Object::Endpoints), picture, &mut marks);
            }
            ResourceEvent::Slice(sight) => {
                self.see_object(sight_of(sight, Object::Slice), picture, &mut marks);
            }
        }
        self.mark(marks, now);
        if is_endpoints_gone {
            self.drop_if_gone(&key);
        }
    }

    /// A picture shows an object that is gone: all changes up to a later version have been told, and
    /// it is not there.
    fn is_doubtful(
        &self,
        at: usize,
        change: &ResourceEvent,
        key: &Key,
        version: ResourceVersion,
    ) -> bool {
        let stream = &self.streams[at];
        let is_old = version != ResourceVersion::NONE && version <= stream.passed;
        stream.is_listing
            && is_old
            && match change {
                ResourceEvent::Service(_) => self.cache.service(key).is_none(),
                ResourceEvent::Pod(_) => !self.cache.has_pod(key),
                ResourceEvent::Node(_) => !self.cache.has_node(&key.name),
                ResourceEvent::Endpoints(_) => {
                    self.cache.object(PublishedResource::Endpoints, key).is_none()
                }
                ResourceEvent::Slice(_) => {
                    self.cache.object(PublishedResource::Slices, key).is_none()
                }
            }
    }

    /// An object we publish. If a write of ours to it is under way, this may be its echo: the
    /// answer will tell, and its owner need not look again before.
    fn see_object(&mut self, sight: ObjectEvent<Object>, picture: Picture, marks: &mut Marks) {
        let object = sight.object();
        let (resource, key) = (object.resource(), object.meta().key());
        let version = object.meta().resource_version;
        let mut own = Marks::default();
        let echo = match sight {
            ObjectEvent::Applied(object) => {
                let is_news = self.cache.put_object(object, Origin::Watch, picture, &mut own);
                is_news.then_some(Echo::ResourceVersion(version))
            }
            ObjectEvent::Deleted(object) => {
                let is_news = self.cache.object_gone(resource, object.meta(), &mut own);
                is_news.then_some(Echo::Gone)
            }
        };
        if let Some(echo) = echo
            && let Some(writer) = self.flights.note_echo(resource, &key, echo)
        {
            own.0.retain(|mark| (mark.controller, &mark.key) != (writer.0, &writer.1));
        }
        marks.0.append(&mut own.0);
    }

    fn lose_node(&mut self, name: &SharedStr, marks: &mut Marks) {
        self.sought_nodes.remove(name);
        self.cache.remove_node(name);
        self.cache.mark_pods_on(name, marks);
    }

    /// Keeps what cannot be read as it was last.
    fn keep(&mut self, kind: WatchedResource, key: &Key, picture: Picture) {
        match kind {
            WatchedResource::Services => self.cache.keep_service(key, picture),
            WatchedResource::Pods => self.cache.keep_pod(key, picture),
            WatchedResource::Nodes => self.cache.keep_node(&key.name, picture),
            WatchedResource::Endpoints => {
                self.cache.keep_object(PublishedResource::Endpoints, key, picture)
            }
            WatchedResource::Slices => {
                self.cache.keep_object(PublishedResource::Slices, key, picture)
            }
        }
    }

    /// What the picture did not show is gone, unless it is newer than the picture.
    fn complete_picture(&mut self, at: usize, version: ResourceVersion, now: MonotonicTime) {
        let stream = &mut self.streams[at];
        let (kind, picture) = (stream.kind, stream.picture);
        let is_old = version != ResourceVersion::NONE && version < stream.passed;
        if is_old && !is_on(Mutant::BelieveOldPicture) {
            // An older view than we had: nothing is taken for gone by it.
            self.effects.push_back(Effect::Relist(kind));
            return;
        }
        stream.passed = version;
        stream.is_listing = false;
        stream.is_synced = true;
        self.flights.outdate(|read| is_about(read, kind));
        let stream = &mut self.streams[at];
        for change in std::mem::take(&mut stream.doubtful) {
            let (key, _) = identity(&change);
            self.take_in(at, change, key, now);
        }
        let mut marks = Marks::default();
        let mut gone = Vec::new();
        match kind {
            WatchedResource::Services => {
                for key in self.cache.services_not_in(picture, version) {
                    self.cache.remove_service(&key, &mut marks);
                    self.forget(&key, now);
                }
            }
            WatchedResource::Pods => {
                let gone = self.cache.pods_not_in(picture, version);
                for key in gone.into_iter().filter(|_| !is_on(Mutant::NoDiffAfterPicture)) {
                    self.cache.remove_pod(&key, &mut marks);
                }
            }
            WatchedResource::Nodes => {
                for name in self.cache.nodes_not_in(picture, version) {
                    self.lose_node(&name, &mut marks);
                }
            }
            WatchedResource::Endpoints => {
                gone = self.sweep(PublishedResource::Endpoints, picture, version, &mut marks);
            }
            WatchedResource::Slices => {
                drop(self.sweep(PublishedResource::Slices, picture, version, &mut marks))
            }
        }
        self.mark(marks, now);
        gone.iter().for_each(|key| self.drop_if_gone(key));
        self.end_outage(now);
        self.visit_all(now);
    }

    /// Says what is gone.
    fn sweep(
        &mut self,
        resource: PublishedResource,
        picture: Picture,
        listed: ResourceVersion,
        marks: &mut Marks,
    ) -> Vec<Key> {
        let gone = self.cache.objects_not_in(resource, picture, listed);
        for key in &gone {
            self.cache.remove_object(resource, key, marks);
        }
        self.cache.drop_tombstones(resource, picture);
        gone
    }

    /// The Service is gone or another one: what was remembered of it is nobody's.
    fn forget(&mut self, key: &Key, now: MonotonicTime) {
        for lane in &mut self.lanes {
            match lane.queue.place(key) {
                None => lane.keys.remove(key),
                Some(_) => {
                    if let Some(state) = lane.keys.get_mut(key) {
                        state.carried = CarriedState::default();
                    }
                }
            }
        }
        self.look_again_after_flight(key, now);
    }

    /// A sync under way was decided on the Service as it was. What it writes may be wrong by now,
    /// and nobody else would see that.
    fn look_again_after_flight(&mut self, key: &Key, now: MonotonicTime) {
        for lane in &mut self.lanes {
            let is_flying = matches!(lane.queue.place(key), Some(Place::Flying { .. }));
            if is_flying && !is_on(Mutant::NoLookAfterFlight) {
                lane.queue.mark(key, Priority::Live, now, now);
            }
        }
    }
}

fn is_about(read: &LiveRead, kind: WatchedResource) -> bool {
    match read {
        LiveRead::Service(_) => kind == WatchedResource::Services,
        LiveRead::Node(_) => kind == WatchedResource::Nodes,
        LiveRead::Object(PublishedResource::Endpoints, _) => kind == WatchedResource::Endpoints,
        LiveRead::Object(PublishedResource::Slices, _) => kind == WatchedResource::Slices,
    }
}

/// A node has no namespace.
fn identity(change: &ResourceEvent) -> (Key, ResourceVersion) {
    let of = |key: Key, version: ResourceVersion| (key, version);
    match change {
        ResourceEvent::Service(sight) => of(sight.object().key(), sight.object().resource_version),
        ResourceEvent::Pod(sight) => of(sight.object().key(), sight.object().resource_version),
        ResourceEvent::Node(sight) => {
            let node = sight.object();
            of(Key::new("", node.name.clone()), node.resource_version)
        }
        ResourceEvent::Endpoints(sight) => {
            of(sight.object().meta.key(), sight.object().meta.resource_version)
        }
        ResourceEvent::Slice(sight) => {
            of(sight.object().meta.key(), sight.object().meta.resource_version)
        }
    }
}

fn sight_of<T>(sight: ObjectEvent<T>, wrap: impl Fn(T) -> Object) -> ObjectEvent<Object> {
    match sight {
        ObjectEvent::Applied(object) => ObjectEvent::Applied(wrap(object)),
        ObjectEvent::Deleted(object) => ObjectEvent::Deleted(wrap(object)),
    }
}
