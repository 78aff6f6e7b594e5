//! What the watches tell.

use endpointd_model::{Change, Key, Kind, Lookup, News, Object, Resource, Sight, Text, Version};

use endpointd_mutants::{Mutant, is_on};
use endpointd_plan::Memory;

use crate::cache::{Marks, Origin, Picture};
use crate::engine::Engine;
use crate::flights::Echo;
use crate::queue::{Place, Priority};
use crate::{Effect, Moment};

impl Engine {
    pub(crate) fn hear(&mut self, kind: Kind, news: News, now: Moment) {
        let Some(at) = self.streams.iter().position(|stream| stream.kind == kind) else { return };
        let stream = &mut self.streams[at];
        match news {
            News::Lost(reason) => return stream.lose(reason),
            News::Resumed => self.end_outage(now),
            News::Listing => stream.begin_picture(),
            News::Seen(change) => self.see(at, *change, now),
            News::Unreadable { key, reason } => {
                stream.note_unreadable(key.clone(), reason);
                let picture = stream.picture;
                self.keep(kind, &key, picture);
            }
            News::Listed(version) => self.complete_picture(at, version, now),
            News::Passed(version) => stream.passed = stream.passed.max(version),
        }
        self.streams[at].hear(now);
    }

    fn see(&mut self, at: usize, change: Change, now: Moment) {
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

    fn take_in(&mut self, at: usize, change: Change, key: Key, now: Moment) {
        let picture = self.streams[at].picture;
        let is_endpoints_gone = matches!(change, Change::Endpoints(Sight::Gone(_)));
        let mut marks = Marks::default();
        match change {
            Change::Service(Sight::Present(service)) => {
                if self.cache.put_service(service, picture, &mut marks) {
                    self.forget(&key, now);
                }
                self.look_again_after_flight(&key, now);
            }
            Change::Service(Sight::Gone(_)) => {
                self.flights.outdate(|lookup| *lookup == Lookup::Service(key.clone()));
                self.cache.remove_service(&key, &mut marks);
                self.forget(&key, now);
            }
            Change::Pod(Sight::Present(pod)) => self.cache.put_pod(pod, picture, &mut marks),
            Change::Pod(Sight::Gone(_)) => self.cache.remove_pod(&key, &mut marks),
            Change::Node(Sight::Present(node)) => {
                self.sought_nodes.remove(&key.name);
                self.cache.put_node(node, picture, &mut marks);
            }
            Change::Node(Sight::Gone(_)) => self.lose_node(&key.name, &mut marks),
            Change::Endpoints(sight) => {
                self.see_object(sight_of(sight, Object::Endpoints), picture, &mut marks);
            }
            Change::Slice(sight) => {
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
    fn is_doubtful(&self, at: usize, change: &Change, key: &Key, version: Version) -> bool {
        let stream = &self.streams[at];
        let is_old = version != Version::OLDEST && version <= stream.passed;
        stream.is_listing
            && is_old
            && match change {
                Change::Service(_) => self.cache.service(key).is_none(),
                Change::Pod(_) => !self.cache.has_pod(key),
                Change::Node(_) => !self.cache.has_node(&key.name),
                Change::Endpoints(_) => self.cache.object(Resource::Endpoints, key).is_none(),
                Change::Slice(_) => self.cache.object(Resource::Slices, key).is_none(),
            }
    }

    /// An object we publish. If a write of ours to it is under way, this may be its echo: the
    /// answer will tell, and its owner need not look again before.
    fn see_object(&mut self, sight: Sight<Object>, picture: Picture, marks: &mut Marks) {
        let object = sight.object();
        let (resource, key) = (object.resource(), object.meta().key());
        let version = Version::of(&object.meta().resource_version);
        let mut own = Marks::default();
        let echo = match sight {
            Sight::Present(object) => {
                let is_news = self.cache.put_object(object, Origin::Watch, picture, &mut own);
                is_news.then_some(Echo::Version(version))
            }
            Sight::Gone(object) => {
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

    fn lose_node(&mut self, name: &Text, marks: &mut Marks) {
        self.sought_nodes.remove(name);
        self.cache.remove_node(name);
        self.cache.mark_pods_on(name, marks);
    }

    /// Keeps what cannot be read as it was last.
    fn keep(&mut self, kind: Kind, key: &Key, picture: Picture) {
        match kind {
            Kind::Services => self.cache.keep_service(key, picture),
            Kind::Pods => self.cache.keep_pod(key, picture),
            Kind::Nodes => self.cache.keep_node(&key.name, picture),
            Kind::Endpoints => self.cache.keep_object(Resource::Endpoints, key, picture),
            Kind::Slices => self.cache.keep_object(Resource::Slices, key, picture),
        }
    }

    /// What the picture did not show is gone, unless it is newer than the picture.
    fn complete_picture(&mut self, at: usize, version: Version, now: Moment) {
        let stream = &mut self.streams[at];
        let (kind, picture) = (stream.kind, stream.picture);
        let is_old = version != Version::OLDEST && version < stream.passed;
        if is_old && !is_on(Mutant::BelieveOldPicture) {
            // An older view than we had: nothing is taken for gone by it.
            self.effects.push_back(Effect::Relist(kind));
            return;
        }
        stream.passed = version;
        stream.is_listing = false;
        stream.is_listed = true;
        self.flights.outdate(|lookup| is_about(lookup, kind));
        let stream = &mut self.streams[at];
        for change in std::mem::take(&mut stream.doubtful) {
            let (key, _) = identity(&change);
            self.take_in(at, change, key, now);
        }
        let mut marks = Marks::default();
        let mut gone = Vec::new();
        match kind {
            Kind::Services => {
                for key in self.cache.services_not_in(picture, version) {
                    self.cache.remove_service(&key, &mut marks);
                    self.forget(&key, now);
                }
            }
            Kind::Pods => {
                let gone = self.cache.pods_not_in(picture, version);
                for key in gone.into_iter().filter(|_| !is_on(Mutant::NoDiffAfterPicture)) {
                    self.cache.remove_pod(&key, &mut marks);
                }
            }
            Kind::Nodes => {
                for name in self.cache.nodes_not_in(picture, version) {
                    self.lose_node(&name, &mut marks);
                }
            }
            Kind::Endpoints => {
                gone = self.sweep(Resource::Endpoints, picture, version, &mut marks);
            }
            Kind::Slices => drop(self.sweep(Resource::Slices, picture, version, &mut marks)),
        }
        self.mark(marks, now);
        gone.iter().for_each(|key| self.drop_if_gone(key));
        self.end_outage(now);
        self.visit_all(now);
    }

    /// Says what is gone.
    fn sweep(
        &mut self,
        resource: Resource,
        picture: Picture,
        listed: Version,
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
    fn forget(&mut self, key: &Key, now: Moment) {
        for lane in &mut self.lanes {
            match lane.queue.place(key) {
                None => lane.keys.remove(key),
                Some(_) => {
                    if let Some(state) = lane.keys.get_mut(key) {
                        state.memory = Memory::default();
                    }
                }
            }
        }
        self.look_again_after_flight(key, now);
    }

    /// A sync under way was decided on the Service as it was. What it writes may be wrong by now,
    /// and nobody else would see that.
    fn look_again_after_flight(&mut self, key: &Key, now: Moment) {
        for lane in &mut self.lanes {
            let is_flying = matches!(lane.queue.place(key), Some(Place::Flying { .. }));
            if is_flying && !is_on(Mutant::NoLookAfterFlight) {
                lane.queue.mark(key, Priority::Live, now, now);
            }
        }
    }
}

fn is_about(lookup: &Lookup, kind: Kind) -> bool {
    match lookup {
        Lookup::Service(_) => kind == Kind::Services,
        Lookup::Node(_) => kind == Kind::Nodes,
        Lookup::Object(Resource::Endpoints, _) => kind == Kind::Endpoints,
        Lookup::Object(Resource::Slices, _) => kind == Kind::Slices,
    }
}

/// A node has no namespace.
fn identity(change: &Change) -> (Key, Version) {
    let of = |key: Key, version: &Text| (key, Version::of(version));
    match change {
        Change::Service(sight) => of(sight.object().key(), &sight.object().resource_version),
        Change::Pod(sight) => of(sight.object().key(), &sight.object().resource_version),
        Change::Node(sight) => {
            let node = sight.object();
            of(Key::new("", node.name.clone()), &node.resource_version)
        }
        Change::Endpoints(sight) => {
            of(sight.object().meta.key(), &sight.object().meta.resource_version)
        }
        Change::Slice(sight) => {
            of(sight.object().meta.key(), &sight.object().meta.resource_version)
        }
    }
}

fn sight_of<T>(sight: Sight<T>, wrap: impl Fn(T) -> Object) -> Sight<Object> {
    match sight {
        Sight::Present(object) => Sight::Present(wrap(object)),
        Sight::Gone(object) => Sight::Gone(wrap(object)),
    }
}
