//! The conditions of this cluster's export and import (M9, M10). They are written when they say
//! something else than before.

use std::collections::BTreeSet;

use endpointd_model::{
    ClusterId, Condition, ConditionStatus, ImportType, Meta, MultiClusterObject, ServiceExport,
    ServiceImportStatus, SharedStr, SliceObjects, Timestamp, Write, derived_name,
};

use super::copies::{Copies, Overlap};
use super::derived::Derived;
use super::members::{ExportState, Members, export_state};
use super::merge::{Effective, Merged};
use super::{Foreign, MultiClusterSnapshot, listed, object};

/// A condition without what its history adds.
struct Statement {
    about: &'static str,
    status: ConditionStatus,
    reason: String,
    message: String,
    presence: Presence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Always,
    /// Only if an earlier statement must be taken back.
    IfThere,
}

impl Statement {
    fn new(
        about: &'static str,
        status: ConditionStatus,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let (reason, message) = (reason.into(), message.into());
        Self { about, status, reason, message, presence: Presence::Always }
    }

    fn if_there(self) -> Self {
        Self { presence: Presence::IfThere, ..self }
    }
}

/// None if the status says so already.
pub fn export_write(
    snapshot: &MultiClusterSnapshot,
    members: &Members,
    merged: Option<&Merged>,
    foreign: Foreign,
) -> Option<Write> {
    let export = snapshot.home.export?;
    let state = export_state(&snapshot.home);
    let mut statements = match state {
        ExportState::NotExported => return None,
        ExportState::NoService => {
            let reason = format!("There is no Service {}.", snapshot.key);
            invalid("NoService", reason)
        }
        ExportState::InvalidServiceType => {
            invalid("InvalidServiceType", "A Service of type ExternalName has no endpoints.".into())
        }
        ExportState::Valid => valid(snapshot, foreign),
    };
    // Without the lists of all clusters, nobody knows.
    if members.unseen.is_empty() {
        let conflicts = merged.filter(|_| state == ExportState::Valid);
        statements.push(conflict(conflicts));
    }
    let conditions = stated(&export.conditions, &export.meta, statements, snapshot.now);
    (conditions != export.conditions)
        .then(|| ServiceExport { conditions, ..export.clone() })
        .map(|export| Write::Update(object(MultiClusterObject::ExportStatus(export))))
}

fn invalid(reason: &str, message: String) -> Vec<Statement> {
    let text = "The export is not valid.";
    vec![
        Statement::new("Valid", ConditionStatus::False, reason, message),
        Statement::new("Ready", ConditionStatus::False, "Pending", text),
    ]
}

fn valid(snapshot: &MultiClusterSnapshot, foreign: Foreign) -> Vec<Statement> {
    let ready = match foreign {
        Foreign::Nothing => {
            let text = "Other clusters can import the Service.";
            Statement::new("Ready", ConditionStatus::True, "Ready", text)
        }
        Foreign::Import => {
            let text = format!("ServiceImport {} is managed by somebody else.", snapshot.key);
            Statement::new("Ready", ConditionStatus::False, "Failed", text)
        }
    };
    let text = "The Service can be exported.";
    vec![Statement::new("Valid", ConditionStatus::True, "Valid", text), ready]
}

/// On all exports of the Service, as the KEP recommends.
fn conflict(merged: Option<&Merged>) -> Statement {
    let conflicts = merged.map_or(&[][..], |merged| &merged.conflicts);
    if conflicts.is_empty() {
        let text = "No other export disagrees.";
        return Statement::new("Conflict", ConditionStatus::False, "NoConflicts", text);
    }
    let reasons: Vec<&str> = conflicts.iter().map(|one| one.kind.as_str()).collect();
    let sentences: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
    Statement::new("Conflict", ConditionStatus::True, reasons.join(","), sentences.join(" "))
}

pub fn of_import(
    snapshot: &MultiClusterSnapshot,
    members: &Members,
    copies: &Copies,
    derived: &Derived,
    effective: &Effective,
) -> ServiceImportStatus {
    let Some(import) = snapshot.import else { return ServiceImportStatus::default() };
    let ids = members.clusters().map(ClusterId::as_str).map(SharedStr::from);
    let clusters: BTreeSet<SharedStr> = ids.chain(members.unseen.iter().cloned()).collect();
    let has_slices = !copies.is_empty() || members.has_unseen_slices();
    let mut statements = vec![ready(snapshot, derived, effective)];
    // What is published of unknown clusters stays, and so does what is said about it.
    if members.unseen.is_empty() {
        statements.extend([reachable(copies), overlap(copies.overlap())]);
    }
    ServiceImportStatus {
        slice_objects: Some(if has_slices { SliceObjects::Present } else { SliceObjects::Absent }),
        clusters: clusters.into_iter().collect(),
        conditions: stated(&import.status.conditions, &import.meta, statements, snapshot.now),
    }
}

fn ready(snapshot: &MultiClusterSnapshot, derived: &Derived, effective: &Effective) -> Statement {
    let service = derived_name(&snapshot.key);
    let pending = |text: String| Statement::new("Ready", ConditionStatus::False, "Pending", text);
    if effective.families.is_empty() {
        let text = "This cluster has no address family of the exported Services.";
        return Statement::new("Ready", ConditionStatus::False, "IPFamilyNotSupported", text);
    }
    if *derived == Derived::Foreign {
        return pending(format!(
            "Service {}/{service} exists and is managed by somebody else.",
            snapshot.key.namespace
        ));
    }
    let is_served = effective.import_type == ImportType::Headless || derived.addresses().is_some();
    match is_served {
        true => Statement::new("Ready", ConditionStatus::True, "Ready", "Clients can use it."),
        false => pending(format!("Service {service} has no addresses yet.")),
    }
}

fn reachable(copies: &Copies) -> Statement {
    const ABOUT: &str = "endpointd/SourcesReachable";
    let demoted: Vec<SharedStr> = copies.demoted().into_iter().map(Into::into).collect();
    if demoted.is_empty() {
        let text = "No endpoint is demoted.";
        return Statement::new(ABOUT, ConditionStatus::True, "AllReachable", text).if_there();
    }
    Statement::new(ABOUT, ConditionStatus::False, "ClusterLost", format!("{}.", listed(&demoted)))
}

fn overlap(found: Option<Overlap>) -> Statement {
    const ABOUT: &str = "endpointd/AddressesOverlap";
    let Some(Overlap { address, clusters: [one, other], n_more }) = found else {
        let text = "No two clusters have the same address.";
        return Statement::new(ABOUT, ConditionStatus::False, "NoOverlap", text).if_there();
    };
    let more = if n_more > 0 { format!(", and {n_more} more") } else { String::new() };
    let text = format!("{address} is an address in {one} and in {other}{more}.");
    Statement::new(ABOUT, ConditionStatus::True, "AddressesOverlap", text)
}

/// The conditions with these statements. Others stay; the transition time changes with the status.
fn stated(
    observed: &[Condition],
    meta: &Meta,
    statements: Vec<Statement>,
    now: Timestamp,
) -> Vec<Condition> {
    let mut conditions = observed.to_vec();
    for Statement { about, status, reason, message, presence } in statements {
        let at = conditions.iter().position(|one| *one.condition_type == *about);
        let before = at.map(|at| &conditions[at]);
        if before.is_none() && presence == Presence::IfThere {
            continue;
        }
        let since = before.filter(|one| one.status == status).and_then(|one| one.last_transition);
        let condition = Condition {
            condition_type: about.into(),
            status,
            reason: reason.into(),
            message: message.into(),
            observed_generation: meta.generation,
            last_transition: Some(since.unwrap_or_else(|| whole_seconds(now))),
        };
        match at {
            Some(at) => conditions[at] = condition,
            None => conditions.push(condition),
        }
    }
    conditions
}

/// As the API server stores it.
fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
