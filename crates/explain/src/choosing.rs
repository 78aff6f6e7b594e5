//! Which pods a Service chooses, and which it nearly does: EPD101 to EPD116.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{Key, Labels, Selection, names};
use endpointd_plan::endpoints_left_behind;
use serde_json::Value;

use crate::code::{Code, Level};
use crate::facts::{Context, PodState, ServiceFacts};
use crate::fields::{self, counted, text};
use crate::finding::{Finding, ObjectName};
use crate::near_miss::nearest;
use crate::nearly_chosen;
use crate::owners;

const ROLLOUT_LABELS: &[&str] = &["pod-template-hash", "controller-revision-hash"];
/// Values of a label that a sentence lists.
const VALUES_MAX: usize = 4;
/// Namespaces that a sentence lists.
const NAMESPACES_MAX: usize = 3;

/// EPD101.
pub fn missing_service(context: &Context, key: &Key) -> Finding {
    let Key { namespace, name } = key;
    let elsewhere = context.objects.of_kind_anywhere("Service");
    let mut namespaces = elsewhere.filter(|(one, _)| one.name == **name).map(|(one, _)| one);
    let near = match namespaces.next() {
        Some(other) => {
            Some(format!("there is one in `{0}`: did you mean `-n {0}`?", other.namespace))
        }
        None => {
            let here = context.objects.of_kind("Service", namespace).map(fields::name);
            nearest(name, here).map(|near| format!("did you mean `{near}`?"))
        }
    };
    let message = format!("there is no Service `{name}` in namespace `{namespace}`");
    let object = ObjectName::new("Service", namespace, name);
    Finding::new(Code::NoSuchService, object, message).near_miss(near)
}

pub fn explain(facts: &ServiceFacts, findings: &mut Vec<Finding>) {
    findings.extend(deleting(facts));
    match facts.service.selection() {
        Selection::External => {
            findings.push(external_name(facts));
            findings.extend(selector_removed(facts));
        }
        Selection::Manual => {
            findings.extend(no_selector(facts));
            findings.extend(selector_removed(facts));
        }
        Selection::Pods(selector) => {
            let near = nearly_chosen::explain(facts, selector);
            if facts.pods.is_empty() {
                findings.extend(nothing_chosen(facts, selector, &near));
            }
            findings.extend(near);
            findings.extend(two_workloads(facts));
            findings.extend(manual_endpoints(facts));
        }
    }
}

/// EPD116.
pub fn deleting(facts: &ServiceFacts) -> Option<Finding> {
    let since = fields::time(facts.raw, "/metadata/deletionTimestamp")?;
    let finalizers = fields::list(facts.raw, "/metadata/finalizers").iter();
    let finalizers: Vec<String> =
        finalizers.filter_map(Value::as_str).map(|one| format!("`{one}`")).collect();
    let age = fields::age(facts.context.now, since);
    let waits = match finalizers.as_slice() {
        [] => "it gets no new slices".to_owned(),
        all => format!("it waits for the finalizer {}", fields::names(all)),
    };
    let message = format!("the Service was deleted {age} ago: {waits}");
    Some(Finding::new(Code::ServiceDeleting, facts.object(), message))
}

/// EPD115.
fn external_name(facts: &ServiceFacts) -> Finding {
    let target = text(facts.raw, "/spec/externalName");
    let message =
        format!("an ExternalName is a DNS alias, here for `{target}`, and never has endpoints");
    Finding::new(Code::ExternalName, facts.object(), message)
}

/// EPD112.
fn no_selector(facts: &ServiceFacts) -> Option<Finding> {
    let asks = facts.service.cross_namespace.as_ref().is_some_and(|cross| cross.from.is_some());
    if !facts.published.is_empty() || asks || facts.is_derived {
        return None;
    }
    let endpoints = facts.raw_endpoints().is_some();
    let n_slices = facts.foreign.len();
    let who = "no controller publishes pods for it";
    let (message, level) = match (endpoints, n_slices) {
        (false, 0) => (
            format!(
                "the Service has no selector: {who}; EndpointSlices or Endpoints have to be \
                 written by hand, and there are none"
            ),
            Level::Warning,
        ),
        (true, 0) => (
            "the Service has no selector: its endpoints come from Endpoints written by hand"
                .to_owned(),
            Level::Info,
        ),
        (_, n) => (
            format!("the Service has no selector: {who}; it has {}", counted(n, "manual slice")),
            Level::Info,
        ),
    };
    let siblings = facts.context.objects.of_kind("Service", &facts.key.namespace);
    let siblings: Vec<String> = siblings
        .filter(|one| {
            let name = fields::name(one);
            name != facts.name()
                && name.starts_with(facts.name())
                && !fields::labels(one, "/spec/selector").is_empty()
        })
        .map(|one| format!("`{}`", fields::name(one)))
        .collect();
    let near = match siblings.as_slice() {
        [] => None,
        [_] => Some(format!("the Service {} has a selector", fields::names(&siblings))),
        all => Some(format!("the Services {} have selectors", fields::names(all))),
    };
    let near = near.filter(|_| level == Level::Warning);
    Some(Finding::new(Code::NoSelector, facts.object(), message).level(level).near_miss(near))
}

/// EPD113. See kubernetes/kubernetes#91072.
fn selector_removed(facts: &ServiceFacts) -> Option<Finding> {
    let mut left: Vec<String> =
        facts.published.iter().map(|slice| slice.meta.name.to_string()).collect();
    let n_slices = left.len();
    let endpoints = facts.context.objects.cluster.endpoints.get(&facts.key);
    if endpoints_left_behind(facts.service, endpoints).is_some() {
        left.push("the Endpoints".to_owned());
    }
    let (verb, them) = match (left.len(), n_slices) {
        (0, _) => return None,
        (1, 1) => ("is", "it"),
        (_, _) => ("are", "them"),
    };
    let subject = match n_slices {
        0 => "",
        1 => "slice ",
        _ => "slices ",
    };
    let users = match facts.service.selection() {
        Selection::External => "readers of slices",
        Selection::Manual | Selection::Pods(_) => "kube-proxy",
    };
    let message = format!(
        "{subject}{} {verb} from the time when this Service had a selector: no controller \
         updates or deletes {them}, and {users} still {} {them}",
        fields::names(&left),
        if users == "kube-proxy" { "uses" } else { "use" },
    );
    let near = Some(format!(
        "delete {them}, or set the selector again; `endpointd run --orphan-policy=delete` deletes \
         {them}"
    ));
    Some(Finding::new(Code::SelectorRemoved, facts.object(), message).near_miss(near))
}

/// EPD114. See kubernetes/kubernetes#106198.
fn manual_endpoints(facts: &ServiceFacts) -> Option<Finding> {
    let endpoints = facts.raw_endpoints()?;
    let applied =
        fields::labels(endpoints, "/metadata/annotations").contains_key(names::LAST_APPLIED);
    let managers = fields::list(endpoints, "/metadata/managedFields").iter();
    let others: BTreeSet<&str> = managers
        .map(|one| text(one, "/manager"))
        .filter(|name| !["endpointd", "kube-controller-manager", ""].contains(name))
        .collect();
    if !applied && others.is_empty() {
        return None;
    }
    let message = "the Service has a selector, so a controller writes these Endpoints and \
                   overwrites what others put there";
    let near = Some("without a selector the Endpoints would be yours".to_owned());
    let mut finding =
        Finding::new(Code::ManualEndpoints, facts.endpoints_object(), message).near_miss(near);
    for manager in others {
        finding = finding.evidence(format!("`{manager}` has written fields of it"));
    }
    Some(finding)
}

/// Why the selector matches no pod.
fn nothing_chosen(facts: &ServiceFacts, selector: &Labels, near: &[Finding]) -> Vec<Finding> {
    let workload = workload_without_pods(facts, selector);
    if let Some(finding) = workload {
        return vec![finding];
    }
    if let Some(finding) = rollout_label(facts, selector) {
        return vec![finding];
    }
    let mut found: Vec<Finding> = label_not_on_template(facts, selector).into_iter().collect();
    found.extend(other_namespace(facts, selector));
    if found.is_empty() && near.is_empty() {
        found.push(nothing_matches(facts, selector));
    }
    found
}

/// EPD110.
fn workload_without_pods(facts: &ServiceFacts, selector: &Labels) -> Option<Finding> {
    let objects = facts.context.objects;
    let mut workloads = owners::workloads(objects, &facts.key.namespace);
    let (name, raw) = workloads.find(|(_, raw)| selector.selects(&owners::template_labels(raw)))?;
    let (kind, named) = (&name.kind, &name.name);
    let replicas = fields::number(raw, "/spec/replicas").unwrap_or(1);
    let failure = fields::condition(raw, "ReplicaFailure").map(|one| text(one, "/message"));
    let message = match (kind.as_str(), replicas) {
        ("Job" | "CronJob", _) => {
            format!("{kind} {named} makes such pods and has none at the moment")
        }
        ("DaemonSet", _) => format!("DaemonSet {named} makes such pods, and no node fits it"),
        (_, 0) => format!("{kind} {named} makes such pods and is scaled to 0"),
        (_, n) => {
            let n = counted(usize::try_from(n).unwrap_or_default(), "such pod");
            let failure = failure.filter(|text| !text.is_empty()).unwrap_or("see its Events");
            format!("{kind} {named} should have {n} and has none: {failure}")
        }
    };
    let scaler = owners::autoscaler(objects, &name)
        .map(|scaler| format!("{scaler} decides the number of its pods"));
    Some(Finding::new(Code::NoPodsOfWorkload, name, message).near_miss(scaler))
}

/// EPD109.
fn rollout_label(facts: &ServiceFacts, selector: &Labels) -> Option<Finding> {
    let (key, value) = ROLLOUT_LABELS.iter().find_map(|key| Some((*key, selector.get(key)?)))?;
    let message = format!(
        "the selector asks for {key}={value}: the pods of one rollout, which no longer exist"
    );
    let near = Some(format!("without `{key}` the selector follows all rollouts"));
    Some(Finding::new(Code::SelectorNamesRollout, facts.object(), message).near_miss(near))
}

/// EPD108.
fn label_not_on_template(facts: &ServiceFacts, selector: &Labels) -> Option<Finding> {
    let mut workloads = owners::workloads(facts.context.objects, &facts.key.namespace);
    let (name, _) = workloads.find(|(_, raw)| {
        selector.selects(&fields::labels(raw, "/metadata/labels"))
            && !selector.selects(&owners::template_labels(raw))
    })?;
    let field = match name.kind.as_str() {
        "CronJob" => "spec.jobTemplate.spec.template.metadata.labels",
        _ => "spec.template.metadata.labels",
    };
    let message =
        format!("{} {} has {}, its pods do not", name.kind, name.name, selector_text(selector));
    let near = Some(format!("pods get the labels of `{field}`"));
    Some(Finding::new(Code::LabelNotOnTemplate, name, message).near_miss(near))
}

/// EPD107.
fn other_namespace(facts: &ServiceFacts, selector: &Labels) -> Option<Finding> {
    let mut n_by_namespace: BTreeMap<&str, usize> = BTreeMap::new();
    let pods = facts.context.objects.cluster.pods.values();
    let elsewhere = pods.filter(|pod| pod.namespace != facts.key.namespace);
    for pod in elsewhere.filter(|pod| selector.selects(&pod.labels)) {
        *n_by_namespace.entry(&pod.namespace).or_default() += 1;
    }
    let n_pods = n_by_namespace.values().sum();
    let mut namespaces: Vec<String> =
        n_by_namespace.keys().map(|namespace| format!("`{namespace}`")).collect();
    let n_more = namespaces.len().saturating_sub(NAMESPACES_MAX);
    namespaces.truncate(NAMESPACES_MAX);
    let where_they_are = match (namespaces.as_slice(), n_more) {
        ([], _) => return None,
        _ if facts.context.objects.has_more("Pod") => {
            format!("or more are in other namespaces, such as {}", fields::names(&namespaces))
        }
        ([one], _) if n_pods == 1 => format!("is in namespace {one}"),
        ([one], _) => format!("are in namespace {one}"),
        (some, 0) => format!("are in namespaces {}", fields::names(some)),
        (some, more) => format!("are in namespaces {}, and {more} more", some.join(", ")),
    };
    let message = format!(
        "{} with exactly these labels {where_they_are}; a Service chooses pods of its own \
         namespace only",
        counted(n_pods, "pod")
    );
    Some(Finding::new(Code::OtherNamespace, facts.object(), message))
}

/// EPD102.
fn nothing_matches(facts: &ServiceFacts, selector: &Labels) -> Finding {
    let namespace = &facts.key.namespace;
    let pods = facts.context.objects.pods_in(namespace);
    let here: Vec<&Labels> = pods.map(|pod| &pod.labels).collect();
    let message = format!("no pod in namespace `{namespace}` has {}", selector_text(selector));
    let mut finding = Finding::new(Code::NothingMatches, facts.object(), message);
    if here.is_empty() {
        return finding.evidence("the namespace has no pods");
    }
    for (key, wanted) in selector.iter() {
        let mut n_by_value: BTreeMap<&str, usize> = BTreeMap::new();
        for value in here.iter().filter_map(|labels| labels.get(key)) {
            *n_by_value.entry(value).or_default() += 1;
        }
        let mut values: Vec<(&str, usize)> = n_by_value.into_iter().collect();
        values.sort_by_key(|(value, n)| (usize::MAX - n, *value));
        let n_more = values.len().saturating_sub(VALUES_MAX);
        let texts = values.iter().take(VALUES_MAX).map(|(value, n)| format!("{key}={value} ({n})"));
        let texts: Vec<String> = texts.collect();
        let fact = match (texts.as_slice(), n_more) {
            ([], _) => format!("no pod here has the label `{key}`"),
            (_, 0) => format!("pods here have {}", texts.join(", ")),
            (_, n) => format!("pods here have {}, and {n} more values", texts.join(", ")),
        };
        if !values.iter().any(|(value, _)| *value == wanted.as_ref()) || selector.len() > 1 {
            finding = finding.evidence(fact);
        }
    }
    finding
}

/// EPD111. See kubernetes/ingress-nginx#9141.
fn two_workloads(facts: &ServiceFacts) -> Option<Finding> {
    let mut pods_by_owner: BTreeMap<ObjectName, (usize, usize)> = BTreeMap::new();
    let alive = facts.pods.iter().filter(|pod| match pod.state {
        PodState::Excluded(reason) => !nearly_chosen::has_ended(reason),
        PodState::Ready
        | PodState::NotReady(_)
        | PodState::WithoutPort
        | PodState::ServiceDeleting => true,
    });
    for pod in alive {
        let owner = owners::owner(facts.context.objects, pod.raw).unwrap_or_else(|| pod.object());
        let (n, n_without_port) = pods_by_owner.entry(owner).or_default();
        *n += 1;
        *n_without_port += usize::from(pod.state == PodState::WithoutPort);
    }
    let workloads = pods_by_owner.keys().filter(|one| one.kind != "Pod").count();
    if pods_by_owner.len() < 2 || workloads == 0 {
        return None;
    }
    let is_odd = pods_by_owner.iter().any(|(owner, (_, n_without_port))| {
        ["Job", "CronJob"].contains(&owner.kind.as_str()) || *n_without_port > 0
    });
    let texts: Vec<String> = pods_by_owner
        .iter()
        .map(|(owner, (n, n_without_port))| {
            let port = if *n_without_port > 0 { ", without its port" } else { "" };
            format!("{} {} ({}{port})", owner.kind, owner.name, counted(*n, "pod"))
        })
        .collect();
    let message =
        format!("the selector chooses pods of several workloads: {}", fields::names(&texts));
    let level = if is_odd { Level::Warning } else { Level::Info };
    Some(Finding::new(Code::TwoWorkloads, facts.object(), message).level(level))
}

/// `app=web, tier=front`.
pub fn selector_text(selector: &Labels) -> String {
    let pairs: Vec<String> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(", ")
}
