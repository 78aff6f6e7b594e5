//! Requests and responses: a model of what `client` and `runtime` do in the daemon.

use std::time::Duration;

use endpointd_engine::{Input, RequestId};
use endpointd_model::{
    Controller, Failure, FailureKind, LiveReadResult, Object, Uid, Write, WriteResult,
};

use super::{Event, PointFault, Request, Simulation};
use crate::client_bug::ClientBug;
use crate::clock::{millis, secs};
use crate::script::RequestFault;
use endpointd_memory_api::{Response, write_result};

/// Request timeout of the client.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longer values of Retry-After count for this time.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

impl Simulation {
    pub(super) fn latency(&mut self) -> Duration {
        let most = if self.faults.is_quiescent { 2_000 } else { 20_000 };
        Duration::from_micros(self.rng.between(200, most))
    }

    pub(super) fn send(
        &mut self,
        process: usize,
        id: RequestId,
        controller: Controller,
        write: Box<Write>,
    ) {
        let is_checked_early = self.has_bug(ClientBug::LeaseCheckedEarly);
        self.check_acknowledged(process, &write);
        self.check_retry_after(process, controller, &write);
        self.processes[process].n_in_flight += 1;
        self.check_in_flight(process);
        self.log_sent(process, id, controller, &write);
        let incarnation = self.processes[process].incarnation;
        let request = Request {
            process,
            incarnation,
            id,
            controller,
            observed: self.record_observed(process, controller, &write),
            write,
            fault: self.faults.request_faults.pop_front(),
            point_fault: None,
            is_given_up: false,
        };
        if is_checked_early && !self.may_leave(process) {
            return self.reject_without_lease(&request);
        }
        match request.fault {
            Some(RequestFault::HeldBack(time)) => {
                self.coverage.count_fault("write held back in the client");
                self.trace(|| format!("  p{process} {}: held back", brief(&request.write)));
                self.schedule(time, Event::Leave(Box::new(request)));
            }
            _ => self.leave(request),
        }
    }

    fn may_leave(&self, process: usize) -> bool {
        !self.has_election()
            || self.processes[process].may_write(self.now)
            || self.has_bug(ClientBug::LeaseNotChecked)
    }

    fn reject_without_lease(&mut self, request: &Request) {
        let Request { process, incarnation, id, write, .. } = request;
        self.trace(|| format!("  p{process} may not {}", brief(write)));
        if !self.has_bug(ClientBug::NotLeaderUnreported) {
            let input = Input::WriteResult(*id, WriteResult::NotLeader);
            self.respond(*process, *incarnation, input);
        }
    }

    /// Sends a write, if the lease is still held.
    pub(super) fn leave(&mut self, mut request: Request) {
        let process = request.process;
        if self.processes[process].incarnation != request.incarnation {
            return;
        }
        if !self.has_bug(ClientBug::LeaseCheckedEarly) && !self.may_leave(process) {
            return self.reject_without_lease(&request);
        }
        if self.n_leaders(process) > 1 {
            self.coverage.count_fault("two leaders write");
        }
        request.point_fault = self
            .fault_point
            .filter(|fault_point| fault_point.at == self.n_sent)
            .map(|fault_point| fault_point.point_fault);
        self.n_sent += 1;
        self.coverage.n_writes += 1;
        self.check_send(&request, &request.write);
        let mut wait = self.latency();
        if let Some(RequestFault::SlowRequest(time)) = request.fault {
            self.coverage.count_fault("slow request");
            wait += time;
        }
        self.schedule(wait, Event::Arrive(Box::new(request)));
    }

    pub(super) fn on_request(&mut self, mut request: Request) {
        let (process, incarnation, id) = (request.process, request.incarnation, request.id);
        self.n_arrived += 1;
        match request.point_fault {
            Some(PointFault::CrashBefore) => return self.crash(process, incarnation),
            Some(PointFault::LoseResponse) => request.fault = Some(RequestFault::ResponseLost),
            Some(PointFault::LoseRequest) => request.fault = Some(RequestFault::RequestLost),
            Some(PointFault::ApplyLate) if !request.is_given_up => {
                request.fault = Some(RequestFault::AppliedLate(secs(3)));
            }
            Some(
                PointFault::ApplyLate | PointFault::CrashBeforeResponse | PointFault::CrashAfter,
            )
            | None => {}
        }
        if let Some(RequestFault::AppliedLate(time)) = request.fault
            && !request.is_given_up
        {
            self.coverage.count_fault("applied after the client timed out");
            self.trace(|| format!("  p{process} {}: delayed", brief(&request.write)));
            self.respond(
                process,
                incarnation,
                Input::WriteResult(id, no_response(FailureKind::Unreachable)),
            );
            request.is_given_up = true;
            return self.schedule(time, Event::Arrive(Box::new(request)));
        }
        let result = self.process_request(&request);
        self.trace(|| {
            let Request { controller, write, .. } = &request;
            format!("  p{process} {controller:?}: {} -> {}", brief(write), result.as_str())
        });
        if request.is_given_up {
            return;
        }
        self.record_deletion(&request, &result);
        let input = Input::WriteResult(id, result);
        match (request.point_fault, request.fault) {
            (Some(PointFault::CrashBeforeResponse), _) => self.crash(process, incarnation),
            (Some(PointFault::CrashAfter), _) => {
                self.on_response(process, incarnation, input);
                self.crash(process, incarnation);
            }
            (_, Some(RequestFault::SlowResponse(time))) => {
                self.coverage.count_fault("slow response");
                self.schedule(time, response_event(process, incarnation, input));
            }
            (_, Some(RequestFault::ResponseLost | RequestFault::RequestLost)) => {
                let wait = millis(self.rng.between(100, TIMEOUT.as_millis() as u64));
                self.schedule(wait, response_event(process, incarnation, input));
            }
            (_, _) => self.respond(process, incarnation, input),
        }
    }

    /// The result as the client classifies it; applies the write unless a fault prevents it.
    fn process_request(&mut self, request: &Request) -> WriteResult {
        if self.now < self.faults.outage_until {
            return failed(FailureKind::Unreachable);
        }
        if self.now < self.faults.errors_until {
            self.coverage.count_fault("500 for all writes");
            return no_response(FailureKind::ServerError);
        }
        match request.fault {
            Some(RequestFault::RequestLost) => {
                self.coverage.count_fault("request lost, not applied");
                return no_response(FailureKind::Unreachable);
            }
            Some(RequestFault::ServerError) => {
                self.coverage.count_fault("500");
                if self.rng.percent(50) {
                    self.apply(request);
                }
                return no_response(FailureKind::ServerError);
            }
            Some(RequestFault::Unreachable) => {
                self.coverage.count_fault("unreachable");
                return failed(FailureKind::Unreachable);
            }
            Some(RequestFault::Throttled(after_secs)) => {
                self.coverage.count_fault("429");
                let owner = self.owner_of(request.controller, &request.write);
                let throttled = &mut self.processes[request.process].throttled_writes;
                throttled.extend(owner.map(|owner| (request.id, owner)));
                return WriteResult::Throttled { after_secs: after_secs.max(1) };
            }
            Some(RequestFault::Forbidden) => {
                self.coverage.count_fault("403");
                return failed(FailureKind::Forbidden);
            }
            Some(RequestFault::ConcurrentWrite) => self.write_concurrently(&request.write),
            Some(RequestFault::ResponseLost) => {
                self.coverage.count_fault("response lost, applied");
                self.apply(request);
                return no_response(FailureKind::Unreachable);
            }
            Some(
                RequestFault::AppliedLate(_)
                | RequestFault::SlowResponse(_)
                | RequestFault::SlowRequest(_)
                | RequestFault::HeldBack(_),
            )
            | None => {}
        }
        if self.is_rejected(&request.write) {
            if self.now < self.faults.rejected_with_500_until {
                self.coverage.count_fault("rejected with 500");
                return no_response(FailureKind::ServerError);
            }
            return failed(FailureKind::Forbidden);
        }
        self.apply(request)
    }

    fn apply(&mut self, request: &Request) -> WriteResult {
        self.check_arrival(request);
        let response = self.api.write(&request.write);
        self.check_response(request, &response);
        self.contest(&response);
        if response == Response::Conflict && self.has_bug(ClientBug::ForcedConflict) {
            return self.force(request);
        }
        write_result(&request.write, response)
    }

    /// [`ClientBug::ForcedConflict`]: sends the same object again with the stored version.
    fn force(&mut self, request: &Request) -> WriteResult {
        let mut write = Write::clone(&request.write);
        let known = self.api.object(write.resource(), &write.key());
        let version = known.map(|known| known.meta().resource_version).unwrap_or_default();
        match &mut write {
            Write::Update(Object::Slice(slice)) => slice.meta.resource_version = version,
            Write::Update(Object::Endpoints(one)) => one.meta.resource_version = version,
            Write::Update(Object::ServiceStatus(one)) => one.meta.resource_version = version,
            Write::Update(Object::MultiCluster(one)) => one.meta_mut().resource_version = version,
            Write::Delete(target) => target.resource_version = version,
            Write::Create(_) => {}
        }
        self.check_send(request, &write);
        let response = self.api.write(&write);
        write_result(&write, response)
    }

    pub(super) fn respond(&mut self, process: usize, incarnation: u32, input: Input) {
        let wait = self.latency();
        self.schedule(wait, response_event(process, incarnation, input));
    }

    /// The engine learns the deletion of this uid with the response.
    fn record_deletion(&mut self, request: &Request, result: &WriteResult) {
        let process = &mut self.processes[request.process];
        if let (Write::Delete(target), WriteResult::Deleted) = (request.write.as_ref(), result)
            && process.incarnation == request.incarnation
        {
            process.unacknowledged_deletes.push((request.id, target.uid.clone()));
        }
    }

    pub(super) fn on_response(&mut self, process: usize, incarnation: u32, input: Input) {
        let one = &mut self.processes[process];
        if one.incarnation != incarnation {
            return;
        }
        let object = match &input {
            Input::WriteResult(_, WriteResult::Stored(object)) => Some(object),
            Input::LiveReadResult(_, LiveReadResult::Object(object)) => Some(object),
            Input::WriteResult(..) | Input::LiveReadResult(..) => None,
            Input::Watch(..) | Input::VersionsRolledBack => None,
            Input::Clock(_) | Input::Source(..) | Input::SourcesListed => None,
            Input::LeadershipAcquired | Input::LeadershipLost => None,
        };
        if let Input::LiveReadResult(_, LiveReadResult::Service(service)) = &input {
            one.received_versions.insert(service.resource_version.number());
        }
        if let Some(object) = object {
            one.received_versions.insert(object.meta().resource_version.number());
        }
        if let Input::LiveReadResult(id, LiveReadResult::Pods(_)) = &input {
            one.confirm_pods(*id);
        }
        if let Input::WriteResult(id, WriteResult::Deleted) = &input {
            let is_this = |(of, _): &(RequestId, Uid)| of == id;
            if let Some(at) = one.unacknowledged_deletes.iter().position(is_this) {
                let (_, uid) = one.unacknowledged_deletes.swap_remove(at);
                one.acknowledged_deletes.insert(uid);
            }
        }
        if let Input::WriteResult(id, WriteResult::Throttled { after_secs }) = &input
            && let Some(owner) = one.throttled_writes.remove(id)
        {
            let until = self.now + secs(u64::from(*after_secs)).min(RETRY_AFTER_MAX);
            one.throttled_until.insert(owner, until);
        }
        if matches!(&input, Input::WriteResult(..)) {
            one.n_in_flight = one.n_in_flight.saturating_sub(1);
        }
        self.handle_input(process, input);
    }

    fn crash(&mut self, process: usize, incarnation: u32) {
        if self.processes[process].incarnation == incarnation {
            self.kill(process);
            self.schedule(secs(1), Event::Start { process });
        }
    }
}

pub(super) fn response_event(process: usize, incarnation: u32, input: Input) -> Event {
    Event::Response { process, incarnation, input: Box::new(input) }
}

pub(super) fn failure(kind: FailureKind) -> Failure {
    Failure { kind, message: kind.as_str().into() }
}

fn no_response(kind: FailureKind) -> WriteResult {
    WriteResult::NoResponse(failure(kind))
}

fn failed(kind: FailureKind) -> WriteResult {
    WriteResult::Failed(failure(kind))
}

/// One line for the trace.
pub(super) fn brief(write: &Write) -> String {
    let content = match write.object() {
        Some(Object::Slice(slice)) => {
            let addresses: Vec<String> = slice
                .endpoints
                .iter()
                .map(|one| {
                    let mark = if one.is_ready() { "" } else { "!" };
                    format!("{mark}{}", one.addresses.first().map_or("", |ip| ip.as_ref()))
                })
                .collect();
            format!(" {addresses:?}")
        }
        Some(Object::Endpoints(endpoints)) => {
            let count = |n: usize, subset: &endpointd_model::Subset| {
                n + subset.addresses.len() + subset.not_ready_addresses.len()
            };
            format!(" ({} addresses)", endpoints.subsets.iter().fold(0, count))
        }
        Some(Object::ServiceStatus(status)) => {
            let reason = status.condition.as_ref().map_or("none", |one| one.reason.as_ref());
            format!(" ({reason})")
        }
        Some(Object::MultiCluster(_)) | None => String::new(),
    };
    format!("{} {} {}{content}", write.verb(), write.resource().as_str(), write.key())
}
