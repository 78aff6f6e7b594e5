//! What goes wrong besides single writes and watches, and how it ends.

use std::time::Duration;

use endpointd_model::WatchedResource;

use super::{Event, Troubles, World};
use crate::clock::{Time, millis};
use crate::process::StreamState;
use crate::script::{Fault, ProcessFault};
use crate::workload::service_key;

impl World {
    pub(super) fn begin_fault(&mut self, fault: Fault) {
        match fault {
            Fault::Outage(time) => self.begin_outage(time),
            Fault::Blind(time) => self.troubles.blind_until = self.now + time,
            Fault::NoCreates(time) => self.troubles.no_creates_until = self.now + time,
            Fault::Refused(place, time) => {
                let until = self.now + time;
                self.troubles.refused.push((service_key(place), until));
            }
            Fault::Webhook(time) => {
                self.census.fault("webhook");
                self.troubles.webhook_until = self.now + time;
                self.api.webhook = true;
            }
            Fault::ClockJump(secs) => {
                self.census.fault("clock jump");
                self.api.skew_secs = secs;
            }
            Fault::Compact(kind) => {
                self.census.fault("compaction");
                self.api.compact(kind);
            }
        }
    }

    fn begin_outage(&mut self, time: Duration) {
        self.census.fault("outage");
        self.troubles.outage_until = self.now + time;
        for process in 0..self.processes.len() {
            if self.processes[process].engine.is_none() {
                continue;
            }
            for kind in WatchedResource::ALL {
                self.lose(process, kind);
                let wait = time + millis(self.dice.between(10, 1500));
                self.reconnect(process, kind, wait);
            }
        }
    }

    pub(super) fn disturb_process(&mut self, process: u8, fault: ProcessFault) {
        let process = usize::from(process) % self.processes.len();
        if self.processes[process].engine.is_none() {
            return;
        }
        match fault {
            ProcessFault::Crash(down) => {
                self.die(process);
                self.schedule(down, Event::Start { process });
            }
            ProcessFault::Sleep(time) => {
                self.census.fault("sleep");
                let until = self.now + time;
                let asleep_until = &mut self.processes[process].asleep_until;
                *asleep_until = until.max(*asleep_until);
            }
            ProcessFault::CutOffLease(time) if self.has_election() => {
                self.census.fault("lease cut off");
                self.processes[process].lease.cut_off_until = self.now + time;
            }
            ProcessFault::StealLease if self.has_election() => {
                if self.now >= self.processes[process].asleep_until {
                    self.census.fault("lease stolen");
                    self.take_lease(process);
                }
            }
            ProcessFault::CutOffLease(_) | ProcessFault::StealLease => {}
        }
    }

    /// Everything works again from now on.
    pub(crate) fn end_troubles(&mut self) {
        self.troubles = Troubles { is_calm: true, ..Troubles::default() };
        self.api.webhook = false;
        self.api.undo_webhook();
        self.api.mend();
        for process in 0..self.processes.len() {
            self.processes[process].lease.cut_off_until = Time::START;
            if self.processes[process].engine.is_none() {
                self.start(process);
                continue;
            }
            self.drain(process);
            for kind in WatchedResource::ALL {
                self.mend_stream(process, kind);
            }
        }
        self.announce();
    }

    fn mend_stream(&mut self, process: usize, kind: WatchedResource) {
        let stream = self.processes[process].stream(kind);
        stream.delay = Duration::ZERO;
        stream.frozen_until = Time::START;
        if stream.is_deceived {
            return self.relist(process, kind);
        }
        if stream.is_lost || stream.state == StreamState::Down {
            stream.connection += 1;
            return self.reconnect(process, kind, millis(20));
        }
        if stream.state == StreamState::Live {
            stream.connection += 1;
            stream.due = None;
        }
    }

    pub(crate) fn resume_troubles(&mut self) {
        self.troubles.is_calm = false;
    }

    /// Whether a webhook that has had its time is still there.
    pub(super) fn end_webhook(&mut self) {
        if self.api.webhook && self.now >= self.troubles.webhook_until {
            self.api.webhook = false;
        }
    }
}
