//! Endpoints that are written by hand, and their mirrored slices: EPD701 to EPD705.

use std::collections::BTreeSet;

use endpointd_model::{Endpoints, Key, Selection, is_forbidden_endpoint_ip, names, parse_ip};

use crate::code::Code;
use crate::facts::{Context, ServiceFacts};
use crate::fields::{self, counted};
use crate::finding::{Finding, ObjectName};
use crate::near_miss::nearest;

pub fn explain(facts: &ServiceFacts, findings: &mut Vec<Finding>) {
    findings.extend(other_writers(facts));
    match facts.service.selection() {
        Selection::Pods(_) => {}
        Selection::Manual | Selection::External => {
            let Some(endpoints) = facts.context.objects.cluster.endpoints.get(&facts.key) else {
                return;
            };
            let mirrored = mirrored(facts, endpoints);
            findings.extend(mirrored);
        }
    }
}

fn mirrored(facts: &ServiceFacts, endpoints: &Endpoints) -> Option<Finding> {
    not_mirrored(&facts.endpoints_object(), endpoints)
        .or_else(|| skipped_addresses(facts, endpoints))
}

/// EPD701 and EPD702.
fn not_mirrored(object: &ObjectName, endpoints: &Endpoints) -> Option<Finding> {
    let meta = &endpoints.meta;
    if meta.annotations.contains_key(names::LEADER) {
        let message = "the Endpoints are a leader election lock (by their annotation) and are not \
                       mirrored";
        return Some(Finding::new(Code::LeaderElectionLock, object.clone(), message));
    }
    let label = meta.labels.get(names::SKIP_MIRROR)?;
    let finding = |message: String| Finding::new(Code::SkipMirror, object.clone(), message);
    if label.as_ref() == "true" {
        let message =
            format!("the Endpoints are not mirrored: they have {}=true", names::SKIP_MIRROR);
        return Some(finding(message));
    }
    if !label.eq_ignore_ascii_case("true") {
        return None;
    }
    let message = format!(
        "the Endpoints are mirrored although they have {}={label}: only `true` counts",
        names::SKIP_MIRROR
    );
    Some(finding(message))
}

/// EPD704.
fn skipped_addresses(facts: &ServiceFacts, endpoints: &Endpoints) -> Option<Finding> {
    let n_skipped = facts.mirror_plan.counts.n_skipped;
    if n_skipped == 0 {
        return None;
    }
    let all: Vec<&str> = endpoints
        .subsets
        .iter()
        .flat_map(|subset| subset.addresses.iter().chain(&subset.not_ready_addresses))
        .map(|address| address.ip.as_ref())
        .collect();
    let is_invalid =
        |ip: &&&str| parse_ip(ip).is_none_or(|ip| is_forbidden_endpoint_ip(ip).is_some());
    let invalid: Vec<String> = all.iter().filter(is_invalid).map(|ip| format!("`{ip}`")).collect();
    let n_over = n_skipped.saturating_sub(invalid.len());
    let limit = facts.context.settings.mirrored_per_subset_max;
    let are = if n_skipped == 1 { "is" } else { "are" };
    let mut why = Vec::new();
    if !invalid.is_empty() {
        why.push(format!("invalid: {}", fields::names(&invalid)));
    }
    if n_over > 0 {
        why.push(format!("over the limit of {limit} per subset: {n_over}"));
    }
    let message = format!(
        "{n_skipped} of {} {are} not mirrored; {}",
        counted(all.len(), "address"),
        why.join("; ")
    );
    Some(Finding::new(Code::AddressesNotMirrored, facts.endpoints_object(), message))
}

/// EPD705.
fn other_writers(facts: &ServiceFacts) -> Option<Finding> {
    let (first, is_selecting) = match facts.service.selection() {
        Selection::Pods(_) => (facts.foreign.first()?, true),
        Selection::Manual | Selection::External => (facts.foreign.first()?, false),
    };
    let writers: BTreeSet<String> = facts
        .foreign
        .iter()
        .map(|slice| {
            let manager = slice.meta.labels.get(names::MANAGED_BY);
            manager.map_or_else(|| "a person".to_owned(), |name| format!("`{name}`"))
        })
        .collect();
    let writers: Vec<String> = writers.into_iter().collect();
    let slices: Vec<String> =
        facts.foreign.iter().map(|slice| slice.meta.name.to_string()).collect();
    let besides = if is_selecting { "also " } else { "" };
    let (subject, belongs, them) = match slices.len() {
        1 => ("slice", "belongs", "it"),
        _ => ("slices", "belong", "them"),
    };
    let message = format!(
        "{subject} {} {besides}{belongs} to this Service, written by {}; kube-proxy uses {them}, \
         and the controllers do not change {them}",
        fields::names(&slices),
        fields::names(&writers)
    );
    let object = ObjectName::new("EndpointSlice", &first.meta.namespace, &first.meta.name);
    Some(Finding::new(Code::ManualSlices, object, message))
}

/// EPD703 for Endpoints, with what else keeps them from being mirrored.
pub fn without_service(context: &Context, key: &Key) -> Vec<Finding> {
    let Some(endpoints) = context.objects.cluster.endpoints.get(key) else { return Vec::new() };
    let object = ObjectName::new("Endpoints", &key.namespace, &key.name);
    if let Some(finding) = not_mirrored(&object, endpoints) {
        return vec![finding];
    }
    let message = format!(
        "Endpoints `{}` have no Service of that name in namespace `{}`, and are not mirrored",
        key.name, key.namespace
    );
    let services = context.objects.of_kind("Service", &key.namespace).map(fields::name);
    let near = nearest(&key.name, services).map(|near| format!("there is a Service `{near}`"));
    vec![Finding::new(Code::EndpointsWithoutService, object, message).near_miss(near)]
}
