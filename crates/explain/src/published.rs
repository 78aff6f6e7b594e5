//! What is published, compared with the plan, and who publishes it: EPD307 and EPD801 to EPD807.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{EndpointSlice, EventReason, PublishedResource, Timestamp};
use endpointd_plan::ExclusionReason;
use endpointd_wire::Malformed;
use serde_json::Value;

use crate::cluster_set::LEASE_PREFIX;
use crate::code::{Code, Level};
use crate::facts::{Mode, PodState, ServiceFacts};
use crate::fields::{self, counted, text};
use crate::finding::{Finding, ObjectName};
use crate::objects::event_time;

/// A change that is younger may not have been published yet.
const RECENT_SECS: i64 = 5;
/// Two writers within this time run at the same time.
const SIMULTANEOUS_SECS: i64 = 60;
/// A rejected write is reported this long after its Event.
const EVENT_SECS: i64 = 3600;
const CONTROLLERS: &[&str] = &["endpointd", "kube-controller-manager"];

pub fn explain(facts: &ServiceFacts, findings: &mut Vec<Finding>) {
    findings.extend(truncated(facts));
    findings.extend(decode_errors(facts));
    match facts.context.mode {
        Mode::WhatIf => return,
        Mode::Observed => {}
    }
    let differences = differences(facts);
    let is_late = differences.iter().any(|one| one.code == Code::PublishedDiffers);
    findings.extend(differences);
    findings.extend(rejected(facts));
    findings.extend(two_writers(facts));
    if is_late {
        findings.extend(no_leader(facts));
    }
    let limiter = facts.context.controller.filter(|state| state.is_deletion_limiter_active);
    if limiter.is_some() {
        let message = "endpointd limits deletions: more objects are to be deleted because another \
                       object is missing than is plausible (alert MassDeletionLimited)";
        findings.push(Finding::new(Code::DeletionsLimited, facts.object(), message));
    }
}

/// EPD801.
fn truncated(facts: &ServiceFacts) -> Option<Finding> {
    let excluded = &facts.endpoints_plan.excluded_pods;
    let n_missing =
        excluded.iter().filter(|one| one.reason == ExclusionReason::OverCapacity).count();
    if n_missing == 0 {
        return None;
    }
    let n = facts.endpoints_plan.counts.n_desired;
    let message = format!(
        "Endpoints hold {n} of {} addresses, the slices all of them: clients of Endpoints, \
         deprecated since Kubernetes 1.33, miss {n_missing}",
        n + n_missing
    );
    Some(Finding::new(Code::Truncated, facts.endpoints_object(), message))
}

/// One pod in the slices: whether it is ready, and in which slice.
type Published<'s> = BTreeMap<&'s str, (bool, &'s str)>;

fn by_pod<'s>(slices: impl Iterator<Item = &'s EndpointSlice>) -> Published<'s> {
    let mut by_pod = Published::new();
    for slice in slices {
        for endpoint in &slice.endpoints {
            let Some(target) = &endpoint.target_ref else { continue };
            let entry = by_pod.entry(target.name.as_ref()).or_insert((false, ""));
            if endpoint.is_ready() || entry.1.is_empty() {
                *entry = (entry.0 || endpoint.is_ready(), slice.meta.name.as_ref());
            }
        }
    }
    by_pod
}

/// EPD802, or EPD307 if the change is recent.
fn differences(facts: &ServiceFacts) -> Vec<Finding> {
    if facts.plan.writes.is_empty() || !facts.context.objects.is_complete("EndpointSlice") {
        return Vec::new();
    }
    let published = by_pod(facts.published.iter().copied());
    let desired = by_pod(facts.desired.iter());
    let pods: BTreeSet<&str> = published.keys().chain(desired.keys()).copied().collect();
    let differ: Vec<&str> =
        pods.into_iter().filter(|pod| ready(&published, pod) != ready(&desired, pod)).collect();
    if differ.is_empty() {
        return other_differences(facts).into_iter().collect();
    }
    let (recent, late): (Vec<&str>, Vec<&str>) =
        differ.into_iter().partition(|pod| is_recent(facts, pod));
    let mut findings = Vec::new();
    if let [first, rest @ ..] = recent.as_slice() {
        let message = format!(
            "{first}{} changed less than {RECENT_SECS} s ago: the slice follows",
            others(rest.len())
        );
        findings.push(Finding::new(Code::ReadyJustNow, facts.object(), message));
    }
    for pod in late {
        findings.push(difference(facts, pod, &published, &desired));
    }
    findings
}

/// Absent and not ready differ: an absent pod is not in any slice.
fn ready(slices: &Published, pod: &str) -> Option<bool> {
    slices.get(pod).map(|(is_ready, _)| *is_ready)
}

fn others(n: usize) -> String {
    if n == 0 { String::new() } else { format!(" and {n} more") }
}

fn since(facts: &ServiceFacts, pod: &str) -> Option<Timestamp> {
    let raw = facts.context.objects.get("Pod", &facts.key.namespace, pod)?;
    let deleted = fields::time(raw, "/metadata/deletionTimestamp");
    let changed = fields::condition(raw, "Ready")
        .and_then(|ready| fields::time(ready, "/lastTransitionTime"));
    // The deletion timestamp is the end of the grace period.
    let deleted = deleted.map(|due| {
        let grace = fields::number(raw, "/metadata/deletionGracePeriodSeconds").unwrap_or(0);
        Timestamp::from_second(due.as_second() - grace).unwrap_or(due)
    });
    deleted.max(changed).or_else(|| fields::time(raw, "/metadata/creationTimestamp"))
}

fn is_recent(facts: &ServiceFacts, pod: &str) -> bool {
    let now = facts.context.now.as_second();
    since(facts, pod).is_some_and(|since| now - since.as_second() < RECENT_SECS)
}

fn difference(
    facts: &ServiceFacts,
    pod: &str,
    published: &Published,
    desired: &Published,
) -> Finding {
    let age = since(facts, pod).map_or_else(String::new, |since| {
        format!(" for {}", fields::age(facts.context.now, since))
    });
    let slice = published.get(pod).map_or("", |(_, slice)| slice);
    let selected = facts.pods.iter().find(|one| one.name() == pod);
    let message = match (ready(published, pod), ready(desired, pod)) {
        (None, Some(true)) => format!("{pod} has been ready{age} and is in no slice"),
        (None, _) => format!("{pod} should have been in a slice{age} and is in none"),
        (Some(_), None) if selected.is_none() => {
            format!("slice {slice} still has {pod}, which the Service does not choose any more")
        }
        (Some(_), None) => format!("slice {slice} still has {pod}, which should not be published"),
        (Some(true), _) => {
            let state = match selected.map(|one| one.state) {
                Some(PodState::WithoutPort) => "has been without a port",
                Some(_) | None => "has not been ready",
            };
            format!("slice {slice} has {pod} as ready, and it {state}{age}")
        }
        (Some(false), _) => {
            format!("slice {slice} has {pod} as not ready, and it has been ready{age}")
        }
    };
    let finding = Finding::new(Code::PublishedDiffers, facts.object(), message);
    match facts.context.controller {
        Some(state) if !state.key_state.is_empty() => {
            finding.evidence(format!("endpointd reports the key as `{}`", state.key_state))
        }
        Some(_) | None => finding,
    }
}

/// The endpoints are right; ports, labels, or hints are not.
fn other_differences(facts: &ServiceFacts) -> Option<Finding> {
    if facts.published.is_empty() {
        let message = "the Service has no slice yet: no controller has processed it";
        let finding = Finding::new(Code::PublishedDiffers, facts.object(), message);
        return Some(finding.level(Level::Warning));
    }
    let names =
        facts.plan.writes.iter().filter(|write| write.resource() == PublishedResource::Slices);
    let names: Vec<String> = names.map(|write| write.key().name.to_string()).collect();
    let ports = |slices: &mut dyn Iterator<Item = &EndpointSlice>| -> BTreeSet<_> {
        slices.map(|slice| slice.ports.clone()).collect()
    };
    let same_ports =
        ports(&mut facts.published.iter().copied()) == ports(&mut facts.desired.iter());
    let (what, level) = match same_ports {
        true => ("labels, annotations, or hints", Level::Info),
        false => ("ports", Level::Error),
    };
    let message = format!(
        "the endpoints are published, and {what} differ from what should be: {}",
        fields::names(&names)
    );
    Some(Finding::new(Code::PublishedDiffers, facts.object(), message).level(level))
}

/// EPD803.
fn rejected(facts: &ServiceFacts) -> Option<Finding> {
    if let Some(error) = facts.context.controller.and_then(|state| state.last_error.as_ref()) {
        let message = format!("endpointd cannot write: {error}");
        return Some(Finding::new(Code::WriteRejected, facts.object(), message));
    }
    if facts.plan.writes.is_empty() && facts.endpoints_plan.writes.is_empty() {
        return None;
    }
    let reasons = [
        EventReason::FailedToUpdateEndpointSlices.as_str(),
        EventReason::FailedToCreateEndpoint.as_str(),
        EventReason::FailedToUpdateEndpoint.as_str(),
    ];
    let objects = facts.context.objects;
    let event = [facts.object(), facts.endpoints_object()]
        .iter()
        .find_map(|object| objects.event(object, &reasons))?;
    let message = text(event, "/message");
    let time = event_time(event)?;
    let is_recent = facts.context.now.as_second() - time.as_second() < EVENT_SECS;
    // Pods without a node have a finding of their own.
    if !is_recent || message.contains("Not Found") {
        return None;
    }
    let age = fields::age(facts.context.now, time);
    let message = format!("writing failed {age} ago: {message}");
    Some(Finding::new(Code::WriteRejected, facts.object(), message))
}

/// EPD804. Only with a difference. A controller can also run without leader election, or with a Lease
/// of another name.
fn no_leader(facts: &ServiceFacts) -> Option<Finding> {
    let objects = facts.context.objects;
    if !objects.is_complete("Lease") || has_just_written(facts) {
        return None;
    }
    let now = facts.context.now.as_second();
    let leases = objects
        .of_kind_anywhere("Lease")
        .filter(|(name, _)| CONTROLLERS.iter().any(|controller| name.name.starts_with(controller)))
        // Those of other clusters say nothing about a controller.
        .filter(|(name, _)| !name.name.starts_with(LEASE_PREFIX));
    let is_current = |lease: &Value| {
        let renewed = fields::time(lease, "/spec/renewTime");
        let duration = fields::number(lease, "/spec/leaseDurationSeconds").unwrap_or(15);
        !text(lease, "/spec/holderIdentity").is_empty()
            && renewed.is_some_and(|renewed| renewed.as_second() + duration >= now)
    };
    let mut names = Vec::new();
    for (name, lease) in leases {
        if is_current(lease) {
            return None;
        }
        names.push(format!("{}/{}", name.namespace, name.name));
    }
    let (level, lease) = match names.as_slice() {
        [] => {
            (Level::Warning, "no Lease of endpointd or kube-controller-manager exists".to_owned())
        }
        all => (Level::Error, format!("no process holds the Lease {}", fields::names(all))),
    };
    let message =
        format!("{lease}: unless a controller runs without leader election, nothing is published");
    Some(Finding::new(Code::NoLeader, facts.object(), message).level(level))
}

/// One of the controllers has written in this namespace within the last minute, so it runs.
fn has_just_written(facts: &ServiceFacts) -> bool {
    let (objects, namespace) = (facts.context.objects, &facts.key.namespace);
    let published = ["EndpointSlice", "Endpoints"];
    let mut published = published.iter().flat_map(|kind| objects.of_kind(kind, namespace));
    published.any(|raw| recent_writers(facts, raw).next().is_some())
}

/// The controllers that have written an object within the last minute.
fn recent_writers<'a>(facts: &ServiceFacts, raw: &'a Value) -> impl Iterator<Item = &'a str> {
    let now = facts.context.now.as_second();
    let entries = fields::list(raw, "/metadata/managedFields").iter();
    entries.filter_map(move |entry| {
        let time = fields::time(entry, "/time")?;
        let manager = text(entry, "/manager");
        let is_recent = now - time.as_second() <= SIMULTANEOUS_SECS;
        (is_recent && CONTROLLERS.contains(&manager)).then_some(manager)
    })
}

/// EPD805.
pub fn two_writers(facts: &ServiceFacts) -> Option<Finding> {
    let mut writers: BTreeSet<&str> = BTreeSet::new();
    let mut slices = BTreeSet::new();
    for slice in &facts.published {
        let raw =
            facts.context.objects.get("EndpointSlice", &slice.meta.namespace, &slice.meta.name);
        for manager in raw.into_iter().flat_map(|raw| recent_writers(facts, raw)) {
            writers.insert(manager);
            slices.insert(slice.meta.name.to_string());
        }
    }
    if writers.len() < 2 {
        return None;
    }
    let slices: Vec<String> = slices.into_iter().collect();
    let message = format!(
        "both endpointd and kube-controller-manager have written {} in the last minute: {}",
        counted(slices.len(), "slice"),
        fields::names(&slices)
    );
    Some(Finding::new(Code::TwoWriters, facts.object(), message))
}

/// EPD807.
fn decode_errors(facts: &ServiceFacts) -> Vec<Finding> {
    let concerns = |one: &&Malformed| {
        one.identity.namespace == *facts.key.namespace || one.identity.namespace.is_empty()
    };
    facts.context.objects.malformed.iter().filter(concerns).map(decode_error).collect()
}

pub fn decode_error(malformed: &Malformed) -> Finding {
    let identity = &malformed.identity;
    let object = ObjectName::new(&identity.kind, &identity.namespace, &identity.name);
    let field = match malformed.path.as_str() {
        "" | "." => String::new(),
        path => format!(": `{path}`"),
    };
    let message = format!("{object} cannot be decoded{field}: {}", malformed.reason);
    Finding::new(Code::DecodeError, object, message)
}
