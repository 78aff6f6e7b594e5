//! Several clusters: the home cluster, where the controller for Services of several clusters runs and
//! writes, and others, which it reads over links that fail. Everything that happens is an event in one
//! queue; the seed decides all delays. Start at [`run`].

mod faults;
mod generate;
mod monitor;
mod oracle;
mod requests;
mod rest;
mod site;
mod watches;
mod workload;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use endpointd_engine::{
    ClusterSetSettings, ControllerSettings, Effect, Engine, Input, RequestId, Settings,
};
use endpointd_model::{Controller, Key, LiveRead, WatchedResource, Write};
use endpointd_rng::SplitMix64;

use crate::clock::{Time, millis, monotonic, secs, time_of};
use crate::coverage::{Coverage, Rule, Violation};
use crate::rng::rng_of;
use crate::run::{RunOptions, RunResult};
use crate::scheduled::Scheduled;
use crate::script::{Action, ProcessFault, Script};
use site::{HOME, Site};

pub use generate::schedules;

/// Between two times that the engine receives.
const TICK: Duration = Duration::from_secs(1);

struct ClusterSet {
    /// The home cluster first.
    sites: Vec<Site>,
    engine: Option<Engine>,
    /// Counts starts: what an earlier process asked for is dropped.
    incarnation: u32,
    started: Time,
    /// The wall clock of the process minus the true time.
    skew_secs: i64,
    now: Time,
    /// When the script last changed something about a key.
    changed: BTreeMap<Key, Time>,
    n_sent: u64,
    coverage: Coverage,
    violation: Option<Violation>,
    trace: Option<Vec<String>>,
    seed: u64,
    rng: SplitMix64,
    queue: BinaryHeap<Reverse<Scheduled<Event>>>,
    n_scheduled: u64,
    wakes_at: Option<Time>,
    /// Nothing fails.
    is_quiescent: bool,
}

#[derive(Debug)]
enum Event {
    Tick {
        incarnation: u32,
    },
    Wake {
        incarnation: u32,
    },
    Start,
    /// The link to a cluster works, or the process has started: its watches connect.
    Connect {
        site: usize,
        link: u32,
    },
    List {
        site: usize,
        resource: WatchedResource,
        link: u32,
    },
    FinishList {
        site: usize,
        resource: WatchedResource,
        link: u32,
    },
    Deliver {
        site: usize,
        resource: WatchedResource,
        link: u32,
    },
    Arrive {
        incarnation: u32,
        id: RequestId,
        write: Box<Write>,
    },
    Read {
        incarnation: u32,
        id: RequestId,
        read: LiveRead,
    },
    Respond {
        incarnation: u32,
        input: Box<Input>,
    },
}

/// Runs a script about several clusters from beginning to end.
pub fn run(script: &Script, options: RunOptions) -> RunResult {
    let mut set = ClusterSet::new(script, options.with_trace);
    set.start();
    for step in &script.steps {
        set.perform(&step.action);
        set.advance(step.pause);
        if set.violation.is_some() {
            break;
        }
    }
    let n_sent = set.n_sent;
    set.rest();
    set.coverage.n_seconds = set.now.since(Time::START).as_secs();
    let ClusterSet { violation, coverage, trace, .. } = set;
    RunResult { violation, coverage, n_sent, trace: trace.unwrap_or_default() }
}

impl ClusterSet {
    fn new(script: &Script, with_trace: bool) -> Self {
        Self {
            sites: (0..=script.setup.n_other_clusters).map(Site::new).collect(),
            engine: None,
            incarnation: 0,
            started: Time::START,
            skew_secs: 0,
            now: Time::START + secs(60),
            changed: BTreeMap::new(),
            n_sent: 0,
            coverage: Coverage::default(),
            violation: None,
            trace: with_trace.then(Vec::new),
            seed: script.seed,
            rng: rng_of(script.seed ^ 0xc105_7e25),
            queue: BinaryHeap::new(),
            n_scheduled: 0,
            wakes_at: None,
            is_quiescent: false,
        }
    }

    fn perform(&mut self, action: &Action) {
        self.coverage.n_steps += 1;
        self.trace(|| format!("{action:?}"));
        match action {
            Action::Cluster(number, what) => {
                let site = usize::from(*number) % self.sites.len();
                self.sites[site].api.now = self.now;
                self.act(site, *what);
            }
            Action::Process(_, ProcessFault::Crash(down)) => self.crash(*down),
            Action::Process(_, ProcessFault::ClockJump(secs)) => {
                self.coverage.count_fault("clock jump of a process");
                self.skew_secs = *secs;
            }
            Action::Quiesce => self.rest(),
            // Only in runs with one cluster.
            Action::Pod(..)
            | Action::Service(..)
            | Action::Node(..)
            | Action::Endpoints(..)
            | Action::Namespace(..)
            | Action::Slice(..)
            | Action::Import(_)
            | Action::Corrupt(..)
            | Action::Watch(..)
            | Action::Request(_)
            | Action::Fault(_)
            | Action::Process(..)
            | Action::Instance(..)
            | Action::Check(_) => {}
        }
        self.schedule_deliveries();
    }

    /// A process begins, and leads.
    fn start(&mut self) {
        self.incarnation += 1;
        self.started = self.now;
        self.wakes_at = None;
        self.engine = Some(Engine::new(settings(self.seed ^ u64::from(self.incarnation))));
        self.handle(Input::Clock(self.wall_clock()));
        for site in 0..self.sites.len() {
            self.sites[site].forget();
            if site != HOME && self.sites[site].has_kubeconfig {
                self.configure(site);
            }
            let wait = millis(self.rng_up_to(300));
            self.connect_in(site, wait);
        }
        self.handle(Input::SourcesListed);
        self.handle(Input::LeadershipAcquired);
        let incarnation = self.incarnation;
        self.schedule(TICK, Event::Tick { incarnation });
    }

    fn crash(&mut self, down: Duration) {
        if self.engine.take().is_some() {
            self.coverage.count_fault("crash");
            self.incarnation += 1;
            self.schedule(down, Event::Start);
        }
    }

    /// Until no event is due within this time.
    fn advance(&mut self, time: Duration) {
        let end = self.now + time;
        while self.violation.is_none() {
            let is_due = self.queue.peek().is_some_and(|Reverse(next)| next.at <= end);
            let Some(Reverse(Scheduled { at, event, .. })) =
                is_due.then(|| self.queue.pop()).flatten()
            else {
                break;
            };
            self.now = self.now.max(at);
            self.coverage.n_events += 1;
            self.on_event(event);
        }
        self.now = self.now.max(end);
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Tick { incarnation } if incarnation == self.incarnation => self.tick(),
            Event::Wake { incarnation } if incarnation == self.incarnation => {
                self.wakes_at = None;
                self.drain();
            }
            Event::Start if self.engine.is_none() => self.start(),
            Event::Connect { site, link } => self.connect(site, link),
            Event::List { site, resource, link } => self.begin_list(site, resource, link),
            Event::FinishList { site, resource, link } => self.finish_list(site, resource, link),
            Event::Deliver { site, resource, link } => self.deliver(site, resource, link),
            Event::Arrive { incarnation, id, write } => self.arrive(incarnation, id, &write),
            Event::Read { incarnation, id, read } => self.read(incarnation, id, &read),
            Event::Respond { incarnation, input } if incarnation == self.incarnation => {
                self.handle(*input);
            }
            Event::Tick { .. } | Event::Wake { .. } | Event::Start | Event::Respond { .. } => {}
        }
    }

    /// The time, and the answers of clusters whose watches are silent.
    fn tick(&mut self) {
        self.handle(Input::Clock(self.wall_clock()));
        self.look_at_clusters();
        let incarnation = self.incarnation;
        self.schedule(TICK, Event::Tick { incarnation });
    }

    fn handle(&mut self, input: Input) {
        let Some(engine) = &mut self.engine else { return };
        engine.handle(input, monotonic(self.now));
        self.drain();
    }

    fn drain(&mut self) {
        const EFFECTS_MAX: usize = 100_000;
        for _ in 0..EFFECTS_MAX {
            let Some(engine) = &mut self.engine else { return };
            let Some(effect) = engine.next(monotonic(self.now)) else {
                return self.schedule_wake();
            };
            self.perform_effect(effect);
            if self.violation.is_some() {
                return;
            }
        }
        self.violate(Rule::NoLeftovers, || "the engine returns effects without end".into());
    }

    fn perform_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Send { id, write, .. } => self.send(id, write),
            Effect::LiveRead { id, read } => {
                let (wait, incarnation) = (self.latency(), self.incarnation);
                self.schedule(wait, Event::Read { incarnation, id, read });
            }
            Effect::RelistSource { cluster, resource } => self.relist_source(&cluster, resource),
            Effect::Relist(_) | Effect::RelistAll => {
                self.violate(Rule::NoLeftovers, || "the home cluster was not restored".into());
            }
            Effect::SyncFinished(_) | Effect::RecordEvent { .. } => {}
        }
    }

    fn schedule_wake(&mut self) {
        let due = self.engine.as_ref().and_then(Engine::wake_at).map(time_of);
        let Some(due) = due.map(|due| due.max(self.now + millis(1))) else { return };
        if self.wakes_at.is_none_or(|set| due < set) {
            self.wakes_at = Some(due);
            let incarnation = self.incarnation;
            self.schedule(due.since(self.now), Event::Wake { incarnation });
        }
    }

    fn schedule(&mut self, wait: Duration, event: Event) {
        self.n_scheduled += 1;
        let scheduled = Scheduled { at: self.now + wait, number: self.n_scheduled, event };
        self.queue.push(Reverse(scheduled));
    }

    fn wall_clock(&self) -> endpointd_model::Timestamp {
        self.now.timestamp(self.skew_secs)
    }

    fn rng_up_to(&mut self, most: u64) -> u64 {
        self.rng.between(1, most)
    }

    /// Of a request, a response, or a watch: they overtake each other.
    fn latency(&mut self) -> Duration {
        let most = if self.is_quiescent { 10 } else { 120 };
        millis(self.rng_up_to(most))
    }

    fn violate(&mut self, rule: Rule, text: impl FnOnce() -> String) {
        if self.violation.is_none() {
            let text = text();
            self.trace(|| format!("VIOLATION {}: {text}", rule.name()));
            self.violation = Some(Violation { rule, text });
        }
    }

    fn trace(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{} {}", self.now, line()));
        }
    }
}

fn settings(seed: u64) -> Settings {
    Settings {
        seed,
        controllers: vec![ControllerSettings::new(Controller::MultiCluster)],
        clusters: Some(ClusterSetSettings { home: Site::id(HOME), plan: Default::default() }),
        ..Settings::default()
    }
}
