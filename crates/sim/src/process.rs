//! One daemon: an engine, its watches, and its hold on the lease.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use endpointd_engine::{
    ControllerSettings, Engine, InPlaceCheck, InPlaceSettings, RequestId, ServicesSeen, Settings,
};
use endpointd_model::{Controller, Key, LiveRead, Scope, SharedStr, Uid, WatchedResource};

use crate::clock::Time;
use crate::monitor::EventLog;
use crate::script::Setup;

/// client-go's defaults: a holder that cannot renew stops after the deadline; others take over
/// when the record has not changed for the lease duration.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
pub const RETRY_PERIOD: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Process {
    /// Which instance it is a process of.
    pub instance: usize,
    /// What the client drops unless it is in there.
    pub scope: Scope,
    /// None while the process is down.
    pub engine: Option<Engine>,
    /// Responses to requests of an earlier incarnation are dropped.
    pub incarnation: u32,
    pub watches: [Watch; WatchedResource::ALL.len()],
    pub asleep_until: Time,
    pub wakes_at: Option<Time>,
    pub lease: LeaseHold,
    pub events: EventLog,
    /// Its wall clock minus the true time; survives a restart.
    pub skew_secs: i64,
    /// Versions of published objects that the engine received by watch, response, or live read.
    pub received_versions: BTreeSet<u64>,
    /// Deletes that are applied but not acknowledged yet.
    pub unacknowledged_deletes: Vec<(RequestId, Uid)>,
    /// Uids of objects whose deletion was acknowledged.
    pub acknowledged_deletes: BTreeSet<Uid>,
    pub unconfirmed_pods: Option<UnconfirmedPods>,
    /// Live lists of namespaces that are in flight.
    pub pod_reads: BTreeMap<RequestId, SharedStr>,
    /// When a live read last confirmed the absence.
    pub confirmed_absences: BTreeMap<LiveRead, Time>,
    /// When a live read last returned the Service.
    pub service_reads: BTreeMap<Key, Time>,
    /// Services whose deletion the watch has reported as an event.
    pub reported_deletions: BTreeSet<Key>,
    /// Keys with deletions in the last minute because a Service is missing, without such an event,
    /// and when the first of them was sent.
    pub deletions: BTreeMap<Key, Time>,
    /// Deletes that took effect in the last minutes, except those of a Service's own slices.
    pub effective_deletions: VecDeque<Time>,
    /// What the engine had observed when it planned a sync in flight; deletes leave last.
    pub observed_at_plan: BTreeMap<(Controller, Key), ObservedRevisions>,
    /// Writes whose answer is 429, with what they are for.
    pub throttled_writes: BTreeMap<RequestId, (Controller, Key)>,
    /// No write for this key before this time: a 429 with Retry-After.
    pub throttled_until: BTreeMap<(Controller, Key), Time>,
    /// Writes that the engine has sent and that are not answered, also those that wait in the client.
    pub n_in_flight: usize,
}

/// Pods that the last list does not contain, and that may be kept, because no live list of their
/// namespaces has confirmed it.
#[derive(Debug)]
pub struct UnconfirmedPods {
    /// From this revision on the cache may know them.
    pub since: u64,
    /// Revisions of which the cache may have pods. The next list may lack the same pods.
    pub known_at: Vec<u64>,
    pub namespaces: BTreeSet<SharedStr>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct LeaseHold {
    pub is_leading: bool,
    pub renewed: Time,
    pub cut_off_until: Time,
}

/// One watch of one process.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// All events up to this revision were delivered.
    pub delivered: u64,
    /// The oldest revision whose objects the cache may still hold: lower than `delivered` while
    /// an outdated list is delivered.
    pub known_since: u64,
    /// Revisions of lists since the last complete one. The cache may hold objects of their first half.
    pub begun_lists: Vec<u64>,
    pub delay: Duration,
    pub state: WatchState,
    /// Events of an earlier connection are dropped.
    pub connection: u32,
    /// The next delivery is scheduled for this time.
    pub due: Option<Time>,
    pub frozen_until: Time,
    pub is_disconnected: bool,
    /// The last list was falsely empty; the next one corrects it.
    pub has_false_list: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchState {
    #[default]
    Down,
    /// Half of a list as of this revision was delivered.
    Listing(u64),
    Live,
}

impl Process {
    pub fn new(instance: usize, scope: Scope) -> Self {
        Self {
            instance,
            scope,
            engine: None,
            incarnation: 0,
            watches: Default::default(),
            asleep_until: Time::START,
            wakes_at: None,
            lease: LeaseHold::default(),
            events: EventLog::default(),
            skew_secs: 0,
            received_versions: BTreeSet::new(),
            unacknowledged_deletes: Vec::new(),
            acknowledged_deletes: BTreeSet::new(),
            unconfirmed_pods: None,
            pod_reads: BTreeMap::new(),
            confirmed_absences: BTreeMap::new(),
            service_reads: BTreeMap::new(),
            reported_deletions: BTreeSet::new(),
            deletions: BTreeMap::new(),
            effective_deletions: VecDeque::new(),
            observed_at_plan: BTreeMap::new(),
            throttled_writes: BTreeMap::new(),
            throttled_until: BTreeMap::new(),
            n_in_flight: 0,
        }
    }

    pub fn start(&mut self, setup: &Setup, seed: u64) {
        self.incarnation += 1;
        let mut settings = settings(setup, seed ^ u64::from(self.incarnation));
        settings.plan.services_seen = services_seen(&self.scope);
        self.engine = Some(Engine::new(settings));
        self.reset();
    }

    pub fn stop(&mut self) {
        self.incarnation += 1;
        self.engine = None;
        self.reset();
    }

    fn reset(&mut self) {
        for watch in &mut self.watches {
            let connection = watch.connection + 1;
            *watch = Watch { connection, delay: watch.delay, ..Watch::default() };
        }
        self.wakes_at = None;
        self.asleep_until = Time::START;
        self.lease = LeaseHold { cut_off_until: self.lease.cut_off_until, ..LeaseHold::default() };
        self.received_versions.clear();
        self.unacknowledged_deletes.clear();
        self.acknowledged_deletes.clear();
        self.unconfirmed_pods = None;
        self.pod_reads.clear();
        self.confirmed_absences.clear();
        self.service_reads.clear();
        self.reported_deletions.clear();
        self.deletions.clear();
        self.effective_deletions.clear();
        self.observed_at_plan.clear();
        self.throttled_writes.clear();
        self.throttled_until.clear();
        self.n_in_flight = 0;
        self.events = EventLog::default();
    }

    pub fn watch(&mut self, resource: WatchedResource) -> &mut Watch {
        &mut self.watches[resource as usize]
    }

    /// The cache holds no object older than these revisions.
    pub fn observed(&self) -> ObservedRevisions {
        let mut known_since = self.watches.each_ref().map(|watch| watch.known_since);
        if let Some(UnconfirmedPods { since, .. }) = &self.unconfirmed_pods {
            let pods = &mut known_since[WatchedResource::Pods as usize];
            *pods = (*since).min(*pods);
        }
        ObservedRevisions(known_since)
    }

    /// The response to a live list is received.
    pub fn confirm_pods(&mut self, id: RequestId) {
        let Some(namespace) = self.pod_reads.remove(&id) else { return };
        if let Some(UnconfirmedPods { namespaces, .. }) = &mut self.unconfirmed_pods {
            namespaces.remove(&namespace);
            if namespaces.is_empty() {
                self.unconfirmed_pods = None;
            }
        }
    }

    /// Leading, and the renew deadline has not passed.
    pub fn may_write(&self, now: Time) -> bool {
        self.lease.is_leading && now < self.lease.renewed + RENEW_DEADLINE
    }
}

fn settings(setup: &Setup, seed: u64) -> Settings {
    let mut settings = Settings { seed, ..Settings::default() };
    settings.plan.endpoints_per_slice_max = setup.endpoints_per_slice_max;
    settings.plan.mirrored_per_subset_max = setup.mirrored_per_subset_max;
    settings.plan.tolerate_unready_annotation = setup.tolerate_unready_annotation;
    settings.plan.orphan_policy = setup.orphan_policy;
    let (batch_period, addition_delay) = (setup.batch_period, setup.addition_delay);
    let settings_of = |controller: &Controller| ControllerSettings {
        batch_period,
        addition_delay,
        in_place: InPlaceSettings { slices_min: 1, check: InPlaceCheck::Compare },
        ..ControllerSettings::new(*controller)
    };
    settings.controllers = setup.controllers().iter().map(settings_of).collect();
    settings
}

/// As `endpointd run` sets it.
fn services_seen(scope: &Scope) -> ServicesSeen {
    match scope.service_selector {
        None => ServicesSeen::All,
        Some(_) => ServicesSeen::Selected,
    }
}

/// The position of each watch at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedRevisions([u64; WatchedResource::ALL.len()]);

impl ObservedRevisions {
    pub fn of(&self, resource: WatchedResource) -> u64 {
        self.0[resource as usize]
    }

    pub fn earliest(mut self, other: Self) -> Self {
        for (one, other) in self.0.iter_mut().zip(other.0) {
            *one = other.min(*one);
        }
        self
    }
}
