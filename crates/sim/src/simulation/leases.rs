//! Leader election: one lease and the rules of holding it.

use endpointd_engine::Input;
use endpointd_model::Timestamp;

use super::{Event, Lease, Simulation};
use crate::client_bug::ClientBug;
use crate::coverage::Rule;
use crate::process::{LEASE_DURATION, LeaseHold, Process, RENEW_DEADLINE, RETRY_PERIOD};
use crate::script::InstanceAction;

impl Simulation {
    pub(crate) fn has_election(&self) -> bool {
        self.setup.n_processes > 1
    }

    /// The Lease of the instance of a process.
    fn lease_of(&self, process: usize) -> Option<Lease> {
        self.leases.get(&self.processes[process].instance).copied()
    }

    /// Acquires or renews the lease, and tries again after the retry period.
    pub(super) fn try_lease(&mut self, process: usize, incarnation: u32) {
        if self.processes[process].incarnation != incarnation
            || self.processes[process].engine.is_none()
        {
            return;
        }
        let LeaseHold { is_leading, renewed, cut_off_until } = self.processes[process].lease;
        let is_cut_off = self.now < cut_off_until.max(self.faults.outage_until);
        if is_cut_off {
            if is_leading && self.now >= renewed + RENEW_DEADLINE {
                self.lose_leadership(process);
            }
        } else if self.may_take(process) {
            self.check_one_leader(process);
            self.take_lease(process);
        } else if is_leading {
            self.lose_leadership(process);
        }
        self.schedule(RETRY_PERIOD, Event::TryLease { process, incarnation });
    }

    fn may_take(&self, process: usize) -> bool {
        match self.lease_of(process) {
            None => true,
            Some(Lease { holder, .. }) if holder == process => true,
            Some(Lease { renew_time, .. }) if self.has_bug(ClientBug::LeaseByWallClock) => {
                let age = self.wall_clock(process).as_second() - renew_time.as_second();
                age >= LEASE_DURATION.as_secs().cast_signed()
            }
            // The record has not changed for this time on the process's own monotonic clock.
            Some(Lease { renewed, .. }) => self.now >= renewed + LEASE_DURATION,
        }
    }

    fn wall_clock(&self, process: usize) -> Timestamp {
        self.now.timestamp(self.processes[process].skew_secs)
    }

    /// Unless the lease was stolen, nobody else may write when a process acquires it.
    fn check_one_leader(&mut self, process: usize) {
        let now = self.now;
        let holder = self.lease_of(process).map(|lease| lease.holder);
        let is_other = |one: &usize| *one != process && Some(*one) == holder;
        let other = (0..self.processes.len()).find(is_other);
        if let Some(other) = other {
            self.coverage.count_rule(Rule::OneLeader);
            if self.processes[other].may_write(now) {
                let text = format!("p{process} acquires the lease that p{other} holds");
                self.violate(Rule::OneLeader, || text);
            }
        }
    }

    pub(super) fn take_lease(&mut self, process: usize) {
        let renewed = self.now;
        let renew_time = self.wall_clock(process);
        let instance = self.processes[process].instance;
        self.leases.insert(instance, Lease { holder: process, renewed, renew_time });
        let lease = &mut self.processes[process].lease;
        lease.renewed = renewed;
        if !std::mem::replace(&mut lease.is_leading, true) {
            self.trace(|| format!("  p{process} leads"));
            self.handle_input(process, Input::LeadershipAcquired);
        }
    }

    fn lose_leadership(&mut self, process: usize) {
        self.trace(|| format!("  p{process} lost the lease"));
        self.processes[process].lease.is_leading = false;
        self.handle_input(process, Input::LeadershipLost);
    }

    /// Starts a process: five lists, and leadership if no other process holds the lease.
    pub(super) fn start(&mut self, process: usize) {
        let is_running = self.running.contains(&self.processes[process].instance);
        if self.processes[process].engine.is_some() || !is_running {
            return;
        }
        self.trace(|| format!("  p{process} starts"));
        self.processes[process].start(&self.setup, self.seed);
        for &resource in self.setup.resources() {
            let wait = self.latency();
            self.reconnect(process, resource, wait);
        }
        if self.has_election() {
            let incarnation = self.processes[process].incarnation;
            self.schedule(std::time::Duration::ZERO, Event::TryLease { process, incarnation });
        } else {
            self.handle_input(process, Input::LeadershipAcquired);
        }
    }

    pub(super) fn kill(&mut self, process: usize) {
        if self.processes[process].engine.is_none() {
            return;
        }
        self.trace(|| format!("  p{process} is killed"));
        self.coverage.count_fault("crash");
        if self.processes[process].n_in_flight > 0 {
            self.coverage.count_fault("crash with writes in flight");
        }
        self.processes[process].stop();
    }

    /// All processes at once, on a converged cluster.
    pub(crate) fn restart_all(&mut self) {
        for process in 0..self.processes.len() {
            self.processes[process].stop();
        }
        for process in 0..self.processes.len() {
            self.start(process);
        }
    }

    /// A change of the number of shards: new instances are started before old ones are stopped.
    pub(super) fn change_instance(&mut self, instance: usize, what: InstanceAction) {
        match what {
            InstanceAction::Start => {
                self.coverage.count_fault("instance started beside others");
                self.running.insert(instance);
            }
            InstanceAction::Stop => {
                self.running.remove(&instance);
            }
        }
        for process in 0..self.processes.len() {
            match what {
                InstanceAction::Start => self.start(process),
                InstanceAction::Stop if self.processes[process].instance == instance => {
                    self.kill(process);
                }
                InstanceAction::Stop => {}
            }
        }
    }

    /// Number of processes of this instance that consider themselves the leader.
    pub(super) fn n_leaders(&self, process: usize) -> usize {
        let (now, instance) = (self.now, self.processes[process].instance);
        let leads =
            |one: &&Process| one.instance == instance && one.engine.is_some() && one.may_write(now);
        self.processes.iter().filter(leads).count()
    }
}
