//! From a key to its plan: the snapshot, the pure plan, and what must be confirmed before the plan
//! may delete anything.

mod multicluster;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use endpointd_model::{
    Controller, Failure, FailureKind, Key, LiveRead, PublishedResource, Selection, Service,
    SharedStr, Write,
};
use endpointd_plan::{CarriedState, Plan, Settings};

use crate::MonotonicTime;
use crate::absence::Assumptions;
use crate::cache::{Cache, EndpointsInputs};
use crate::controllers::ControllerState;
use crate::imported::ImportReport;
use crate::in_place::{self, PlacementChange};
use crate::key_table::KeyTable;
use crate::sources::Sources;

/// A plan, and the facts it depends on that the cache cannot be sure of.
#[derive(Debug, Default)]
pub struct Planned {
    pub plan: Plan,
    pub assumptions: Assumptions,
    /// What must be read before anything is un-published because it is missing: nodes of pods that
    /// the cache does not hold, and the pods of the namespace if a list did not contain some of them.
    pub shared_reads: Vec<LiveRead>,
    /// Pods that the plan un-publishes because no list has contained them. None once the pods of the
    /// key have been compared with what was published before the start.
    pub unlisted: Option<BTreeSet<SharedStr>>,
    pub placement: PlacementChange,
    /// What the plan of an import has found.
    pub import: Option<ImportReport>,
}

/// A panic in a plan is a bug that must not stop the other keys: it fails this key only.
pub fn plan(
    (cache, sources): (&Cache, &Sources),
    controller: &ControllerState,
    settings: &Settings,
    key: &Key,
    now: MonotonicTime,
) -> Result<Planned, Failure> {
    let planned = catch_unwind(AssertUnwindSafe(|| match controller.settings.controller {
        Controller::MultiCluster => multicluster::plan(cache, sources, key, now),
        Controller::Slices | Controller::Endpoints | Controller::Mirror | Controller::Import => {
            plan_key(cache, controller, settings, key)
        }
    }));
    let planned = planned.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
        let message = format!("planning failed, which is a bug: {text}").into();
        Failure { kind: FailureKind::Invalid, message }
    })?;
    in_place::check(cache, controller, settings, (key, &planned));
    Ok(planned)
}

fn plan_key(
    cache: &Cache,
    controller: &ControllerState,
    settings: &Settings,
    key: &Key,
) -> Planned {
    let keys = &controller.keys;
    let (none, entry) = (CarriedState::default(), keys.get(key));
    let carried = entry.map_or(&none, |entry| &entry.carried);
    let is_compared = entry.is_some_and(|entry| entry.are_pods_compared);
    let compares_pods = !is_compared && cache.service(key).is_some_and(publishes_pods);
    let (mut unlisted, mut placement) = (None, PlacementChange::Forget);
    let (plan, absent, mut shared_reads) = match controller.settings.controller {
        Controller::Slices => {
            if let Some((plan, placement)) = in_place::plan(cache, controller, settings, key) {
                return Planned { plan, placement, ..Planned::default() };
            }
            let inputs = cache.slice_inputs(key);
            let snapshot = inputs.snapshot(carried);
            let plan = endpointd_plan::slices(&snapshot, settings);
            placement = in_place::placement(cache, controller, settings, (&snapshot, &plan));
            let nodes = inputs.unknown_nodes().into_iter().map(LiveRead::Node);
            unlisted = compares_pods.then(|| inputs.uncached_pods(cache, key));
            (plan, Vec::new(), nodes.collect())
        }
        Controller::Endpoints => {
            let inputs = cache.endpoints_inputs(key);
            let (plan, absent) = plan_endpoints(&inputs, keys, key, (carried, settings));
            unlisted = compares_pods.then(|| inputs.uncached_pods(cache, key));
            (plan, absent, Vec::new())
        }
        Controller::Mirror => {
            let inputs = cache.mirror_inputs(key);
            let plan = endpointd_plan::mirror(&inputs.snapshot(), settings);
            let mut absent = Vec::new();
            if has_delete(&plan) {
                absent.extend((!inputs.has_service()).then(|| LiveRead::Service(key.clone())));
                let endpoints = || LiveRead::Object(PublishedResource::Endpoints, key.clone());
                absent.extend((!inputs.has_endpoints()).then(endpoints));
            }
            (plan, absent, Vec::new())
        }
        Controller::Import => {
            let inputs = cache.import_inputs(key);
            let snapshot = inputs.snapshot(carried);
            let plan = endpointd_plan::import(&snapshot, settings).with_condition(snapshot.service);
            // A condition that says so is confirmed as well as a deletion.
            let absent = inputs.absent_source().filter(|_| !plan.writes.is_empty());
            let absent = absent.map(|source| LiveRead::Service(source.clone()));
            (plan, absent.into_iter().collect(), Vec::new())
        }
        Controller::MultiCluster => return Planned::default(),
    };
    let reported = entry.map(|entry| entry.reported_deletions).unwrap_or_default();
    let assumptions = match is_left_behind(cache, controller.settings.controller, key) {
        true if has_delete(&plan) => Assumptions::of_left_behind(&plan.writes, key),
        true | false => Assumptions::new(&plan.writes, absent, reported),
    };
    if is_of_pods(controller.settings.controller) && cache.has_unlisted_pods(&key.namespace) {
        shared_reads.push(LiveRead::Pods(key.namespace.clone()));
    }
    Planned { plan, assumptions, shared_reads, unlisted, placement, import: None }
}

fn plan_endpoints(
    inputs: &EndpointsInputs<'_>,
    keys: &KeyTable,
    key: &Key,
    (carried, settings): (&CarriedState, &Settings),
) -> (Plan, Vec<LiveRead>) {
    let service = LiveRead::Service(key.clone());
    if inputs.has_service() {
        let failures = keys.failure_state(key);
        if failures.is_some_and(|failures| failures.confirmed.is_absent(&service)) {
            // The watch has not reported yet that the Service is deleted.
            return (Plan::default(), Vec::new());
        }
    } else if inputs.is_lock() {
        // Leader election locks are Endpoints without a Service by design.
        return (Plan::default(), Vec::new());
    }
    let plan = endpointd_plan::endpoints(&inputs.snapshot(carried), settings);
    let is_orphan = !inputs.has_service() && has_delete(&plan);
    (plan, is_orphan.then_some(service).into_iter().collect())
}

/// Whether all that this controller can do for the key is to delete what is left of a time when the
/// Service had a selector.
pub fn is_left_behind(cache: &Cache, controller: Controller, key: &Key) -> bool {
    is_of_pods(controller) && cache.service(key).is_some_and(|service| !publishes_pods(service))
}

fn is_of_pods(controller: Controller) -> bool {
    match controller {
        Controller::Slices | Controller::Endpoints => true,
        Controller::Mirror | Controller::Import | Controller::MultiCluster => false,
    }
}

fn publishes_pods(service: &Service) -> bool {
    match service.selection() {
        Selection::Pods(_) => true,
        Selection::Manual | Selection::External => false,
    }
}

fn has_delete(plan: &Plan) -> bool {
    plan.writes.iter().any(|write| matches!(write, Write::Delete(_)))
}
