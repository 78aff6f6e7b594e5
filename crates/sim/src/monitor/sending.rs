//! What is checked when a write is sent: its version, and the time of a 429.

use endpointd_model::{Controller, ResourceVersion, Write};

use crate::coverage::Rule;
use crate::simulation::Simulation;

impl Simulation {
    pub(super) fn check_version(&mut self, process: usize, write: &Write) {
        self.coverage.count_rule(Rule::NoStaleOverwrite);
        let received = &self.processes[process].received_versions;
        let is_received = |version: ResourceVersion| received.contains(&version.number());
        let breach = match write {
            Write::Create(object) if object.meta().resource_version.is_none() => return,
            Write::Create(_) => "a create names a version",
            Write::Update(object) if is_received(object.meta().resource_version) => return,
            Write::Update(_) => "an update of a version that the engine did not receive",
            Write::Delete(target) if target.uid.is_empty() => "a delete without uid",
            Write::Delete(target) if is_received(target.resource_version) => return,
            Write::Delete(_) => "a delete of a version that the engine did not receive",
        };
        let key = write.key();
        self.violate(Rule::NoStaleOverwrite, || format!("{breach}: {key}"));
    }

    /// Checks when the engine hands out a write, which may wait in the client.
    pub(crate) fn check_acknowledged(&mut self, process: usize, write: &Write) {
        let deleted = &self.processes[process].acknowledged_deletes;
        let breach = match write {
            Write::Update(object) if deleted.contains(&object.meta().uid) => {
                "an update of an object whose delete was acknowledged"
            }
            Write::Delete(target) if deleted.contains(&target.uid) => {
                "a second delete of an object"
            }
            Write::Create(_) | Write::Update(_) | Write::Delete(_) => return,
        };
        let key = write.key();
        self.violate(Rule::NoStaleOverwrite, || format!("{breach}: {key}"));
    }

    /// Deferred deletes of a sync in flight are still allowed.
    pub(crate) fn check_retry_after(
        &mut self,
        process: usize,
        controller: Controller,
        write: &Write,
    ) {
        let Some(key) = self.service_of(write) else { return };
        let until = self.processes[process].throttled_until.get(&(controller, key)).copied();
        let Some(until) = until.filter(|_| !matches!(write, Write::Delete(_))) else { return };
        self.coverage.count_rule(Rule::RetryAfter);
        if self.now < until {
            let text = format!("{} is sent before the Retry-After time {until}", write.key());
            self.violate(Rule::RetryAfter, || text);
        }
    }
}
