//! Syncs in flight with their requests, and the effects that wait to be performed.

use std::collections::{BTreeSet, VecDeque};

use endpointd_model::{Failure, LiveRead, SharedStr, Write, WriteResult};
use hashbrown::HashMap;

use crate::controllers::Work;
use crate::deferred_deletes::OrderedWrites;
use crate::in_flight::{
    DeferredDelete, InFlightSync, Owner, ReadOutcome, Step, SyncEnd, SyncStart, UnansweredWrite,
};
use crate::observed::Observed;
use crate::requests::{PendingRead, PendingRequest, PendingWrite, Requests};
use crate::{Effect, MonotonicTime, RequestId, SyncSummary};

#[derive(Debug, Default)]
pub struct Syncs {
    in_flight: HashMap<Owner, InFlightSync>,
    requests: Requests,
    effects: VecDeque<Effect>,
}

impl Syncs {
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    pub fn requests_mut(&mut self) -> &mut Requests {
        &mut self.requests
    }

    pub fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    pub fn push_effect(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    pub fn pop_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    pub fn take_effects(&mut self) -> VecDeque<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Sends creates and updates at once, all together. [`Self::advance`] sends the deletes.
    pub fn start_writing(
        &mut self,
        work: &Work,
        summary: SyncSummary,
        writes: OrderedWrites,
        now: MonotonicTime,
    ) {
        let OrderedWrites { first, deletes } = writes;
        let sent: Vec<RequestId> =
            first.into_iter().map(|write| self.send(&work.owner, write)).collect();
        let deferred = |(write, depends_on): (Write, Vec<usize>)| {
            let depends_on = depends_on.into_iter().map(|index| sent[index]).collect();
            DeferredDelete { write, depends_on }
        };
        let deletes = deletes.into_iter().map(deferred).collect();
        let summary = Box::new(summary);
        let sync = InFlightSync::writing(start(work, now), summary, sent.len(), deletes);
        self.in_flight.insert(work.owner.clone(), sync);
    }

    /// Sends reads; the key is planned when they are answered.
    pub fn start_reading(
        &mut self,
        work: &Work,
        reads: BTreeSet<LiveRead>,
        observed: &Observed,
        now: MonotonicTime,
    ) {
        let sync = InFlightSync::reading(start(work, now), reads.clone());
        self.in_flight.insert(work.owner.clone(), sync);
        self.send_reads(&work.owner, reads, observed);
    }

    /// Planning failed; [`Self::advance`] ends the sync.
    pub fn start_failed(&mut self, work: &Work, failure: Failure, now: MonotonicTime) {
        let sync = InFlightSync::failed(start(work, now), failure);
        self.in_flight.insert(work.owner.clone(), sync);
    }

    /// Reads each node that pods run on and that the cache does not hold, once.
    pub fn read_nodes(&mut self, names: Vec<SharedStr>) {
        for name in names {
            if let Some(id) = self.requests.register_node_read(&name) {
                self.effects.push_back(Effect::LiveRead { id, read: LiveRead::Node(name) });
            }
        }
    }

    /// Returns the request that this response is for, unless it was cancelled.
    pub fn on_write_result(&mut self, id: RequestId, result: &WriteResult) -> Option<PendingWrite> {
        let Some(PendingRequest::Write(request)) = self.requests.complete(id) else { return None };
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

    /// Sends what a sync needs next. Returns its end if nothing is left to send or to wait for.
    pub fn advance(
        &mut self,
        owner: &Owner,
        is_leading: bool,
        observed: &Observed,
    ) -> Option<SyncEnd> {
        match self.in_flight.get_mut(owner)?.next_step(is_leading) {
            Step::Wait => None,
            Step::Delete(writes) => {
                for write in writes {
                    self.send(owner, write);
                }
                None
            }
            Step::Read(reads) => {
                self.send_reads(owner, reads, observed);
                None
            }
            Step::Finish => self.in_flight.remove(owner).map(InFlightSync::into_end),
        }
    }

    fn send(&mut self, owner: &Owner, write: Write) -> RequestId {
        let id = self.requests.register_write(owner, &write);
        let (controller, write) = (owner.controller, Box::new(write));
        self.effects.push_back(Effect::Send { id, controller, write });
        id
    }

    fn send_reads(&mut self, owner: &Owner, reads: BTreeSet<LiveRead>, observed: &Observed) {
        for read in reads {
            let baseline = observed.read_baseline(&read);
            let id = self.requests.register_read(owner, read.clone(), baseline);
            self.effects.push_back(Effect::LiveRead { id, read });
        }
    }
}

fn start(work: &Work, now: MonotonicTime) -> SyncStart {
    SyncStart { priority: work.priority, planned_at: now }
}
