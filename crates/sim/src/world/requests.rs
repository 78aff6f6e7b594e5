//! Requests on their way there and back: what `client` and `runtime` do in the daemon.

use std::time::Duration;

use endpointd_engine::{Input, RequestId};
use endpointd_model::{
    Controller, Failure, FailureKind, Key, LiveRead, LiveReadResult, Object, Uid, Write,
    WriteResult, names,
};
use endpointd_mutants::{Mutant, is_on};

use super::{Event, Request, Trap, World};
use crate::api::Answer;
use crate::clock::{millis, secs};
use crate::process::View;
use crate::script::Mishap;

/// How long a client waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

impl World {
    pub(super) fn latency(&mut self) -> Duration {
        let most = if self.troubles.is_calm { 2_000 } else { 20_000 };
        Duration::from_micros(self.dice.between(200, most))
    }

    pub(super) fn send(
        &mut self,
        process: usize,
        id: RequestId,
        controller: Controller,
        write: Box<Write>,
    ) {
        let life = self.processes[process].life;
        let may_write = self.processes[process].may_write(self.now) || is_on(Mutant::OfficeAsleep);
        if self.has_election() && !may_write {
            self.tell(|| format!("  p{process} may not {}", brief(&write)));
            if is_on(Mutant::UnsentUnanswered) {
                return;
            }
            return self.answer(process, life, Input::WriteResult(id, WriteResult::NotLeader));
        }
        if self.n_leaders() > 1 {
            self.census.fault("two leaders write");
        }
        let trap = self.snare.filter(|snare| snare.at == self.n_sent).map(|snare| snare.trap);
        self.n_sent += 1;
        self.census.n_writes += 1;
        self.check_send(process, controller, &write);
        self.processes[process].n_in_flight += 1;
        let mishap = self.troubles.mishaps.pop_front();
        let mut wait = self.latency();
        if let Some(Mishap::SlowRequest(time)) = mishap {
            self.census.fault("slow request");
            wait += time;
        }
        let view = self.planned_view(process, controller, &write);
        let is_given_up = false;
        let request =
            Request { process, life, id, controller, write, view, mishap, trap, is_given_up };
        self.schedule(wait, Event::Arrive(Box::new(request)));
    }

    fn planned_view(&mut self, process: usize, controller: Controller, write: &Write) -> View {
        let Some(key) = self.service_of(write) else { return self.processes[process].view() };
        let view = self.view_when_planned(process, controller, &key);
        self.processes[process].plans.insert((controller, key), view);
        view
    }

    /// What the engine could know when it planned the sync of a key that is under way.
    pub(crate) fn view_when_planned(
        &self,
        process: usize,
        controller: Controller,
        key: &Key,
    ) -> View {
        let process = &self.processes[process];
        let planned = process.plans.get(&(controller, key.clone()));
        planned.copied().unwrap_or_else(|| process.view())
    }

    pub(super) fn arrive(&mut self, mut request: Request) {
        let (process, life, id) = (request.process, request.life, request.id);
        self.n_arrived += 1;
        match request.trap {
            Some(Trap::CrashBefore) => return self.crash(process, life),
            Some(Trap::LoseApplied) => request.mishap = Some(Mishap::LostApplied),
            Some(Trap::LoseNotApplied) => request.mishap = Some(Mishap::LostNotApplied),
            Some(Trap::ApplyLate) if !request.is_given_up => {
                request.mishap = Some(Mishap::AppliedLate(secs(3)));
            }
            Some(Trap::ApplyLate | Trap::CrashUnanswered | Trap::CrashAfter) | None => {}
        }
        if let Some(Mishap::AppliedLate(time)) = request.mishap
            && !request.is_given_up
        {
            self.census.fault("applied after the answer was given up");
            self.tell(|| format!("  p{process} {}: on its way for long", brief(&request.write)));
            self.answer(process, life, Input::WriteResult(id, lost(FailureKind::Unreachable)));
            request.is_given_up = true;
            return self.schedule(time, Event::Arrive(Box::new(request)));
        }
        let outcome = self.decide(&request);
        self.tell(|| {
            let Request { controller, write, .. } = &request;
            format!("  p{process} {controller:?}: {} -> {}", brief(write), outcome.as_str())
        });
        if request.is_given_up {
            return;
        }
        self.note_deleted(&request, &outcome);
        let input = Input::WriteResult(id, outcome);
        match (request.trap, request.mishap) {
            (Some(Trap::CrashUnanswered), _) => self.crash(process, life),
            (Some(Trap::CrashAfter), _) => {
                self.answered(process, life, input);
                self.crash(process, life);
            }
            (_, Some(Mishap::SlowAnswer(time))) => {
                self.census.fault("slow answer");
                self.schedule(time, answer_event(process, life, input));
            }
            (_, Some(Mishap::LostApplied | Mishap::LostNotApplied)) => {
                let wait = millis(self.dice.between(100, TIMEOUT.as_millis() as u64));
                self.schedule(wait, answer_event(process, life, input));
            }
            (_, _) => self.answer(process, life, input),
        }
    }

    /// What the client makes of it; the write is done if it is to be done.
    fn decide(&mut self, request: &Request) -> WriteResult {
        if self.now < self.troubles.outage_until {
            return refused(FailureKind::Unreachable);
        }
        match request.mishap {
            Some(Mishap::LostNotApplied) => {
                self.census.fault("answer lost, not applied");
                return lost(FailureKind::Unreachable);
            }
            Some(Mishap::ServerError) => {
                self.census.fault("500");
                if self.dice.percent(50) {
                    self.apply(request);
                }
                return lost(FailureKind::ServerError);
            }
            Some(Mishap::Unreachable) => {
                self.census.fault("unreachable");
                return refused(FailureKind::Unreachable);
            }
            Some(Mishap::Throttled(after_secs)) => {
                self.census.fault("429");
                return WriteResult::Throttled { after_secs: after_secs.max(1) };
            }
            Some(Mishap::Forbidden) => {
                self.census.fault("403");
                return refused(FailureKind::Forbidden);
            }
            Some(Mishap::Overtaken) => self.overtake(&request.write),
            Some(Mishap::LostApplied) => {
                self.census.fault("answer lost, applied");
                self.apply(request);
                return lost(FailureKind::Unreachable);
            }
            Some(Mishap::AppliedLate(_) | Mishap::SlowAnswer(_) | Mishap::SlowRequest(_))
            | None => {}
        }
        if self.is_refused(&request.write) {
            return refused(FailureKind::Forbidden);
        }
        self.apply(request)
    }

    fn apply(&mut self, request: &Request) -> WriteResult {
        self.check_arrival(request);
        let answer = self.api.write(&request.write);
        self.check_answer(request, &answer);
        if answer == Answer::Conflict && is_on(Mutant::ForceConflict) {
            return self.force(request);
        }
        outcome(&request.write, answer)
    }

    /// What [`Mutant::ForceConflict`] does: the same again, with the version of now.
    fn force(&mut self, request: &Request) -> WriteResult {
        let mut write = Write::clone(&request.write);
        let known = self.api.object(write.resource(), &write.key());
        let version = known.map(|known| known.meta().resource_version.clone()).unwrap_or_default();
        match &mut write {
            Write::Update(Object::Slice(slice)) => slice.meta.resource_version = version,
            Write::Update(Object::Endpoints(one)) => one.meta.resource_version = version,
            Write::Delete(target) => target.resource_version = version,
            Write::Create(_) => {}
        }
        self.check_send(request.process, request.controller, &write);
        let answer = self.api.write(&write);
        outcome(&write, answer)
    }

    /// Someone else writes to the same object first.
    fn overtake(&mut self, write: &Write) {
        let Some(mut object) = self.api.object(write.resource(), &write.key()) else { return };
        self.census.fault("overtaken (409)");
        let count = self.n_arrived.to_string();
        let meta = match &mut object {
            Object::Slice(slice) => &mut slice.meta,
            Object::Endpoints(endpoints) => &mut endpoints.meta,
        };
        meta.annotations = meta.annotations.with("example.com/count", Some(&count));
        self.api.force(object);
    }

    fn is_refused(&mut self, write: &Write) -> bool {
        if matches!(write, Write::Create(_)) && self.now < self.troubles.no_creates_until {
            self.census.fault("quota");
            return true;
        }
        let Some(key) = self.service_of(write) else { return false };
        let now = self.now;
        let is_refused =
            self.troubles.refused.iter().any(|(refused, until)| *refused == key && now < *until);
        if is_refused {
            self.census.fault("refused for one Service");
        }
        is_refused
    }

    /// The Service a write is for.
    pub(crate) fn service_of(&self, write: &Write) -> Option<Key> {
        let key = write.key();
        let named = |object: &Object| match object {
            Object::Slice(slice) => {
                let name = slice.meta.labels.get(names::SERVICE_NAME)?;
                Some(Key::new(slice.meta.namespace.clone(), name.clone()))
            }
            Object::Endpoints(endpoints) => Some(endpoints.meta.key()),
        };
        match write.object() {
            Some(object) => named(object),
            None => named(&self.api.object(write.resource(), &key)?),
        }
    }

    pub(super) fn send_look(&mut self, process: usize, id: RequestId, read: LiveRead) {
        self.n_looks += 1;
        let life = self.processes[process].life;
        let wait = self.latency();
        self.schedule(wait, Event::Look { process, life, id, read });
    }

    pub(super) fn look(&mut self, process: usize, life: u32, id: RequestId, read: LiveRead) {
        let is_blind = self.now < self.troubles.blind_until.max(self.troubles.outage_until);
        let found = if is_blind {
            self.census.fault("blind reads");
            if is_on(Mutant::FailedReadIsAbsent) {
                let input = Input::LiveReadResult(id, LiveReadResult::Absent);
                return self.schedule(millis(1), answer_event(process, life, input));
            }
            LiveReadResult::Failed(failure(FailureKind::ServerError))
        } else {
            let found = self.api.look(&read);
            found.unwrap_or_else(|| LiveReadResult::Failed(failure(FailureKind::Unreadable)))
        };
        if found == LiveReadResult::Absent && self.processes[process].life == life {
            self.processes[process].absences.insert(read.clone(), self.now);
        }
        self.tell(|| format!("  p{process} looks at {read:?}: {}", brief_found(&found)));
        let wait = self.latency();
        self.schedule(wait, answer_event(process, life, Input::LiveReadResult(id, found)));
    }

    fn answer(&mut self, process: usize, life: u32, input: Input) {
        let wait = self.latency();
        self.schedule(wait, answer_event(process, life, input));
    }

    /// Told to the engine with the answer: this very object is deleted.
    fn note_deleted(&mut self, request: &Request, outcome: &WriteResult) {
        let process = &mut self.processes[request.process];
        if let (Write::Delete(target), WriteResult::Deleted) = (request.write.as_ref(), outcome)
            && process.life == request.life
        {
            process.deleting.push((request.id, target.uid.clone()));
        }
    }

    pub(super) fn answered(&mut self, process: usize, life: u32, input: Input) {
        let one = &mut self.processes[process];
        if one.life != life {
            return;
        }
        let object = match &input {
            Input::WriteResult(_, WriteResult::Stored(object)) => Some(object),
            Input::LiveReadResult(_, LiveReadResult::Object(object)) => Some(object),
            Input::WriteResult(..) | Input::LiveReadResult(..) => None,
            Input::Watch(..) | Input::LeadershipAcquired | Input::LeadershipLost => None,
        };
        if let Some(object) = object {
            one.told.insert(object.meta().resource_version.number());
        }
        if let Input::WriteResult(id, WriteResult::Deleted) = &input {
            let is_this = |(of, _): &(RequestId, Uid)| of == id;
            if let Some(at) = one.deleting.iter().position(is_this) {
                let (_, uid) = one.deleting.swap_remove(at);
                one.deleted.insert(uid);
            }
        }
        if let Input::WriteResult(_, WriteResult::Throttled { after_secs }) = &input {
            one.throttled_until = self.now + secs(u64::from(*after_secs));
        }
        if matches!(&input, Input::WriteResult(..)) {
            one.n_in_flight = one.n_in_flight.saturating_sub(1);
        }
        self.inform(process, input);
    }

    fn crash(&mut self, process: usize, life: u32) {
        if self.processes[process].life == life {
            self.die(process);
            self.schedule(secs(1), Event::Start { process });
        }
    }
}

fn answer_event(process: usize, life: u32, input: Input) -> Event {
    Event::Answer { process, life, input: Box::new(input) }
}

/// As `client` sorts answers.
fn outcome(write: &Write, answer: Answer) -> WriteResult {
    let is_delete = matches!(write, Write::Delete(_));
    match answer {
        Answer::Stored(object) if is_delete && object.meta().finalizers.is_empty() => {
            WriteResult::Deleted
        }
        Answer::Stored(object) => WriteResult::Stored(object),
        Answer::Removed => WriteResult::Deleted,
        Answer::NotFound if is_delete => WriteResult::Deleted,
        Answer::Conflict | Answer::Exists | Answer::NotFound => WriteResult::Conflict("409".into()),
        Answer::Broken => lost(FailureKind::ServerError),
        Answer::NoNamespace | Answer::Terminating => {
            WriteResult::NamespaceTerminating("terminating".into())
        }
        Answer::Invalid(_) => refused(FailureKind::Invalid),
    }
}

fn failure(kind: FailureKind) -> Failure {
    Failure { kind, message: kind.as_str().into() }
}

fn lost(kind: FailureKind) -> WriteResult {
    WriteResult::NoResponse(failure(kind))
}

fn refused(kind: FailureKind) -> WriteResult {
    WriteResult::Failed(failure(kind))
}

/// For the story.
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
        None => String::new(),
    };
    format!("{} {} {}{content}", write.verb(), write.resource().as_str(), write.key())
}

fn brief_found(found: &LiveReadResult) -> &'static str {
    match found {
        LiveReadResult::Service(_) | LiveReadResult::Node(_) | LiveReadResult::Object(_) => "there",
        LiveReadResult::Absent => "absent",
        LiveReadResult::Failed(_) => "failed",
    }
}
