//! Syncs under way: which requests are out, and what their answers have said so far.

use std::collections::BTreeSet;

use endpointd_model::{
    Controller, Failure, Key, LiveRead, PublishedResource, ResourceVersion, SharedStr, Uid, Write,
};
use hashbrown::HashMap;

use crate::queue::Priority;
use crate::{MonotonicTime, RequestId, SyncSummary};

/// Who a flight belongs to.
pub type Owner = (Controller, Key);

#[derive(Debug, Default)]
pub struct InFlightTable {
    in_flight: HashMap<Owner, InFlightSync>,
    requests: HashMap<RequestId, PendingRequest>,
    /// The write that is under way to an object.
    writers: HashMap<(PublishedResource, Key), RequestId>,
    n_requests: u64,
    n_writes: usize,
}

/// One sync that waits for answers.
#[derive(Debug)]
pub struct InFlightSync {
    pub n_pending: usize,
    /// Deletes wait for the creates and updates: what moves is published before it is removed.
    pub later: Vec<DeferredDelete>,
    /// To be read before the sync is over.
    pub reads: BTreeSet<LiveRead>,
    /// Reads whose answer has not come, or could not be had.
    pub unanswered: BTreeSet<LiveRead>,
    pub findings: Findings,
    pub priority: Priority,
    pub planned: MonotonicTime,
    /// What will be told about it; absent for a flight that only reads.
    pub synced: Option<Box<SyncSummary>>,
}

/// A delete, and the writes that bring what it removes to another place. It is let go if one
/// of them fails: better twice than not at all.
#[derive(Debug)]
pub struct DeferredDelete {
    pub write: Write,
    pub after: Vec<RequestId>,
}

/// What the answers said.
#[derive(Debug, Default)]
pub struct Findings {
    pub failure: Option<Failure>,
    pub is_stale: bool,
    pub is_throttled: bool,
    pub is_pointless: bool,
    pub is_unsent: bool,
    /// Someone else wrote to an object we were writing to.
    pub concurrent_write: bool,
}

/// A request that is out.
#[derive(Debug)]
pub enum PendingRequest {
    Write(PendingWrite),
    Read {
        read: LiveRead,
        owner: Owner,
        baseline: ReadBaseline,
    },
    /// Asked on behalf of every Service with a pod there.
    NodeRead(SharedStr),
}

/// What was known when a read was asked for: only what came later can be newer than the read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadBaseline {
    /// The object was known; of those we publish, which.
    pub known: Option<Uid>,
    /// How far the watch of its kind had come.
    pub observed_version: ResourceVersion,
}

#[derive(Debug)]
pub struct PendingWrite {
    pub owner: Owner,
    pub verb: Verb,
    pub resource: PublishedResource,
    pub key: Key,
    /// What a delete is to remove; empty for other writes.
    pub doomed: Uid,
    pub echoes: Vec<WatchEcho>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Create,
    Update,
    Delete,
}

/// What the watch showed of an object while a write to it was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEcho {
    ResourceVersion(ResourceVersion),
    Gone,
}

impl InFlightTable {
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub fn n_writes(&self) -> usize {
        self.n_writes
    }

    pub fn insert(&mut self, owner: Owner, flight: InFlightSync) {
        self.in_flight.insert(owner, flight);
    }

    pub fn get_mut(&mut self, owner: &Owner) -> Option<&mut InFlightSync> {
        self.in_flight.get_mut(owner)
    }

    pub fn remove(&mut self, owner: &Owner) -> Option<InFlightSync> {
        self.in_flight.remove(owner)
    }

    /// Sends out a write on behalf of `owner`.
    pub fn send(&mut self, owner: &Owner, write: &Write) -> RequestId {
        let (resource, key) = (write.resource(), write.key());
        let (verb, doomed) = match write {
            Write::Create(_) => (Verb::Create, Uid::default()),
            Write::Update(_) => (Verb::Update, Uid::default()),
            Write::Delete(target) => (Verb::Delete, target.uid.clone()),
        };
        self.n_writes += 1;
        let (owner, at, echoes) = (owner.clone(), key.clone(), Vec::new());
        let request = PendingWrite { owner, verb, resource, key: at, doomed, echoes };
        let id = self.register(PendingRequest::Write(request));
        self.writers.insert((resource, key), id);
        id
    }

    pub fn read(&mut self, owner: &Owner, read: LiveRead, baseline: ReadBaseline) -> RequestId {
        self.register(PendingRequest::Read { read, owner: owner.clone(), baseline })
    }

    pub fn read_node(&mut self, name: SharedStr) -> RequestId {
        self.register(PendingRequest::NodeRead(name))
    }

    /// The errand a id stands for; it is over now.
    pub fn complete(&mut self, id: RequestId) -> Option<PendingRequest> {
        let request = self.requests.remove(&id)?;
        let owner = match &request {
            PendingRequest::Write(write) => {
                self.n_writes -= 1;
                self.writers.remove(&(write.resource, write.key.clone()));
                &write.owner
            }
            PendingRequest::Read { owner, .. } => owner,
            PendingRequest::NodeRead(_) => return Some(request),
        };
        if let Some(flight) = self.in_flight.get_mut(owner) {
            flight.n_pending -= 1;
        }
        Some(request)
    }

    /// The watch has told what became of these: reads under way may have found them before.
    pub fn invalidate_reads(&mut self, is_told: impl Fn(&LiveRead) -> bool) {
        for request in self.requests.values_mut() {
            if let PendingRequest::Read { read, baseline, .. } = request
                && is_told(read)
            {
                baseline.observed_version = ResourceVersion::NONE;
            }
        }
    }

    /// If a write to this object is under way, remembers what the watch showed of it and says
    /// who is writing.
    pub fn note_echo(
        &mut self,
        resource: PublishedResource,
        key: &Key,
        echo: WatchEcho,
    ) -> Option<Owner> {
        let id = self.writers.get(&(resource, key.clone()))?;
        let Some(PendingRequest::Write(write)) = self.requests.get_mut(id) else { return None };
        write.echoes.push(echo);
        Some(write.owner.clone())
    }

    fn register(&mut self, request: PendingRequest) -> RequestId {
        self.n_requests += 1;
        let id = RequestId(self.n_requests);
        let owner = match &request {
            PendingRequest::Write(write) => Some(&write.owner),
            PendingRequest::Read { owner, .. } => Some(owner),
            PendingRequest::NodeRead(_) => None,
        };
        if let Some(flight) = owner.and_then(|owner| self.in_flight.get_mut(owner)) {
            flight.n_pending += 1;
        }
        self.requests.insert(id, request);
        id
    }
}
