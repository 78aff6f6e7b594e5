//! What the engine knows of the cluster: the cache and the watches that fill it. Events, lists,
//! responses, and live reads arrive in any order; this file decides which of them is newer.

mod identity;
mod pods;

use endpointd_model::{
    LiveRead, LiveReadResult, Object, PublishedResource, ResourceEvent, ResourceVersion,
    SliceManagers, Uid, WatchSignal, WatchedResource, WriteResult,
};
use endpointd_plan::Knowledge;

use crate::cache::{Cache, Changes, DirtyKeys, ListEpoch, Origin, Place};
use crate::queue::Priority;
use crate::requests::PendingWrite;
use crate::watch_state::{ListEnd, WatchState};
use crate::{MonotonicTime, WatchStatus};

use self::identity::{identity, key_of, watched};
pub use self::identity::{resource_of, version_of};

#[derive(Debug)]
pub struct Observed {
    cache: Cache,
    watches: Vec<WatchState>,
    /// False between a reset and the start of new watches: signals are those of the old ones.
    accepts_signals: bool,
}

/// What was known when a live read was sent: only what is reported later can be newer than it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadBaseline {
    /// The uid of the cached object; empty for nodes.
    pub cached: Option<Uid>,
    pub cached_version: ResourceVersion,
    pub observed_version: ResourceVersion,
}

impl ReadBaseline {
    /// A consistent read cannot find an older version than the one that was known before.
    pub fn is_contradicted_by(&self, found: &LiveReadResult) -> bool {
        let version = version_of(found).unwrap_or_default();
        version != ResourceVersion::NONE && version < self.cached_version
    }
}

/// What a watch signal asks the engine to do.
#[derive(Debug)]
pub enum Reaction {
    Nothing,
    Changes(Changes),
    /// The API server answers again.
    Reconnected,
    /// The list is older than what the watch had reported before it.
    Relist,
    /// resourceVersions went backwards.
    RolledBack,
    /// A list is complete: these events of it were held back until its end.
    ListDone(Vec<ResourceEvent>),
}

impl Observed {
    pub fn new(resources: Vec<WatchedResource>, managers: &SliceManagers) -> Self {
        let cache = empty_cache(&resources, managers);
        let watches = resources.into_iter().map(WatchState::new).collect();
        Self { cache, watches, accepts_signals: true }
    }

    /// Forgets everything. Signals are ignored until [`Self::accept_signals`].
    pub fn reset(&mut self) {
        self.cache = empty_cache(&self.watched_resources(), self.cache.managers());
        for watch in &mut self.watches {
            watch.reset("resourceVersions went backwards, listing everything again");
        }
        self.accepts_signals = false;
    }

    pub fn accepts_signals(&self) -> bool {
        self.accepts_signals
    }

    pub fn accept_signals(&mut self) {
        self.accepts_signals = true;
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    pub fn watched_resources(&self) -> Vec<WatchedResource> {
        self.watches.iter().map(|watch| watch.resource).collect()
    }

    pub fn knowledge(&self) -> Knowledge {
        let mut knowledge = Knowledge::Current;
        for watch in &self.watches {
            if !watch.is_synced {
                return Knowledge::Nothing;
            }
            if watch.is_listing || watch.is_disconnected() {
                knowledge = Knowledge::Outdated;
            }
        }
        knowledge
    }

    /// New watches begin: what is cached may have changed since the old ones, until each has listed.
    pub fn await_lists(&mut self) {
        self.watches.iter_mut().for_each(|watch| watch.disconnect("the watch begins".into()));
    }

    pub fn is_listing(&self) -> bool {
        self.watches.iter().any(|watch| watch.is_listing)
    }

    /// The resource has been listed.
    pub fn is_synced(&self, resource: WatchedResource) -> bool {
        self.watch(resource).is_some_and(|watch| watch.is_synced)
    }

    pub fn watch_statuses(&self, now: MonotonicTime) -> Vec<WatchStatus> {
        let status = |watch: &WatchState| watch.status(self.cache.n_objects(watch.resource), now);
        self.watches.iter().map(status).collect()
    }

    /// Recomputes the topology if a node changed. Returns whether it is different now.
    pub fn refresh_topology(&mut self) -> bool {
        self.cache.refresh_topology()
    }

    /// After [`Reaction::ListDone`] the caller passes the held-back events to [`Self::apply`] and
    /// calls [`Self::remove_missing`].
    pub fn on_signal(
        &mut self,
        resource: WatchedResource,
        signal: WatchSignal,
        now: MonotonicTime,
    ) -> Reaction {
        let mut watches = self.watches.iter_mut().filter(|_| self.accepts_signals);
        let Some(watch) = watches.find(|watch| watch.resource == resource) else {
            return Reaction::Nothing;
        };
        if let WatchSignal::Disconnected(reason) = signal {
            watch.disconnect(reason);
            return Reaction::Nothing;
        }
        watch.touch(now);
        match signal {
            WatchSignal::Disconnected(_) => Reaction::Nothing,
            WatchSignal::Reconnected => Reaction::Reconnected,
            WatchSignal::InitStarted => {
                watch.begin_list();
                Reaction::Nothing
            }
            WatchSignal::Event(event) => self.on_event(*event),
            WatchSignal::DecodeError { key, reason } => {
                watch.record_decode_error(key.clone(), reason);
                watch.has_nameless_object |= key.name.is_empty();
                let epoch = watch.epoch;
                Reaction::Changes(self.cache.retain(resource, &key, epoch))
            }
            WatchSignal::InitDone(version) => match watch.finish_list(version) {
                ListEnd::Complete(events) => Reaction::ListDone(events),
                ListEnd::Older => Reaction::Relist,
                ListEnd::RolledBack => Reaction::RolledBack,
            },
            WatchSignal::Bookmark(version) => {
                watch.observed_version = watch.observed_version.max(version);
                Reaction::Nothing
            }
        }
    }

    fn on_event(&mut self, event: ResourceEvent) -> Reaction {
        let resource = event.kind();
        let (key, version) = identity(&event);
        let Some(watch) = self.watches.iter_mut().find(|watch| watch.resource == resource) else {
            return Reaction::Nothing;
        };
        watch.clear_decode_error(&key);
        if watch.is_replay(version) {
            return Reaction::Nothing;
        }
        if watch.is_listing {
            let cached = self.cache.version(resource, &key).unwrap_or_default();
            watch.compare(&key, version, cached);
        }
        let is_old = version != ResourceVersion::NONE && version <= watch.observed_version;
        if watch.is_listing && is_old && !self.cache.contains(resource, &key) {
            watch.suspect_replays.push(event);
            return Reaction::Nothing;
        }
        Reaction::Changes(self.cache.apply(event, watch.epoch))
    }

    pub fn apply(&mut self, event: ResourceEvent) -> Changes {
        let epoch = self.epoch(event.kind());
        self.cache.apply(event, epoch)
    }

    /// Removes what the list that has just been completed does not contain.
    pub fn remove_missing(&mut self, resource: WatchedResource) -> Changes {
        if self.watch(resource).is_some_and(|watch| watch.has_nameless_object) {
            // What seems to be missing may be the object whose name cannot be decoded.
            return Changes::default();
        }
        let (epoch, listed) = (self.epoch(resource), self.observed_version(resource));
        self.cache.remove_missing(resource, epoch, listed)
    }

    /// Applies the response to our own write. Its owner is not among the dirty keys, unless the next
    /// plan has to write what waited for it: the watch may have reported the write before, when its
    /// owner was in flight.
    pub fn apply_write_result(&mut self, request: &PendingWrite, result: WriteResult) -> DirtyKeys {
        let mut dirty = DirtyKeys::default();
        let is_stored = matches!(result, WriteResult::Stored(_) | WriteResult::Deleted);
        match result {
            WriteResult::Stored(object) => {
                self.apply_stored(*object, &mut dirty);
                if request.resource == PublishedResource::ServiceStatus {
                    dirty.remove(request.owner.controller, &request.owner.key);
                }
            }
            WriteResult::Deleted => self.apply_deleted(request, &mut dirty),
            WriteResult::Conflict(_)
            | WriteResult::NoResponse(_)
            | WriteResult::Throttled { .. }
            | WriteResult::NamespaceTerminating(_)
            | WriteResult::Failed(_)
            | WriteResult::NotLeader => {}
        }
        if is_stored && request.has_successor() {
            dirty.add(request.owner.controller, request.owner.key.clone(), Priority::Live);
        }
        dirty
    }

    /// Ignored if the watch has already reported what happened after the write, and the object is
    /// deleted.
    fn apply_stored(&mut self, object: Object, dirty: &mut DirtyKeys) {
        let resource = watched(object.resource());
        let (key, version) = (object.meta().key(), object.meta().resource_version);
        let is_observed =
            version != ResourceVersion::NONE && version <= self.observed_version(resource);
        if !is_observed || self.cache.contains(resource, &key) {
            let epoch = self.epoch_for_reads(resource);
            self.cache.put_object(object, Origin::OwnWrite, epoch, dirty);
        }
    }

    /// Only the object that the delete named: there may be another one of this name by now.
    fn apply_deleted(&mut self, request: &PendingWrite, dirty: &mut DirtyKeys) {
        let PendingWrite { owner, resource, key, deleted_uid, .. } = request;
        let cached = self.cache.object(*resource, key);
        if cached.is_some_and(|cached| cached.uid == *deleted_uid) {
            let epoch = self.epoch(watched(*resource));
            self.cache.tombstone(*resource, key, epoch, dirty);
            dirty.remove(owner.controller, &owner.key);
        }
    }

    /// What is known of the object of a live read, before it is sent.
    pub fn read_baseline(&self, read: &LiveRead) -> ReadBaseline {
        let cached = match read {
            LiveRead::Service(key) => self.cache.service(key).map(|service| service.uid.clone()),
            LiveRead::Node(_) => {
                let is_cached = self.cache.contains(WatchedResource::Nodes, &key_of(read));
                is_cached.then(Uid::default)
            }
            LiveRead::Object(resource, key) | LiveRead::FieldManager(resource, key) => {
                self.cache.object(*resource, key).map(|cached| cached.uid)
            }
            LiveRead::Pods(_) | LiveRead::Source(..) => None,
        };
        let resource = resource_of(read);
        ReadBaseline {
            cached,
            cached_version: self.cache.version(resource, &key_of(read)).unwrap_or_default(),
            observed_version: self.observed_version(resource),
        }
    }

    /// Since the read was sent, the watch has reported something that the read may not have seen:
    /// that the object exists now, or that it was deleted.
    pub fn is_superseded(
        &self,
        read: &LiveRead,
        result: &LiveReadResult,
        before: &ReadBaseline,
    ) -> bool {
        let now = self.read_baseline(read);
        let Some(version) = version_of(result) else {
            return *result == LiveReadResult::Absent && now.cached != before.cached;
        };
        let is_observed = version != ResourceVersion::NONE && version <= now.observed_version;
        is_observed
            && now.cached.is_none()
            && (before.cached.is_some() || version > before.observed_version)
    }

    /// Applies a live read that is not superseded. A Service that is absent from the API server
    /// changes nothing here: the watch will report it.
    pub fn apply_read(&mut self, read: &LiveRead, result: LiveReadResult) -> Changes {
        let epoch = self.epoch_for_reads(resource_of(read));
        let mut changes = Changes::default();
        match (read, result) {
            (LiveRead::Object(_, _), LiveReadResult::Object(object)) => {
                self.cache.put_object(*object, Origin::Observed, epoch, &mut changes.dirty);
            }
            (LiveRead::Object(resource, key), LiveReadResult::Absent) => {
                let epoch = self.epoch(watched(*resource));
                self.cache.tombstone(*resource, key, epoch, &mut changes.dirty);
            }
            (LiveRead::Service(_), LiveReadResult::Service(service)) => {
                return self.cache.apply_read_service(*service, epoch);
            }
            (LiveRead::Node(_), LiveReadResult::Node(node)) => {
                return self.cache.apply_read_node(*node, epoch);
            }
            (LiveRead::Node(name), LiveReadResult::Absent) => {
                self.cache.confirm_no_node(name, &mut changes.dirty);
            }
            // The Services with pods on the node are planned later, and read it again.
            (LiveRead::Node(name), LiveReadResult::Failed(_)) => {
                self.cache.add_affected_by_node_name(name, &mut changes.dirty);
            }
            (
                LiveRead::Service(_)
                | LiveRead::Object(_, _)
                | LiveRead::Node(_)
                | LiveRead::FieldManager(..)
                | LiveRead::Pods(_)
                | LiveRead::Source(..),
                _,
            ) => {}
        }
        changes
    }

    fn watch(&self, resource: WatchedResource) -> Option<&WatchState> {
        self.watches.iter().find(|watch| watch.resource == resource)
    }

    fn epoch(&self, resource: WatchedResource) -> ListEpoch {
        self.watch(resource).map(|watch| watch.epoch).unwrap_or_default()
    }

    fn epoch_for_reads(&self, resource: WatchedResource) -> ListEpoch {
        self.watch(resource).map(WatchState::epoch_for_reads).unwrap_or_default()
    }

    fn observed_version(&self, resource: WatchedResource) -> ResourceVersion {
        self.watch(resource).map_or(ResourceVersion::NONE, |watch| watch.observed_version)
    }
}

/// Only the import controller reads ReferenceGrants, only that for several clusters reads exports.
fn empty_cache(resources: &[WatchedResource], managers: &SliceManagers) -> Cache {
    let mut cache = Cache::new(managers);
    if resources.contains(&WatchedResource::ReferenceGrants) {
        cache = cache.follow_sources();
    }
    if resources.contains(&WatchedResource::ServiceExports) {
        let is_home = resources.contains(&WatchedResource::ServiceImports);
        cache = cache.follow_clusters(if is_home { Place::Home } else { Place::Remote });
    }
    cache
}

#[cfg(test)]
mod tests {
    use endpointd_model::{Key, ObjectEvent, Service};

    use super::*;

    const SERVICES: WatchedResource = WatchedResource::Services;

    fn observed() -> Observed {
        Observed::new(vec![SERVICES], &SliceManagers::default())
    }

    fn service(version: u64) -> Service {
        let (namespace, name) = ("ns".into(), "web".into());
        Service { namespace, name, resource_version: version.into(), ..Service::default() }
    }

    fn signal(observed: &mut Observed, signal: WatchSignal) -> Reaction {
        observed.on_signal(SERVICES, signal, MonotonicTime::START)
    }

    fn applied(version: u64) -> WatchSignal {
        WatchSignal::Event(Box::new(ResourceEvent::Service(ObjectEvent::Applied(service(version)))))
    }

    fn deleted(version: u64) -> WatchSignal {
        WatchSignal::Event(Box::new(ResourceEvent::Service(ObjectEvent::Deleted(service(version)))))
    }

    #[test]
    fn replayed_event_changes_nothing() {
        let mut observed = observed();
        assert!(matches!(signal(&mut observed, applied(5)), Reaction::Changes(_)));
        assert!(matches!(signal(&mut observed, applied(5)), Reaction::Nothing));
        assert!(matches!(signal(&mut observed, deleted(4)), Reaction::Nothing));
    }

    #[test]
    fn deleted_object_in_a_running_list_is_held_back_until_its_end() {
        let mut observed = observed();
        signal(&mut observed, applied(5));
        signal(&mut observed, deleted(6));
        signal(&mut observed, WatchSignal::InitStarted);
        assert!(matches!(signal(&mut observed, applied(5)), Reaction::Nothing));
        assert!(matches!(signal(&mut observed, WatchSignal::InitDone(5.into())), Reaction::Relist));
        let Reaction::ListDone(events) = signal(&mut observed, WatchSignal::InitDone(6.into()))
        else {
            panic!("a list as new as the watch is complete");
        };
        assert_eq!(events.len(), 1);
    }

    #[test]
    fn read_is_superseded_if_the_watch_has_reported_a_deletion_since() {
        let mut observed = observed();
        signal(&mut observed, applied(5));
        let read = LiveRead::Service(Key::new("ns", "web"));
        let baseline = observed.read_baseline(&read);
        let found = LiveReadResult::Service(Box::new(service(5)));
        assert!(!observed.is_superseded(&read, &found, &baseline));
        signal(&mut observed, deleted(6));
        assert!(observed.is_superseded(&read, &found, &baseline));
        assert!(observed.is_superseded(&read, &LiveReadResult::Absent, &baseline));
    }
}
