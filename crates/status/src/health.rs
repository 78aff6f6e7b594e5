//! Whether this process lives, and whether it may be relied on. Pure: from a view of the board to a
//! list of checks.

use endpointd_engine::{EngineStatus, WatchStatus};

use crate::board::{HEARTBEAT_AGE_MAX, StatusSnapshot};

/// One thing that must hold, and why it does not, if so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub problem: Option<String>,
}

/// What a restart could mend.
pub fn live(view: &StatusSnapshot) -> Vec<Check> {
    vec![
        Check { name: "process", problem: view.failed.as_deref().map(str::to_owned) },
        Check { name: "engine", problem: stuck(view) },
    ]
}

/// What must hold before this process may lead, or go on leading: a complete picture of every kind
/// and a watch that tells what changes. A standby is ready: it could take over.
pub fn ready(view: &StatusSnapshot) -> Vec<Check> {
    let mut checks = live(view);
    match &view.report {
        None => checks.push(Check {
            name: "report",
            problem: Some("nothing reported yet: the engine is starting".to_owned()),
        }),
        Some((report, _)) => checks.extend(watches(report)),
    }
    checks
}

fn watches(report: &EngineStatus) -> impl Iterator<Item = Check> {
    report
        .watches
        .iter()
        .map(|kind| Check { name: kind.resource.as_str(), problem: not_watched(kind) })
}

fn not_watched(kind: &WatchStatus) -> Option<String> {
    match (&kind.disconnected_reason, kind.is_synced) {
        (Some(reason), _) => Some(format!("the watch is not alive: {reason}")),
        (None, false) => Some("the first picture is not complete".to_owned()),
        (None, true) => None,
    }
}

fn stuck(view: &StatusSnapshot) -> Option<String> {
    let age = view.heartbeat_age;
    (age > HEARTBEAT_AGE_MAX).then(|| format!("no sign of life for {} s", age.as_secs()))
}
