//! What the watches tell.

use endpointd_model::{
    Key, LiveRead, Object, ObjectEvent, PublishedResource, ResourceEvent, ResourceVersion,
    SharedStr, WatchSignal, WatchedResource,
};

use endpointd_mutants::{Mutant, is_on};
use endpointd_plan::CarriedState;

use crate::cache::{DirtyKeys, ListEpoch, Origin};
use crate::engine::Engine;
use crate::in_flight::WatchEcho;
use crate::queue::{KeyPhase, Priority};
use crate::{Effect, MonotonicTime};

impl Engine {
    pub(crate) fn on_watch_signal(
        &mut self,
        kind: WatchedResource,
        news: WatchSignal,
        now: MonotonicTime,
    ) {
        let Some(at) = self.watches.iter().position(|watch| watch.kind == kind) else { return };
        let watch = &mut self.watches[at];
        match news {
            WatchSignal::Disconnected(reason) => return watch.disconnect(reason),
            WatchSignal::Reconnected => self.end_outage(now),
            WatchSignal::InitStarted => watch.begin_list(),
            WatchSignal::Event(change) => self.on_object_event(at, *change, now),
            WatchSignal::DecodeError { key, reason } => {
                watch.record_decode_error(key.clone(), reason);
                let epoch = watch.epoch;
                self.retain(kind, &key, epoch);
            }
            WatchSignal::InitDone(version) => self.finish_list(at, version, now),
            WatchSignal::Bookmark(version) => {
                watch.observed_version = watch.observed_version.max(version)
            }
        }
        self.watches[at].touch(now);
    }

    fn on_object_event(&mut self, at: usize, change: ResourceEvent, now: MonotonicTime) {
        let watch = &mut self.watches[at];
        let (key, version) = identity(&change);
        watch.clear_decode_error(&key);
        if watch.is_replay(version) {
            return;
        }
        if self.contradicts_watch(at, &change, &key, version) {
            return self.watches[at].suspect_replays.push(change);
        }
        self.apply_event(at, change, key, now);
    }

    fn apply_event(&mut self, at: usize, change: ResourceEvent, key: Key, now: MonotonicTime) {
        let epoch = self.watches[at].epoch;
        let is_endpoints_gone = matches!(change, ResourceEvent::Endpoints(ObjectEvent::Deleted(_)));
        let mut dirty = DirtyKeys::default();
        match change {
            ResourceEvent::Service(ObjectEvent::Applied(service)) => {
                if self.cache.put_service(service, epoch, &mut dirty) {
                    self.reset_key(&key, now);
                }
                self.resync_after_in_flight(&key, now);
            }
            ResourceEvent::Service(ObjectEvent::Deleted(_)) => {
                self.in_flight.invalidate_reads(|read| *read == LiveRead::Service(key.clone()));
                self.cache.remove_service(&key, &mut dirty);
                self.reset_key(&key, now);
            }
            ResourceEvent::Pod(ObjectEvent::Applied(pod)) => {
                self.cache.put_pod(pod, epoch, &mut dirty)
            }
            ResourceEvent::Pod(ObjectEvent::Deleted(_)) => self.cache.remove_pod(&key, &mut dirty),
            ResourceEvent::Node(ObjectEvent::Applied(node)) => {
                self.pending_node_reads.remove(&key.name);
                self.cache.put_node(node, epoch, &mut dirty);
            }
            ResourceEvent::Node(ObjectEvent::Deleted(_)) => self.remove_node(&key.name, &mut dirty),
            ResourceEvent::Endpoints(sight) => {
                self.apply_published(sight_of(sight, Object::Endpoints), epoch, &mut dirty);
            }
            ResourceEvent::Slice(sight) => {
                self.apply_published(sight_of(sight, Object::Slice), epoch, &mut dirty);
            }
        }
        self.enqueue(dirty, now);
        if is_endpoints_gone {
            self.drop_if_gone(&key);
        }
    }

    /// A picture shows an object that is gone: all changes up to a later version have been told, and
    /// it is not there.
    fn contradicts_watch(
        &self,
        at: usize,
        change: &ResourceEvent,
        key: &Key,
        version: ResourceVersion,
    ) -> bool {
        let watch = &self.watches[at];
        let is_old = version != ResourceVersion::NONE && version <= watch.observed_version;
        watch.is_listing
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
    fn apply_published(
        &mut self,
        sight: ObjectEvent<Object>,
        epoch: ListEpoch,
        dirty: &mut DirtyKeys,
    ) {
        let object = sight.object();
        let (resource, key) = (object.resource(), object.meta().key());
        let version = object.meta().resource_version;
        let mut own = DirtyKeys::default();
        let echo = match sight {
            ObjectEvent::Applied(object) => {
                let is_news = self.cache.put_object(object, Origin::Watch, epoch, &mut own);
                is_news.then_some(WatchEcho::ResourceVersion(version))
            }
            ObjectEvent::Deleted(object) => {
                let is_news = self.cache.object_gone(resource, object.meta(), &mut own);
                is_news.then_some(WatchEcho::Gone)
            }
        };
        if let Some(echo) = echo
            && let Some(writer) = self.in_flight.note_echo(resource, &key, echo)
        {
            own.0.retain(|mark| (mark.controller, &mark.key) != (writer.0, &writer.1));
        }
        dirty.0.append(&mut own.0);
    }

    fn remove_node(&mut self, name: &SharedStr, dirty: &mut DirtyKeys) {
        self.pending_node_reads.remove(name);
        self.cache.remove_node(name);
        self.cache.add_affected_by_node_name(name, dirty);
    }

    /// Keeps what cannot be read as it was last.
    fn retain(&mut self, kind: WatchedResource, key: &Key, epoch: ListEpoch) {
        match kind {
            WatchedResource::Services => self.cache.retain_service(key, epoch),
            WatchedResource::Pods => self.cache.retain_pod(key, epoch),
            WatchedResource::Nodes => self.cache.retain_node(&key.name, epoch),
            WatchedResource::Endpoints => {
                self.cache.retain_object(PublishedResource::Endpoints, key, epoch)
            }
            WatchedResource::Slices => {
                self.cache.retain_object(PublishedResource::Slices, key, epoch)
            }
        }
    }

    /// What the picture did not show is gone, unless it is newer than the picture.
    fn finish_list(&mut self, at: usize, version: ResourceVersion, now: MonotonicTime) {
        let watch = &mut self.watches[at];
        let (kind, epoch) = (watch.kind, watch.epoch);
        let is_old = version != ResourceVersion::NONE && version < watch.observed_version;
        if is_old && !is_on(Mutant::BelieveOldPicture) {
            // An older view than we had: nothing is taken for gone by it.
            self.effects.push_back(Effect::Relist(kind));
            return;
        }
        watch.observed_version = version;
        watch.is_listing = false;
        watch.is_synced = true;
        self.in_flight.invalidate_reads(|read| is_about(read, kind));
        let watch = &mut self.watches[at];
        for change in std::mem::take(&mut watch.suspect_replays) {
            let (key, _) = identity(&change);
            self.apply_event(at, change, key, now);
        }
        let mut dirty = DirtyKeys::default();
        let mut gone = Vec::new();
        match kind {
            WatchedResource::Services => {
                for key in self.cache.services_missing_from_list(epoch, version) {
                    self.cache.remove_service(&key, &mut dirty);
                    self.reset_key(&key, now);
                }
            }
            WatchedResource::Pods => {
                let gone = self.cache.pods_missing_from_list(epoch, version);
                for key in gone.into_iter().filter(|_| !is_on(Mutant::NoDiffAfterPicture)) {
                    self.cache.remove_pod(&key, &mut dirty);
                }
            }
            WatchedResource::Nodes => {
                for name in self.cache.nodes_missing_from_list(epoch, version) {
                    self.remove_node(&name, &mut dirty);
                }
            }
            WatchedResource::Endpoints => {
                gone =
                    self.remove_missing(PublishedResource::Endpoints, epoch, version, &mut dirty);
            }
            WatchedResource::Slices => {
                drop(self.remove_missing(PublishedResource::Slices, epoch, version, &mut dirty))
            }
        }
        self.enqueue(dirty, now);
        gone.iter().for_each(|key| self.drop_if_gone(key));
        self.end_outage(now);
        self.enqueue_initial(now);
    }

    /// Says what is gone.
    fn remove_missing(
        &mut self,
        resource: PublishedResource,
        epoch: ListEpoch,
        listed: ResourceVersion,
        dirty: &mut DirtyKeys,
    ) -> Vec<Key> {
        let gone = self.cache.objects_missing_from_list(resource, epoch, listed);
        for key in &gone {
            self.cache.remove_object(resource, key, dirty);
        }
        self.cache.drop_tombstones(resource, epoch);
        gone
    }

    /// The Service is gone or another one: what was remembered of it is nobody's.
    fn reset_key(&mut self, key: &Key, now: MonotonicTime) {
        for lane in &mut self.controllers {
            match lane.queue.phase(key) {
                None => lane.keys.remove(key),
                Some(_) => {
                    if let Some(state) = lane.keys.get_mut(key) {
                        state.carried = CarriedState::default();
                    }
                }
            }
        }
        self.resync_after_in_flight(key, now);
    }

    /// A sync under way was decided on the Service as it was. What it writes may be wrong by now,
    /// and nobody else would see that.
    fn resync_after_in_flight(&mut self, key: &Key, now: MonotonicTime) {
        for lane in &mut self.controllers {
            let is_flying = matches!(lane.queue.phase(key), Some(KeyPhase::InFlight { .. }));
            if is_flying && !is_on(Mutant::NoLookAfterFlight) {
                lane.queue.enqueue(key, Priority::Live, now, now);
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
