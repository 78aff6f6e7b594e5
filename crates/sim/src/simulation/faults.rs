//! Faults of the API server and of processes, and their end.

use std::time::Duration;

use endpointd_memory_api::{Response, Webhook};
use endpointd_model::{Object, WatchedResource, Write};

use super::{ActiveFaults, Event, Simulation};
use crate::clock::{Time, millis};
use crate::process::WatchState;
use crate::script::{Fault, ProcessFault};
use crate::workload::{self, service_key};

impl Simulation {
    pub(super) fn begin_fault(&mut self, fault: Fault) {
        match fault {
            Fault::Outage(time) => self.begin_outage(time),
            Fault::Errors(time) => self.faults.errors_until = self.now + time,
            Fault::FailedReads(time) => self.faults.reads_fail_until = self.now + time,
            Fault::NoCreates(time) => self.faults.no_creates_until = self.now + time,
            Fault::Rejected(place, time) => {
                let until = self.now + time;
                self.faults.rejected.push((service_key(place), until));
            }
            Fault::RejectedWith500(time) => self.faults.rejected_with_500_until = self.now + time,
            Fault::Webhook(webhook, time) => {
                self.coverage.count_fault(match webhook {
                    Webhook::Annotates => "webhook adds an annotation",
                    Webhook::Relabels => "webhook adds a label",
                    Webhook::Rezones => "webhook changes endpoints",
                });
                self.faults.webhook_until = self.now + time;
                self.api.webhook = Some(webhook);
            }
            Fault::Contested(time) => self.faults.contested_until = self.now + time,
            Fault::ClockJump(secs) => {
                self.coverage.count_fault("clock jump");
                self.api.skew_secs = secs;
            }
            Fault::Compact(resource) => {
                self.coverage.count_fault("compaction");
                self.api.compact(resource);
            }
        }
    }

    fn begin_outage(&mut self, time: Duration) {
        self.coverage.count_fault("outage");
        self.faults.outage_until = self.now + time;
        for process in 0..self.processes.len() {
            if self.processes[process].engine.is_none() {
                continue;
            }
            for &resource in self.setup.resources() {
                self.disconnect(process, resource);
                let wait = time + millis(self.rng.between(10, 1500));
                self.reconnect(process, resource, wait);
            }
        }
    }

    pub(super) fn fault_process(&mut self, process: u8, fault: ProcessFault) {
        let process = usize::from(process) % self.processes.len();
        if self.processes[process].engine.is_none() {
            return;
        }
        match fault {
            ProcessFault::Crash(down) => {
                self.kill(process);
                self.schedule(down, Event::Start { process });
            }
            ProcessFault::Sleep(time) => {
                self.coverage.count_fault("sleep");
                let until = self.now + time;
                let asleep_until = &mut self.processes[process].asleep_until;
                *asleep_until = until.max(*asleep_until);
            }
            ProcessFault::CutOffLease(time) if self.has_election() => {
                self.coverage.count_fault("lease cut off");
                self.processes[process].lease.cut_off_until = self.now + time;
            }
            ProcessFault::StealLease if self.has_election() => {
                if self.now >= self.processes[process].asleep_until {
                    self.coverage.count_fault("lease stolen");
                    self.take_lease(process);
                }
            }
            ProcessFault::ClockJump(secs) => {
                self.coverage.count_fault("clock jump of a process");
                self.processes[process].skew_secs = secs;
            }
            ProcessFault::CutOffLease(_) | ProcessFault::StealLease => {}
        }
    }

    /// Ends all faults and repairs their traces.
    pub(crate) fn end_faults(&mut self) {
        self.faults = ActiveFaults { is_quiescent: true, ..ActiveFaults::default() };
        self.api.webhook = None;
        self.api.undo_webhook();
        self.api.repair();
        for process in 0..self.processes.len() {
            self.processes[process].lease.cut_off_until = Time::START;
            if self.processes[process].engine.is_none() {
                self.start(process);
                continue;
            }
            self.drain(process);
            for &resource in self.setup.resources() {
                self.restore_watch(process, resource);
            }
        }
        self.schedule_deliveries();
    }

    fn restore_watch(&mut self, process: usize, resource: WatchedResource) {
        let watch = self.processes[process].watch(resource);
        watch.delay = Duration::ZERO;
        watch.frozen_until = Time::START;
        if watch.has_false_list {
            return self.relist(process, resource);
        }
        if watch.is_disconnected || watch.state == WatchState::Down {
            watch.connection += 1;
            return self.reconnect(process, resource, millis(20));
        }
        if watch.state == WatchState::Live {
            watch.connection += 1;
            watch.due = None;
        }
    }

    pub(crate) fn resume_faults(&mut self) {
        self.faults.is_quiescent = false;
    }

    /// Another client writes to the same object first.
    pub(super) fn write_concurrently(&mut self, write: &Write) {
        let Some(mut object) = self.api.object(write.resource(), &write.key()) else { return };
        self.coverage.count_fault("concurrent write (409)");
        let count = self.n_arrived.to_string();
        let meta = match &mut object {
            Object::Slice(slice) => &mut slice.meta,
            Object::Endpoints(endpoints) => &mut endpoints.meta,
            // Its metadata is that of the Service, which the script edits.
            Object::ServiceStatus(_) | Object::MultiCluster(_) => return,
        };
        meta.annotations = meta.annotations.with("example.com/count", Some(&count));
        self.api.force(object);
    }

    /// Another client adds a label to a slice that has just been written.
    pub(super) fn contest(&mut self, response: &Response) {
        let Response::Stored(object) = response else { return };
        if let Object::Slice(slice) = object.as_ref()
            && self.now < self.faults.contested_until
        {
            self.coverage.count_fault("contested label");
            workload::slices::relabel(&mut self.api, &slice.meta.key());
        }
    }

    pub(super) fn is_rejected(&mut self, write: &Write) -> bool {
        if matches!(write, Write::Create(_)) && self.now < self.faults.no_creates_until {
            self.coverage.count_fault("quota");
            return true;
        }
        let Some(key) = self.service_of(write) else { return false };
        let now = self.now;
        let is_rejected =
            self.faults.rejected.iter().any(|(refused, until)| *refused == key && now < *until);
        if is_rejected {
            self.coverage.count_fault("rejected for one Service");
        }
        is_rejected
    }

    /// Removes a webhook whose time is over.
    pub(super) fn end_webhook(&mut self) {
        if self.api.webhook.is_some() && self.now >= self.faults.webhook_until {
            self.api.webhook = None;
        }
    }
}
