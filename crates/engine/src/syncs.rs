//! Syncs in flight with their requests, and the effects that wait to be performed.

use std::collections::{BTreeSet, VecDeque};

use endpointd_model::{Controller, Failure, LiveRead, Write, WriteResult};
use hashbrown::HashMap;

use crate::controllers::Work;
use crate::deferred_writes::OrderedWrites;
use crate::in_flight::{
    DeferredWrite, InFlightSync, Owner, ReadOutcome, Step, SyncEnd, SyncStart, UnansweredWrite,
};
use crate::observed::Observed;
use crate::queue::Priority;
use crate::refused_writes::Permitted;
use crate::request_queue::{Limits, RequestQueue};
use crate::requests::{
    PendingRead, PendingRequest, PendingWrite, READS_MAX, Requests, WRITE_BYTES_MAX, WRITES_MAX,
};
use crate::{Effect, MonotonicTime, RequestId, SyncSummary};

#[derive(Debug)]
pub struct Syncs {
    in_flight: HashMap<Owner, InFlightSync>,
    /// Those that have been sent, and those that wait in the two queues.
    requests: Requests,
    writes: RequestQueue<(RequestId, Controller, Box<Write>)>,
    reads: RequestQueue<(RequestId, LiveRead)>,
    /// All effects that are not requests.
    effects: VecDeque<Effect>,
}

impl Default for Syncs {
    fn default() -> Self {
        let writes = Limits { seats_max: WRITES_MAX, bytes_max: WRITE_BYTES_MAX };
        Self {
            in_flight: HashMap::new(),
            requests: Requests::default(),
            writes: RequestQueue::new(writes),
            reads: RequestQueue::new(Limits { seats_max: READS_MAX, bytes_max: usize::MAX }),
            effects: VecDeque::new(),
        }
    }
}

impl Syncs {
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    pub fn requests_mut(&mut self) -> &mut Requests {
        &mut self.requests
    }

    /// Effects to perform now, apart from writes.
    pub fn has_effects(&self) -> bool {
        !self.effects.is_empty() || self.reads.can_pop()
    }

    /// A write may be sent, unless there is a pause.
    pub fn has_writes(&self) -> bool {
        self.writes.can_pop()
    }

    /// Nothing is in flight or waits.
    pub fn is_idle(&self) -> bool {
        self.effects.is_empty() && self.requests.is_empty()
    }

    /// Writes in flight.
    pub fn n_writes(&self) -> usize {
        self.writes.n_in_flight()
    }

    /// Of the sync in flight.
    pub fn priority_of(&self, owner: &Owner) -> Option<Priority> {
        self.in_flight.get(owner).map(InFlightSync::priority)
    }

    pub fn push_effect(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    /// The next effect that is not a write.
    pub fn pop_effect(&mut self, observed: &Observed, now: MonotonicTime) -> Option<Effect> {
        self.effects.pop_front().or_else(|| self.pop_read(observed, now))
    }

    pub fn pop_write(&mut self) -> Option<Effect> {
        let (id, controller, write) = self.writes.pop()?;
        Some(Effect::Send { id, controller, write })
    }

    fn pop_read(&mut self, observed: &Observed, now: MonotonicTime) -> Option<Effect> {
        loop {
            let (id, read) = self.reads.pop()?;
            if self.requests.start_read(id, observed.read_baseline(&read), now) {
                return Some(Effect::LiveRead { id, read });
            }
            // The watch has reported the node meanwhile.
            self.complete(id);
        }
    }

    /// The writes that wait; nothing will send them.
    pub fn take_unsent_writes(&mut self) -> Vec<RequestId> {
        self.writes.take_waiting().into_iter().map(|(id, ..)| id).collect()
    }

    /// The writes of one sync that wait; nothing will send them.
    pub fn take_unsent_writes_of(&mut self, owner: &Owner) -> Vec<RequestId> {
        let requests = &self.requests;
        let is_of = |(id, ..): &(RequestId, Controller, Box<Write>)| matches!(requests.get(*id), Some(PendingRequest::Write(one)) if one.owner == *owner);
        let unsent = self.writes.take_waiting_of(&owner.key.namespace, is_of);
        unsent.into_iter().map(|(id, ..)| id).collect()
    }

    /// The request that this response is for; none if it was cancelled.
    pub fn complete(&mut self, id: RequestId) -> Option<PendingRequest> {
        match self.requests.get(id)? {
            PendingRequest::Write(write) => {
                self.writes.release(&write.key.namespace, write.n_bytes);
            }
            PendingRequest::Read(read) => self.reads.release(&read.owner.key.namespace, 0),
            PendingRequest::SharedRead(read) => self.reads.release(namespace_of(read), 0),
        }
        self.requests.complete(id)
    }

    /// Queues creates and updates, all together. [`Self::advance`] queues the deferred writes.
    pub fn start_writing(
        &mut self,
        work: &Work,
        summary: SyncSummary,
        permitted: Permitted,
        now: MonotonicTime,
    ) {
        let Permitted { writes, n_withheld } = permitted;
        let OrderedWrites { first, deferred, n_incomplete } = writes;
        let sent = self.send(&work.owner, work.priority, first);
        let with_ids = |(write, depends_on): (Write, Vec<usize>)| {
            let depends_on = depends_on.into_iter().map(|index| sent[index]).collect();
            DeferredWrite { write, depends_on }
        };
        let deferred = deferred.into_iter().map(with_ids).collect();
        let summary = Box::new(summary);
        let mut sync = InFlightSync::writing(start(work, now), summary, sent.len(), deferred);
        sync.withhold(n_withheld + n_incomplete);
        self.in_flight.insert(work.owner.clone(), sync);
    }

    /// Queues reads; the key is planned when they are answered.
    pub fn start_reading(&mut self, work: &Work, reads: BTreeSet<LiveRead>, now: MonotonicTime) {
        let sync = InFlightSync::reading(start(work, now), reads.clone());
        self.in_flight.insert(work.owner.clone(), sync);
        self.send_reads(&work.owner, work.priority, reads);
    }

    /// Planning failed; [`Self::advance`] ends the sync.
    pub fn start_failed(&mut self, work: &Work, failure: Failure, now: MonotonicTime) {
        let sync = InFlightSync::failed(start(work, now), failure);
        self.in_flight.insert(work.owner.clone(), sync);
    }

    /// Reads what no sync waits for, unless it is being read already.
    pub fn read_shared(&mut self, read: LiveRead) {
        if let Some(id) = self.requests.register_shared_read(&read) {
            let namespace = namespace_of(&read).to_owned();
            self.reads.add(&namespace, Priority::Live, [((id, read), 0)]);
        }
    }

    /// Returns the request that this response is for, unless it was cancelled.
    pub fn on_write_result(&mut self, id: RequestId, result: &WriteResult) -> Option<PendingWrite> {
        let Some(PendingRequest::Write(request)) = self.complete(id) else { return None };
        if let Some(sync) = self.in_flight.get_mut(&request.owner) {
            if request.has_concurrent_write(result) {
                sync.record_concurrent_write();
            }
            sync.on_write_result(id, &request, result);
        }
        Some(request)
    }

    /// Returns the write that this read was for, if that write failed.
    pub fn on_read(
        &mut self,
        request: &PendingRead,
        outcome: ReadOutcome,
    ) -> Option<UnansweredWrite> {
        self.in_flight.get_mut(&request.owner)?.on_read(&request.read, outcome)
    }

    /// Queues what a sync needs next. Returns its end if nothing is left to send or to wait for.
    pub fn advance(
        &mut self,
        owner: &Owner,
        is_leading: bool,
        observed: &Observed,
    ) -> Option<SyncEnd> {
        loop {
            let sync = self.in_flight.get_mut(owner)?;
            let priority = sync.priority();
            match sync.next_step(is_leading) {
                Step::Wait => return None,
                Step::WriteDeferred(mut writes) => {
                    let n_deferred = writes.len();
                    writes.retain(|write| !is_gone(write, observed));
                    sync.skip_deferred(n_deferred - writes.len());
                    if !writes.is_empty() {
                        self.send(owner, priority, writes);
                        return None;
                    }
                }
                Step::Read(reads) => {
                    self.send_reads(owner, priority, reads);
                    return None;
                }
                Step::Finish => return self.in_flight.remove(owner).map(InFlightSync::into_end),
            }
        }
    }

    fn send(&mut self, owner: &Owner, priority: Priority, writes: Vec<Write>) -> Vec<RequestId> {
        let (requests, mut ids) = (&mut self.requests, Vec::with_capacity(writes.len()));
        let outgoing = writes.into_iter().map(|write| {
            let (id, n_bytes) = requests.register_write(owner, &write);
            ids.push(id);
            ((id, owner.controller, Box::new(write)), n_bytes)
        });
        self.writes.add(&owner.key.namespace, seat_priority(owner.controller, priority), outgoing);
        ids
    }

    fn send_reads(&mut self, owner: &Owner, priority: Priority, reads: BTreeSet<LiveRead>) {
        let requests = &mut self.requests;
        let outgoing = reads.into_iter().map(|read| {
            let id = requests.register_read(owner, read.clone());
            ((id, read), 0)
        });
        self.reads.add(&owner.key.namespace, priority, outgoing);
    }
}

/// Nearly all consumers route by slices. While all seats are taken, Endpoints get only those that the
/// slices of other keys leave, and their fair turns.
fn seat_priority(controller: Controller, priority: Priority) -> Priority {
    match controller {
        Controller::Endpoints => priority.max(Priority::Repair),
        Controller::Slices | Controller::Mirror | Controller::Import | Controller::MultiCluster => {
            priority
        }
    }
}

/// A delete that somebody else was faster with: another client, or another controller of ours.
fn is_gone(write: &Write, observed: &Observed) -> bool {
    let Write::Delete(target) = write else { return false };
    let cached = observed.cache().object(target.resource, &target.key);
    cached.is_none_or(|cached| cached.uid != target.uid)
}

/// Whose seats a read takes; a node has no namespace.
fn namespace_of(read: &LiveRead) -> &str {
    match read {
        LiveRead::Service(key) | LiveRead::Object(_, key) | LiveRead::FieldManager(_, key) => {
            &key.namespace
        }
        LiveRead::Pods(namespace) => namespace,
        LiveRead::Node(_) => "",
        // Reads that a slow cluster does not answer take no seat of a namespace.
        LiveRead::Source(cluster, _) => cluster.as_str(),
    }
}

fn start(work: &Work, now: MonotonicTime) -> SyncStart {
    SyncStart { priority: work.priority, planned_at: now }
}
