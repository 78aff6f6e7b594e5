//! API server, processes, and time, on one thread. Whatever happens is an event in one queue, and
//! the seed decides all delays.

mod faults;
mod leases;
mod requests;
mod streams;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::time::Duration;

use endpointd_engine::{Effect, Input, MonotonicTime, RequestId};
use endpointd_model::{Controller, LiveRead, Timestamp, WatchedResource, Write};

use crate::api::{Api, NamespaceState};
use crate::census::{Census, Rule, Violation};
use crate::clock::{Time, millis, secs};
use crate::dice::Dice;
use crate::process::{Process, View};
use crate::script::{Act, Mishap, Script, Setup};
use crate::workload::{self, NAMESPACES};

pub struct World {
    pub setup: Setup,
    pub api: Api,
    pub now: Time,
    pub processes: Vec<Process>,
    pub census: Census,
    pub violation: Option<Violation>,
    /// What happened, if anybody wants to read it.
    pub story: Option<Vec<String>>,
    /// Writes that reached the API server, whatever it answered.
    pub n_arrived: u64,
    /// Requests that were sent.
    pub n_sent: u64,
    /// Live reads that were asked for.
    pub n_looks: u64,
    /// Requests before the last mark.
    pub(crate) n_marked: u64,
    /// Stops at the n-th write that arrives, for exhaustive plans.
    pub snare: Option<Snare>,
    seed: u64,
    dice: Dice,
    queue: BinaryHeap<Reverse<Scheduled>>,
    n_scheduled: u64,
    troubles: Troubles,
    lease: Option<Lease>,
    /// Every time something happened that can become a trigger time.
    times: BTreeSet<Timestamp>,
}

/// What is wrong at the moment.
#[derive(Debug, Default)]
struct Troubles {
    mishaps: VecDeque<Mishap>,
    outage_until: Time,
    blind_until: Time,
    no_creates_until: Time,
    refused: Vec<(endpointd_model::Key, Time)>,
    webhook_until: Time,
    /// The calm: nothing goes wrong, and everything is quick.
    is_calm: bool,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    holder: usize,
    renewed: Time,
}

/// What is done to the n-th write (from 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snare {
    pub at: u64,
    pub trap: Trap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// Killed before it reaches the API server.
    CrashBefore,
    /// Stored; killed before the answer.
    CrashUnanswered,
    /// Stored and answered; killed right after.
    CrashAfter,
    LoseApplied,
    LoseNotApplied,
    ApplyLate,
}

#[derive(Debug)]
pub(crate) enum Event {
    /// WatchSignal of a kind are due at a process.
    Deliver {
        process: usize,
        kind: WatchedResource,
        connection: u32,
    },
    /// A connection is made anew.
    Connect {
        process: usize,
        kind: WatchedResource,
        connection: u32,
    },
    /// The second half of a picture.
    CompletePicture {
        process: usize,
        kind: WatchedResource,
        connection: u32,
    },
    Arrive(Box<Request>),
    Look {
        process: usize,
        life: u32,
        id: RequestId,
        read: LiveRead,
    },
    Answer {
        process: usize,
        life: u32,
        input: Box<Input>,
    },
    Wake {
        process: usize,
        life: u32,
    },
    Campaign {
        process: usize,
        life: u32,
    },
    Start {
        process: usize,
    },
    Collect,
}

/// A write on its way to the API server.
#[derive(Debug)]
pub(crate) struct Request {
    pub process: usize,
    pub life: u32,
    pub id: RequestId,
    pub controller: Controller,
    pub write: Box<Write>,
    /// What the engine could know when it decided.
    pub view: View,
    pub mishap: Option<Mishap>,
    pub trap: Option<Trap>,
    /// The client has stopped waiting.
    pub is_given_up: bool,
}

#[derive(Debug)]
struct Scheduled {
    at: Time,
    number: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl World {
    pub fn new(script: &Script) -> Self {
        let mut world = Self {
            setup: script.setup,
            api: Api::default(),
            now: Time::START + secs(60),
            processes: (0..script.setup.n_processes).map(|_| Process::new()).collect(),
            census: Census::default(),
            violation: None,
            story: None,
            n_arrived: 0,
            n_sent: 0,
            n_looks: 0,
            n_marked: 0,
            snare: None,
            seed: script.seed,
            dice: Dice::new(script.seed ^ 0xd1ce),
            queue: BinaryHeap::new(),
            n_scheduled: 0,
            troubles: Troubles::default(),
            lease: None,
            times: BTreeSet::new(),
        };
        for namespace in NAMESPACES {
            world.api.namespaces.insert(namespace.into(), NamespaceState::Active);
        }
        world.schedule(secs(1), Event::Collect);
        for process in 0..world.processes.len() {
            world.start(process);
        }
        world
    }

    /// One step of a script; time passes afterwards.
    pub fn act(&mut self, act: &Act, pause: Duration) {
        self.census.n_steps += 1;
        self.tell(|| format!("{act:?}"));
        self.api.now = self.now;
        self.note_time();
        match act {
            Act::Watch(process, kind, fault) => self.disturb_watch(*process, *kind, *fault),
            Act::Mishap(mishap) => self.troubles.mishaps.push_back(*mishap),
            Act::Fault(fault) => self.begin_fault(*fault),
            Act::Process(process, fault) => self.disturb_process(*process, *fault),
            Act::Garble(..) => {
                if workload::perform(&mut self.api, act) {
                    self.census.fault("garbled object");
                }
            }
            Act::Check(check) => self.check(*check),
            Act::Calm => self.calm(),
            Act::Pod(..)
            | Act::Service(..)
            | Act::Node(..)
            | Act::Endpoints(..)
            | Act::Namespace(..)
            | Act::Slice(..) => {
                workload::perform(&mut self.api, act);
            }
        }
        self.announce();
        self.pass(pause);
    }

    /// Lets time pass, doing all that is due.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.violation.is_none() {
            if self.queue.peek().is_none_or(|Reverse(first)| first.at > end) {
                break;
            }
            let Some(Reverse(scheduled)) = self.queue.pop() else { break };
            self.now = self.now.max(scheduled.at);
            self.api.now = self.now;
            self.census.n_events += 1;
            self.happen(scheduled.event);
            self.announce();
        }
        self.now = end;
        self.api.now = end;
    }

    fn happen(&mut self, event: Event) {
        if let Some(process) = event.process()
            && self.now < self.processes[process].asleep_until
        {
            // Whoever sleeps hears of it when awake; what is on the network goes on.
            let wait = self.processes[process].asleep_until.since(self.now);
            return self.schedule(wait, event);
        }
        match event {
            Event::Deliver { process, kind, connection } => self.deliver(process, kind, connection),
            Event::Connect { process, kind, connection } => self.connect(process, kind, connection),
            Event::CompletePicture { process, kind, connection } => {
                self.complete_picture(process, kind, connection);
            }
            Event::Arrive(request) => self.arrive(*request),
            Event::Look { process, life, id, read } => {
                self.look(process, life, id, read);
            }
            Event::Answer { process, life, input } => self.answered(process, life, *input),
            Event::Wake { process, life } => self.wake(process, life),
            Event::Campaign { process, life } => self.campaign(process, life),
            Event::Start { process } => self.start(process),
            Event::Collect => self.collect(),
        }
    }

    /// Tells the engine, and does what it asks for.
    pub(crate) fn inform(&mut self, process: usize, input: Input) {
        let now = self.now.moment();
        let Some(engine) = &mut self.processes[process].engine else { return };
        engine.handle(input, now);
        self.drain(process);
    }

    pub(crate) fn drain(&mut self, process: usize) {
        const EFFECTS_MAX: usize = 100_000;
        let now = self.now.moment();
        for _ in 0..EFFECTS_MAX {
            let engine = self.processes[process].engine.as_mut();
            let Some(effect) = engine.and_then(|engine| engine.next(now)) else {
                return self.set_alarm(process);
            };
            self.perform(process, effect);
            if self.violation.is_some() {
                return;
            }
        }
        self.violate(Rule::NoLeftovers, || "the engine never stops asking".into());
    }

    fn perform(&mut self, process: usize, effect: Effect) {
        match effect {
            Effect::Send { id, controller, write } => {
                self.send(process, id, controller, write);
            }
            Effect::LiveRead { id, read } => self.send_look(process, id, read),
            Effect::Relist(kind) => self.relist(process, kind),
            Effect::SyncFinished(synced) => {
                self.processes[process].plans.remove(&(synced.controller, synced.key));
            }
            Effect::RecordEvent { .. } => {}
        }
    }

    fn set_alarm(&mut self, process: usize) {
        let Process { engine, life, wakes_at, .. } = &mut self.processes[process];
        let due: Option<MonotonicTime> = engine.as_ref().and_then(|engine| engine.wake_at());
        let Some(due) = due.map(Time::of) else { return };
        // It said that there is nothing now: like the runtime, do not ask again at once.
        let due = due.max(self.now + millis(1));
        if wakes_at.is_some_and(|set| set <= due) {
            return;
        }
        *wakes_at = Some(due);
        let life = *life;
        let wait = due.since(self.now);
        self.schedule(wait, Event::Wake { process, life });
    }

    fn wake(&mut self, process: usize, life: u32) {
        if self.processes[process].life == life {
            self.processes[process].wakes_at = None;
            self.drain(process);
        }
    }

    /// The other controllers of a cluster: garbage collection, and the end of namespaces.
    fn collect(&mut self) {
        self.end_webhook();
        if self.troubles.is_calm {
            while self.api.collect_one() {}
            while self.api.end_one(self.dice.index(1 << 20)) {}
        } else {
            for _ in 0..self.dice.roll(4) {
                self.api.collect_one();
            }
            if self.api.end_one(self.dice.index(1 << 20)) {
                self.census.fault("namespace ended");
            }
        }
        let wait = millis(self.dice.between(100, 2000));
        self.schedule(wait, Event::Collect);
    }

    pub(crate) fn schedule(&mut self, wait: Duration, event: Event) {
        self.n_scheduled += 1;
        let scheduled = Scheduled { at: self.now + wait, number: self.n_scheduled, event };
        self.queue.push(Reverse(scheduled));
    }

    pub(crate) fn violate(&mut self, rule: Rule, text: impl FnOnce() -> String) {
        if self.violation.is_none() {
            let text = text();
            self.tell(|| format!("VIOLATION {}: {text}", rule.name()));
            self.violation = Some(Violation { rule, text });
        }
    }

    pub(crate) fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            let line = line();
            story.push(format!("{} {line}", self.now));
        }
    }

    fn note_time(&mut self) {
        self.times.insert(self.now.timestamp(self.api.skew_secs));
    }

    pub(crate) fn is_known_time(&self, time: Timestamp) -> bool {
        self.times.contains(&time)
    }
}

impl Event {
    /// Who must be awake for it.
    fn process(&self) -> Option<usize> {
        match self {
            Self::Deliver { process, .. }
            | Self::Connect { process, .. }
            | Self::CompletePicture { process, .. }
            | Self::Answer { process, .. }
            | Self::Wake { process, .. }
            | Self::Campaign { process, .. } => Some(*process),
            Self::Arrive(_) | Self::Look { .. } | Self::Start { .. } | Self::Collect => None,
        }
    }
}
