//! Which port of the source serves which port of the consumer (N6).

use endpointd_model::{EndpointPort, EndpointSlice, Protocol, Service, ServicePort};

use super::PortLabel;

pub struct PortMap<'a> {
    /// A port of the consumer, and the port of the source that serves it.
    matched: Vec<(&'a ServicePort, &'a ServicePort)>,
    pub unmatched: Vec<PortLabel>,
    /// A headless consumer without ports: DNS names addresses only.
    has_no_ports: bool,
}

impl<'a> PortMap<'a> {
    pub fn new(service: &'a Service, source: &'a Service) -> Self {
        let mut map = Self {
            matched: Vec::new(),
            unmatched: Vec::new(),
            has_no_ports: service.ports.is_empty(),
        };
        for port in &service.ports {
            match serving(port, service, source) {
                Some(serving) => map.matched.push((port, serving)),
                None => map.unmatched.push(PortLabel::of(port)),
            }
        }
        map
    }

    /// The ports of a copy of this slice, under the consumer's names. None if no port is left.
    pub fn ports_of(&self, slice: &EndpointSlice) -> Option<Vec<EndpointPort>> {
        if self.has_no_ports {
            return Some(Vec::new());
        }
        let ports = self.matched.iter().filter_map(|(port, serving)| {
            let published = slice.ports.iter().find(|one| {
                one.name.as_deref().unwrap_or("") == serving.name.as_ref()
                    && one.protocol.as_ref().unwrap_or(&Protocol::Tcp) == &serving.protocol
            })?;
            Some(EndpointPort {
                name: Some(port.name.clone()),
                port: Some(published.port?),
                protocol: Some(port.protocol.clone()),
                app_protocol: port.app_protocol.clone().or_else(|| published.app_protocol.clone()),
            })
        });
        let ports: Vec<EndpointPort> = ports.collect();
        (!ports.is_empty()).then_some(ports)
    }
}

/// By name, then by number, then the only one; always of the same protocol.
fn serving<'a>(
    port: &ServicePort,
    service: &Service,
    source: &'a Service,
) -> Option<&'a ServicePort> {
    let same_protocol = || source.ports.iter().filter(|one| one.protocol == port.protocol);
    same_protocol()
        .find(|one| one.name == port.name)
        .or_else(|| same_protocol().find(|one| one.number == port.number))
        .or_else(|| {
            let only = service.ports.len() == 1 && source.ports.len() == 1;
            same_protocol().next().filter(|_| only)
        })
}
