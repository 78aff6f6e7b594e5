//! API server, processes, and time on one thread. Everything that happens is an event in one queue;
//! the seed decides all delays.

mod events;
mod false_lists;
mod faults;
mod leases;
mod owners;
mod reads;
mod receive;
mod requests;
mod watches;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::time::Duration;

use endpointd_engine::{AnnotationPolicy, Effect, Input, MonotonicTime};
use endpointd_model::Timestamp;
use endpointd_rng::SplitMix64;

use crate::client_bug::ClientBug;
use crate::clock::{Time, millis, monotonic, secs, time_of};
use crate::coverage::{Coverage, Rule, Violation};
use crate::process::Process;
use crate::rng::rng_of;
use crate::scheduled::Scheduled;
use crate::script::{Action, Fault, RequestFault, Script, ServiceAction, Setup};
use crate::workload::{self, NAMESPACES};
use endpointd_memory_api::{MemoryApi, NamespaceState};

pub(crate) use events::{Event, Request};

pub struct Simulation {
    pub setup: Setup,
    pub api: MemoryApi,
    pub now: Time,
    pub processes: Vec<Process>,
    /// The instances that are started.
    running: BTreeSet<usize>,
    pub coverage: Coverage,
    pub violation: Option<Violation>,
    /// One line per action and event, if the run was asked for a trace.
    pub trace: Option<Vec<String>>,
    /// Writes that reached the API server, rejected ones included.
    pub n_arrived: u64,
    /// Writes that were sent.
    pub n_sent: u64,
    /// Live reads that were sent.
    pub n_reads: u64,
    /// Requests before the last [`crate::script::Check::CountRequests`].
    pub(crate) n_requests_at_mark: u64,
    /// Requests may have failed since the last quiescent phase.
    pub(crate) had_outage: bool,
    /// The fault of a fault schedule.
    pub fault_point: Option<FaultPoint>,
    pub client_bug: Option<ClientBug>,
    seed: u64,
    rng: SplitMix64,
    queue: BinaryHeap<Reverse<Scheduled<Event>>>,
    n_scheduled: u64,
    faults: ActiveFaults,
    /// By instance.
    leases: BTreeMap<usize, Lease>,
    /// The times of all actions: the only valid trigger times.
    times: BTreeSet<Timestamp>,
}

/// Faults in force.
#[derive(Debug, Default)]
struct ActiveFaults {
    request_faults: VecDeque<RequestFault>,
    outage_until: Time,
    reads_fail_until: Time,
    errors_until: Time,
    no_creates_until: Time,
    rejected: Vec<(endpointd_model::Key, Time)>,
    rejected_with_500_until: Time,
    webhook_until: Time,
    contested_until: Time,
    /// In a quiescent phase nothing fails, and latencies are short.
    is_quiescent: bool,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    holder: usize,
    renewed: Time,
    /// The time of the renewal on the holder's wall clock.
    renew_time: Timestamp,
}

/// A fault of the n-th write (from 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultPoint {
    pub at: u64,
    pub point_fault: PointFault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointFault {
    /// Killed before it reaches the API server.
    CrashBefore,
    /// Stored; killed before the response.
    CrashBeforeResponse,
    /// Stored; killed right after the response.
    CrashAfter,
    LoseResponse,
    LoseRequest,
    ApplyLate,
}

impl Simulation {
    pub fn new(script: &Script) -> Self {
        let mut sim = Self {
            setup: script.setup,
            api: MemoryApi::default(),
            now: Time::START + secs(60),
            processes: processes(&script.setup),
            running: script.setup.instances.first().into_iter().collect(),
            coverage: Coverage::default(),
            violation: None,
            trace: None,
            n_arrived: 0,
            n_sent: 0,
            n_reads: 0,
            n_requests_at_mark: 0,
            had_outage: false,
            fault_point: None,
            client_bug: None,
            seed: script.seed,
            rng: rng_of(script.seed ^ 0xd1ce),
            queue: BinaryHeap::new(),
            n_scheduled: 0,
            faults: ActiveFaults::default(),
            leases: BTreeMap::new(),
            times: BTreeSet::new(),
        };
        for namespace in NAMESPACES {
            sim.api.namespaces.insert(namespace.into(), NamespaceState::Active);
        }
        sim.schedule(secs(1), Event::CollectGarbage);
        for process in 0..sim.processes.len() {
            sim.start(process);
        }
        sim
    }

    /// Performs one step of the script, then advances time.
    pub fn perform_action(&mut self, action: &Action, pause: Duration) {
        self.coverage.n_steps += 1;
        self.trace(|| format!("{action:?}"));
        self.api.now = self.now;
        self.record_time();
        self.had_outage |= makes_requests_fail(action);
        match action {
            Action::Watch(process, resource, fault) => {
                self.fault_watch(*process, *resource, *fault)
            }
            Action::Request(fault) => self.faults.request_faults.push_back(*fault),
            Action::Fault(fault) => self.begin_fault(*fault),
            Action::Process(process, fault) => self.fault_process(*process, *fault),
            Action::Instance(instance, what) => self.change_instance(*instance, *what),
            Action::Corrupt(..) => {
                if workload::apply(&mut self.api, action) {
                    self.coverage.count_fault("undecodable object");
                }
            }
            Action::Check(check) => self.run_check(*check),
            Action::Quiesce => self.quiesce(),
            Action::Service(_, ServiceAction::Tolerate(_)) => {
                let is_honored = self.setup.tolerate_unready_annotation == AnnotationPolicy::Honor;
                if is_honored && workload::apply(&mut self.api, action) {
                    self.coverage.count_fault("tolerate-unready annotation");
                }
            }
            Action::Pod(..)
            | Action::Service(..)
            | Action::Node(..)
            | Action::Endpoints(..)
            | Action::Namespace(..)
            | Action::Slice(..)
            | Action::Cluster(..)
            | Action::Import(_) => {
                workload::apply(&mut self.api, action);
            }
        }
        self.schedule_deliveries();
        self.advance(pause);
    }

    /// Advances time and handles all events that become due.
    pub fn advance(&mut self, time: Duration) {
        let end = self.now + time;
        while self.violation.is_none() {
            if self.queue.peek().is_none_or(|Reverse(first)| first.at > end) {
                break;
            }
            let Some(Reverse(scheduled)) = self.queue.pop() else { break };
            self.now = self.now.max(scheduled.at);
            self.api.now = self.now;
            self.coverage.n_events += 1;
            self.handle_event(scheduled.event);
            self.schedule_deliveries();
        }
        self.now = end;
        self.api.now = end;
    }

    fn handle_event(&mut self, event: Event) {
        if let Some(process) = event.process()
            && self.now < self.processes[process].asleep_until
        {
            // A sleeping process handles it after it wakes up; requests on the network proceed.
            let wait = self.processes[process].asleep_until.since(self.now);
            return self.schedule(wait, event);
        }
        match event {
            Event::Deliver { process, resource, connection } => {
                self.deliver(process, resource, connection)
            }
            Event::Connect { process, resource, connection } => {
                self.connect(process, resource, connection)
            }
            Event::FinishList { process, resource, connection } => {
                self.finish_list(process, resource, connection);
            }
            Event::Leave(request) => self.leave(*request),
            Event::Arrive(request) => self.on_request(*request),
            Event::Read { process, incarnation, id, read } => {
                self.read(process, incarnation, id, read);
            }
            Event::Response { process, incarnation, input } => {
                self.on_response(process, incarnation, *input)
            }
            Event::Wake { process, incarnation } => self.wake(process, incarnation),
            Event::TryLease { process, incarnation } => self.try_lease(process, incarnation),
            Event::Start { process } => self.start(process),
            Event::CollectGarbage => self.collect_garbage(),
        }
    }

    /// Passes an input to the engine and performs its effects.
    pub(crate) fn handle_input(&mut self, process: usize, input: Input) {
        let now = monotonic(self.now);
        self.log_input(process, &input);
        let Some(engine) = &mut self.processes[process].engine else { return };
        engine.handle(input, now);
        self.drain(process);
    }

    pub(crate) fn drain(&mut self, process: usize) {
        const EFFECTS_MAX: usize = 100_000;
        let now = monotonic(self.now);
        for _ in 0..EFFECTS_MAX {
            let engine = self.processes[process].engine.as_mut();
            let Some(effect) = engine.and_then(|engine| engine.next(now)) else {
                return self.schedule_wake(process);
            };
            self.perform_effect(process, effect);
            if self.violation.is_some() {
                return;
            }
        }
        self.violate(Rule::NoLeftovers, || "the engine returns effects without end".into());
    }

    fn perform_effect(&mut self, process: usize, effect: Effect) {
        match effect {
            Effect::Send { id, controller, write } => {
                self.send(process, id, controller, write);
            }
            Effect::LiveRead { id, read } => self.send_read(process, id, read),
            Effect::Relist(resource) => self.relist(process, resource),
            Effect::RelistAll => self.relist_all(process),
            Effect::RelistSource { cluster, .. } => {
                unreachable!("no simulated process has the cluster {cluster}")
            }
            Effect::SyncFinished(synced) => {
                self.check_reported(process, &synced);
                self.processes[process].observed_at_plan.remove(&(synced.controller, synced.key));
            }
            Effect::RecordEvent { controller, key, record, uid: _ } => {
                self.check_event(process, controller, &key, &record);
            }
        }
    }

    fn schedule_wake(&mut self, process: usize) {
        let Process { engine, incarnation, wakes_at, .. } = &mut self.processes[process];
        let due: Option<MonotonicTime> = engine.as_ref().and_then(|engine| engine.wake_at());
        let Some(due) = due.map(time_of) else { return };
        // As the runtime: it has just returned nothing, so a wake at the same time is useless.
        let due = due.max(self.now + millis(1));
        if wakes_at.is_some_and(|set| set <= due) {
            return;
        }
        *wakes_at = Some(due);
        let incarnation = *incarnation;
        let wait = due.since(self.now);
        self.schedule(wait, Event::Wake { process, incarnation });
    }

    fn wake(&mut self, process: usize, incarnation: u32) {
        if self.processes[process].incarnation == incarnation {
            self.processes[process].wakes_at = None;
            self.drain(process);
        }
    }

    /// The other controllers of a cluster: garbage collection and namespace deletion.
    fn collect_garbage(&mut self) {
        self.end_webhook();
        if self.faults.is_quiescent {
            while self.api.collect_orphan() {}
            while self.api.delete_namespace_object(self.rng.index(1 << 20)) {}
        } else {
            for _ in 0..self.rng.below(4) {
                self.api.collect_orphan();
            }
            if self.api.delete_namespace_object(self.rng.index(1 << 20)) {
                self.coverage.count_fault("namespace deleted");
            }
        }
        let wait = millis(self.rng.between(100, 2000));
        self.schedule(wait, Event::CollectGarbage);
    }

    pub(crate) fn schedule(&mut self, wait: Duration, event: Event) {
        self.n_scheduled += 1;
        let scheduled = Scheduled { at: self.now + wait, number: self.n_scheduled, event };
        self.queue.push(Reverse(scheduled));
    }

    pub(crate) fn violate(&mut self, rule: Rule, text: impl FnOnce() -> String) {
        if self.violation.is_none() {
            let text = text();
            self.trace(|| format!("VIOLATION {}: {text}", rule.name()));
            self.violation = Some(Violation { rule, text });
        }
    }

    pub(crate) fn trace(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            let line = line();
            trace.push(format!("{} {line}", self.now));
        }
    }

    fn record_time(&mut self) {
        self.times.insert(self.now.timestamp(self.api.skew_secs));
    }

    pub(crate) fn has_bug(&self, bug: ClientBug) -> bool {
        self.client_bug == Some(bug)
    }

    pub(crate) fn is_known_time(&self, time: Timestamp) -> bool {
        self.times.contains(&time)
    }
}

/// The processes of all instances, the first of each instance first.
fn processes(setup: &Setup) -> Vec<Process> {
    let scopes = setup.instances.scopes();
    let of_instances = scopes.into_iter().enumerate().cycle();
    let n = setup.n_processes * setup.instances.scopes().len();
    of_instances.take(n).map(|(instance, scope)| Process::new(instance, scope)).collect()
}

/// Whether a key may wait for a back-off, or for another leader, because of this action.
fn makes_requests_fail(action: &Action) -> bool {
    match action {
        Action::Request(_) | Action::Process(..) | Action::Instance(..) | Action::Corrupt(..) => {
            true
        }
        Action::Fault(fault) => match fault {
            Fault::Outage(_)
            | Fault::FailedReads(_)
            | Fault::NoCreates(_)
            | Fault::Rejected(..)
            | Fault::RejectedWith500(_)
            | Fault::Errors(_)
            | Fault::Contested(_)
            | Fault::Webhook(..) => true,
            Fault::ClockJump(_) | Fault::Compact(_) => false,
        },
        Action::Pod(..)
        | Action::Service(..)
        | Action::Node(..)
        | Action::Endpoints(..)
        | Action::Namespace(..)
        | Action::Slice(..)
        | Action::Import(_)
        | Action::Cluster(..)
        | Action::Watch(..)
        | Action::Check(_)
        | Action::Quiesce => false,
    }
}
