//! The engine: inputs in, effects out. It routes each input to the component that owns the state
//! concerned, and starts syncs while the controllers have room.

mod additions;
mod changes;
mod dry_run;
mod events;
mod pods;
mod repairs;
mod responses;
mod rollback;
mod sources;

use endpointd_model::{
    Controller, FailureKind, ResourceEvent, WatchSignal, WatchedResource, WriteResult,
};
use endpointd_plan::Plan;
use endpointd_rng::SplitMix64;

use self::pods::FirstPlans;
use crate::absence::ReportedDeletions;
use crate::controllers::{Controllers, PlanReport, Work};
use crate::deferred_writes::order_writes;
use crate::deletion_limiter::DeletionLimiter;
use crate::in_flight::{Owner, SyncEnd};
use crate::observed::{Observed, Reaction, resource_of};
use crate::outage::Outage;
use crate::planning::{self, Planned};
use crate::retry::RetryContext;
use crate::sources::Sources;
use crate::status;
use crate::syncs::Syncs;
use crate::throttling::Throttling;
use crate::write_order::{DeferredPlans, deferred_until};
use crate::{Effect, EngineStatus, Input, MonotonicTime, Settings, SyncResult, WriteMode};

/// All state of the controllers. It has no clock: every call passes the time.
#[derive(Debug)]
pub struct Engine {
    plan_settings: endpointd_plan::Settings,
    observed: Observed,
    sources: Sources,
    controllers: Controllers,
    deferred: DeferredPlans,
    syncs: Syncs,
    deletion_limiter: DeletionLimiter,
    outage: Outage,
    throttling: Throttling,
    jitter: SplitMix64,
    write_mode: WriteMode,
    is_leading: bool,
    repeat_pod_reads_at: Option<MonotonicTime>,
    first_plans: FirstPlans,
}

impl Engine {
    pub fn new(settings: Settings) -> Self {
        Self {
            observed: Observed::new(settings.watched_resources(), &settings.plan.managers),
            plan_settings: settings.plan,
            sources: Sources::new(settings.clusters),
            controllers: Controllers::new(settings.controllers),
            deferred: DeferredPlans::default(),
            syncs: Syncs::default(),
            deletion_limiter: DeletionLimiter::default(),
            outage: Outage::default(),
            throttling: Throttling::default(),
            jitter: SplitMix64::new(settings.seed),
            write_mode: settings.write_mode,
            is_leading: false,
            repeat_pod_reads_at: None,
            first_plans: FirstPlans::default(),
        }
    }

    /// The resources that the caller must watch, in the order of [`WatchedResource::ALL`].
    pub fn watched_resources(&self) -> Vec<WatchedResource> {
        self.observed.watched_resources()
    }

    /// Takes in something that happened; [`Self::next`] returns what follows from it. The
    /// [crate documentation](crate) has an example.
    pub fn handle(&mut self, input: Input, now: MonotonicTime) {
        match input {
            Input::Watch(resource, signal) => self.on_watch_signal(resource, signal, now),
            Input::WriteResult(id, result) => self.on_write_result(id, result, now),
            Input::LiveReadResult(id, result) => self.on_live_read(id, result, now),
            Input::Clock(_) | Input::Source(..) | Input::SourcesListed => {
                self.on_clusters(input, now);
            }
            Input::LeadershipAcquired => {
                self.is_leading = true;
                self.start_synced(now);
            }
            Input::LeadershipLost => {
                self.is_leading = false;
                self.stop(now);
            }
            Input::VersionsRolledBack => self.on_rollback(now),
        }
    }

    /// The next effect to perform, planning due keys if there is none yet. Call it after each
    /// input, and at [`Self::wake_at`], until it returns `None`.
    pub fn next(&mut self, now: MonotonicTime) -> Option<Effect> {
        loop {
            let is_paused = now < self.outage.paused_until();
            if let Some(effect) = self.syncs.pop_effect(&self.observed, now) {
                if effect == Effect::RelistAll {
                    self.observed.accept_signals();
                }
                return Some(effect);
            }
            if !is_paused && let Some(write) = self.syncs.pop_write() {
                return Some(write);
            }
            if is_paused || !self.can_plan() {
                return None;
            }
            self.enqueue_affected_by_topology(now);
            if self.repeat_pod_reads_at.is_some_and(|at| at <= now) {
                self.read_unlisted_pods();
            } else if let Some((work, planned)) = self.deferred.pop_due(now) {
                self.resume_deferred(work, planned, now);
            } else {
                let work = self.controllers.dequeue(now)?;
                self.sync(work, now);
            }
        }
    }

    /// When to call [`Self::next`] again if there is no input before.
    pub fn wake_at(&self) -> Option<MonotonicTime> {
        if self.syncs.has_effects() {
            return Some(MonotonicTime::START);
        }
        if self.syncs.has_writes() {
            return Some(self.outage.paused_until());
        }
        if !self.can_plan() {
            return None;
        }
        let due = [self.controllers.next_due(), self.deferred.next_due(), self.repeat_pod_reads_at];
        Some(due.into_iter().flatten().min()?.max(self.outage.paused_until()))
    }

    /// No request is in flight and no effect is waiting: the process can exit.
    pub fn is_idle(&self) -> bool {
        self.syncs.is_idle()
    }

    /// A snapshot of the state for metrics, `/report`, and health checks.
    pub fn report(&self, now: MonotonicTime) -> EngineStatus {
        let cache = self.observed.cache();
        let n_endpoints = cache.n_objects(WatchedResource::Endpoints);
        EngineStatus {
            is_leading: self.is_leading,
            watches: self.observed.watch_statuses(now),
            sources: self.sources.statuses(now),
            import_conflicts: self.sources.conflicts(),
            deletion_limiter: self.deletion_limiter.status(n_endpoints, now),
            throttled_for: self.outage.remaining(now),
            ..status::of_keys(&self.controllers, &self.observed, now)
        }
    }

    pub(crate) fn observed(&self) -> &Observed {
        &self.observed
    }

    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    pub(crate) fn controllers(&self) -> &Controllers {
        &self.controllers
    }

    pub(crate) fn plan_settings(&self) -> &endpointd_plan::Settings {
        &self.plan_settings
    }

    fn can_plan(&self) -> bool {
        self.is_leading && self.controllers.is_started()
    }

    /// Stops the controllers. Requests in flight end by their responses; nothing else is sent.
    fn stop(&mut self, now: MonotonicTime) {
        self.controllers.clear(now);
        self.first_plans.clear();
        self.sources.imported.clear();
        for id in self.syncs.take_unsent_writes() {
            self.on_write_result(id, WriteResult::NotLeader, now);
        }
        self.deferred.clear(&mut self.controllers);
    }

    /// Each controller starts once this process leads and the resources it reads are listed.
    fn start_synced(&mut self, now: MonotonicTime) {
        if self.is_leading {
            if self
                .controllers
                .start_synced(&self.observed, now)
                .contains(&Controller::MultiCluster)
            {
                self.enqueue_all_of_sources(now);
            }
            self.read_unlisted_pods();
        }
    }

    fn enqueue_affected_by_topology(&mut self, now: MonotonicTime) {
        if self.observed.refresh_topology() {
            let topology = self.observed.cache().topology();
            self.controllers.enqueue(self.controllers.affected_by_topology(topology), now);
        }
    }

    fn on_watch_signal(
        &mut self,
        resource: WatchedResource,
        signal: WatchSignal,
        now: MonotonicTime,
    ) {
        match self.observed.on_signal(resource, signal, now) {
            Reaction::Nothing => {}
            Reaction::Changes(changes) => self.apply_changes(changes, now),
            Reaction::Reconnected => self.end_outage(now),
            Reaction::Relist => self.syncs.push_effect(Effect::Relist(resource)),
            Reaction::RolledBack => self.on_rollback(now),
            Reaction::ListDone(held_back) => self.finish_list(resource, held_back, now),
        }
    }

    fn finish_list(
        &mut self,
        resource: WatchedResource,
        held_back: Vec<ResourceEvent>,
        now: MonotonicTime,
    ) {
        self.syncs.requests_mut().invalidate_reads(|read| resource_of(read) == resource);
        for event in held_back {
            let changes = self.observed.apply(event);
            self.apply_changes(changes, now);
        }
        if resource == WatchedResource::Pods {
            self.syncs.requests_mut().cancel_pod_reads();
        }
        let changes = self.observed.remove_missing(resource);
        self.apply_changes(changes, now);
        self.end_outage(now);
        self.start_synced(now);
        if resource == WatchedResource::Pods {
            self.repeat_first_plans(now);
        }
    }

    fn sync(&mut self, work: Work, now: MonotonicTime) {
        let state = self.controllers.of_mut(&work.owner);
        let failures = state.keys.failure_mut(&work.owner.key);
        let required = failures.map(|one| std::mem::take(&mut one.reads_required));
        if let Some(reads) = required.filter(|reads| !reads.is_empty()) {
            return self.syncs.start_reading(&work, reads, now);
        }
        let (cache, state) = (self.observed.cache(), self.controllers.of(&work.owner));
        let (known, key) = ((cache, &self.sources), &work.owner.key);
        let mut planned = match planning::plan(known, state, &self.plan_settings, key, now) {
            Ok(planned) => planned,
            Err(failure) => {
                self.syncs.start_failed(&work, failure, now);
                return self.advance(&work.owner, now);
            }
        };
        if self.awaits_pods(&work, &mut planned, now) {
            return;
        }
        match deferred_until(&work, &self.controllers, now) {
            Some(until) if !planned.plan.writes.is_empty() => {
                self.deferred.push(work, planned, until);
            }
            _ => self.carry_out(work, planned, now),
        }
    }

    fn resume_deferred(&mut self, work: Work, planned: Planned, now: MonotonicTime) {
        let queue = &mut self.controllers.of_mut(&work.owner).queue;
        if queue.changed_in_flight(&work.owner.key) {
            queue.requeue(work.into(), now);
        } else {
            self.carry_out(work, planned, now);
        }
    }

    /// Records what a plan reports, and sends its writes, unless something must be read first.
    fn carry_out(&mut self, work: Work, planned: Planned, now: MonotonicTime) {
        let Planned { mut plan, assumptions, shared_reads, unlisted: _, placement, import } =
            planned;
        if let Some(report) = import {
            self.sources.imported.record(&work.owner.key, report);
        }
        let additions_due = self.take_additions(&work, &mut plan, now);
        let placement = if additions_due.is_some() { placement.repeated() } else { placement };
        self.controllers.of_mut(&work.owner).keys.record_placement(&work.owner.key, placement);
        let Plan { writes, event_records, excluded_pods, counts, carried, retry: _ } = plan;
        shared_reads.into_iter().for_each(|read| self.read_shared(&work.owner, read));
        let hints = self.observed.cache().hints_kind(&work.owner.key);
        let distribution = status::distribution_label(hints.traffic_distribution);
        let report = PlanReport { counts: &counts, excluded_pods: &excluded_pods, distribution };
        let confirmed = self.controllers.record_plan(&work.owner, carried, report, now);
        if let Some(due) = additions_due {
            self.controllers.postpone_additions(&work.owner, due, now);
        }
        match self.write_mode {
            WriteMode::Send => {
                event_records.into_iter().for_each(|one| self.record_event(&work.owner, one));
            }
            WriteMode::DryRun => {}
        }
        let keys = &mut self.controllers.of_mut(&work.owner).keys;
        if !assumptions.rest_on_absence() {
            keys.entry(&work.owner.key).reported_deletions = ReportedDeletions::default();
        }
        let unconfirmed = assumptions.unconfirmed(&confirmed);
        if !unconfirmed.is_empty() {
            // Otherwise two absent objects would void each other's confirmation forever.
            keys.failure_entry(&work.owner.key).confirmed = confirmed;
            return self.syncs.start_reading(&work, unconfirmed, now);
        }
        let controller = work.owner.controller;
        let writes = order_writes(controller, writes, |key| self.observed.cache().slice(key));
        let Some(permitted) = self.controllers.withhold_refused(&work, writes, now) else { return };
        let summary = work.summary(counts, hints, now).with_writes(permitted.writes.iter());
        match self.write_mode {
            WriteMode::Send => {}
            WriteMode::DryRun => return self.finish_dry_run(&work, summary, now),
        }
        let n_endpoints = self.observed.cache().n_objects(WatchedResource::Endpoints);
        if assumptions.are_limited()
            && let Err(due) = self.deletion_limiter.try_acquire(&work.owner.key, n_endpoints, now)
        {
            return self.controllers.postpone(&work, due, now);
        }
        if let Err(due) = self.limit_lost_pods(&work.owner, &summary, now) {
            return self.controllers.postpone(&work, due, now);
        }
        self.syncs.start_writing(&work, summary, permitted, now);
        self.advance(&work.owner, now);
    }

    fn advance(&mut self, owner: &Owner, now: MonotonicTime) {
        let is_running = self.is_leading && self.controllers.of(owner).is_started();
        if let Some(end) = self.syncs.advance(owner, is_running, &self.observed) {
            self.finish(owner, end, now);
        }
    }

    fn finish(&mut self, owner: &Owner, end: SyncEnd, now: MonotonicTime) {
        let state = self.controllers.of_mut(owner);
        let is_running = self.is_leading && state.is_started();
        let end = if is_running { state.after_withheld(&owner.key, end, now) } else { end };
        let result = if is_running {
            let had_server_error = state.keys.had_failure(&owner.key, FailureKind::ServerError);
            let context = RetryContext { now, jitter: &mut self.jitter };
            state.finish(&owner.key, &end, context);
            if had_server_error && end.has_stored_writes() {
                self.expedite_server_errors(now);
            }
            self.record_left_behind(owner, &end);
            self.deferred.release(owner.controller, &owner.key, now);
            self.drop_key_if_gone(&owner.key, now);
            self.ask_who_edits(owner, now);
            end.result
        } else {
            state.abandon(&owner.key, now);
            SyncResult::LeadershipLost
        };
        if let Some(summary) = end.summary {
            let summary = summary.ended(result, now.since(end.planned_at));
            self.syncs.push_effect(Effect::SyncFinished(Box::new(summary)));
        }
    }
}
