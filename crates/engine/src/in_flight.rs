//! A sync in flight, as a state machine: responses move it, and it says what to send next.
//!
//! ```text
//! Writing ──(all answered)──> WritingDeferred ──(all answered)──> Reading ──(all answered)──> Done
//!    │                                                               ▲  ▲
//!    └──── nothing deferred, or cancelled ───────────────────────────┘  │
//! sync that must read before it can plan ───────────────────────────────┘
//! ```
//!
//! A state without requests is skipped. [`InFlightSync::next_step`] is the only way from one state
//! to another.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{Controller, Failure, Key, LiveRead, ResourceVersion, Write, WriteResult};

use crate::queue::Priority;
use crate::requests::{PendingWrite, Verb};
use crate::{MonotonicTime, RequestId, SyncResult, SyncSummary};

/// The controller and key of a sync; a key has at most one sync in flight per controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    pub controller: Controller,
    pub key: Key,
}

/// A sync with requests in flight.
#[derive(Debug)]
pub struct InFlightSync {
    state: State,
    /// The worst result so far, in the order of [`SyncResult`].
    result: SyncResult,
    has_concurrent_write: bool,
    /// Writes without a definite response, by the read that shows what became of each.
    unanswered: BTreeMap<LiveRead, UnansweredWrite>,
    priority: Priority,
    planned_at: MonotonicTime,
    /// Refused writes of the plan that are not tried now, and updates that are not complete.
    n_withheld: usize,
    /// Reported when the sync ends; none for a sync that only reads.
    summary: Option<Box<SyncSummary>>,
}

#[derive(Debug)]
enum State {
    /// Creates and updates are in flight; deletes wait for their responses, so that an endpoint
    /// that moves is published in its new slice before it leaves the old one. So does a condition,
    /// which tells of what has been stored.
    Writing {
        n_pending: usize,
        deferred: Vec<DeferredWrite>,
        reads: BTreeSet<LiveRead>,
    },
    WritingDeferred {
        n_pending: usize,
        reads: BTreeSet<LiveRead>,
    },
    /// Objects of unknown state are being read, so that the next plan starts from facts.
    Reading {
        n_pending: usize,
        unconfirmed: BTreeSet<LiveRead>,
    },
    /// All requests are answered. These reads failed, or the watch superseded them.
    Done {
        unconfirmed: BTreeSet<LiveRead>,
    },
}

/// A delete, and the writes that publish elsewhere what it removes; or a condition, and the writes
/// that it tells of. If one of them does not succeed, the deferred write is dropped: an endpoint
/// published twice is better than none.
#[derive(Debug)]
pub struct DeferredWrite {
    pub write: Write,
    pub depends_on: Vec<RequestId>,
}

/// What a sync in flight was started with.
#[derive(Clone, Copy, Debug)]
pub struct SyncStart {
    pub priority: Priority,
    pub planned_at: MonotonicTime,
}

/// A write that the API server answered with 5xx, or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct UnansweredWrite {
    pub verb: Verb,
    /// The version it was computed from; none for a create.
    base_version: ResourceVersion,
    pub failure: Failure,
}

/// What a live read told the sync that asked for it.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadOutcome {
    /// Its result is in the cache: the object with this version, or that there is none.
    Applied(Option<ResourceVersion>),
    /// The watch has reported newer facts since the read was sent; the result was ignored.
    Superseded,
    Failed(Failure),
}

/// What a sync does next.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Responses are outstanding.
    Wait,
    WriteDeferred(Vec<Write>),
    Read(BTreeSet<LiveRead>),
    Finish,
}

/// A finished sync.
#[derive(Debug)]
pub struct SyncEnd {
    pub result: SyncResult,
    pub n_withheld: usize,
    pub has_concurrent_write: bool,
    pub priority: Priority,
    pub planned_at: MonotonicTime,
    pub summary: Option<Box<SyncSummary>>,
    pub unconfirmed_reads: BTreeSet<LiveRead>,
}

impl InFlightSync {
    /// `n_sent` creates and updates have been sent.
    pub fn writing(
        start: SyncStart,
        summary: Box<SyncSummary>,
        n_sent: usize,
        deferred: Vec<DeferredWrite>,
    ) -> Self {
        let state = State::Writing { n_pending: n_sent, deferred, reads: BTreeSet::new() };
        Self::new(start, state, SyncResult::Written, Some(summary))
    }

    /// These reads have been sent; the key is planned when they are answered.
    pub fn reading(start: SyncStart, reads: BTreeSet<LiveRead>) -> Self {
        let state = State::Reading { n_pending: reads.len(), unconfirmed: reads };
        Self::new(start, state, SyncResult::ConflictRetry, None)
    }

    /// Planning failed, so nothing was sent.
    pub fn failed(start: SyncStart, failure: Failure) -> Self {
        let state = State::Done { unconfirmed: BTreeSet::new() };
        Self::new(start, state, SyncResult::Failed(failure), None)
    }

    fn new(
        start: SyncStart,
        state: State,
        result: SyncResult,
        summary: Option<Box<SyncSummary>>,
    ) -> Self {
        let SyncStart { priority, planned_at } = start;
        Self {
            state,
            result,
            has_concurrent_write: false,
            unanswered: BTreeMap::new(),
            priority,
            planned_at,
            n_withheld: 0,
            summary,
        }
    }

    /// The response to one write.
    pub fn on_write_result(&mut self, id: RequestId, request: &PendingWrite, result: &WriteResult) {
        self.record_response();
        match result {
            WriteResult::Stored(_) | WriteResult::Deleted => {}
            WriteResult::Conflict(_) => {
                self.worsen(SyncResult::ConflictRetry);
                self.cancel_deferred();
                self.schedule_read(request.live_read());
            }
            WriteResult::NoResponse(failure) => {
                self.worsen(SyncResult::ConflictRetry);
                self.cancel_deferred_depending_on(id);
                self.schedule_read(request.live_read());
                self.unanswered.insert(
                    request.live_read(),
                    UnansweredWrite {
                        verb: request.verb,
                        base_version: request.base_version,
                        failure: failure.clone(),
                    },
                );
            }
            WriteResult::Throttled { .. } => {
                self.worsen(SyncResult::Throttled);
                self.cancel_deferred();
            }
            WriteResult::NotLeader => {
                self.worsen(SyncResult::LeadershipLost);
                self.cancel_deferred();
            }
            WriteResult::NamespaceTerminating(_) => {
                self.worsen(SyncResult::NamespaceTerminating);
                self.cancel_deferred_depending_on(id);
            }
            WriteResult::Failed(failure) => {
                self.worsen(SyncResult::Failed(failure.clone()));
                self.cancel_deferred_depending_on(id);
            }
        }
    }

    /// The response to one live read. Returns the write that it was for, if that write failed: it
    /// was not applied, or not even the read was answered.
    pub fn on_read(&mut self, read: &LiveRead, outcome: ReadOutcome) -> Option<UnansweredWrite> {
        self.record_response();
        let unanswered = self.unanswered.remove(read);
        match outcome {
            ReadOutcome::Applied(found) => {
                if let State::Reading { unconfirmed, .. } = &mut self.state {
                    unconfirmed.remove(read);
                }
                let failed = unanswered.filter(|write| write.is_unchanged(found))?;
                self.worsen(SyncResult::Failed(failed.failure.clone()));
                Some(failed)
            }
            ReadOutcome::Superseded => None,
            ReadOutcome::Failed(failure) => {
                let first = unanswered.as_ref().map_or(failure, |write| write.failure.clone());
                self.worsen(SyncResult::Failed(first));
                unanswered
            }
        }
    }

    pub fn withhold(&mut self, n_withheld: usize) {
        self.n_withheld = n_withheld;
    }

    /// Deferred writes that are not sent after all.
    pub fn skip_deferred(&mut self, n: usize) {
        if let State::WritingDeferred { n_pending, .. } = &mut self.state {
            *n_pending -= n;
        }
    }

    pub fn priority(&self) -> Priority {
        self.priority
    }

    pub fn record_concurrent_write(&mut self) {
        self.has_concurrent_write = true;
    }

    /// Goes to the next state if nothing is pending, and says what to send for it.
    pub fn next_step(&mut self, is_leading: bool) -> Step {
        if self.n_pending() > 0 {
            return Step::Wait;
        }
        match &mut self.state {
            State::Writing { deferred, reads, .. } => {
                let (deferred, reads) = (std::mem::take(deferred), std::mem::take(reads));
                if deferred.is_empty() || !is_leading {
                    return self.start_reads(reads);
                }
                self.state = State::WritingDeferred { n_pending: deferred.len(), reads };
                Step::WriteDeferred(deferred.into_iter().map(|one| one.write).collect())
            }
            State::WritingDeferred { reads, .. } => {
                let reads = std::mem::take(reads);
                self.start_reads(reads)
            }
            State::Reading { unconfirmed, .. } => {
                self.state = State::Done { unconfirmed: std::mem::take(unconfirmed) };
                Step::Finish
            }
            State::Done { .. } => Step::Finish,
        }
    }

    pub fn into_end(self) -> SyncEnd {
        let Self { state, result, has_concurrent_write, priority, planned_at, .. } = self;
        let Self { n_withheld, summary, .. } = self;
        let unconfirmed_reads = match state {
            State::Reading { unconfirmed, .. } | State::Done { unconfirmed } => unconfirmed,
            State::Writing { .. } | State::WritingDeferred { .. } => BTreeSet::new(),
        };
        SyncEnd {
            result,
            n_withheld,
            has_concurrent_write,
            priority,
            planned_at,
            summary,
            unconfirmed_reads,
        }
    }

    fn start_reads(&mut self, reads: BTreeSet<LiveRead>) -> Step {
        if reads.is_empty() {
            self.state = State::Done { unconfirmed: reads };
            return Step::Finish;
        }
        self.state = State::Reading { n_pending: reads.len(), unconfirmed: reads.clone() };
        Step::Read(reads)
    }

    fn n_pending(&self) -> usize {
        match &self.state {
            State::Writing { n_pending, .. }
            | State::WritingDeferred { n_pending, .. }
            | State::Reading { n_pending, .. } => *n_pending,
            State::Done { .. } => 0,
        }
    }

    fn record_response(&mut self) {
        match &mut self.state {
            State::Writing { n_pending, .. }
            | State::WritingDeferred { n_pending, .. }
            | State::Reading { n_pending, .. } => *n_pending -= 1,
            State::Done { .. } => {}
        }
    }

    /// Of two results the worse counts, of two failures the first.
    fn worsen(&mut self, result: SyncResult) {
        if result.severity() > self.result.severity() {
            self.result = result;
        }
    }

    fn schedule_read(&mut self, read: LiveRead) {
        if let State::Writing { reads, .. } | State::WritingDeferred { reads, .. } = &mut self.state
        {
            reads.insert(read);
        }
    }

    /// The plan was made from an outdated cache, or writing must stop.
    fn cancel_deferred(&mut self) {
        if let State::Writing { deferred, .. } = &mut self.state {
            deferred.clear();
        }
    }

    fn cancel_deferred_depending_on(&mut self, id: RequestId) {
        if let State::Writing { deferred, .. } = &mut self.state {
            deferred.retain(|one| !one.depends_on.contains(&id));
        }
    }
}

impl SyncEnd {
    /// It sent writes, and all of them were stored.
    pub fn has_stored_writes(&self) -> bool {
        let has_writes = self.summary.as_ref().is_some_and(|summary| summary.has_writes());
        has_writes && self.result == SyncResult::Written
    }
}

impl UnansweredWrite {
    /// The object is as it was before the write, so it was not applied. (It may still be applied
    /// later; the watch reports that.)
    fn is_unchanged(&self, found: Option<ResourceVersion>) -> bool {
        match self.verb {
            Verb::Create => found.is_none(),
            Verb::Update | Verb::Delete => found == Some(self.base_version),
        }
    }
}

#[cfg(test)]
mod tests;
