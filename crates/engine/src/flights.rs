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
pub struct Flights {
    flights: HashMap<Owner, Flight>,
    errands: HashMap<RequestId, Errand>,
    /// The write that is under way to an object.
    writers: HashMap<(PublishedResource, Key), RequestId>,
    n_requests: u64,
    n_writes: usize,
}

/// One sync that waits for answers.
#[derive(Debug)]
pub struct Flight {
    pub n_pending: usize,
    /// Deletes wait for the creates and updates: what moves is published before it is removed.
    pub later: Vec<HeldDelete>,
    /// To be read before the sync is over.
    pub looks: BTreeSet<LiveRead>,
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
pub struct HeldDelete {
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
    pub is_contested: bool,
}

/// A request that is out.
#[derive(Debug)]
pub enum Errand {
    Write(WriteErrand),
    Look {
        read: LiveRead,
        owner: Owner,
        glimpse: Glimpse,
    },
    /// Asked on behalf of every Service with a pod there.
    LookForNode(SharedStr),
}

/// What was known when a read was asked for: only what came later can be newer than the read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Glimpse {
    /// The object was known; of those we publish, which.
    pub known: Option<Uid>,
    /// How far the watch of its kind had come.
    pub passed: ResourceVersion,
}

#[derive(Debug)]
pub struct WriteErrand {
    pub owner: Owner,
    pub verb: Verb,
    pub resource: PublishedResource,
    pub key: Key,
    /// What a delete is to remove; empty for other writes.
    pub doomed: Uid,
    pub echoes: Vec<Echo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Create,
    Update,
    Delete,
}

/// What the watch showed of an object while a write to it was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    ResourceVersion(ResourceVersion),
    Gone,
}

impl Flights {
    pub fn is_empty(&self) -> bool {
        self.errands.is_empty()
    }

    pub fn n_writes(&self) -> usize {
        self.n_writes
    }

    pub fn begin(&mut self, owner: Owner, flight: Flight) {
        self.flights.insert(owner, flight);
    }

    pub fn get_mut(&mut self, owner: &Owner) -> Option<&mut Flight> {
        self.flights.get_mut(owner)
    }

    pub fn end(&mut self, owner: &Owner) -> Option<Flight> {
        self.flights.remove(owner)
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
        let errand = WriteErrand { owner, verb, resource, key: at, doomed, echoes };
        let id = self.issue(Errand::Write(errand));
        self.writers.insert((resource, key), id);
        id
    }

    pub fn look(&mut self, owner: &Owner, read: LiveRead, glimpse: Glimpse) -> RequestId {
        self.issue(Errand::Look { read, owner: owner.clone(), glimpse })
    }

    pub fn look_for_node(&mut self, name: SharedStr) -> RequestId {
        self.issue(Errand::LookForNode(name))
    }

    /// The errand a id stands for; it is over now.
    pub fn close(&mut self, id: RequestId) -> Option<Errand> {
        let errand = self.errands.remove(&id)?;
        let owner = match &errand {
            Errand::Write(write) => {
                self.n_writes -= 1;
                self.writers.remove(&(write.resource, write.key.clone()));
                &write.owner
            }
            Errand::Look { owner, .. } => owner,
            Errand::LookForNode(_) => return Some(errand),
        };
        if let Some(flight) = self.flights.get_mut(owner) {
            flight.n_pending -= 1;
        }
        Some(errand)
    }

    /// The watch has told what became of these: reads under way may have found them before.
    pub fn outdate(&mut self, is_told: impl Fn(&LiveRead) -> bool) {
        for errand in self.errands.values_mut() {
            if let Errand::Look { read, glimpse, .. } = errand
                && is_told(read)
            {
                glimpse.passed = ResourceVersion::NONE;
            }
        }
    }

    /// If a write to this object is under way, remembers what the watch showed of it and says
    /// who is writing.
    pub fn note_echo(
        &mut self,
        resource: PublishedResource,
        key: &Key,
        echo: Echo,
    ) -> Option<Owner> {
        let id = self.writers.get(&(resource, key.clone()))?;
        let Some(Errand::Write(write)) = self.errands.get_mut(id) else { return None };
        write.echoes.push(echo);
        Some(write.owner.clone())
    }

    fn issue(&mut self, errand: Errand) -> RequestId {
        self.n_requests += 1;
        let id = RequestId(self.n_requests);
        let owner = match &errand {
            Errand::Write(write) => Some(&write.owner),
            Errand::Look { owner, .. } => Some(owner),
            Errand::LookForNode(_) => None,
        };
        if let Some(flight) = owner.and_then(|owner| self.flights.get_mut(owner)) {
            flight.n_pending += 1;
        }
        self.errands.insert(id, errand);
        id
    }
}
