//! The exact ports that a set of endpoints shares, and how a Service's ports resolve to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ExclusionReason;
use endpointd_model::{EndpointPort, NamedPort, Pod, Protocol, Service, ServicePort, TargetPort};

/// Ports of all port sets of one Service together. A Service with 10,000 ports and 300 pods that
/// resolve one of them differently would need three million, several times over.
pub const PORTS_MAX: usize = 200_000;

/// Ports in canonical order. Address type and port set form a group: endpoints that can share
/// slices. Upstream: `PortMapKey`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortSet(Vec<EndpointPort>);

impl PortSet {
    pub fn new(mut ports: Vec<EndpointPort>) -> Self {
        ports.sort_unstable();
        Self(ports)
    }

    pub fn as_slice(&self) -> &[EndpointPort] {
        &self.0
    }
}

/// Resolves a Service's ports on each pod. Upstream: `getEndpointPorts`, `FindPort`.
///
/// Only named targets depend on the pod, and pods of one template have the same named ports. A
/// Service with a thousand ports and a thousand pods therefore costs the sum of both numbers, not
/// their product.
pub struct PortResolver<'a> {
    service: &'a Service,
    /// The named targets, sorted.
    named_targets: Vec<Named<'a>>,
    index_by_found: BTreeMap<Found, usize>,
    index_by_ports: BTreeMap<PortSet, usize>,
    port_sets: Vec<PortSet>,
    /// The named ports of the last pod and the index of its port set. Pods of one template share
    /// the allocation of their named ports.
    last: Option<(Arc<[NamedPort]>, usize)>,
}

type Named<'a> = (&'a str, &'a Protocol);

/// Index in `named_targets`, and the port number on the pod.
type Found = Vec<(usize, i32)>;

impl<'a> PortResolver<'a> {
    pub fn new(service: &'a Service) -> Self {
        let mut named_targets: Vec<Named> = service.ports.iter().filter_map(named_target).collect();
        named_targets.sort_unstable();
        named_targets.dedup();
        Self {
            service,
            named_targets,
            index_by_found: BTreeMap::new(),
            index_by_ports: BTreeMap::new(),
            port_sets: Vec::new(),
            last: None,
        }
    }

    /// The index of the pod's port set. A port that does not resolve is omitted, so a pod may be
    /// published with fewer ports, or none. Fails if the port set is one too many.
    pub fn resolve(&mut self, pod: &Pod) -> Result<usize, ExclusionReason> {
        match &self.last {
            Some((ports, index)) if Arc::ptr_eq(ports, &pod.named_ports) => Ok(*index),
            Some(_) | None => {
                let index = self.resolve_ports(pod)?;
                self.last = Some((pod.named_ports.clone(), index));
                Ok(index)
            }
        }
    }

    fn resolve_ports(&mut self, pod: &Pod) -> Result<usize, ExclusionReason> {
        let found = self.find_named(pod);
        if let Some(&index) = self.index_by_found.get(&found) {
            return Ok(index);
        }
        let n_ports = (self.port_sets.len() + 1) * self.service.ports.len();
        if n_ports > PORTS_MAX && !self.port_sets.is_empty() {
            return Err(ExclusionReason::TooManyPorts);
        }
        let ports = PortSet::new(self.endpoint_ports(&found));
        let next = self.port_sets.len();
        let index = *self.index_by_ports.entry(ports.clone()).or_insert(next);
        if index == next {
            self.port_sets.push(ports);
        }
        self.index_by_found.insert(found, index);
        Ok(index)
    }

    /// The port sets by index, in the order in which pods first needed them.
    pub fn into_port_sets(self) -> Vec<PortSet> {
        self.port_sets
    }

    /// The first port of a name and protocol wins.
    fn find_named(&self, pod: &Pod) -> Found {
        if self.named_targets.is_empty() {
            return Found::new();
        }
        let mut found = Found::new();
        for named in pod.named_ports.iter() {
            if let Ok(at) =
                self.named_targets.binary_search(&(named.name.as_ref(), &named.protocol))
            {
                found.push((at, named.number));
            }
        }
        found.sort_by_key(|(at, _)| *at);
        found.dedup_by_key(|(at, _)| *at);
        found
    }

    fn endpoint_ports(&self, found: &Found) -> Vec<EndpointPort> {
        let number_of = |port: &'a ServicePort| match &port.target {
            TargetPort::Number(number) => Some(*number),
            TargetPort::Name(name) => {
                let named_targets =
                    self.named_targets.binary_search(&(name.as_ref(), &port.protocol)).ok()?;
                let at = found.binary_search_by_key(&named_targets, |(at, _)| *at).ok()?;
                Some(found[at].1)
            }
        };
        let resolved = self.service.ports.iter().filter_map(|port| {
            Some(EndpointPort {
                name: Some(port.name.clone()),
                port: Some(number_of(port)?),
                protocol: Some(port.protocol.clone()),
                app_protocol: port.app_protocol.clone(),
            })
        });
        resolved.collect()
    }
}

fn named_target(port: &ServicePort) -> Option<Named<'_>> {
    match &port.target {
        TargetPort::Name(name) => Some((name, &port.protocol)),
        TargetPort::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(number: i32) -> Pod {
        let named = NamedPort { name: "main".into(), protocol: Protocol::Tcp, number };
        Pod { named_ports: [named].into(), ..Pod::default() }
    }

    #[test]
    fn port_sets_are_limited_by_their_ports() {
        let port = |n: usize| ServicePort {
            name: format!("p{n}").into(),
            protocol: Protocol::Tcp,
            app_protocol: None,
            number: 80,
            target: if n == 0 { TargetPort::Name("main".into()) } else { TargetPort::Number(80) },
        };
        let service = Service { ports: (0..2_000).map(port).collect(), ..Service::default() };
        let mut resolver = PortResolver::new(&service);
        let resolved: Vec<_> = (1..=150).map(|number| resolver.resolve(&pod(number))).collect();
        let (within, beyond) = resolved.split_at(PORTS_MAX / 2_000);
        assert!(within.iter().all(Result::is_ok));
        assert!(beyond.iter().all(|one| *one == Err(ExclusionReason::TooManyPorts)));
        assert_eq!(resolver.resolve(&pod(7)), Ok(6), "a known port set stays");
        assert_eq!(resolver.into_port_sets().len(), 100);
    }
}
