//! Ports of the Service and of the pods: EPD401 to EPD407.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{ClusterIp, EndpointPort, NamedPort, ServicePort, TargetPort};

use crate::code::Code;
use crate::facts::{PodFacts, PodState, ServiceFacts};
use crate::fields::{self, counted, list, text};
use crate::finding::Finding;
use crate::near_miss::nearest;

pub fn explain(facts: &ServiceFacts, findings: &mut Vec<Finding>) {
    for port in &facts.service.ports {
        findings.extend(partly_missing(facts, port));
        findings.extend(undeclared(facts, port));
        findings.extend(several_numbers(facts, port));
    }
    findings.extend(no_ports(facts));
    findings.extend(slice_port_names(facts));
    findings.extend(hostnames(facts));
}

fn target_name(port: &ServicePort) -> Option<&str> {
    match &port.target {
        TargetPort::Name(name) => Some(name),
        TargetPort::Number(_) => None,
    }
}

fn resolves(port: &ServicePort, pod: &PodFacts) -> bool {
    let Some(name) = target_name(port) else { return true };
    let mut named = pod.pod.named_ports.iter();
    named.any(|one| one.name.as_ref() == name && one.protocol == port.protocol)
}

/// EPD401 and EPD402 for a pod on which no port of the Service resolves. See
/// kubernetes/kubernetes#109627.
pub fn without_port(facts: &ServiceFacts, pod: &PodFacts) -> Finding {
    let port = facts.service.ports.iter().find(|port| !resolves(port, pod));
    let Some(port) = port else {
        let message = format!("{} is published without a port", pod.name());
        return Finding::new(Code::PortNameMissing, pod.object(), message);
    };
    let effect = "in slices it is published without a port (`<unset>`), in Endpoints not at all";
    port_finding(port, pod, effect)
}

/// EPD401 and EPD402 for pods that are published with some of the ports.
fn partly_missing(facts: &ServiceFacts, port: &ServicePort) -> Option<Finding> {
    let published = facts.pods.iter().filter(|pod| match pod.state {
        PodState::Ready | PodState::NotReady(_) => true,
        PodState::WithoutPort | PodState::Excluded(_) | PodState::ServiceDeleting => false,
    });
    let missing: Vec<&PodFacts> = published.filter(|pod| !resolves(port, pod)).collect();
    let first = missing.first()?;
    let names: Vec<String> = missing.iter().map(|pod| pod.name().to_owned()).collect();
    let effect = format!(
        "{} published without this port",
        match names.as_slice() {
            [_] => "it is".to_owned(),
            all => format!("{} pods are", all.len()),
        }
    );
    let mut finding = port_finding(port, first, &effect);
    finding.object = facts.object();
    Some(finding.evidence(format!("pods: {}", fields::names(&names))))
}

fn port_finding(port: &ServicePort, pod: &PodFacts, effect: &str) -> Finding {
    let name = target_name(port).unwrap_or_default();
    let named = &pod.pod.named_ports;
    let other = named.iter().find(|one| one.name.as_ref() == name);
    if let Some(NamedPort { protocol, .. }) = other {
        // See kubernetes/kubernetes#84160.
        let message = format!(
            "port `{name}` is {protocol} in {} and {} in the Service: {effect}",
            pod.name(),
            port.protocol
        );
        let near = format!("the container needs a second port with protocol {}", port.protocol);
        return Finding::new(Code::PortProtocol, pod.object(), message).near_miss(Some(near));
    }
    let has: Vec<String> =
        named.iter().map(|one| format!("`{}` ({})", one.name, one.number)).collect();
    let has = match has.as_slice() {
        [] => "it names no port".to_owned(),
        all => format!("it has {}", fields::names(all)),
    };
    let message = format!(
        "no container of {} has a port named `{name}`, the targetPort of the Service; {has}; {effect}",
        pod.name()
    );
    Finding::new(Code::PortNameMissing, pod.object(), message)
        .near_miss(near_port(port, name, named))
}

/// A port of almost that name, or the one whose number the Service exposes.
fn near_port(port: &ServicePort, name: &str, named: &[NamedPort]) -> Option<String> {
    let of_protocol = || named.iter().filter(|one| one.protocol == port.protocol);
    if let Some(near) = nearest(name, of_protocol().map(|one| one.name.as_ref())) {
        return Some(format!("did you mean `{near}`?"));
    }
    let only: Vec<&NamedPort> = of_protocol().collect();
    match only.as_slice() {
        [one] => {
            Some(format!("`{}` ({}) is its only {} port", one.name, one.number, port.protocol))
        }
        _ => None,
    }
}

/// EPD403. A container can listen on a port that it does not declare.
fn undeclared(facts: &ServiceFacts, port: &ServicePort) -> Option<Finding> {
    let TargetPort::Number(number) = port.target else { return None };
    let declared_by = |pod: &PodFacts| -> BTreeSet<i64> {
        let containers = ["/spec/containers", "/spec/initContainers"];
        let containers = containers.iter().flat_map(|pointer| list(pod.raw, pointer));
        let ports = containers.flat_map(|container| list(container, "/ports"));
        ports.filter_map(|port| fields::number(port, "/containerPort")).collect()
    };
    let declared: Vec<BTreeSet<i64>> = facts.pods.iter().map(declared_by).collect();
    let is_undeclared =
        |ports: &BTreeSet<i64>| !ports.is_empty() && !ports.contains(&i64::from(number));
    let undeclared = declared.iter().find(|ports| is_undeclared(ports))?;
    let others: Vec<String> = undeclared.iter().map(ToString::to_string).collect();
    let (others, verb) = (fields::names(&others), if others.len() == 1 { "is" } else { "are" });
    let message = format!(
        "targetPort {number} is declared by no container ({others} {verb}); that is allowed, and \
         if nothing listens there, connections are refused"
    );
    Some(Finding::new(Code::PortUndeclared, facts.object(), message))
}

/// EPD404.
fn several_numbers(facts: &ServiceFacts, port: &ServicePort) -> Option<Finding> {
    let name = target_name(port)?;
    let mut pods_by_number: BTreeMap<i32, usize> = BTreeMap::new();
    for pod in &facts.pods {
        let mut named = pod.pod.named_ports.iter();
        let found = named.find(|one| one.name.as_ref() == name && one.protocol == port.protocol);
        if let Some(found) = found {
            *pods_by_number.entry(found.number).or_default() += 1;
        }
    }
    if pods_by_number.len() < 2 {
        return None;
    }
    let numbers = pods_by_number.iter();
    let numbers: Vec<String> =
        numbers.map(|(number, n)| format!("{number} in {}", counted(*n, "pod"))).collect();
    let message =
        format!("`{name}` is {}: they are in different slices, by design", fields::names(&numbers));
    Some(Finding::new(Code::PortNumbersDiffer, facts.object(), message))
}

/// EPD405. See kubernetes/kubernetes#55158.
fn no_ports(facts: &ServiceFacts) -> Option<Finding> {
    let service = facts.service;
    let is_affected = service.ports.is_empty()
        && service.cluster_ip != ClusterIp::Headless
        && !service.is_external_name;
    is_affected.then(|| {
        let message = "the Service has no ports: without ports it gets Endpoints only if it is \
                       headless";
        Finding::new(Code::ServiceWithoutPorts, facts.object(), message)
    })
}

/// EPD406. See cilium/cilium#15142.
fn slice_port_names(facts: &ServiceFacts) -> Vec<Finding> {
    let wanted: BTreeSet<&str> =
        facts.service.ports.iter().map(|port| port.name.as_ref()).collect();
    let name_of = |port: &EndpointPort| port.name.as_deref().unwrap_or_default().to_owned();
    let finding = |slice: &&endpointd_model::EndpointSlice| {
        let names: BTreeSet<String> = slice.ports.iter().map(name_of).collect();
        if names.is_empty() || wanted.is_empty() || names.iter().any(|one| wanted.contains(&**one))
        {
            return None;
        }
        let quoted = |names: Vec<&str>| -> String {
            let names: Vec<String> = names.into_iter().map(|one| format!("`{one}`")).collect();
            fields::names(&names)
        };
        let message = format!(
            "slice {} names its port {}, the Service has {}: kube-proxy joins them by name and \
             finds none",
            slice.meta.name,
            quoted(names.iter().map(String::as_str).collect()),
            quoted(wanted.iter().copied().collect())
        );
        Some(Finding::new(Code::SlicePortName, facts.object(), message))
    };
    facts.foreign.iter().filter_map(finding).collect()
}

/// EPD407. See kubernetes/kubernetes#74950.
fn hostnames(facts: &ServiceFacts) -> Option<Finding> {
    let service = facts.service;
    if service.cluster_ip != ClusterIp::Headless {
        return None;
    }
    let objects = facts.context.objects;
    // If a Service of the subdomain's name exists, the pods are found under that one.
    let is_unnamed = |pod: &&PodFacts| {
        pod.pod.hostname.is_some()
            && pod.pod.subdomain.as_ref().is_some_and(|subdomain| {
                *subdomain != service.name
                    && objects.get("Service", &pod.pod.namespace, subdomain).is_none()
            })
    };
    let pods: Vec<&PodFacts> = facts.pods.iter().filter(is_unnamed).collect();
    let first = pods.first()?;
    let names: Vec<String> = pods.iter().map(|pod| pod.name().to_owned()).collect();
    let subdomain = first.pod.subdomain.as_deref().unwrap_or_default();
    let (are, their) = if names.len() == 1 { ("is", "its") } else { ("are", "their") };
    let message = format!(
        "{} {are} not found by hostname: {their} subdomain is `{subdomain}`, this Service is `{}`",
        fields::names(&names),
        service.name
    );
    let is_stateful = text(first.raw, "/metadata/ownerReferences/0/kind") == "StatefulSet";
    let near =
        is_stateful.then(|| "the StatefulSet's `serviceName` has to be this Service".to_owned());
    Some(Finding::new(Code::HostnameNotPublished, facts.object(), message).near_miss(near))
}
