//! Which rules of the contract the worlds of a run have touched.
//!
//! A rule has a name that starts with its section in the contract (2 pods, 3 Endpoints, 4 slices,
//! 5 topology hints, 6 mirroring), and a test on one sync. A run of some size that leaves a rule
//! out has not shown what it claims to show.

mod endpoints;
mod mirror;
mod pods;
mod slices;
mod topology;

use std::collections::BTreeMap;

use endpointd_model::{
    Controller, EndpointSlice, Endpoints, Labels, Object, Pod, Service, Write, names,
};
use serde_json::Value;

use crate::case::WorldText;
use crate::choice::{Sync, Turn};

/// From this many worlds on every rule must be hit.
pub const WORLDS_MIN: u64 = 3000;

/// One rule of the contract.
pub struct Rule {
    pub name: &'static str,
    holds: fn(&Seen) -> bool,
}

const fn rule(name: &'static str, holds: fn(&Seen) -> bool) -> Rule {
    Rule { name, holds }
}

/// How often each rule was hit.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    n_by_name: BTreeMap<&'static str, u64>,
}

impl Coverage {
    pub fn see(&mut self, sync: &Sync) {
        let seen = Seen::of(sync);
        for rule in rules(sync.controller) {
            if (rule.holds)(&seen) {
                *self.n_by_name.entry(rule.name).or_default() += 1;
            }
        }
    }

    pub fn add(&mut self, other: &Self) {
        for (name, n) in &other.n_by_name {
            *self.n_by_name.entry(name).or_default() += n;
        }
    }

    /// Every rule of the controllers, and how often it was hit.
    pub fn table(&self, controllers: &[Controller]) -> BTreeMap<&'static str, u64> {
        let names = controllers.iter().flat_map(|one| rules(*one)).map(|rule| rule.name);
        names.map(|name| (name, self.n_by_name.get(name).copied().unwrap_or(0))).collect()
    }
}

fn rules(controller: Controller) -> Box<dyn Iterator<Item = &'static Rule>> {
    match controller {
        Controller::Slices => {
            Box::new(pods::RULES.iter().chain(slices::RULES).chain(topology::RULES))
        }
        Controller::Endpoints => Box::new(pods::RULES.iter().chain(endpoints::RULES)),
        Controller::Mirror => Box::new(mirror::RULES.iter()),
    }
}

/// A sync, and what many rules ask for.
struct Seen<'a> {
    sync: &'a Sync<'a>,
    /// As JSON, where spelling matters.
    text: &'a WorldText,
    service: Option<&'a Service>,
    matched: Vec<&'a Pod>,
    endpoints: Option<&'a Endpoints>,
    /// Slices that are ours by label, those being deleted included.
    slices: Vec<&'a EndpointSlice>,
}

impl<'a> Seen<'a> {
    fn of(sync: &'a Sync<'a>) -> Self {
        let before = sync.before;
        let service = before.services.get(sync.key);
        let selects = |pod: &&Pod| {
            service.is_some_and(|service| {
                !service.selector.is_empty()
                    && pod.namespace == service.namespace
                    && service.selector.selects(&pod.labels)
            })
        };
        let manager = match sync.controller {
            Controller::Mirror => names::MANAGED_BY_MIRROR,
            Controller::Slices | Controller::Endpoints => names::MANAGED_BY_SLICES,
        };
        let is_ours = |labels: &Labels| {
            labels.has(names::SERVICE_NAME, &sync.key.name)
                && labels.has(names::MANAGED_BY, manager)
        };
        let then = sync.case.then.as_ref().map(|then| &then.world);
        Self {
            sync,
            text: match (sync.turn, then) {
                (Turn::Then, Some(then)) => then,
                _ => &sync.case.world,
            },
            service,
            matched: before.pods.values().filter(selects).collect(),
            endpoints: before.endpoints.get(sync.key),
            slices: before.slices.values().filter(|one| is_ours(&one.meta.labels)).collect(),
        }
    }

    /// The pods that are published if anything is.
    fn live(&self) -> impl Iterator<Item = &'a Pod> {
        self.matched.iter().copied().filter(|pod| !pod.ips.is_empty())
    }

    fn any_pod(&self, holds: impl Fn(&Pod) -> bool) -> bool {
        self.live().any(holds)
    }

    /// A pod as JSON that the selector matches.
    fn any_pod_text(&self, holds: impl Fn(&Value) -> bool) -> bool {
        // Sorted by name, because the world's pods are.
        let is_matched = |pod: &&Value| {
            let name = pod["metadata"]["name"].as_str().unwrap_or("");
            self.matched.binary_search_by(|one| one.name.as_ref().cmp(name)).is_ok()
        };
        self.text.pods.iter().filter(is_matched).any(holds)
    }

    fn service_is(&self, holds: impl Fn(&Service) -> bool) -> bool {
        self.service.is_some_and(holds)
    }

    /// The Service's ports as JSON.
    fn any_port(&self, holds: impl Fn(&Value) -> bool) -> bool {
        let services = self.text.services.iter();
        let mut ports = services.filter_map(|one| one["spec"]["ports"].as_array()).flatten();
        ports.any(holds)
    }

    fn created(&self) -> impl Iterator<Item = &'a EndpointSlice> {
        self.sync.plan.writes.iter().filter_map(|write| match write {
            Write::Create(Object::Slice(slice)) => Some(slice),
            _ => None,
        })
    }

    /// Old and new version of each slice that is updated.
    fn updated(&self) -> impl Iterator<Item = (&'a EndpointSlice, &'a EndpointSlice)> {
        let before = self.sync.before;
        self.sync.plan.writes.iter().filter_map(|write| match write {
            Write::Update(Object::Slice(new)) => Some((before.slices.get(&new.meta.key())?, new)),
            _ => None,
        })
    }

    fn deleted(&self) -> impl Iterator<Item = &'a EndpointSlice> {
        let before = self.sync.before;
        self.sync.plan.writes.iter().filter_map(|write| match write {
            Write::Delete(target) => before.slices.get(&target.key),
            _ => None,
        })
    }

    fn writes_nothing(&self) -> bool {
        self.sync.plan.writes.is_empty()
    }

    /// Something upstream said, by a part of it.
    fn hears(&self, part: &str) -> bool {
        self.sync.upstream.events.iter().any(|event| event.contains(part))
    }
}
