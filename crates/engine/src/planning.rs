//! From a key to its plan: the snapshot, the pure plan, and what must be confirmed before the plan
//! may delete anything.

use std::panic::{AssertUnwindSafe, catch_unwind};

use endpointd_model::{
    Controller, Failure, FailureKind, Key, LiveRead, PublishedResource, SharedStr, Write,
};
use endpointd_plan::{CarriedState, Plan, Settings};

use crate::cache::Cache;
use crate::controllers::ControllerState;

/// A plan, and the facts it depends on that the cache cannot be sure of.
#[derive(Debug, Default)]
pub struct Planned {
    pub plan: Plan,
    /// Objects whose absence from the cache makes the plan delete something.
    pub absent: Vec<LiveRead>,
    /// Nodes of pods that the cache does not hold, sorted.
    pub unknown_nodes: Vec<SharedStr>,
}

/// A panic in a plan is a bug that must not stop the other keys: it fails this key only.
pub fn plan(
    cache: &Cache,
    controller: &ControllerState,
    settings: &Settings,
    key: &Key,
) -> Result<Planned, Failure> {
    let planned = catch_unwind(AssertUnwindSafe(|| plan_key(cache, controller, settings, key)));
    planned.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
        let message = format!("planning failed, which is a bug: {text}").into();
        Failure { kind: FailureKind::Invalid, message }
    })
}

fn plan_key(
    cache: &Cache,
    controller: &ControllerState,
    settings: &Settings,
    key: &Key,
) -> Planned {
    let none = CarriedState::default();
    let carried = controller.keys.get(key).map_or(&none, |entry| &entry.carried);
    let conflicting_names = controller.keys.conflicting_slice_names(key);
    match controller.settings.controller {
        Controller::Slices => {
            let inputs = cache.slice_inputs(key, conflicting_names);
            let plan = endpointd_plan::slices(&inputs.snapshot(carried), settings);
            Planned { plan, absent: Vec::new(), unknown_nodes: inputs.unknown_nodes() }
        }
        Controller::Endpoints => plan_endpoints(cache, key, carried),
        Controller::Mirror => {
            let inputs = cache.mirror_inputs(key, conflicting_names);
            let plan = endpointd_plan::mirror(&inputs.snapshot(), settings);
            let mut absent = Vec::new();
            if has_delete(&plan) {
                absent.extend((!inputs.has_service()).then(|| LiveRead::Service(key.clone())));
                let endpoints = || LiveRead::Object(PublishedResource::Endpoints, key.clone());
                absent.extend((!inputs.has_endpoints()).then(endpoints));
            }
            Planned { plan, absent, unknown_nodes: Vec::new() }
        }
    }
}

fn plan_endpoints(cache: &Cache, key: &Key, carried: &CarriedState) -> Planned {
    let inputs = cache.endpoints_inputs(key);
    if !inputs.has_service() && inputs.is_lock() {
        // Leader election locks are Endpoints without a Service by design.
        return Planned::default();
    }
    let plan = endpointd_plan::endpoints(&inputs.snapshot(carried));
    let is_orphan = !inputs.has_service() && has_delete(&plan);
    let absent = is_orphan.then(|| LiveRead::Service(key.clone())).into_iter().collect();
    Planned { plan, absent, unknown_nodes: Vec::new() }
}

fn has_delete(plan: &Plan) -> bool {
    plan.writes.iter().any(|write| matches!(write, Write::Delete(_)))
}
