//! The engine: told what happened, it says what to do next.

use std::collections::VecDeque;
use std::time::Duration;

use endpointd_model::{Controller, Key, SharedStr, WatchedResource, WriteResult};
use endpointd_mutants::{Mutant, is_on};
use endpointd_plan::is_overloaded;
use hashbrown::HashMap;

use crate::cache::{Cache, DirtyKey, DirtyKeys};
use crate::deletion_limiter::DeletionLimiter;
use crate::in_flight::InFlightTable;
use crate::key_table::KeyTable;
use crate::queue::{Dequeued, Priority, Queue};
use crate::settings::{ControllerSettings, Settings};
use crate::watch_state::WatchState;
use crate::write_order::DeferredPlan;
use crate::{Effect, Input, MonotonicTime, RequestId};
use endpointd_rng::SplitMix64;

/// Writes that may be under way at once, of all controllers together. More would only wait in
/// the API server.
pub const WRITES_MAX: usize = 64;

/// How long a change waits for a key that failed before: long enough not to hammer, short enough
/// that a cure is noticed at once.
pub(crate) const FAILED_KEY_RETRY: Duration = Duration::from_secs(2);

/// All state of the three controllers. Time is what the caller says it is.
#[derive(Debug)]
pub struct Engine {
    pub(crate) settings: endpointd_plan::Settings,
    pub(crate) cache: Cache,
    pub(crate) watches: Vec<WatchState>,
    pub(crate) controllers: Vec<ControllerState>,
    pub(crate) in_flight: InFlightTable,
    /// Keys that let others go first.
    pub(crate) deferred: Vec<DeferredPlan>,
    pub(crate) effects: VecDeque<Effect>,
    pub(crate) deletion_limiter: DeletionLimiter,
    pub(crate) jitter: SplitMix64,
    /// Nodes that are being looked for, and by which read. One that is seen meanwhile need not be.
    pub(crate) pending_node_reads: HashMap<SharedStr, RequestId>,
    pub(crate) is_leading: bool,
    /// Every key has been visited since we lead.
    pub(crate) initial_enqueued: bool,
    /// Nothing is sent before: the API server asked for it, or does not answer.
    pub(crate) paused_until: MonotonicTime,
    pub(crate) n_failures_in_a_row: u32,
    /// Whose turn it is.
    next_controller: usize,
}

/// What each controller has of its own: a queue and its memory of keys.
#[derive(Debug)]
pub struct ControllerState {
    pub settings: ControllerSettings,
    pub queue: Queue,
    pub keys: KeyTable,
    pub n_retries: u64,
}

impl Engine {
    pub fn new(settings: Settings) -> Self {
        let watches = settings.watched_resources().into_iter().map(WatchState::new).collect();
        let lane = |settings| ControllerState {
            settings,
            queue: Queue::default(),
            keys: KeyTable::default(),
            n_retries: 0,
        };
        Self {
            settings: settings.plan,
            cache: Cache::default(),
            watches,
            controllers: settings.controllers.into_iter().map(lane).collect(),
            in_flight: InFlightTable::default(),
            deferred: Vec::new(),
            effects: VecDeque::new(),
            deletion_limiter: DeletionLimiter::default(),
            jitter: SplitMix64::new(settings.seed),
            pending_node_reads: HashMap::new(),
            is_leading: false,
            initial_enqueued: false,
            paused_until: MonotonicTime::START,
            n_failures_in_a_row: 0,
            next_controller: 0,
        }
    }

    /// The kinds to watch.
    pub fn watched_resources(&self) -> Vec<WatchedResource> {
        self.watches.iter().map(|watch| watch.kind).collect()
    }

    pub fn handle(&mut self, input: Input, now: MonotonicTime) {
        match input {
            Input::Watch(kind, news) => self.on_watch_signal(kind, news, now),
            Input::WriteResult(id, outcome) => self.on_write_result(id, outcome, now),
            Input::LiveReadResult(id, found) => self.on_live_read(id, found, now),
            Input::LeadershipAcquired => self.lead(now),
            Input::LeadershipLost => self.follow(now),
        }
    }

    /// What to do next; to be asked until there is nothing.
    pub fn next(&mut self, now: MonotonicTime) -> Option<Effect> {
        loop {
            if let Some(effect) = self.effects.pop_front() {
                return Some(effect);
            }
            if !self.may_plan() || now < self.paused_until {
                return None;
            }
            self.refresh_topology(now);
            if self.is_full() {
                return None;
            }
            if self.run_due_deferred(now) {
                continue;
            }
            let (lane, dequeued) = self.take(now)?;
            self.sync(lane, dequeued, now);
        }
    }

    /// When to ask again if nothing happens before.
    pub fn wake_at(&self) -> Option<MonotonicTime> {
        if !self.effects.is_empty() {
            return Some(MonotonicTime::START);
        }
        if !self.may_plan() || self.is_full() {
            return None;
        }
        let open = self.controllers.iter().filter(|lane| lane.has_room());
        let due = open.filter_map(|lane| lane.queue.next_due());
        let due = due.chain(self.next_deferred_due()).min()?;
        Some(due.max(self.paused_until))
    }

    /// Nothing is under way: a good moment to stop.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.effects.is_empty()
    }

    /// A picture of some kind is being taken.
    pub fn is_listing(&self) -> bool {
        self.watches.iter().any(|watch| watch.is_listing)
    }

    /// Writes that have not been answered.
    pub fn n_writes(&self) -> usize {
        self.in_flight.n_writes()
    }

    fn is_full(&self) -> bool {
        self.in_flight.n_writes() >= WRITES_MAX
    }

    fn may_plan(&self) -> bool {
        self.is_leading && self.initial_enqueued
    }

    fn lead(&mut self, now: MonotonicTime) {
        if !self.is_leading {
            self.is_leading = true;
            self.enqueue_initial(now);
        }
    }

    /// What is in flight lands by its answers; nothing new takes off, nor what was only announced.
    fn follow(&mut self, now: MonotonicTime) {
        if is_on(Mutant::KeepLeading) {
            return;
        }
        self.is_leading = false;
        self.initial_enqueued = false;
        let announced = std::mem::take(&mut self.effects);
        for effect in announced {
            match effect {
                Effect::Send { id, .. } => self.on_write_result(id, WriteResult::NotLeader, now),
                other => self.effects.push_back(other),
            }
        }
        for lane in &mut self.controllers {
            lane.queue.clear();
            lane.keys.clear();
        }
        self.drop_deferred();
    }

    /// The first visit of every key, as soon as we lead and know everything.
    pub(crate) fn enqueue_initial(&mut self, now: MonotonicTime) {
        let mut listed = self.watches.iter().map(|watch| watch.is_synced);
        let is_complete =
            if is_on(Mutant::ActBeforeSynced) { listed.any(|it| it) } else { listed.all(|it| it) };
        if self.initial_enqueued || !self.is_leading || !is_complete {
            return;
        }
        self.initial_enqueued = true;
        let mut dirty = DirtyKeys::default();
        self.cache.add_all_keys(&mut dirty);
        self.enqueue(dirty, now);
    }

    /// Puts what changed into the queues. Before the first visit nothing is remembered: all keys
    /// will be visited.
    pub(crate) fn enqueue(&mut self, dirty: DirtyKeys, now: MonotonicTime) {
        if !self.may_plan() {
            return;
        }
        for DirtyKey { controller, key, priority } in dirty.0 {
            let Some(lane) = self.controller_mut(controller) else { continue };
            let failed = lane.keys.is_failing(&key);
            let cooldown = lane.keys.get(&key).map(|state| state.cooldown).unwrap_or_default();
            let due = match priority {
                Priority::Removal if failed => now,
                Priority::Live if failed => now + FAILED_KEY_RETRY,
                Priority::Removal | Priority::Live => {
                    (now + lane.settings.batch_period).max(cooldown.until(priority))
                }
                Priority::Background => now,
            };
            lane.queue.enqueue(&key, priority, due, now);
        }
    }

    pub(crate) fn controller_mut(
        &mut self,
        controller: Controller,
    ) -> Option<&mut ControllerState> {
        self.controllers.iter_mut().find(|lane| lane.settings.controller == controller)
    }

    /// Round robin over the controllers that have room and something due.
    fn take(&mut self, now: MonotonicTime) -> Option<(usize, Dequeued)> {
        let n_controllers = self.controllers.len();
        for turn in 0..n_controllers {
            let at = (self.next_controller + turn) % n_controllers;
            let lane = &mut self.controllers[at];
            if lane.has_room()
                && let Some(dequeued) = lane.queue.pop(now)
            {
                self.next_controller = (at + 1) % n_controllers;
                return Some((at, dequeued));
            }
        }
        None
    }

    /// Services whose zones have too few endpoints now, or that were refused hints, look again.
    fn refresh_topology(&mut self, now: MonotonicTime) {
        if !self.cache.refresh_topology() || is_on(Mutant::TopologyForgotten) {
            return;
        }
        let topology = self.cache.topology();
        let slices =
            self.controllers.iter().find(|one| one.settings.controller == Controller::Slices);
        let concerned =
            slices.into_iter().flat_map(|lane| lane.keys.iter()).filter(|(_, state)| {
                let hints = &state.carried.hints;
                hints.is_refused() || is_overloaded(hints, topology)
            });
        let mut keys: Vec<Key> = concerned.map(|(key, _)| key.clone()).collect();
        keys.sort_unstable();
        let mark = |key| DirtyKey { controller: Controller::Slices, key, priority: Priority::Live };
        self.enqueue(DirtyKeys(keys.into_iter().map(mark).collect()), now);
    }
}

impl ControllerState {
    fn has_room(&self) -> bool {
        self.queue.n_in_flight() < self.settings.syncs_max
    }
}
