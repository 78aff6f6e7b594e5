//! What the API server answered, and what becomes of the sync that asked.

use std::time::Duration;

use endpointd_model::{
    Controller, EventReason, EventRecord, Failure, FailureKind, InvolvedKind, Key, LiveRead,
    LiveReadResult, PublishedResource, ResourceVersion, SharedStr, Uid, WatchedResource,
    WriteResult,
};
use endpointd_mutants::{Mutant, is_on};

use crate::cache::{DirtyKeys, ListEpoch, Origin};
use crate::cooldown::Cooldown;
use crate::engine::{Engine, FAILED_KEY_RETRY};
use crate::in_flight::{
    Findings, InFlightSync, Owner, PendingRequest, PendingWrite, ReadBaseline, Verb, WatchEcho,
};
use crate::queue::Priority;
use crate::{Effect, MonotonicTime, RequestId, SyncResult, backoff};

/// How long until a node that could not be read is looked for again.
const NODE_RETRY: Duration = Duration::from_secs(5);
/// Whatever the server says, asking again at once is no answer to "too many requests".
const THROTTLE_MIN: Duration = Duration::from_millis(250);
/// So many failures in a row, of whichever keys, are an outage; fewer may be bad luck.
const OUTAGE_MIN: u32 = 3;
/// After an outage all keys come back within this time, not all at once.
const RECOVERY_SPREAD: Duration = Duration::from_secs(1);

impl Engine {
    pub(crate) fn on_write_result(
        &mut self,
        id: RequestId,
        outcome: WriteResult,
        now: MonotonicTime,
    ) {
        let Some(PendingRequest::Write(request)) = self.in_flight.complete(id) else { return };
        let mut dirty = DirtyKeys::default();
        let epoch = self.epoch_for_published(request.resource);
        let is_confirmed = matches!(&outcome, WriteResult::Stored(_) | WriteResult::Deleted);
        self.detect_concurrent_writer(&request, &outcome);
        match outcome {
            WriteResult::Stored(object) => {
                if !self.deleted_since(&object) && !is_on(Mutant::ForgetOwnWrite) {
                    self.cache.put_object(*object, Origin::Answer, epoch, &mut dirty);
                }
                self.end_outage(now);
            }
            WriteResult::Deleted => {
                self.tombstone(&request, &mut dirty);
                self.end_outage(now);
            }
            WriteResult::Conflict(_) => self.schedule_read(&request),
            WriteResult::NoResponse(_) if is_on(Mutant::UnknownIsDone) => {}
            WriteResult::NoResponse(failure) => {
                self.begin_outage(failure.kind, now);
                self.schedule_read(&request);
            }
            WriteResult::NamespaceTerminating(_) => {
                self.findings(&request.owner, |one| one.is_pointless = true)
            }
            WriteResult::Throttled { after_secs } => {
                let until = now + Duration::from_secs(after_secs.into()).max(THROTTLE_MIN);
                if !is_on(Mutant::IgnoreThrottle) {
                    self.paused_until = self.paused_until.max(until);
                }
                self.findings(&request.owner, |one| one.is_throttled = true);
            }
            WriteResult::Failed(failure) => {
                self.begin_outage(failure.kind, now);
                self.tell_failure(&request, &failure);
                self.findings(&request.owner, |one| _ = one.failure.get_or_insert(failure));
            }
            WriteResult::NotLeader => self.findings(&request.owner, |one| one.is_unsent = true),
        }
        if !is_confirmed && let Some(flight) = self.in_flight.get_mut(&request.owner) {
            flight.later.retain(|held| !held.after.contains(&id));
        }
        self.enqueue(dirty, now);
        self.advance(&request.owner, now);
    }

    pub(crate) fn on_live_read(
        &mut self,
        id: RequestId,
        found: LiveReadResult,
        now: MonotonicTime,
    ) {
        match self.in_flight.complete(id) {
            Some(PendingRequest::NodeRead(name)) => {
                // Otherwise the node was seen since, and what was read before counts no more.
                if self.pending_node_reads.get(&name) == Some(&id) {
                    self.apply_node_read(name, found, now);
                }
            }
            Some(PendingRequest::Read { read, owner, baseline }) => {
                if !self.superseded_by_watch(&read, &found, &baseline) {
                    self.apply_live_read(&owner, read, found, now);
                }
                self.advance(&owner, now);
            }
            Some(PendingRequest::Write(_)) | None => {}
        }
    }

    /// The next step of a flight, if nothing is out any more: the deletes, then the reads, then
    /// the end.
    pub(crate) fn advance(&mut self, owner: &Owner, now: MonotonicTime) {
        let Some(flight) = self.in_flight.get_mut(owner) else { return };
        if flight.n_pending > 0 {
            return;
        }
        let later = std::mem::take(&mut flight.later);
        if !later.is_empty() && flight.findings.allow_deletes() && self.is_leading {
            for held in later {
                self.send(owner, held.write);
            }
            return;
        }
        let reads = std::mem::take(&mut flight.reads);
        if !reads.is_empty() {
            flight.unanswered.extend(reads.iter().cloned());
            for read in reads {
                let baseline = self.baseline(&read);
                let id = self.in_flight.read(owner, read.clone(), baseline);
                self.effects.push_back(Effect::LiveRead { id, read });
            }
            return;
        }
        if let Some(flight) = self.in_flight.remove(owner) {
            self.finish(owner, flight, now);
        }
    }

    /// The sync is over: remember how it ended, and when to come back.
    fn finish(&mut self, owner: &Owner, flight: InFlightSync, now: MonotonicTime) {
        let InFlightSync { findings, priority, planned, synced, unanswered, .. } = flight;
        let concurrent_write = findings.concurrent_write;
        let end = findings.end();
        let paused_until = self.paused_until;
        let is_leading = self.is_leading;
        let mut jitter = self.jitter.clone();
        let Some(lane) = self.controller_mut(owner.0) else { return };
        let again = lane.queue.done(&owner.1);
        if !is_leading {
            // Whoever leads next visits every key, and rests on nothing that was read before.
            lane.keys.remove(&owner.1);
            return self.tell_synced(synced, SyncResult::LeadershipLost, planned, now);
        }
        let batch_period = lane.settings.batch_period;
        let state = lane.keys.entry(&owner.1);
        let has_read_only = synced.is_none();
        if synced.as_ref().is_some_and(|synced| synced.has_writes()) {
            state.cooldown = state.cooldown.and(Cooldown::after_writes(planned, now));
        }
        let cooldown = state.cooldown;
        let due = match &end {
            SyncResult::Failed(failure) => {
                let trouble = lane.keys.failure_entry(&owner.1);
                trouble.n_failures += 1;
                trouble.failure = Some(failure.clone());
                trouble.last_result = Some(end.as_str());
                trouble.reads_required.extend(unanswered);
                lane.n_retries += 1;
                let is_dropped = is_on(Mutant::GiveUpKey) && trouble.n_failures >= 5;
                (!is_dropped).then(|| {
                    now + backoff::after_failure(failure.kind, trouble.n_failures, &mut jitter)
                })
            }
            SyncResult::Throttled => Some(paused_until.max(now)),
            SyncResult::ConflictRetry => {
                let trouble = lane.keys.failure_entry(&owner.1);
                trouble.n_conflicts += u32::from(!has_read_only);
                Some(now + backoff::after_stale(trouble.n_conflicts))
            }
            SyncResult::Unchanged | SyncResult::Written | SyncResult::NamespaceTerminating => {
                lane.keys.clear_failure(&owner.1);
                concurrent_write.then_some(now + batch_period)
            }
            // We lead again, and nobody else will come back to it.
            SyncResult::LeadershipLost => Some(now),
        };
        // First what came in meanwhile: it has waited longer.
        if let Some((priority, since)) = again {
            let due = match (&end, priority) {
                (SyncResult::Failed(_), Priority::Live | Priority::Background) => {
                    now + FAILED_KEY_RETRY
                }
                (SyncResult::Failed(_), Priority::Removal) => now,
                (_, Priority::Removal | Priority::Live | Priority::Background) => {
                    (now + batch_period).max(cooldown.until(priority))
                }
            };
            lane.queue.enqueue(&owner.1, priority, due, since);
        }
        if let Some(due) = due {
            lane.queue.enqueue(&owner.1, priority, due, now);
        }
        self.jitter = jitter;
        self.release_deferred(owner.0, &owner.1, now);
        self.drop_if_gone(&owner.1);
        self.tell_synced(synced, end, planned, now);
    }

    fn tell_synced(
        &mut self,
        synced: Option<Box<crate::SyncSummary>>,
        end: SyncResult,
        planned: MonotonicTime,
        now: MonotonicTime,
    ) {
        let Some(mut synced) = synced else { return };
        synced.result = if synced.has_writes() || end != SyncResult::Written {
            end
        } else {
            SyncResult::Unchanged
        };
        synced.took = now.since(planned);
        self.effects.push_back(Effect::SyncFinished(synced));
    }

    /// Nothing is left that this key could be about: no controller need remember it.
    pub(crate) fn drop_if_gone(&mut self, key: &Key) {
        let is_known = self.cache.service(key).is_some()
            || self.cache.object(PublishedResource::Endpoints, key).is_some();
        if is_known || is_on(Mutant::RememberGoneKeys) {
            return;
        }
        for lane in &mut self.controllers {
            if lane.queue.phase(key).is_none() {
                lane.keys.remove(key);
            }
        }
    }

    fn apply_live_read(
        &mut self,
        owner: &Owner,
        read: LiveRead,
        found: LiveReadResult,
        now: MonotonicTime,
    ) {
        let mut dirty = DirtyKeys::default();
        if !matches!(found, LiveReadResult::Failed(_)) {
            self.end_outage(now);
            if let Some(flight) = self.in_flight.get_mut(owner) {
                flight.unanswered.remove(&read);
            }
        }
        match (read, found) {
            (_, LiveReadResult::Failed(failure)) => {
                self.begin_outage(failure.kind, now);
                self.findings(owner, |one| _ = one.failure.get_or_insert(failure));
            }
            (LiveRead::Object(resource, _), LiveReadResult::Object(object)) => {
                let epoch = self.epoch_for_published(resource);
                self.add_conflicting_slice_name(owner, &object);
                self.cache.put_object(*object, Origin::Watch, epoch, &mut dirty);
            }
            (LiveRead::Object(resource, key), LiveReadResult::Absent) => {
                let epoch = self.current_epoch(resource);
                self.cache.tombstone(resource, &key, epoch, &mut dirty);
                self.confirm(owner, LiveRead::Object(resource, key));
            }
            (LiveRead::Service(_), LiveReadResult::Service(service)) => {
                let epoch = self.epoch_for_reads(WatchedResource::Services);
                self.cache.put_service(*service, epoch, &mut dirty);
            }
            (read @ LiveRead::Service(_), LiveReadResult::Absent) => self.confirm(owner, read),
            (LiveRead::Node(name), found) => self.apply_node_read(name, found, now),
            (
                _,
                LiveReadResult::Service(_) | LiveReadResult::Node(_) | LiveReadResult::Object(_),
            ) => {}
        }
        self.enqueue(dirty, now);
    }

    fn apply_node_read(&mut self, name: SharedStr, found: LiveReadResult, now: MonotonicTime) {
        self.pending_node_reads.remove(&name);
        let mut dirty = DirtyKeys::default();
        match found {
            LiveReadResult::Node(node) => {
                let epoch = self.epoch_for_reads(WatchedResource::Nodes);
                self.cache.put_node(*node, epoch, &mut dirty);
            }
            LiveReadResult::Absent => self.cache.confirm_no_node(&name, &mut dirty),
            LiveReadResult::Failed(_) => {
                self.cache.add_affected_by_node_name(&name, &mut dirty);
                return self.enqueue(dirty, now + NODE_RETRY);
            }
            LiveReadResult::Service(_) | LiveReadResult::Object(_) => {}
        }
        self.enqueue(dirty, now);
    }

    fn confirm(&mut self, owner: &Owner, read: LiveRead) {
        if let Some(lane) = self.controller_mut(owner.0) {
            lane.keys.failure_entry(&owner.1).confirmed_absent.insert(read);
        }
    }

    /// A slice that is not for this key has a name the key wanted.
    fn add_conflicting_slice_name(&mut self, owner: &Owner, object: &endpointd_model::Object) {
        let service = object.meta().labels.get(endpointd_model::names::SERVICE_NAME);
        let is_own = service.is_some_and(|service| *service == owner.1.name);
        if object.resource() == PublishedResource::Slices
            && !is_own
            && let Some(lane) = self.controller_mut(owner.0)
        {
            lane.keys.add_conflicting_slice_name(&owner.1, object.meta().name.clone());
        }
    }

    /// Only what the delete named: another object may have taken its place meanwhile.
    fn tombstone(&mut self, request: &PendingWrite, dirty: &mut DirtyKeys) {
        let epoch = self.current_epoch(request.resource);
        let known = self.cache.object(request.resource, &request.key);
        if known.is_some_and(|known| known.uid != request.doomed) && !is_on(Mutant::BuryByName) {
            return;
        }
        let mut own = DirtyKeys::default();
        self.cache.tombstone(request.resource, &request.key, epoch, &mut own);
        own.0.retain(|mark| (mark.controller, &mark.key) != (request.owner.0, &request.owner.1));
        dirty.0.append(&mut own.0);
    }

    /// What is known of what a read is about, before it is asked for.
    pub(crate) fn baseline(&self, read: &LiveRead) -> ReadBaseline {
        let (known, kind) = match read {
            LiveRead::Service(key) => (
                self.cache.service(key).map(|service| service.uid.clone()),
                WatchedResource::Services,
            ),
            LiveRead::Node(name) => {
                (self.cache.has_node(name).then(Uid::default), WatchedResource::Nodes)
            }
            LiveRead::Object(resource, key) => {
                (self.cache.object(*resource, key).map(|one| one.uid), kind_of(*resource))
            }
        };
        ReadBaseline { known, observed_version: self.observed_version(kind) }
    }

    /// The watch has told something since the read was asked for that the read may not have seen:
    /// that the object is there now, or that it is gone.
    fn superseded_by_watch(
        &self,
        read: &LiveRead,
        found: &LiveReadResult,
        before: &ReadBaseline,
    ) -> bool {
        let now = self.baseline(read);
        if is_on(Mutant::TrustLateRead) {
            return false;
        }
        let version = match found {
            LiveReadResult::Absent => return now.known != before.known,
            LiveReadResult::Failed(_) => return false,
            LiveReadResult::Service(service) => service.resource_version,
            LiveReadResult::Node(node) => node.resource_version,
            LiveReadResult::Object(object) => object.meta().resource_version,
        };
        let is_told = version != ResourceVersion::NONE && version <= now.observed_version;
        is_told
            && now.known.is_none()
            && (before.known.is_some() || version > before.observed_version)
    }

    /// An answer that comes late: the watch has already told what happened afterwards, and the
    /// object is not there any more.
    fn deleted_since(&self, object: &endpointd_model::Object) -> bool {
        if is_on(Mutant::TrustLateAnswer) {
            return false;
        }
        let (resource, meta) = (object.resource(), object.meta());
        let version = meta.resource_version;
        version != ResourceVersion::NONE
            && version <= self.observed_version(kind_of(resource))
            && self.cache.object(resource, &meta.key()).is_none()
    }

    fn schedule_read(&mut self, request: &PendingWrite) {
        let read = LiveRead::Object(request.resource, request.key.clone());
        if let Some(flight) = self.in_flight.get_mut(&request.owner) {
            flight.reads.insert(read);
            flight.findings.is_stale = true;
        }
    }

    /// What the watch showed meanwhile was our own write, or else someone else's.
    fn detect_concurrent_writer(&mut self, request: &PendingWrite, outcome: &WriteResult) {
        let is_ours = |echo: &WatchEcho| match (echo, outcome) {
            (WatchEcho::ResourceVersion(version), WriteResult::Stored(object)) => {
                *version == object.meta().resource_version
            }
            (WatchEcho::Gone, WriteResult::Deleted) => true,
            (WatchEcho::ResourceVersion(_) | WatchEcho::Gone, _) => false,
        };
        if !request.echoes.iter().all(is_ours) && !is_on(Mutant::IgnoreContest) {
            self.findings(&request.owner, |one| one.concurrent_write = true);
        }
    }

    fn findings(&mut self, owner: &Owner, note: impl FnOnce(&mut Findings)) {
        if let Some(flight) = self.in_flight.get_mut(owner) {
            note(&mut flight.findings);
        }
    }

    /// Worded as upstream words them. The mirroring controller says nothing.
    fn tell_failure(&mut self, request: &PendingWrite, failure: &Failure) {
        let (controller, key) = &request.owner;
        let (reason, message, involved_kind) = match (controller, request.verb) {
            (Controller::Mirror, _) | (Controller::Endpoints, Verb::Delete) => return,
            (Controller::Slices, verb) => {
                let verb = verb.as_str();
                let message = format!(
                    "Error updating Endpoint Slices for Service {key}: failed to {verb} \
                     EndpointSlice for Service {key}: {failure}"
                );
                (EventReason::FailedToUpdateEndpointSlices, message, InvolvedKind::Service)
            }
            (Controller::Endpoints, Verb::Create) => {
                let message = format!("Failed to create endpoint for service {key}: {failure}");
                (EventReason::FailedToCreateEndpoint, message, InvolvedKind::Endpoints)
            }
            (Controller::Endpoints, Verb::Update) => {
                let message = format!("Failed to update endpoint {key}: {failure}");
                (EventReason::FailedToUpdateEndpoint, message, InvolvedKind::Endpoints)
            }
        };
        let owner = request.owner.clone();
        self.notify(&owner, EventRecord { reason, message, involved_kind });
    }

    /// While nobody answers, nobody is asked, but for a try now and then. An error of the server
    /// may be about one object only, and stops no other.
    fn begin_outage(&mut self, kind: FailureKind, now: MonotonicTime) {
        if !kind.is_outage() {
            return;
        }
        self.n_failures_in_a_row += 1;
        if kind == FailureKind::Unreachable && now >= self.paused_until {
            self.paused_until = now + backoff::outage_pause(self.n_failures_in_a_row);
        }
    }

    /// The API server answers again: whoever failed for its absence need not wait any longer.
    pub(crate) fn end_outage(&mut self, now: MonotonicTime) {
        let was_outage = std::mem::take(&mut self.n_failures_in_a_row) >= OUTAGE_MIN;
        if !was_outage {
            return;
        }
        for lane in &mut self.controllers {
            let failed = lane.keys.failures().filter(|(_, trouble)| {
                trouble.failure.as_ref().is_some_and(|failure| failure.kind.is_outage())
            });
            let mut keys: Vec<_> = failed.map(|(key, _)| key.clone()).collect();
            keys.sort_unstable();
            for key in keys {
                lane.queue.expedite(&key, now + self.jitter.up_to(RECOVERY_SPREAD));
            }
        }
    }

    fn epoch_for_published(&self, resource: PublishedResource) -> ListEpoch {
        self.epoch_for_reads(kind_of(resource))
    }

    /// All changes of the kind up to here have been told.
    fn observed_version(&self, kind: WatchedResource) -> ResourceVersion {
        let watch = self.watches.iter().find(|watch| watch.kind == kind);
        watch.map_or(ResourceVersion::NONE, |watch| watch.observed_version)
    }

    /// The picture that is complete or being told: what is gone now may still be in it.
    fn current_epoch(&self, resource: PublishedResource) -> ListEpoch {
        let kind = kind_of(resource);
        self.watches.iter().find(|watch| watch.kind == kind).map_or(0, |watch| watch.epoch)
    }

    /// Under which picture an answer or a read counts. While a new one is being told, that is the
    /// one before: if the new one does not show the object, it is gone.
    fn epoch_for_reads(&self, kind: WatchedResource) -> ListEpoch {
        let watch = self.watches.iter().find(|watch| watch.kind == kind);
        watch.map_or(0, |one| one.epoch.wrapping_sub(u8::from(one.is_listing)))
    }
}

fn kind_of(resource: PublishedResource) -> WatchedResource {
    match resource {
        PublishedResource::Slices => WatchedResource::Slices,
        PublishedResource::Endpoints => WatchedResource::Endpoints,
    }
}

impl Findings {
    /// Deletes go ahead unless it is not known what the writes before them did, or we may not.
    /// A write that failed holds back only those deletes that depend on it.
    fn allow_deletes(&self) -> bool {
        let is_held = is_on(Mutant::FailureHoldsDeletes) && self.failure.is_some();
        !self.is_stale && !self.is_throttled && !self.is_unsent && !is_held
    }

    /// The worst that happened decides.
    fn end(self) -> SyncResult {
        if self.is_unsent {
            SyncResult::LeadershipLost
        } else if let Some(failure) = self.failure {
            SyncResult::Failed(failure)
        } else if self.is_throttled {
            SyncResult::Throttled
        } else if self.is_stale {
            SyncResult::ConflictRetry
        } else if self.is_pointless {
            SyncResult::NamespaceTerminating
        } else {
            SyncResult::Written
        }
    }
}

impl Verb {
    fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}
