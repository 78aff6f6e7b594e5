//! Live reads and their responses.

use endpointd_engine::{Input, RequestId};
use endpointd_model::{FailureKind, LiveRead, LiveReadResult};

use super::requests::{failure, response_event};
use super::{Event, Simulation};
use crate::client_bug::ClientBug;
use crate::clock::millis;

impl Simulation {
    pub(super) fn send_read(&mut self, process: usize, id: RequestId, read: LiveRead) {
        self.n_reads += 1;
        if let LiveRead::Pods(namespace) = &read {
            self.processes[process].pod_reads.insert(id, namespace.clone());
        }
        let incarnation = self.processes[process].incarnation;
        let wait = self.latency();
        self.schedule(wait, Event::Read { process, incarnation, id, read });
    }

    pub(super) fn read(&mut self, process: usize, incarnation: u32, id: RequestId, read: LiveRead) {
        let fails = self.now < self.faults.reads_fail_until.max(self.faults.outage_until);
        let found = if fails {
            self.coverage.count_fault("failed reads");
            if self.has_bug(ClientBug::FailedReadIsAbsent) {
                let input = Input::LiveReadResult(id, LiveReadResult::Absent);
                return self.schedule(millis(1), response_event(process, incarnation, input));
            }
            LiveReadResult::Failed(failure(FailureKind::ServerError))
        } else {
            let found = self.api.read(&read);
            let found = found.map(|found| self.processes[process].scope.filter_read(found));
            found.unwrap_or_else(|| LiveReadResult::Failed(failure(FailureKind::Unreadable)))
        };
        if found == LiveReadResult::Absent && self.processes[process].incarnation == incarnation {
            self.processes[process].confirmed_absences.insert(read.clone(), self.now);
        }
        if let (LiveRead::Service(key), LiveReadResult::Service(_)) = (&read, &found)
            && self.processes[process].incarnation == incarnation
        {
            self.processes[process].service_reads.insert(key.clone(), self.now);
        }
        self.trace(|| format!("  p{process} reads {read:?}: {}", brief_found(&found)));
        let wait = self.latency();
        self.schedule(wait, response_event(process, incarnation, Input::LiveReadResult(id, found)));
    }
}

fn brief_found(found: &LiveReadResult) -> &'static str {
    match found {
        LiveReadResult::Service(_)
        | LiveReadResult::Node(_)
        | LiveReadResult::Object(_)
        | LiveReadResult::FieldManager(_)
        | LiveReadResult::Pods(_) => "found",
        LiveReadResult::Absent => "absent",
        LiveReadResult::Failed(_) => "failed",
    }
}
