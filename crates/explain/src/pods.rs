//! Why one chosen pod is not a ready endpoint: EPD201 to EPD210, and the plan's other reasons.

use std::collections::BTreeMap;

use endpointd_model::{BadAddress, Family, PodIp};
use endpointd_plan::ExclusionReason;
use serde_json::Value;

use crate::code::Code;
use crate::facts::{PodFacts, PodState, ServiceFacts};
use crate::fields::{self, text};
use crate::finding::Finding;
use crate::near_miss::nearest;
use crate::{ports, readiness};

/// A terminating pod is overdue when its grace period ended this long ago.
const OVERDUE_SECS: i64 = 30;

/// `None` for a ready endpoint.
pub fn explain(facts: &ServiceFacts, pod: &PodFacts) -> Option<Finding> {
    match pod.state {
        PodState::Ready => None,
        PodState::NotReady(_) if pod.pod.is_terminating => Some(terminating(facts, pod)),
        PodState::NotReady(_) => Some(readiness::explain(facts, pod)),
        PodState::WithoutPort => Some(ports::without_port(facts, pod)),
        PodState::Excluded(reason) => Some(excluded(facts, pod, reason)),
        PodState::ServiceDeleting => {
            let message = format!("{} is not published: the Service is being deleted", pod.name());
            Some(Finding::new(Code::ServiceDeleting, pod.object(), message))
        }
    }
}

fn excluded(facts: &ServiceFacts, pod: &PodFacts, reason: ExclusionReason) -> Finding {
    match reason {
        ExclusionReason::Failed => failed(pod),
        ExclusionReason::Succeeded => {
            let message = format!("{} has completed (Succeeded)", pod.name());
            Finding::new(Code::PodSucceeded, pod.object(), message)
        }
        ExclusionReason::NotScheduled => not_scheduled(facts, pod),
        ExclusionReason::NoAddress if pod.pod.node_name.is_none() => not_scheduled(facts, pod),
        ExclusionReason::NoAddress => no_address(facts, pod),
        ExclusionReason::NoAddressOfFamily(family) => no_address_of_family(pod, family),
        ExclusionReason::InvalidAddress(bad) => invalid_address(pod, bad),
        ExclusionReason::Terminating => terminating(facts, pod),
        ExclusionReason::NodeNotFound => node_missing(facts, pod),
        ExclusionReason::NoPort => ports::without_port(facts, pod),
        ExclusionReason::ServiceWithoutPorts => {
            let message = format!("{} has no port to publish: the Service has none", pod.name());
            Finding::new(Code::ServiceWithoutPorts, pod.object(), message)
        }
        ExclusionReason::TooManyPorts => {
            let message = format!(
                "{} is not published: the pods resolve the Service's ports in so many ways that its \
                 slices would have more than {} ports",
                pod.name(),
                endpointd_plan::PORTS_MAX
            );
            Finding::new(Code::PortNumbersDiffer, pod.object(), message)
        }
        ExclusionReason::OverCapacity => {
            let message = format!("{} is beyond the 1000 addresses of Endpoints", pod.name());
            Finding::new(Code::Truncated, pod.object(), message)
        }
    }
}

/// EPD203.
fn failed(pod: &PodFacts) -> Finding {
    let why = why_ended(pod.raw);
    let message = format!(
        "{} has ended{why}; ended pods are never published, although `kubectl get pods` lists them",
        pod.name()
    );
    Finding::new(Code::PodFailed, pod.object(), message)
}

/// ` (Evicted: the node was low on memory)`.
fn why_ended(pod: &Value) -> String {
    let why = fields::joined(&[text(pod, "/status/reason"), text(pod, "/status/message")], ": ");
    if why.is_empty() { String::new() } else { format!(" ({})", why.trim_end_matches(". ")) }
}

/// EPD201.
fn not_scheduled(facts: &ServiceFacts, pod: &PodFacts) -> Finding {
    let condition = fields::condition(pod.raw, "PodScheduled");
    let event = || facts.context.objects.event(&pod.object(), &["FailedScheduling"]);
    let why = condition
        .map(|one| text(one, "/message"))
        .filter(|text| !text.is_empty())
        .or_else(|| event().map(|one| text(one, "/message")))
        .unwrap_or("the scheduler has not chosen one yet");
    let message = format!("{} has no node: {why}", pod.name());
    Finding::new(Code::NotScheduled, pod.object(), message)
}

/// EPD202.
fn no_address(facts: &ServiceFacts, pod: &PodFacts) -> Finding {
    let since = fields::time(pod.raw, "/status/startTime")
        .or_else(|| fields::time(pod.raw, "/metadata/creationTimestamp"));
    let age = since.map_or_else(String::new, |since| {
        format!(" for {}", fields::age(facts.context.now, since))
    });
    let waiting = fields::list(pod.raw, "/status/containerStatuses")
        .iter()
        .map(|status| text(status, "/state/waiting/reason"))
        .find(|reason| !reason.is_empty())
        .unwrap_or("starting");
    let message = format!("{} has no address yet: {waiting}{age}", pod.name());
    let event = facts
        .context
        .objects
        .event(&pod.object(), &["FailedCreatePodSandBox", "FailedMount", "FailedAttachVolume"]);
    let finding = Finding::new(Code::NoAddress, pod.object(), message);
    match event {
        Some(event) => {
            finding.evidence(format!("{}: {}", text(event, "/reason"), text(event, "/message")))
        }
        None => finding,
    }
}

/// EPD205. See kubernetes/kubernetes#107927.
fn node_missing(facts: &ServiceFacts, pod: &PodFacts) -> Finding {
    let node = pod.pod.node_name.as_deref().unwrap_or_default();
    let message = format!(
        "{} is excluded from slices because its node `{node}` does not exist; it will be published \
         when the node does",
        pod.name()
    );
    let known = facts.context.objects.of_kind("Node", "").map(fields::name);
    let near = nearest(node, known).map(|near| format!("there is a node `{near}`"));
    Finding::new(Code::NodeMissing, pod.object(), message)
        .evidence(format!("spec.nodeName: {node}"))
        .near_miss(near)
}

/// EPD206 and EPD207. See KEP-1669.
fn terminating(facts: &ServiceFacts, pod: &PodFacts) -> Finding {
    let now = facts.context.now;
    let due = fields::time(pod.raw, "/metadata/deletionTimestamp");
    let overdue = due.filter(|due| now.as_second() - due.as_second() > OVERDUE_SECS);
    let Some(due) = overdue else {
        let use_ = match pod.pod.is_ready() {
            true => "still answers: it gets traffic only while no other endpoint is ready",
            false => "does not answer any more",
        };
        let message = format!("{} is being deleted and {use_}", pod.name());
        return Finding::new(Code::Terminating, pod.object(), message);
    };
    let age = fields::age(now, due);
    let finalizers = fields::list(pod.raw, "/metadata/finalizers").iter();
    let finalizers: Vec<String> =
        finalizers.filter_map(Value::as_str).map(|one| format!("`{one}`")).collect();
    let node = pod.pod.node_name.as_deref().unwrap_or_default();
    let node_is_ready = facts
        .context
        .objects
        .get("Node", "", node)
        .is_none_or(|node| fields::has_condition(node, "Ready"));
    let why = match finalizers.as_slice() {
        [] if !node_is_ready => format!("its node `{node}` does not report that it has ended"),
        [] => format!("its node `{node}` has not reported that it has ended"),
        all => format!("it waits for the finalizer {}", fields::names(all)),
    };
    let message = format!("{} should have ended {age} ago: {why}", pod.name());
    Finding::new(Code::TerminatingLong, pod.object(), message)
}

/// EPD210.
fn invalid_address(pod: &PodFacts, bad: BadAddress) -> Finding {
    let ips: Vec<String> = pod.pod.ips.all.iter().map(ip_text).collect();
    let message = format!(
        "{}'s address {} is excluded ({bad}): the API server would reject the whole slice",
        pod.name(),
        ips.join(", ")
    );
    Finding::new(Code::InvalidAddress, pod.object(), message)
}

fn ip_text(ip: &PodIp) -> String {
    match ip {
        PodIp::Ip(ip) => ip.to_string(),
        PodIp::Invalid(text) => format!("`{text}`"),
    }
}

/// EPD501.
fn no_address_of_family(pod: &PodFacts, family: Family) -> Finding {
    let has = match family {
        Family::V4 => Family::V6,
        Family::V6 => Family::V4,
    };
    let message = format!("{} has only {has} addresses, and the Service is {family}", pod.name());
    let near = Some(format!("the Service would need `ipFamilies: [{has}]`"));
    Finding::new(Code::FamilyMissing, pod.object(), message).near_miss(near)
}

/// EPD208 and EPD209: several of the chosen pods have one address.
pub fn shared_addresses(facts: &ServiceFacts) -> Vec<Finding> {
    let mut pods_by_ip: BTreeMap<String, Vec<&PodFacts>> = BTreeMap::new();
    for pod in &facts.pods {
        let is_published = match pod.state {
            PodState::Ready | PodState::NotReady(_) | PodState::WithoutPort => true,
            PodState::Excluded(_) | PodState::ServiceDeleting => false,
        };
        for ip in pod.pod.ips.all.iter().filter(|_| is_published) {
            pods_by_ip.entry(ip_text(ip)).or_default().push(pod);
        }
    }
    let shared = pods_by_ip.into_iter().filter(|(_, pods)| pods.len() > 1);
    shared.map(|(ip, pods)| shared_address(facts, &ip, &pods)).collect()
}

fn shared_address(facts: &ServiceFacts, ip: &str, pods: &[&PodFacts]) -> Finding {
    let names: Vec<String> = pods
        .iter()
        .map(|pod| match pod.pod.is_terminating {
            true => format!("{} (terminating)", pod.name()),
            false => pod.name().to_owned(),
        })
        .collect();
    let names = fields::names(&names);
    let are_on_host = pods.iter().all(|pod| fields::is_true(pod.raw, "/spec/hostNetwork"));
    if are_on_host {
        let node = pods[0].pod.node_name.as_deref().unwrap_or_default();
        let message =
            format!("{names} use the address {ip} of node `{node}`: clients see one endpoint");
        return Finding::new(Code::HostNetwork, facts.object(), message);
    }
    // See kubernetes/kubernetes#135266.
    let message =
        format!("{names} have one address, {ip}: kube-proxy may remove it for all of them");
    Finding::new(Code::SharedAddress, facts.object(), message)
}
