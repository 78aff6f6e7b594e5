//! The engine: told what happened, it says what to do next.

use std::collections::VecDeque;
use std::time::Duration;

use endpointd_model::{Controller, Key, SharedStr, WatchedResource, WriteResult};
use endpointd_mutants::{Mutant, is_on};
use endpointd_plan::is_overloaded;
use hashbrown::HashMap;

use crate::cache::{Cache, Mark, Marks};
use crate::courtesy::Polite;
use crate::deletion_limiter::DeletionLimiter;
use crate::flights::Flights;
use crate::keys::Keys;
use crate::queue::{Priority, Queue, Taken};
use crate::settings::{ControllerSettings, Settings};
use crate::stream::Stream;
use crate::{Effect, Input, MonotonicTime, RequestId};
use endpointd_rng::SplitMix64;

/// Writes that may be under way at once, of all controllers together. More would only wait in
/// the API server.
pub const WRITES_MAX: usize = 64;

/// How long a change waits for a key that failed before: long enough not to hammer, short enough
/// that a cure is noticed at once.
pub(crate) const LIVE_RETRY: Duration = Duration::from_secs(2);

/// All state of the three controllers. Time is what the caller says it is.
#[derive(Debug)]
pub struct Engine {
    pub(crate) settings: endpointd_plan::Settings,
    pub(crate) cache: Cache,
    pub(crate) streams: Vec<Stream>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) flights: Flights,
    /// Keys that let others go first.
    pub(crate) polite: Vec<Polite>,
    pub(crate) effects: VecDeque<Effect>,
    pub(crate) deletion_limiter: DeletionLimiter,
    pub(crate) jitter: SplitMix64,
    /// Nodes that are being looked for, and by which read. One that is seen meanwhile need not be.
    pub(crate) sought_nodes: HashMap<SharedStr, RequestId>,
    pub(crate) is_leading: bool,
    /// Every key has been visited since we lead.
    pub(crate) has_visited: bool,
    /// Nothing is sent before: the API server asked for it, or does not answer.
    pub(crate) paused_until: MonotonicTime,
    pub(crate) n_failures_in_a_row: u32,
    /// Whose turn it is.
    next_lane: usize,
}

/// What each controller has of its own: a queue and its memory of keys.
#[derive(Debug)]
pub struct Lane {
    pub settings: ControllerSettings,
    pub queue: Queue,
    pub keys: Keys,
    pub n_retries: u64,
}

impl Engine {
    pub fn new(settings: Settings) -> Self {
        let streams = settings.kinds().into_iter().map(Stream::new).collect();
        let lane = |settings| Lane {
            settings,
            queue: Queue::default(),
            keys: Keys::default(),
            n_retries: 0,
        };
        Self {
            settings: settings.plan,
            cache: Cache::default(),
            streams,
            lanes: settings.controllers.into_iter().map(lane).collect(),
            flights: Flights::default(),
            polite: Vec::new(),
            effects: VecDeque::new(),
            deletion_limiter: DeletionLimiter::default(),
            jitter: SplitMix64::new(settings.seed),
            sought_nodes: HashMap::new(),
            is_leading: false,
            has_visited: false,
            paused_until: MonotonicTime::START,
            n_failures_in_a_row: 0,
            next_lane: 0,
        }
    }

    /// The kinds to watch.
    pub fn kinds(&self) -> Vec<WatchedResource> {
        self.streams.iter().map(|stream| stream.kind).collect()
    }

    pub fn handle(&mut self, input: Input, now: MonotonicTime) {
        match input {
            Input::Watch(kind, news) => self.hear(kind, news, now),
            Input::WriteResult(id, outcome) => self.settle_write(id, outcome, now),
            Input::LiveReadResult(id, found) => self.settle_look(id, found, now),
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
            if self.end_courtesy(now) {
                continue;
            }
            let (lane, taken) = self.take(now)?;
            self.sync(lane, taken, now);
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
        let open = self.lanes.iter().filter(|lane| lane.has_room());
        let due = open.filter_map(|lane| lane.queue.next_due());
        let due = due.chain(self.courtesy_ends()).min()?;
        Some(due.max(self.paused_until))
    }

    /// Nothing is under way: a good moment to stop.
    pub fn is_idle(&self) -> bool {
        self.flights.is_empty() && self.effects.is_empty()
    }

    /// A picture of some kind is being taken.
    pub fn is_listing(&self) -> bool {
        self.streams.iter().any(|stream| stream.is_listing)
    }

    /// Writes that have not been answered.
    pub fn n_writes(&self) -> usize {
        self.flights.n_writes()
    }

    fn is_full(&self) -> bool {
        self.flights.n_writes() >= WRITES_MAX
    }

    fn may_plan(&self) -> bool {
        self.is_leading && self.has_visited
    }

    fn lead(&mut self, now: MonotonicTime) {
        if !self.is_leading {
            self.is_leading = true;
            self.visit_all(now);
        }
    }

    /// What is in flight lands by its answers; nothing new takes off, nor what was only announced.
    fn follow(&mut self, now: MonotonicTime) {
        if is_on(Mutant::KeepLeading) {
            return;
        }
        self.is_leading = false;
        self.has_visited = false;
        let announced = std::mem::take(&mut self.effects);
        for effect in announced {
            match effect {
                Effect::Send { id, .. } => self.settle_write(id, WriteResult::NotLeader, now),
                other => self.effects.push_back(other),
            }
        }
        for lane in &mut self.lanes {
            lane.queue.clear();
            lane.keys.clear();
        }
        self.drop_polite();
    }

    /// The first visit of every key, as soon as we lead and know everything.
    pub(crate) fn visit_all(&mut self, now: MonotonicTime) {
        let mut listed = self.streams.iter().map(|stream| stream.is_synced);
        let is_complete =
            if is_on(Mutant::ActBeforeSynced) { listed.any(|it| it) } else { listed.all(|it| it) };
        if self.has_visited || !self.is_leading || !is_complete {
            return;
        }
        self.has_visited = true;
        let mut marks = Marks::default();
        self.cache.mark_all(&mut marks);
        self.mark(marks, now);
    }

    /// Puts what changed into the queues. Before the first visit nothing is remembered: all keys
    /// will be visited.
    pub(crate) fn mark(&mut self, marks: Marks, now: MonotonicTime) {
        if !self.may_plan() {
            return;
        }
        for Mark { controller, key, priority } in marks.0 {
            let Some(lane) = self.lane_mut(controller) else { continue };
            let failed = lane.keys.is_backing_off(&key);
            let rest = lane.keys.get(&key).map(|state| state.rest).unwrap_or_default();
            let due = match priority {
                Priority::Removal if failed => now,
                Priority::Live if failed => now + LIVE_RETRY,
                Priority::Removal | Priority::Live => {
                    (now + lane.settings.batch_period).max(rest.until(priority))
                }
                Priority::Background => now,
            };
            lane.queue.mark(&key, priority, due, now);
        }
    }

    pub(crate) fn lane_mut(&mut self, controller: Controller) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|lane| lane.settings.controller == controller)
    }

    /// Round robin over the controllers that have room and something due.
    fn take(&mut self, now: MonotonicTime) -> Option<(usize, Taken)> {
        let n_lanes = self.lanes.len();
        for turn in 0..n_lanes {
            let at = (self.next_lane + turn) % n_lanes;
            let lane = &mut self.lanes[at];
            if lane.has_room()
                && let Some(taken) = lane.queue.take(now)
            {
                self.next_lane = (at + 1) % n_lanes;
                return Some((at, taken));
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
        let slices = self.lanes.iter().find(|one| one.settings.controller == Controller::Slices);
        let concerned =
            slices.into_iter().flat_map(|lane| lane.keys.iter()).filter(|(_, state)| {
                let hints = &state.carried.hints;
                hints.is_refused() || is_overloaded(hints, topology)
            });
        let mut keys: Vec<Key> = concerned.map(|(key, _)| key.clone()).collect();
        keys.sort_unstable();
        let mark = |key| Mark { controller: Controller::Slices, key, priority: Priority::Live };
        self.mark(Marks(keys.into_iter().map(mark).collect()), now);
    }
}

impl Lane {
    fn has_room(&self) -> bool {
        self.queue.n_flying() < self.settings.syncs_max
    }
}
