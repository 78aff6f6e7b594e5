//! Which rules of `docs/spec.md` the cases of a run cover.
//!
//! The name of a rule starts with its section (2 pods, 3 Endpoints, 4 slices, 5 topology hints, 6
//! mirroring); a predicate on one sync decides whether the sync covers it. A large run that does
//! not cover a rule fails.

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

use crate::case::ClusterObjects;
use crate::deliberate::{Sync, SyncStep};

/// A run of at least so many cases must cover every rule.
pub const CASES_MIN: u64 = 3000;

/// One rule.
pub struct Rule {
    pub name: &'static str,
    holds: fn(&Observed) -> bool,
}

const fn rule(name: &'static str, holds: fn(&Observed) -> bool) -> Rule {
    Rule { name, holds }
}

/// The number of syncs that covered each rule.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    n_by_name: BTreeMap<&'static str, u64>,
}

impl Coverage {
    pub fn record(&mut self, sync: &Sync) {
        let observed = Observed::of(sync);
        for rule in rules(sync.controller) {
            if (rule.holds)(&observed) {
                *self.n_by_name.entry(rule.name).or_default() += 1;
            }
        }
    }

    pub fn add(&mut self, other: &Self) {
        for (name, n) in &other.n_by_name {
            *self.n_by_name.entry(name).or_default() += n;
        }
    }

    /// Every rule of the controllers with the number of syncs that covered it.
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
        // Upstream has no such controllers.
        Controller::Import | Controller::MultiCluster => Box::new(std::iter::empty()),
    }
}

/// A sync with the values that many rules need.
struct Observed<'a> {
    sync: &'a Sync<'a>,
    /// The objects as JSON, for rules about spelling.
    text: &'a ClusterObjects,
    service: Option<&'a Service>,
    matched: Vec<&'a Pod>,
    endpoints: Option<&'a Endpoints>,
    /// Slices that the controller manages by label, including those that are being deleted.
    slices: Vec<&'a EndpointSlice>,
}

impl<'a> Observed<'a> {
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
            Controller::Import => names::MANAGED_BY_IMPORT,
            Controller::MultiCluster => names::MANAGED_BY_CLUSTER_IMPORT,
            Controller::Slices | Controller::Endpoints => names::MANAGED_BY_SLICES,
        };
        let is_managed = |labels: &Labels| {
            labels.has(names::SERVICE_NAME, &sync.key.name)
                && labels.has(names::MANAGED_BY, manager)
        };
        let then = sync.case.then.as_ref().map(|then| &then.objects);
        Self {
            sync,
            text: match (sync.step, then) {
                (SyncStep::AfterChange, Some(then)) => then,
                _ => &sync.case.objects,
            },
            service,
            matched: before.pods.values().filter(selects).collect(),
            endpoints: before.endpoints.get(sync.key),
            slices: before.slices.values().filter(|one| is_managed(&one.meta.labels)).collect(),
        }
    }

    /// The matching pods with an address.
    fn live(&self) -> impl Iterator<Item = &'a Pod> {
        self.matched.iter().copied().filter(|pod| !pod.ips.is_empty())
    }

    fn any_pod(&self, holds: impl Fn(&Pod) -> bool) -> bool {
        self.live().any(holds)
    }

    /// Whether the predicate holds for the JSON of a matching pod.
    fn any_pod_text(&self, holds: impl Fn(&Value) -> bool) -> bool {
        // `matched` is sorted by name, because the pods of a cluster state are.
        let is_matched = |pod: &&Value| {
            let name = pod["metadata"]["name"].as_str().unwrap_or("");
            self.matched.binary_search_by(|one| one.name.as_ref().cmp(name)).is_ok()
        };
        self.text.pods.iter().filter(is_matched).any(holds)
    }

    fn service_is(&self, holds: impl Fn(&Service) -> bool) -> bool {
        self.service.is_some_and(holds)
    }

    /// Whether the predicate holds for the JSON of a port of the Service.
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

    /// The old and the new version of each updated slice.
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

    /// Whether one of upstream's events contains the text.
    fn has_event(&self, part: &str) -> bool {
        self.sync.upstream.events.iter().any(|event| event.contains(part))
    }
}
