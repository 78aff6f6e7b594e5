//! Liveness and readiness. Pure: from a [`StatusSnapshot`] to a list of checks.

use endpointd_engine::{EngineStatus, WatchStatus};
use endpointd_model::WatchedResource;

use crate::handle::{HEARTBEAT_AGE_MAX, StatusSnapshot};

/// One condition that must hold; `problem` says why it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub problem: Option<String>,
}

/// Conditions that a restart could repair.
pub fn live(snapshot: &StatusSnapshot) -> Vec<Check> {
    vec![
        Check { name: "process", problem: snapshot.failure.as_deref().map(str::to_owned) },
        Check { name: "engine", problem: missing_heartbeat(snapshot) },
    ]
}

/// Liveness, and for every watched resource a complete list and a connected watch. A standby is
/// ready: it could take over.
pub fn ready(snapshot: &StatusSnapshot) -> Vec<Check> {
    let mut checks = live(snapshot);
    match &snapshot.engine {
        None => checks.push(Check {
            name: "report",
            problem: Some("no status published yet: the engine is starting".to_owned()),
        }),
        Some((status, _)) => checks.extend(watches(status)),
    }
    checks
}

fn watches(status: &EngineStatus) -> impl Iterator<Item = Check> {
    let check = |watch: &WatchStatus| Check {
        name: watch.resource.as_str(),
        problem: watch_problem(status, watch),
    };
    status.watches.iter().map(check)
}

fn watch_problem(status: &EngineStatus, watch: &WatchStatus) -> Option<String> {
    match (&watch.disconnected_reason, watch.is_synced) {
        (Some(reason), true) => Some(format!("watch disconnected: {reason}")),
        (Some(reason), false) => {
            Some(format!("cannot be listed: {reason}; {}", waiting(status, watch.resource)))
        }
        (None, false) => {
            Some(format!("initial list not complete; {}", waiting(status, watch.resource)))
        }
        (None, true) => None,
    }
}

/// Which controllers plan nothing before this resource is listed.
fn waiting(status: &EngineStatus, resource: WatchedResource) -> String {
    let waiting = status.controllers.iter().filter(|one| one.waits_for.contains(&resource));
    let names: Vec<&str> = waiting.map(|one| one.controller.name()).collect();
    format!("waiting for it: {}", names.join(", "))
}

fn missing_heartbeat(snapshot: &StatusSnapshot) -> Option<String> {
    let age = snapshot.heartbeat_age;
    (age > HEARTBEAT_AGE_MAX).then(|| format!("no heartbeat for {} s", age.as_secs()))
}
