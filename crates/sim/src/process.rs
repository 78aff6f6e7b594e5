//! One daemon: an engine, its five watches, and its claim to the lease.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::Duration;

use endpointd_engine::{ControllerSettings, Engine, RequestId, Settings};
use endpointd_model::{Controller, Key, LiveRead, Uid, WatchedResource};

use crate::clock::Time;
use crate::script::Setup;

/// Upstream's timings: a holder that cannot renew gives up after the deadline, others take over
/// when the record has not changed for the duration.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
pub const RETRY_PERIOD: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Process {
    /// None while the process is down.
    pub engine: Option<Engine>,
    /// Answers to an earlier life are nobody's.
    pub life: u32,
    pub streams: [Stream; 5],
    pub asleep_until: Time,
    pub wakes_at: Option<Time>,
    pub lease: Claim,
    /// Versions of published objects the engine was told, by watch, answer, or live read.
    pub told: HashSet<u64>,
    /// Deletes that are done but not answered yet.
    pub deleting: Vec<(RequestId, Uid)>,
    /// What the API server told it is deleted.
    pub deleted: HashSet<Uid>,
    /// When a live read last found nothing.
    pub absences: BTreeMap<LiveRead, Time>,
    /// Deletions that rested on an absence, in the last minute.
    pub deletions: VecDeque<Time>,
    /// What could be known when a sync under way was planned: its deletes go out last.
    pub plans: BTreeMap<(Controller, Key), View>,
    /// The API server asked it to wait until then.
    pub throttled_until: Time,
    /// Requests that are out.
    pub n_in_flight: usize,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Claim {
    pub is_leading: bool,
    pub renewed: Time,
    pub cut_off_until: Time,
}

/// The news of one kind, on their way to one process.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Everything up to this revision has been told.
    pub seen: u64,
    /// The oldest revision the engine may still know objects of: lower than `seen` while an old
    /// picture is being told.
    pub known_since: u64,
    pub delay: Duration,
    pub state: StreamState,
    /// Events of an earlier connection are nobody's.
    pub connection: u32,
    /// A delivery is under way at this time.
    pub due: Option<Time>,
    pub frozen_until: Time,
    pub is_lost: bool,
    /// The last picture was a lie; the next one will set it right.
    pub is_deceived: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamState {
    #[default]
    Down,
    /// A picture as of this revision is half told.
    Listing(u64),
    Live,
}

impl Process {
    pub fn new() -> Self {
        Self {
            engine: None,
            life: 0,
            streams: Default::default(),
            asleep_until: Time::START,
            wakes_at: None,
            lease: Claim::default(),
            told: HashSet::new(),
            deleting: Vec::new(),
            deleted: HashSet::new(),
            absences: BTreeMap::new(),
            deletions: VecDeque::new(),
            plans: BTreeMap::new(),
            throttled_until: Time::START,
            n_in_flight: 0,
        }
    }

    pub fn start(&mut self, setup: &Setup, seed: u64) {
        self.life += 1;
        self.engine = Some(Engine::new(settings(setup, seed ^ u64::from(self.life))));
        self.forget();
    }

    pub fn die(&mut self) {
        self.life += 1;
        self.engine = None;
        self.forget();
    }

    fn forget(&mut self) {
        for stream in &mut self.streams {
            let connection = stream.connection + 1;
            *stream = Stream { connection, delay: stream.delay, ..Stream::default() };
        }
        self.wakes_at = None;
        self.asleep_until = Time::START;
        self.lease = Claim { cut_off_until: self.lease.cut_off_until, ..Claim::default() };
        self.told.clear();
        self.deleting.clear();
        self.deleted.clear();
        self.absences.clear();
        self.deletions.clear();
        self.plans.clear();
        self.throttled_until = Time::START;
        self.n_in_flight = 0;
    }

    pub fn stream(&mut self, kind: WatchedResource) -> &mut Stream {
        &mut self.streams[kind as usize]
    }

    /// What the engine may know of each kind: nothing older than these revisions.
    pub fn view(&self) -> View {
        View(std::array::from_fn(|at| self.streams[at].known_since))
    }

    /// The office's rule: leading, and the deadline is not over.
    pub fn may_write(&self, now: Time) -> bool {
        self.lease.is_leading && now < self.lease.renewed + RENEW_DEADLINE
    }
}

fn settings(setup: &Setup, seed: u64) -> Settings {
    let mut settings = Settings { seed, ..Settings::default() };
    settings.plan.endpoints_per_slice_max = setup.endpoints_per_slice_max;
    settings.plan.mirrored_per_subset_max = setup.mirrored_per_subset_max;
    let batch_period = setup.batch_period;
    settings.controllers = Controller::ALL
        .map(|one| ControllerSettings { batch_period, ..ControllerSettings::new(one) })
        .to_vec();
    settings
}

/// How far each watch had come when something was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View([u64; 5]);

impl View {
    pub fn since(&self, kind: WatchedResource) -> u64 {
        self.0[kind as usize]
    }
}
