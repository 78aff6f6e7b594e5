//! Who may write: one lease, and the rules of holding it.

use endpointd_engine::Input;

use super::{Event, Lease, World};
use crate::clock::Time;
use crate::process::{Claim, LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD};

impl World {
    pub(super) fn has_election(&self) -> bool {
        self.processes.len() > 1
    }

    /// Tries to get or to keep the lease, and again after the retry period.
    pub(super) fn campaign(&mut self, process: usize, life: u32) {
        if self.processes[process].life != life || self.processes[process].engine.is_none() {
            return;
        }
        let Claim { is_leading, renewed, cut_off_until } = self.processes[process].lease;
        let is_cut_off = self.now < cut_off_until.max(self.troubles.outage_until);
        if is_cut_off {
            if is_leading && self.now >= renewed + RENEW_DEADLINE {
                self.follow(process);
            }
        } else if self.may_take(process) {
            self.take_lease(process);
        } else if is_leading {
            self.follow(process);
        }
        self.schedule(RETRY_PERIOD, Event::Campaign { process, life });
    }

    fn may_take(&self, process: usize) -> bool {
        match self.lease {
            None => true,
            Some(Lease { holder, renewed }) => {
                holder == process || self.now >= renewed + LEASE_DURATION
            }
        }
    }

    pub(super) fn take_lease(&mut self, process: usize) {
        let renewed = self.now;
        self.lease = Some(Lease { holder: process, renewed });
        let lease = &mut self.processes[process].lease;
        lease.renewed = renewed;
        if !std::mem::replace(&mut lease.is_leading, true) {
            self.tell(|| format!("  p{process} leads"));
            self.inform(process, Input::LeadershipAcquired);
        }
    }

    fn follow(&mut self, process: usize) {
        self.tell(|| format!("  p{process} follows"));
        self.processes[process].lease.is_leading = false;
        self.inform(process, Input::LeadershipLost);
    }

    /// A process begins: five pictures, and leadership when it can be had.
    pub(super) fn start(&mut self, process: usize) {
        if self.processes[process].engine.is_some() {
            return;
        }
        self.tell(|| format!("  p{process} starts"));
        self.processes[process].start(&self.setup, self.seed);
        for kind in endpointd_model::WatchedResource::ALL {
            let wait = self.latency();
            self.reconnect(process, kind, wait);
        }
        if self.has_election() {
            let life = self.processes[process].life;
            self.schedule(std::time::Duration::ZERO, Event::Campaign { process, life });
        } else {
            self.inform(process, Input::LeadershipAcquired);
        }
    }

    pub(super) fn die(&mut self, process: usize) {
        if self.processes[process].engine.is_none() {
            return;
        }
        self.tell(|| format!("  p{process} dies"));
        self.census.fault("crash");
        if self.processes[process].n_in_flight > 0 {
            self.census.fault("crash with writes in flight");
        }
        self.processes[process].die();
    }

    /// As an operator does it: all at once, on a settled cluster.
    pub(crate) fn restart_all(&mut self) {
        for process in 0..self.processes.len() {
            self.processes[process].die();
        }
        for process in 0..self.processes.len() {
            self.start(process);
        }
    }

    /// How many would write at this moment.
    pub(super) fn n_leaders(&self) -> usize {
        let now: Time = self.now;
        self.processes.iter().filter(|one| one.engine.is_some() && one.may_write(now)).count()
    }
}
