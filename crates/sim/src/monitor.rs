//! Safety: what is checked at every write, against the store and against what the engine could
//! know when it decided.

mod endpoints;
mod mirror;
mod slices;

use endpointd_model::{
    Controller, EndpointSlice, Endpoints, Key, LiveRead, Object, PublishedResource,
    ResourceVersion, Service, Timestamp, Uid, WatchedResource, Write, names,
};

use crate::api::{Answer, Api};
use crate::census::Rule;
use crate::clock::{Time, secs};
use crate::process::{RENEW_DEADLINE, View};
use crate::script::Setup;
use crate::world::{Request, World};

/// A live read is fresh enough for a deletion for so long.
const FRESH_SECS: u64 = 120;
/// Deletions from absence that pass in a minute; a tenth of all is less in our worlds.
const DELETIONS_MAX: usize = 20;

/// A rule that a write breaks, and how.
pub(crate) type Complaint = (Rule, String);

pub(crate) type Check = fn(&Case) -> Result<(), Complaint>;

/// One write that takes effect, and all that can excuse it.
pub(crate) struct Case<'a> {
    pub api: &'a Api,
    pub setup: &'a Setup,
    pub view: View,
    pub write: &'a Write,
    /// What is stored before.
    pub known: Option<&'a Object>,
    /// The Service it is for.
    pub key: Key,
}

impl<'a> Case<'a> {
    pub fn services(&self) -> Vec<Option<&'a Service>> {
        self.api.services.window(&self.key, self.view.since(WatchedResource::Services))
    }

    pub fn known_slice(&self) -> Option<&'a EndpointSlice> {
        match self.known {
            Some(Object::Slice(slice)) => Some(slice),
            Some(Object::Endpoints(_)) | None => None,
        }
    }

    pub fn known_endpoints(&self) -> Option<&'a Endpoints> {
        match self.known {
            Some(Object::Endpoints(endpoints)) => Some(endpoints),
            Some(Object::Slice(_)) | None => None,
        }
    }

    pub fn new_slice(&self) -> Option<&'a EndpointSlice> {
        match self.write.object() {
            Some(Object::Slice(slice)) => Some(slice),
            Some(Object::Endpoints(_)) | None => None,
        }
    }

    pub fn new_endpoints(&self) -> Option<&'a Endpoints> {
        match self.write.object() {
            Some(Object::Endpoints(endpoints)) => Some(endpoints),
            Some(Object::Slice(_)) | None => None,
        }
    }

    pub fn is_create(&self) -> bool {
        matches!(self.write, Write::Create(_))
    }

    /// Labels of a slice that is, or is to be, written to.
    pub fn check_manager(&self, manager: &str) -> Result<(), Complaint> {
        for slice in self.known_slice().into_iter().chain(self.new_slice()) {
            let labels = &slice.meta.labels;
            if !labels.has(names::MANAGED_BY, manager) {
                return Err((
                    Rule::NoForeignObject,
                    format!("{} is managed by {:?}", slice.meta.key(), labels),
                ));
            }
            if !labels.has(names::SERVICE_NAME, &self.key.name)
                || slice.meta.namespace != self.key.namespace
            {
                return Err((
                    Rule::NoForeignObject,
                    format!("{} is not for {}", slice.meta.key(), self.key),
                ));
            }
        }
        Ok(())
    }
}

pub(crate) fn owner_uids(slice: &EndpointSlice) -> Vec<&Uid> {
    slice.meta.owners.iter().map(|owner| &owner.uid).collect()
}

impl World {
    /// What can be judged when a write leaves.
    pub(crate) fn check_send(&mut self, process: usize, controller: Controller, write: &Write) {
        self.check_version(process, write);
        self.check_lease(process);
        self.check_patience(process, write);
        self.check_absence(process, controller, write);
    }

    fn check_version(&mut self, process: usize, write: &Write) {
        self.census.rule(Rule::NoStaleOverwrite);
        let told = &self.processes[process].told;
        let deleted = &self.processes[process].deleted;
        let is_told = |version: ResourceVersion| told.contains(&version.number());
        let complaint = match write {
            Write::Create(object) if object.meta().resource_version.is_none() => return,
            Write::Create(_) => "a create names a version",
            Write::Update(object) if deleted.contains(&object.meta().uid) => {
                "an update of what it deleted itself"
            }
            Write::Delete(target) if deleted.contains(&target.uid) => {
                "a delete of what it deleted itself"
            }
            Write::Update(object) if is_told(object.meta().resource_version) => return,
            Write::Update(_) => "an update of a version the engine was not told",
            Write::Delete(target) if target.uid.is_empty() => "a delete without uid",
            Write::Delete(target) if is_told(target.resource_version) => return,
            Write::Delete(_) => "a delete of a version the engine was not told",
        };
        let key = write.key();
        self.violate(Rule::NoStaleOverwrite, || format!("{complaint}: {key}"));
    }

    fn check_lease(&mut self, process: usize) {
        if self.processes.len() > 1 {
            self.census.rule(Rule::NoWriteWithoutLease);
            let lease = self.processes[process].lease;
            if self.now >= lease.renewed + RENEW_DEADLINE || !lease.is_leading {
                let text = format!("p{process} renewed at {}", lease.renewed);
                self.violate(Rule::NoWriteWithoutLease, || text);
            }
        }
    }

    /// Deletes that were held back for a sync under way may still go.
    fn check_patience(&mut self, process: usize, write: &Write) {
        let until = self.processes[process].throttled_until;
        if until > Time::START && !matches!(write, Write::Delete(_)) {
            self.census.rule(Rule::Patience);
            if self.now < until {
                let text = format!("{} is sent, asked to wait until {until}", write.key());
                self.violate(Rule::Patience, || text);
            }
        }
    }

    /// Deletions that rest on an absence need a live read that found nothing.
    fn check_absence(&mut self, process: usize, controller: Controller, write: &Write) {
        let Write::Delete(target) = write else { return };
        let Some(key) = self.service_of(write) else { return };
        let view = self.view_when_planned(process, controller, &key);
        let services = self.api.services.window(&key, view.since(WatchedResource::Services));
        let endpoints = self.api.endpoints.window(&key, view.since(WatchedResource::Endpoints));
        let is_mirrored = matches!(
            self.api.object(target.resource, &target.key),
            Some(Object::Slice(slice))
                if slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_MIRROR)
        );
        let mut needed = Vec::new();
        let is_endpoints = target.resource == PublishedResource::Endpoints;
        if is_endpoints || (is_mirrored && services.iter().all(Option::is_none)) {
            needed.push(LiveRead::Service(key.clone()));
        }
        if is_mirrored && endpoints.iter().all(Option::is_none) {
            needed.push(LiveRead::Object(PublishedResource::Endpoints, key.clone()));
        }
        if needed.is_empty() {
            return;
        }
        self.census.rule(Rule::NoDeletionFromAbsence);
        let now = self.now;
        let absences = &self.processes[process].absences;
        let is_fresh = |read: &LiveRead| {
            absences.get(read).is_some_and(|read| now.since(*read) <= secs(FRESH_SECS))
        };
        if let Some(missing) = needed.iter().find(|read| !is_fresh(read)) {
            let text = format!("{} deleted without looking at {missing:?}", target.key);
            self.violate(Rule::NoDeletionFromAbsence, || text);
        }
        if is_endpoints {
            self.check_brake(process);
        }
    }

    fn check_brake(&mut self, process: usize) {
        self.census.rule(Rule::DeletionLimiter);
        let now = self.now;
        let deletions = &mut self.processes[process].deletions;
        deletions.push_back(now);
        deletions.retain(|at| now.since(*at) < secs(60));
        let n = deletions.len();
        if n > DELETIONS_MAX {
            self.violate(Rule::DeletionLimiter, || {
                format!("{n} deletions from absence in a minute")
            });
        }
    }

    /// What can be judged when a write takes effect.
    pub(crate) fn check_arrival(&mut self, request: &Request) {
        let write = request.write.as_ref();
        let known = self.api.object(write.resource(), &write.key());
        let known = known.as_ref();
        if !takes_effect(&self.api, write, known) {
            return;
        }
        let Some(key) = self.service_of(write) else {
            let text = format!("{} has no Service", write.key());
            return self.violate(Rule::NoForeignObject, || text);
        };
        let (api, setup, view) = (&self.api, &self.setup, request.view);
        let case = Case { api, setup, view, write, known, key };
        let checks: &[(Rule, Check)] = match request.controller {
            Controller::Slices => &slices::CHECKS,
            Controller::Endpoints => &endpoints::CHECKS,
            Controller::Mirror => &mirror::CHECKS,
        };
        let outcomes: Vec<_> = checks.iter().map(|(rule, check)| (*rule, check(&case))).collect();
        let useless = is_useless(write, known);
        for (rule, outcome) in outcomes {
            self.census.rule(rule);
            if let Err((rule, text)) = outcome {
                self.violate(rule, || text);
            }
        }
        self.census.rule(Rule::NoUselessWrite);
        if useless {
            let text = format!("update of {} changes nothing", write.key());
            self.violate(Rule::NoUselessWrite, || text);
        }
        self.check_trigger_time(write);
    }

    fn check_trigger_time(&mut self, write: &Write) {
        let annotations = write.object().map(|object| &object.meta().annotations);
        let Some(text) = annotations.and_then(|all| all.get(names::TRIGGER_TIME)) else { return };
        self.census.rule(Rule::TriggerTime);
        let time: Option<Timestamp> = text.parse().ok();
        if !time.is_some_and(|time| self.is_known_time(time)) {
            let text = format!("{}: nothing happened at {text}", write.key());
            self.violate(Rule::TriggerTime, || text);
        }
    }

    pub(crate) fn check_answer(&mut self, request: &Request, answer: &Answer) {
        if let Answer::Invalid(reason) = answer {
            let text = format!("{} is invalid: {reason}", request.write.key());
            self.violate(Rule::NoUselessWrite, || text);
        }
    }

    /// A lost watch shows.
    pub(crate) fn check_readiness(&mut self, process: usize, kind: WatchedResource) {
        let now = self.now.moment();
        let Some(engine) = &self.processes[process].engine else { return };
        self.census.rule(Rule::HonestReadiness);
        if engine.report(now).is_ready() {
            let text = format!("p{process} is ready without {}", kind.as_str());
            self.violate(Rule::HonestReadiness, || text);
        }
    }
}

fn takes_effect(api: &Api, write: &Write, known: Option<&Object>) -> bool {
    match (write, known) {
        (Write::Create(object), None) => api.is_active(&object.meta().namespace),
        (Write::Update(object), Some(known)) => {
            let version = &object.meta().resource_version;
            version.is_none() || *version == known.meta().resource_version
        }
        (Write::Delete(target), Some(known)) => {
            let meta = known.meta();
            (target.uid.is_empty() || target.uid == meta.uid)
                && (target.resource_version.is_none()
                    || target.resource_version == meta.resource_version)
        }
        (Write::Create(_), Some(_)) | (Write::Update(_) | Write::Delete(_), None) => false,
    }
}

/// Nothing but the trigger time would be different.
fn is_useless(write: &Write, known: Option<&Object>) -> bool {
    let (Write::Update(new), Some(known)) = (write, known) else { return false };
    let (a, b) = (new.meta(), known.meta());
    let notes = |meta: &endpointd_model::Meta| meta.annotations.with(names::TRIGGER_TIME, None);
    let same_meta = a.labels == b.labels
        && notes(a) == notes(b)
        && a.owners == b.owners
        && a.finalizers == b.finalizers;
    let same_content = match (new, known) {
        // Upstream takes a placeholder over when something else is deleted with it.
        (Object::Slice(new), Object::Slice(known)) => {
            !new.endpoints.is_empty()
                && new.endpoints == known.endpoints
                && new.ports == known.ports
        }
        (Object::Endpoints(new), Object::Endpoints(known)) => new.subsets == known.subsets,
        (Object::Slice(_) | Object::Endpoints(_), _) => false,
    };
    same_meta && same_content
}
