//! Safety rules: checked at every write against the stored objects and against what the engine had
//! observed when it planned.

mod endpoints;
mod events;
mod imports;
mod instances;
mod load;
mod mirror;
mod sending;
mod slices;

use endpointd_engine::OrphanPolicy;
use endpointd_model::{
    Controller, DeleteTarget, EndpointSlice, Endpoints, Key, LiveRead, Object, PublishedResource,
    Service, Timestamp, Uid, WatchedResource, Write, names,
};

pub(crate) use events::EventLog;

use crate::clock::{Time, monotonic, secs};
use crate::coverage::Rule;
use crate::oracle::slices::publishes;
use crate::process::{ObservedRevisions, Process};
use crate::script::Setup;
use crate::simulation::{Request, Simulation};
use endpointd_memory_api::{MemoryApi, Response};

/// Age limit of the live read that justifies a deletion.
const FRESH_SECS: u64 = 120;
/// Deletions caused by missing objects per minute; 10 % of all objects is less here.
const DELETIONS_MAX: usize = 20;
/// The limiter counts a minute, and stays active for a minute after it delayed something.
const LIMITER_MEMORY_SECS: u64 = 120;

/// The rule that a write breaks, and how.
pub(crate) type Breach = (Rule, String);

pub(crate) type Check = fn(&CheckedWrite) -> Result<(), Breach>;

/// A write that takes effect, and everything that may justify it.
pub(crate) struct CheckedWrite<'a> {
    pub api: &'a MemoryApi,
    pub setup: &'a Setup,
    pub observed: ObservedRevisions,
    pub write: &'a Write,
    /// The object stored before.
    pub known: Option<&'a Object>,
    /// The Service that the write is for.
    pub key: Key,
}

impl<'a> CheckedWrite<'a> {
    pub fn services(&self) -> Vec<Option<&'a Service>> {
        self.api.services.window(&self.key, self.observed.of(WatchedResource::Services))
    }

    pub fn known_slice(&self) -> Option<&'a EndpointSlice> {
        match self.known {
            Some(Object::Slice(slice)) => Some(slice),
            Some(Object::Endpoints(_) | Object::ServiceStatus(_) | Object::MultiCluster(_))
            | None => None,
        }
    }

    pub fn known_endpoints(&self) -> Option<&'a Endpoints> {
        match self.known {
            Some(Object::Endpoints(endpoints)) => Some(endpoints),
            Some(Object::Slice(_) | Object::ServiceStatus(_) | Object::MultiCluster(_)) | None => {
                None
            }
        }
    }

    pub fn new_slice(&self) -> Option<&'a EndpointSlice> {
        match self.write.object() {
            Some(Object::Slice(slice)) => Some(slice),
            Some(Object::Endpoints(_) | Object::ServiceStatus(_) | Object::MultiCluster(_))
            | None => None,
        }
    }

    pub fn new_endpoints(&self) -> Option<&'a Endpoints> {
        match self.write.object() {
            Some(Object::Endpoints(endpoints)) => Some(endpoints),
            Some(Object::Slice(_) | Object::ServiceStatus(_) | Object::MultiCluster(_)) | None => {
                None
            }
        }
    }

    /// A delete, in a run with `--orphan-policy=delete`.
    pub fn may_delete_left_behind(&self) -> bool {
        let is_delete = matches!(self.write, Write::Delete(_));
        is_delete
            && match self.setup.orphan_policy {
                OrphanPolicy::Keep => false,
                OrphanPolicy::Delete => true,
            }
    }

    pub fn is_create(&self) -> bool {
        matches!(self.write, Write::Create(_))
    }

    /// Labels of the slice before and after the write.
    pub fn check_manager(&self, manager: &str) -> Result<(), Breach> {
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

impl Simulation {
    /// Checks when a write leaves the process.
    pub(crate) fn check_send(&mut self, request: &Request, write: &Write) {
        self.check_version(request.process, write);
        self.check_lease(request.process);
        self.check_scope(request, write);
        self.check_absence(request, write);
    }

    /// Deletions caused by missing objects need a live read that confirmed the absence.
    fn check_absence(&mut self, request: &Request, write: &Write) {
        let Request { process, controller, observed, .. } = *request;
        let Write::Delete(target) = write else { return };
        if controller == Controller::Import {
            return self.check_absent_source(process, write);
        }
        let Some(key) = self.service_of(write) else { return };
        let services = self.api.services.window(&key, observed.of(WatchedResource::Services));
        let endpoints = self.api.endpoints.window(&key, observed.of(WatchedResource::Endpoints));
        let is_mirrored = matches!(
            self.api.object(target.resource, &target.key),
            Some(Object::Slice(slice))
                if slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_MIRROR)
        );
        let is_left = services.iter().flatten().any(|service| !publishes(service));
        if is_left && controller != Controller::Mirror && !services.iter().any(Option::is_none) {
            return self.check_left_behind(process, &key, target);
        }
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
        self.coverage.count_rule(Rule::NoDeletionFromAbsence);
        let now = self.now;
        let Process { confirmed_absences, service_reads, .. } = &self.processes[process];
        let is_fresh = |read: &LiveRead| {
            // A Service that was deleted may have had no selector before.
            let left = service_reads.get(&key).filter(|_| is_left && is_endpoints);
            let reads = confirmed_absences.get(read).into_iter().chain(left);
            reads.into_iter().any(|read| now.since(*read) <= secs(FRESH_SECS))
        };
        if let Some(missing) = needed.iter().find(|read| !is_fresh(read)) {
            let text = format!("{} deleted without a live read of {missing:?}", target.key);
            self.violate(Rule::NoDeletionFromAbsence, || text);
        }
        if is_endpoints && !self.processes[process].reported_deletions.contains(&key) {
            self.check_deletion_limit(process, &key);
        }
    }

    /// Deletions of what a Service without selector has left need a live read of the Service. If it had
    /// a selector again in between, an ordinary deletion of a slice is justified as well.
    fn check_left_behind(&mut self, process: usize, key: &Key, target: &DeleteTarget) {
        self.coverage.count_rule(Rule::NoDeletionOfLeftBehind);
        let now = self.now;
        let read = self.processes[process].service_reads.get(key);
        let is_read = read.is_some_and(|read| now.since(*read) <= secs(FRESH_SECS));
        let observed = self.observed_when_planned(process, Controller::Slices, key);
        let services = self.api.services.window(key, observed.of(WatchedResource::Services));
        let may_publish = target.resource == PublishedResource::Slices
            && services.iter().flatten().any(|service| publishes(service));
        if !is_read && !may_publish {
            let text = format!("{} deleted without a live read of its Service", target.key);
            self.violate(Rule::NoDeletionOfLeftBehind, || text);
        }
    }

    /// A deletion that fails and is sent again counts once.
    fn check_deletion_limit(&mut self, process: usize, key: &Key) {
        self.coverage.count_rule(Rule::DeletionLimiter);
        let now = self.now;
        let deletions = &mut self.processes[process].deletions;
        deletions.retain(|_, at| now.since(*at) < secs(60));
        deletions.entry(key.clone()).or_insert(now);
        let n = deletions.len();
        if n > DELETIONS_MAX {
            self.violate(Rule::DeletionLimiter, || {
                format!("{n} deletions of missing Services in a minute")
            });
        }
    }

    fn record_effective_deletion(&mut self, request: &Request) {
        let now = self.now;
        // Those that a Service has left behind are limited, too.
        let is_own_slice = request.controller == Controller::Slices
            && self.setup.orphan_policy == OrphanPolicy::Keep;
        let is_effective = match request.write.as_ref() {
            Write::Delete(_) => !is_own_slice,
            // A list may have removed the last pod of the Service.
            Write::Update(object) | Write::Create(object) => load::publishes_nothing(object),
        };
        if is_effective {
            let deletions = &mut self.processes[request.process].effective_deletions;
            deletions.retain(|at| now.since(*at) < secs(LIMITER_MEMORY_SECS));
            deletions.push_back(now);
        }
    }

    /// The limiter is active only after so many deletions, and writes without endpoints, that took effect.
    pub(crate) fn check_limiter(&mut self) {
        for process in 0..self.processes.len() {
            let now = self.now;
            let Some(engine) = &self.processes[process].engine else { continue };
            let is_active = engine.report(monotonic(now)).deletion_limiter.is_active;
            let deletions = &self.processes[process].effective_deletions;
            let is_recent = |at: &&Time| now.since(**at) < secs(LIMITER_MEMORY_SECS);
            let n = deletions.iter().filter(is_recent).count();
            if is_active && n < DELETIONS_MAX {
                self.violate(Rule::DeletionLimiter, || format!("active after {n} deletions"));
            }
        }
    }

    /// Checks when a write takes effect.
    pub(crate) fn check_arrival(&mut self, request: &Request) {
        let write = request.write.as_ref();
        let known = self.api.object(write.resource(), &write.key());
        let known = known.as_ref();
        if !takes_effect(&self.api, write, known) {
            return;
        }
        self.record_effective_deletion(request);
        self.check_redundancy(write, known);
        self.check_trigger_time(write);
        if request.controller == Controller::Import {
            return self.check_import(request, known);
        }
        let Some(key) = self.service_of(write) else {
            let text = format!("{} has no Service", write.key());
            return self.violate(Rule::NoForeignObject, || text);
        };
        let (api, setup, observed) = (&self.api, &self.setup, request.observed);
        let case = CheckedWrite { api, setup, observed, write, known, key };
        let checks: &[(Rule, Check)] = match request.controller {
            Controller::Slices => &slices::CHECKS,
            Controller::Endpoints => &endpoints::CHECKS,
            Controller::Mirror => &mirror::CHECKS,
            Controller::Import => &imports::CHECKS,
            // No simulated process runs it.
            Controller::MultiCluster => &[],
        };
        let outcomes: Vec<_> = checks.iter().map(|(rule, check)| (*rule, check(&case))).collect();
        for (rule, outcome) in outcomes {
            self.coverage.count_rule(rule);
            if let Err((rule, text)) = outcome {
                self.violate(rule, || text);
            }
        }
    }

    fn check_redundancy(&mut self, write: &Write, known: Option<&Object>) {
        self.coverage.count_rule(Rule::NoRedundantWrite);
        if is_redundant(write, known) {
            let text = format!("update of {} changes nothing", write.key());
            self.violate(Rule::NoRedundantWrite, || text);
        }
    }

    fn check_trigger_time(&mut self, write: &Write) {
        let annotations = write.object().map(|object| &object.meta().annotations);
        let Some(text) = annotations.and_then(|all| all.get(names::TRIGGER_TIME)) else { return };
        self.coverage.count_rule(Rule::TriggerTime);
        let time: Option<Timestamp> = text.parse().ok();
        if !time.is_some_and(|time| self.is_known_time(time)) {
            let text = format!("{}: no change happened at {text}", write.key());
            self.violate(Rule::TriggerTime, || text);
        }
    }

    pub(crate) fn check_response(&mut self, request: &Request, response: &Response) {
        if let Response::Invalid(reason) = response {
            let text = format!("{} is invalid: {reason}", request.write.key());
            self.violate(Rule::NoRedundantWrite, || text);
        }
    }

    /// A lost watch makes the engine not ready.
    pub(crate) fn check_readiness(&mut self, process: usize, resource: WatchedResource) {
        let now = monotonic(self.now);
        let Some(engine) = &self.processes[process].engine else { return };
        self.coverage.count_rule(Rule::AccurateReadiness);
        if engine.report(now).is_ready() {
            let text = format!("p{process} is ready without a watch of {}", resource.as_str());
            self.violate(Rule::AccurateReadiness, || text);
        }
    }
}

fn takes_effect(api: &MemoryApi, write: &Write, known: Option<&Object>) -> bool {
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

/// The write changes nothing but the trigger time.
fn is_redundant(write: &Write, known: Option<&Object>) -> bool {
    let (Write::Update(new), Some(known)) = (write, known) else { return false };
    let (a, b) = (new.meta(), known.meta());
    let annotations =
        |meta: &endpointd_model::Meta| meta.annotations.with(names::TRIGGER_TIME, None);
    let same_meta = a.labels == b.labels
        && annotations(a) == annotations(b)
        && a.owners == b.owners
        && a.finalizers == b.finalizers;
    let same_content = match (new, known) {
        // Upstream reuses a placeholder when another slice is deleted in the same sync.
        (Object::Slice(new), Object::Slice(known)) => {
            !new.endpoints.is_empty()
                && new.endpoints == known.endpoints
                && new.ports == known.ports
        }
        (Object::Endpoints(new), Object::Endpoints(known)) => new.subsets == known.subsets,
        (Object::ServiceStatus(new), Object::ServiceStatus(known)) => new == known,
        (
            Object::Slice(_)
            | Object::Endpoints(_)
            | Object::ServiceStatus(_)
            | Object::MultiCluster(_),
            _,
        ) => false,
    };
    same_meta && same_content
}
