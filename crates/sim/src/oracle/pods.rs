//! What one pod contributes to one Service.

use endpointd_model::{
    ClusterIp, EndpointPort, Family, Phase, Pod, PodIp, Service, SharedStr, TargetPort,
    TolerateUnready, is_forbidden_endpoint_ip,
};

/// Section 2, "Matching": every selector pair, same namespace. No selector matches nothing.
pub fn matches(service: &Service, pod: &Pod) -> bool {
    pod.namespace == service.namespace
        && !service.selector.is_empty()
        && service.selector.iter().all(|(key, value)| pod.labels.get(key) == Some(value))
}

/// Section 2, "Not ready". Runs that ignore the annotation have Services without it.
pub fn publishes_not_ready(service: &Service) -> bool {
    match service.tolerate_unready {
        TolerateUnready::Known(value) => value,
        TolerateUnready::Unset | TolerateUnready::Invalid(_) => service.publish_not_ready,
    }
}

/// Section 2, "Eligible".
pub fn is_eligible(pod: &Pod) -> bool {
    pod.phase == Phase::Active && (pod.ips.primary.is_some() || !pod.ips.all.is_empty())
}

/// The pod's addresses of a family, without those that the API server rejects (B9).
pub fn addresses(pod: &Pod, family: Family) -> Vec<SharedStr> {
    let mut addresses = Vec::new();
    for ip in pod.ips.all.iter() {
        if let PodIp::Ip(ip) = ip
            && Family::of(*ip) == family
            && is_forbidden_endpoint_ip(*ip).is_none()
        {
            addresses.push(ip.to_string().into());
        }
    }
    addresses
}

/// Section 2, "Hostname".
pub fn hostname(service: &Service, pod: &Pod) -> Option<SharedStr> {
    let is_under = pod.subdomain.as_ref() == Some(&service.name);
    pod.hostname.clone().filter(|_| is_under)
}

/// Section 2, "Ports": sorted, without unresolved ones.
pub fn ports(service: &Service, pod: &Pod) -> Vec<EndpointPort> {
    let mut ports = Vec::new();
    for port in &service.ports {
        let number = match &port.target {
            TargetPort::Number(number) => Some(*number),
            TargetPort::Name(name) => pod
                .named_ports
                .iter()
                .find(|named| named.name == *name && named.protocol == port.protocol)
                .map(|named| named.number),
        };
        if let Some(number) = number {
            ports.push(EndpointPort {
                name: Some(port.name.clone()),
                port: Some(number),
                protocol: Some(port.protocol.clone()),
                app_protocol: port.app_protocol.clone(),
            });
        }
    }
    ports.sort();
    ports
}

/// Section 4, "Families".
pub fn families(service: &Service) -> Vec<Family> {
    let mut families = service.families.clone();
    if families.is_empty() {
        families = match service.cluster_ip {
            ClusterIp::Ip(family) => vec![family],
            ClusterIp::Headless | ClusterIp::Unset => vec![Family::V4, Family::V6],
        };
    }
    families.sort();
    families.dedup();
    families
}

/// Section 3.3: the family of the one address an Endpoints object has for a pod.
pub fn primary_family(service: &Service, pod: &Pod) -> Family {
    if let Some(family) = service.families.first() {
        return *family;
    }
    match (service.cluster_ip, &pod.ips.primary) {
        (ClusterIp::Ip(family), _) => family,
        (_, Some(ip)) => ip.family(),
        (_, None) => Family::V4,
    }
}
