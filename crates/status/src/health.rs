//! Whether this process lives, and whether it may be relied on. Pure: from a view of the board to a
//! list of checks.

use endpointd_engine::{KindReport, Report};

use crate::board::{HEARTBEAT_AGE_MAX, View};

/// One thing that must hold, and why it does not, if so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub problem: Option<String>,
}

/// What a restart could mend.
pub fn live(view: &View) -> Vec<Check> {
    vec![
        Check { name: "process", problem: view.failed.as_deref().map(str::to_owned) },
        Check { name: "engine", problem: stuck(view) },
    ]
}

/// What must hold before this process may lead, or go on leading: a complete picture of every kind
/// and a watch that tells what changes. A standby is ready: it could take over.
pub fn ready(view: &View) -> Vec<Check> {
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

fn watches(report: &Report) -> impl Iterator<Item = Check> {
    report.kinds.iter().map(|kind| Check { name: kind.kind.as_str(), problem: not_watched(kind) })
}

fn not_watched(kind: &KindReport) -> Option<String> {
    match (&kind.lost, kind.is_listed) {
        (Some(reason), _) => Some(format!("the watch is not alive: {reason}")),
        (None, false) => Some("the first picture is not complete".to_owned()),
        (None, true) => None,
    }
}

fn stuck(view: &View) -> Option<String> {
    let age = view.heartbeat_age;
    (age > HEARTBEAT_AGE_MAX).then(|| format!("no sign of life for {} s", age.as_secs()))
}
