//! One pass over one key: snapshot, plan, and the requests that follow from it.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use endpointd_model::{
    Controller, EventRecord, Failure, FailureKind, InvolvedKind, Key, LiveRead, PublishedResource,
    ResourceVersion, SharedStr, Uid, Write,
};
use endpointd_mutants::{Mutant, is_on};
use endpointd_plan::{CarriedState, Plan};

use crate::cooldown::Cooldown;
use crate::engine::Engine;
use crate::in_flight::{DeferredDelete, Findings, InFlightSync, Owner};
use crate::key_stats::KeyStats;
use crate::queue::{Dequeued, Priority};
use crate::{Effect, HintsKind, MonotonicTime, RequestId, SyncResult, SyncSummary, report};

/// A plan, and what it rests on.
#[derive(Debug)]
pub struct Planned {
    plan: Plan,
    /// What is absent from our view and thereby dooms what the plan deletes.
    absent: Vec<LiveRead>,
    unknown_nodes: Vec<SharedStr>,
}

impl Planned {
    fn nothing() -> Self {
        Self { plan: Plan::default(), absent: Vec::new(), unknown_nodes: Vec::new() }
    }
}

impl Engine {
    pub(crate) fn sync(&mut self, lane: usize, dequeued: Dequeued, now: MonotonicTime) {
        let controller = self.controllers[lane].settings.controller;
        let owner: Owner = (controller, dequeued.key.clone());
        let trouble = self.controllers[lane].keys.failure_mut(&dequeued.key);
        let reads_required = trouble.map(|one| std::mem::take(&mut one.reads_required));
        if let Some(reads_required) =
            reads_required.filter(|reads_required| !reads_required.is_empty())
        {
            return self.read_first(&owner, reads_required, &dequeued, now);
        }
        let planned = match self.plan(lane, &dequeued.key) {
            Ok(planned) => planned,
            Err(failure) => return self.refuse(&owner, failure, &dequeued, now),
        };
        let until = self.should_defer(lane, &dequeued, now);
        match until.filter(|_| !planned.plan.writes.is_empty()) {
            Some(until) => self.defer(lane, dequeued, planned, until),
            None => self.carry_out(lane, &dequeued, planned, now),
        }
    }

    /// Remembers what a plan learned, and does what it says.
    pub(crate) fn carry_out(
        &mut self,
        lane: usize,
        dequeued: &Dequeued,
        planned: Planned,
        now: MonotonicTime,
    ) {
        let Planned { plan, absent, unknown_nodes } = planned;
        let controller = self.controllers[lane].settings.controller;
        let owner: Owner = (controller, dequeued.key.clone());
        self.request_missing_nodes(unknown_nodes);
        let hints = self.hints_kind(&dequeued.key);
        let carried = self.share_trigger_times(lane, &dequeued.key, plan.carried);
        let keys = &mut self.controllers[lane].keys;
        let distribution = report::distribution_label(hints.traffic_distribution);
        let stats = KeyStats::new(&plan.counts, &plan.excluded_pods, distribution);
        let cooldown = Cooldown::after_plan(now, plan.counts.n_desired + plan.excluded_pods.len());
        keys.record_plan(&dequeued.key, carried, stats, cooldown);
        let trouble = keys.failure_mut(&dequeued.key);
        let confirmed_absent =
            trouble.map(|one| std::mem::take(&mut one.confirmed_absent)).unwrap_or_default();
        for record in plan.event_records {
            self.notify(&owner, record);
        }
        let unconfirmed: BTreeSet<LiveRead> =
            absent.into_iter().filter(|read| !confirmed_absent.contains(read)).collect();
        let unconfirmed = if is_on(Mutant::NoLiveRead) { BTreeSet::new() } else { unconfirmed };
        if !unconfirmed.is_empty() {
            // What is confirmed stays so until the rest is, or two reads would take turns for ever.
            if !is_on(Mutant::ForgetOtherAbsence) {
                self.controllers[lane].keys.failure_entry(&dequeued.key).confirmed_absent =
                    confirmed_absent;
            }
            return self.read_first(&owner, unconfirmed, dequeued, now);
        }
        let is_destructive = !confirmed_absent.is_empty() && !plan.writes.is_empty();
        if is_destructive && let Err(later) = self.acquire_deletion(now) {
            return self.postpone(&owner, dequeued, later, now);
        }
        let synced = SyncSummary {
            controller,
            key: dequeued.key.clone(),
            result: SyncResult::Unchanged,
            counts: plan.counts,
            n_creates: count(&plan.writes, "create"),
            n_updates: count(&plan.writes, "update"),
            n_deletes: count(&plan.writes, "delete"),
            waited: now.since(dequeued.since),
            took: std::time::Duration::ZERO,
            is_removal: dequeued.priority == Priority::Removal,
            hints,
        };
        self.start_sync(&owner, Some(Box::new(synced)), dequeued, now);
        self.start_writes(&owner, plan.writes, now);
    }

    /// Two controllers publish the same pods, and remember the same times of them.
    fn share_trigger_times(
        &self,
        lane: usize,
        key: &Key,
        mut carried: CarriedState,
    ) -> CarriedState {
        let others = self.controllers.iter().enumerate().filter(|(other, _)| *other != lane);
        let known = others.filter_map(|(_, other)| other.keys.get(key)?.carried.trigger.as_ref());
        if let Some(trigger) = &mut carried.trigger {
            known.for_each(|known| trigger.share_with(known));
        }
        carried
    }

    /// A bug in a plan must not stop the neighbours: it becomes a failure of its key.
    fn plan(&self, lane: usize, key: &Key) -> Result<Planned, Failure> {
        catch_unwind(AssertUnwindSafe(|| self.plan_key(lane, key))).map_err(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
            let message = format!("planning failed, which is a bug: {text}").into();
            Failure { kind: FailureKind::Invalid, message }
        })
    }

    fn plan_key(&self, lane: usize, key: &Key) -> Planned {
        let lane = &self.controllers[lane];
        let state = lane.keys.get(key);
        let nothing = CarriedState::default();
        let carried = state.map_or(&nothing, |state| &state.carried);
        let conflicting_slice_names = lane.keys.conflicting_slice_names(key);
        let service = || LiveRead::Service(key.clone());
        match lane.settings.controller {
            Controller::Slices => {
                let view = self.cache.slice_inputs(key, conflicting_slice_names);
                let plan = endpointd_plan::slices(&view.snapshot(carried), &self.settings);
                Planned { plan, absent: Vec::new(), unknown_nodes: view.unknown_nodes() }
            }
            Controller::Endpoints => {
                let view = self.cache.endpoints_inputs(key);
                if !view.has_service() && view.is_lock() && !is_on(Mutant::DeleteLocks) {
                    // Nobody's leftover, however the key came to be looked at.
                    return Planned::nothing();
                }
                let plan = endpointd_plan::endpoints(&view.snapshot(carried));
                let is_doomed = !view.has_service() && has_delete(&plan);
                let absent = is_doomed.then(service).into_iter().collect();
                Planned { plan, absent, unknown_nodes: Vec::new() }
            }
            Controller::Mirror => {
                let view = self.cache.mirror_inputs(key, conflicting_slice_names);
                let plan = endpointd_plan::mirror(&view.snapshot(), &self.settings);
                let mut absent = Vec::new();
                if has_delete(&plan) {
                    absent.extend((!view.has_service()).then(service));
                    let endpoints = || LiveRead::Object(PublishedResource::Endpoints, key.clone());
                    absent.extend((!view.has_endpoints()).then(endpoints));
                }
                Planned { plan, absent, unknown_nodes: Vec::new() }
            }
        }
    }

    /// Creates and updates go out at once, all together; deletes wait for them.
    fn start_writes(&mut self, owner: &Owner, writes: Vec<Write>, now: MonotonicTime) {
        let is_delete =
            |write: &Write| matches!(write, Write::Delete(_)) && !is_on(Mutant::DeletesFirst);
        let (deletes, first): (Vec<Write>, Vec<Write>) = writes.into_iter().partition(is_delete);
        let moved = |write: &Write| if deletes.is_empty() { Vec::new() } else { addresses(write) };
        let sent: Vec<(RequestId, Vec<SharedStr>)> = first
            .into_iter()
            .map(|write| {
                let addresses = moved(&write);
                (self.send(owner, write), addresses)
            })
            .collect();
        let later = deletes.into_iter().map(|write| {
            let after = self.writes_it_depends_on(&write, &sent);
            DeferredDelete { write, after }
        });
        let later = later.collect();
        if let Some(flight) = self.in_flight.get_mut(owner) {
            flight.later = later;
        }
        self.advance(owner, now);
    }

    /// The writes that publish elsewhere what this delete takes away.
    fn writes_it_depends_on(
        &self,
        delete: &Write,
        sent: &[(RequestId, Vec<SharedStr>)],
    ) -> Vec<RequestId> {
        let doomed = (delete.resource() == PublishedResource::Slices)
            .then(|| self.cache.slice(&delete.key().namespace, &delete.key().name))
            .flatten();
        let Some(doomed) = doomed else { return Vec::new() };
        let doomed: BTreeSet<&SharedStr> =
            doomed.endpoints.iter().flat_map(|endpoint| &endpoint.addresses).collect();
        let keeps = |(_, addresses): &&(RequestId, Vec<SharedStr>)| {
            addresses.iter().any(|address| doomed.contains(address))
        };
        sent.iter().filter(keeps).map(|(id, _)| *id).collect()
    }

    pub(crate) fn send(&mut self, owner: &Owner, write: Write) -> RequestId {
        let write = unguarded(write);
        let id = self.in_flight.send(owner, &write);
        let write = Box::new(write);
        self.effects.push_back(Effect::Send { id, controller: owner.0, write });
        id
    }

    /// A flight that only reads; the key is planned when the answers are in.
    fn read_first(
        &mut self,
        owner: &Owner,
        reads: BTreeSet<LiveRead>,
        dequeued: &Dequeued,
        now: MonotonicTime,
    ) {
        self.start_sync(owner, None, dequeued, now);
        if let Some(flight) = self.in_flight.get_mut(owner) {
            flight.reads = reads;
            flight.findings.is_stale = true;
        }
        self.advance(owner, now);
    }

    fn start_sync(
        &mut self,
        owner: &Owner,
        synced: Option<Box<SyncSummary>>,
        dequeued: &Dequeued,
        now: MonotonicTime,
    ) {
        let flight = InFlightSync {
            n_pending: 0,
            later: Vec::new(),
            reads: BTreeSet::new(),
            unanswered: BTreeSet::new(),
            findings: Findings::default(),
            priority: dequeued.priority,
            planned: now,
            synced,
        };
        self.in_flight.insert(owner.clone(), flight);
    }

    fn refuse(&mut self, owner: &Owner, failure: Failure, dequeued: &Dequeued, now: MonotonicTime) {
        self.start_sync(owner, None, dequeued, now);
        if let Some(flight) = self.in_flight.get_mut(owner) {
            flight.findings.failure = Some(failure);
        }
        self.advance(owner, now);
    }

    fn acquire_deletion(&mut self, now: MonotonicTime) -> Result<(), MonotonicTime> {
        self.deletion_limiter.try_acquire(self.cache.n_objects(PublishedResource::Endpoints), now)
    }

    fn postpone(
        &mut self,
        owner: &Owner,
        dequeued: &Dequeued,
        due: MonotonicTime,
        now: MonotonicTime,
    ) {
        let Some(lane) = self.controller_mut(owner.0) else { return };
        lane.queue.done(&owner.1);
        lane.queue.enqueue(&owner.1, dequeued.priority, due, now);
    }

    /// Asks once for each node that pods run on and that we have never seen.
    fn request_missing_nodes(&mut self, names: Vec<SharedStr>) {
        for name in names {
            if !self.pending_node_reads.contains_key(&name) {
                let id = self.in_flight.read_node(name.clone());
                self.pending_node_reads.insert(name.clone(), id);
                self.effects.push_back(Effect::LiveRead { id, read: LiveRead::Node(name) });
            }
        }
    }

    pub(crate) fn notify(&mut self, owner: &Owner, record: EventRecord) {
        let (controller, key) = owner;
        let uid = match record.involved_kind {
            InvolvedKind::Service => self.cache.service(key).map(|service| service.uid.clone()),
            InvolvedKind::Endpoints => {
                self.cache.object(PublishedResource::Endpoints, key).map(|known| known.uid)
            }
        };
        let uid: Uid = uid.unwrap_or_default();
        let (controller, key) = (*controller, key.clone());
        self.effects.push_back(Effect::RecordEvent { controller, key, uid, record });
    }

    fn hints_kind(&self, key: &Key) -> HintsKind {
        let service = self.cache.service(key);
        service.map_or_else(HintsKind::default, |service| HintsKind {
            topology: service.topology,
            traffic_distribution: service.traffic_distribution,
        })
    }
}

/// What two mutants make of a write.
fn unguarded(mut write: Write) -> Write {
    match &mut write {
        Write::Update(endpointd_model::Object::Slice(slice))
            if is_on(Mutant::UpdateWithoutVersion) =>
        {
            slice.meta.resource_version = ResourceVersion::NONE;
        }
        Write::Delete(target) if is_on(Mutant::DeleteWithoutUid) => {
            (target.uid, target.resource_version) = (Uid::default(), ResourceVersion::NONE);
        }
        Write::Create(_) | Write::Update(_) | Write::Delete(_) => {}
    }
    write
}

fn has_delete(plan: &Plan) -> bool {
    plan.writes.iter().any(|write| matches!(write, Write::Delete(_)))
}

fn count(writes: &[Write], verb: &str) -> usize {
    writes.iter().filter(|write| write.verb() == verb).count()
}

/// The addresses a written slice will hold.
fn addresses(write: &Write) -> Vec<SharedStr> {
    match write.object() {
        Some(endpointd_model::Object::Slice(slice)) => {
            slice.endpoints.iter().flat_map(|one| one.addresses.iter().cloned()).collect()
        }
        Some(endpointd_model::Object::Endpoints(_)) | None => Vec::new(),
    }
}
