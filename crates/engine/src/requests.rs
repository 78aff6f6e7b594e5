//! Requests in flight: which sync waits for each, and what the watch has reported meanwhile.

use std::collections::BTreeMap;

use endpointd_model::{
    Controller, Key, LiveRead, PublishedResource, ResourceVersion, Uid, Write, WriteResult,
};
use hashbrown::HashMap;

use crate::cache::{DirtyKeys, ObjectChange, PublishedEvent};
use crate::in_flight::Owner;
use crate::observed::ReadBaseline;
use crate::write_size::approximate_bytes;
use crate::{MonotonicTime, RequestId};

/// Writes in flight at once, of all controllers together. More would only wait in the API server.
pub const WRITES_MAX: usize = 64;
/// Bytes of writes in flight, so that large ones do not reach their time-out together.
pub const WRITE_BYTES_MAX: usize = 16 << 20;
/// Live reads in flight at once.
pub const READS_MAX: usize = 32;

#[derive(Debug, Default)]
pub struct Requests {
    pending: HashMap<RequestId, PendingRequest>,
    /// The write in flight to each object.
    writers: HashMap<(PublishedResource, Key), RequestId>,
    /// The reads in flight that are not for one sync.
    shared_reads: BTreeMap<LiveRead, RequestId>,
    /// Requests since the start; the last id.
    n_requests: u64,
    /// This request and those before it were sent before versions were rolled back.
    last_outdated: u64,
}

#[derive(Debug)]
pub enum PendingRequest {
    Write(PendingWrite),
    Read(PendingRead),
    /// Not sent for one sync: of a node, for every Service with a pod on it; of the pods of a
    /// namespace, for every Service that selects some of them; of a field manager, for people.
    SharedRead(LiveRead),
}

#[derive(Debug)]
pub struct PendingWrite {
    pub owner: Owner,
    pub verb: Verb,
    pub resource: PublishedResource,
    pub key: Key,
    pub n_bytes: usize,
    /// The version it was computed from; none for a create.
    pub base_version: ResourceVersion,
    /// The object a delete is about; empty for other writes.
    pub deleted_uid: Uid,
    /// What the watch has reported of the object since the write was sent.
    pub events: Vec<PublishedEvent>,
}

#[derive(Debug)]
pub struct PendingRead {
    pub owner: Owner,
    pub read: LiveRead,
    pub baseline: ReadBaseline,
    pub sent_at: MonotonicTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Create,
    Update,
    Delete,
}

impl Requests {
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// The request, which has been sent or waits.
    pub fn get(&self, id: RequestId) -> Option<&PendingRequest> {
        self.pending.get(&id)
    }

    /// Returns the size of the write, too.
    pub fn register_write(&mut self, owner: &Owner, write: &Write) -> (RequestId, usize) {
        let (resource, key) = (write.resource(), write.key());
        let (verb, base_version, deleted_uid) = match write {
            Write::Create(_) => (Verb::Create, ResourceVersion::NONE, Uid::default()),
            Write::Update(object) => (Verb::Update, object.meta().resource_version, Uid::default()),
            Write::Delete(target) => (Verb::Delete, target.resource_version, target.uid.clone()),
        };
        let (owner, target, events) = (owner.clone(), key.clone(), Vec::new());
        let n_bytes = approximate_bytes(write);
        let id = self.register(PendingRequest::Write(PendingWrite {
            owner,
            verb,
            resource,
            key: target,
            n_bytes,
            base_version,
            deleted_uid,
            events,
        }));
        self.writers.insert((resource, key), id);
        (id, n_bytes)
    }

    pub fn register_read(&mut self, owner: &Owner, read: LiveRead) -> RequestId {
        let (owner, baseline) = (owner.clone(), ReadBaseline::default());
        let sent_at = MonotonicTime::START;
        self.register(PendingRequest::Read(PendingRead { owner, read, baseline, sent_at }))
    }

    /// A read is sent now: only what the watch reports later can be newer than its result. Returns
    /// false if it was cancelled.
    pub fn start_read(
        &mut self,
        id: RequestId,
        baseline: ReadBaseline,
        now: MonotonicTime,
    ) -> bool {
        match self.pending.get_mut(&id) {
            Some(PendingRequest::Read(pending)) => {
                pending.baseline = baseline;
                pending.sent_at = now;
            }
            Some(PendingRequest::SharedRead(read)) => {
                return self.shared_reads.get(read) == Some(&id);
            }
            Some(PendingRequest::Write(_)) | None => return false,
        }
        true
    }

    /// None if the object is being read already.
    pub fn register_shared_read(&mut self, read: &LiveRead) -> Option<RequestId> {
        if self.shared_reads.contains_key(read) {
            return None;
        }
        let id = self.register(PendingRequest::SharedRead(read.clone()));
        self.shared_reads.insert(read.clone(), id);
        Some(id)
    }

    /// The watch has reported a change: reads sent before it may be outdated, and the writer of the
    /// object need not be synced before the response shows whether this is the echo of its write.
    pub fn on_change(&mut self, change: &ObjectChange, dirty: &mut DirtyKeys) {
        match change {
            ObjectChange::ServiceDeleted(key, _) => {
                let deleted = LiveRead::Service(key.clone());
                self.invalidate_reads(|read| *read == deleted);
            }
            ObjectChange::NodeObserved(name) => {
                self.shared_reads.remove(&LiveRead::Node(name.clone()));
            }
            ObjectChange::Published { resource, key, event } => {
                if let Some(writer) = self.record_event(*resource, key, *event) {
                    dirty.remove(writer.controller, &writer.key);
                }
            }
            ObjectChange::ServiceApplied { key, .. } => self.doubt_absence_of_service(key),
            ObjectChange::EndpointsDeleted(..) | ObjectChange::NamespaceChanged(_) => {}
        }
    }

    /// The request that this response is for; none if it was cancelled.
    pub fn complete(&mut self, id: RequestId) -> Option<PendingRequest> {
        let request = self.pending.remove(&id)?;
        match &request {
            PendingRequest::Write(write) => {
                self.writers.remove(&(write.resource, write.key.clone()));
            }
            PendingRequest::Read(_) => {}
            PendingRequest::SharedRead(read) => {
                if self.shared_reads.get(read) != Some(&id) {
                    return None;
                }
                self.shared_reads.remove(read);
            }
        }
        Some(request)
    }

    /// The watch has reported a Service: a read in flight that finds none was sent before, or the Service
    /// was deleted since. A list that wrongly lacks the Service may follow.
    fn doubt_absence_of_service(&mut self, key: &Key) {
        let is_of = |read: &LiveRead| matches!(read, LiveRead::Service(one) if one == key);
        self.for_baselines(is_of, |baseline| baseline.cached = Some(Uid::default()));
    }

    /// The watch has reported what became of the objects that `is_known` selects: a read in flight
    /// may have found them before.
    pub fn invalidate_reads(&mut self, is_known: impl Fn(&LiveRead) -> bool) {
        self.for_baselines(is_known, |baseline| baseline.observed_version = ResourceVersion::NONE);
    }

    fn for_baselines(
        &mut self,
        is_selected: impl Fn(&LiveRead) -> bool,
        change: impl Fn(&mut ReadBaseline),
    ) {
        for request in self.pending.values_mut() {
            if let PendingRequest::Read(pending) = request
                && is_selected(&pending.read)
            {
                change(&mut pending.baseline);
            }
        }
    }

    /// A list of all pods is complete: what reads of namespaces found before it does not count.
    pub fn cancel_pod_reads(&mut self) {
        self.shared_reads.retain(|read, _| !matches!(read, LiveRead::Pods(_)));
    }

    /// What the requests in flight find says nothing about the API server as it is now.
    pub fn outdate_all(&mut self) {
        self.shared_reads.clear();
        self.last_outdated = self.n_requests;
    }

    pub fn is_outdated(&self, id: RequestId) -> bool {
        id.0 <= self.last_outdated
    }

    /// Records an event on an object with a write in flight, and returns the writer.
    fn record_event(
        &mut self,
        resource: PublishedResource,
        key: &Key,
        event: PublishedEvent,
    ) -> Option<&Owner> {
        let id = self.writers.get(&(resource, key.clone()))?;
        let Some(PendingRequest::Write(write)) = self.pending.get_mut(id) else { return None };
        write.events.push(event);
        Some(&write.owner)
    }

    fn register(&mut self, request: PendingRequest) -> RequestId {
        self.n_requests += 1;
        let id = RequestId(self.n_requests);
        self.pending.insert(id, request);
        id
    }
}

impl PendingWrite {
    /// Whether the watch has reported something that this write did not do: another client wrote
    /// to the object at the same time.
    pub fn has_concurrent_write(&self, result: &WriteResult) -> bool {
        let is_echo = |event: &PublishedEvent| match (event, result) {
            (PublishedEvent::Applied(version), WriteResult::Stored(object)) => {
                *version == object.meta().resource_version
            }
            (PublishedEvent::Deleted, WriteResult::Deleted) => true,
            (PublishedEvent::Applied(_) | PublishedEvent::Deleted, _) => false,
        };
        !self.events.iter().all(is_echo)
    }

    /// Whether the next plan of its owner writes what had to wait until this object exists, or is gone
    /// (docs/spec.md, M12). Other controllers write all at once.
    pub fn has_successor(&self) -> bool {
        match (self.owner.controller, self.verb) {
            (Controller::MultiCluster, Verb::Create | Verb::Delete) => true,
            (Controller::MultiCluster, Verb::Update)
            | (
                Controller::Endpoints
                | Controller::Slices
                | Controller::Mirror
                | Controller::Import,
                _,
            ) => false,
        }
    }

    /// The read that shows what this write did.
    pub fn live_read(&self) -> LiveRead {
        match self.resource {
            PublishedResource::Slices
            | PublishedResource::Endpoints
            | PublishedResource::MultiCluster(_) => {
                LiveRead::Object(self.resource, self.key.clone())
            }
            PublishedResource::ServiceStatus => LiveRead::Service(self.key.clone()),
        }
    }
}

impl Verb {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

#[cfg(test)]
mod tests {
    use endpointd_model::Object;

    use super::*;

    fn owner() -> Owner {
        Owner { controller: Controller::Slices, key: Key::new("ns", "web") }
    }

    #[test]
    fn node_is_read_once_and_not_again_after_the_watch_reported_it() {
        let (mut requests, name) = (Requests::default(), "node-1".into());
        let node = LiveRead::Node(name);
        let first = requests.register_shared_read(&node).expect("not read yet");
        assert_eq!(requests.register_shared_read(&node), None);
        let reported = ObjectChange::NodeObserved("node-1".into());
        requests.on_change(&reported, &mut DirtyKeys::default());
        let second = requests.register_shared_read(&node).expect("the first was cancelled");
        assert!(requests.complete(first).is_none());
        assert!(requests.complete(second).is_some());
        assert!(requests.is_empty());
    }

    #[test]
    fn events_are_recorded_only_while_a_write_is_in_flight() {
        let mut requests = Requests::default();
        let write = Write::Create(Object::Slice(Default::default()));
        let (resource, key) = (write.resource(), write.key());
        let (id, _) = requests.register_write(&owner(), &write);
        assert_eq!(requests.record_event(resource, &key, PublishedEvent::Deleted), Some(&owner()));
        let Some(PendingRequest::Write(pending)) = requests.complete(id) else { panic!("a write") };
        assert_eq!(pending.events, [PublishedEvent::Deleted]);
        assert_eq!(requests.record_event(resource, &key, PublishedEvent::Deleted), None);
        assert!(requests.is_empty());
    }
}
