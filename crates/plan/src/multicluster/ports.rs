//! The ports of an import: the union of all exports, and which port of a cluster serves which of them
//! (C4–C7).

use std::collections::BTreeSet;

use endpointd_model::{
    EndpointPort, EndpointSlice, ImportPort, ImportType, Protocol, Service, ServicePort, SharedStr,
};

use super::merge::Effective;

/// The older definition wins: a later port with a name, or with a number and protocol, that is there
/// already is left out.
pub fn union<'a>(services: impl Iterator<Item = &'a Service>) -> Vec<ImportPort> {
    let mut union: Vec<ImportPort> = Vec::new();
    for port in services.flat_map(|service| service.ports.iter().map(import_port)) {
        let is_there = union.iter().any(|one| {
            one.name == port.name || (&one.protocol, one.number) == (&port.protocol, port.number)
        });
        if !is_there {
            union.push(port);
        }
    }
    union
}

/// For comparisons: the order of ports means nothing.
pub fn set(service: &Service) -> BTreeSet<ImportPort> {
    service.ports.iter().map(import_port).collect()
}

fn import_port(port: &ServicePort) -> ImportPort {
    let ServicePort { name, protocol, number, app_protocol, target: _ } = port;
    let (name, protocol, app_protocol) = (name.clone(), protocol.clone(), app_protocol.clone());
    ImportPort { name, protocol, app_protocol, number: *number }
}

/// The ports as a Service can have them: of several, each has a name (C6).
pub fn of_service(ports: &[ImportPort]) -> Vec<ImportPort> {
    let named = ports.iter().map(|port| {
        let name = service_port_name(ports, port);
        ImportPort { name, ..port.clone() }
    });
    named.collect()
}

fn service_port_name(ports: &[ImportPort], port: &ImportPort) -> SharedStr {
    if !port.name.is_empty() || ports.len() == 1 {
        return port.name.clone();
    }
    let name = format!("port-{}-{}", port.number, port.protocol.as_str().to_lowercase());
    let is_taken = |name: &str| ports.iter().any(|other| *other.name == *name);
    let others = (2..).map(|n: usize| format!("{name}-{n}"));
    let free = std::iter::once(name.clone()).chain(others).find(|name| !is_taken(name));
    free.unwrap_or(name).into()
}

/// Which port of one cluster's Service serves which port of the import.
pub struct PortMap<'a> {
    import_type: ImportType,
    /// A port of the cluster, and the port of the derived Service with the same protocol and number.
    matched: Vec<(&'a ServicePort, ImportPort)>,
    /// An older export uses the name for another number.
    pub left_out: Vec<SharedStr>,
}

impl<'a> PortMap<'a> {
    pub fn new(service: &'a Service, effective: &Effective) -> Self {
        let mut map =
            Self { import_type: effective.import_type, matched: Vec::new(), left_out: Vec::new() };
        // DNS reads the ports of a headless Service from its slices.
        if map.import_type == ImportType::Headless {
            return map;
        }
        let import_ports = of_service(&effective.ports);
        for port in &service.ports {
            let serves =
                |one: &&ImportPort| (&one.protocol, one.number) == (&port.protocol, port.number);
            match import_ports.iter().find(serves) {
                Some(served) => map.matched.push((port, served.clone())),
                None => map.left_out.push(label(port)),
            }
        }
        map
    }

    /// The ports of a copy of this slice; None if no port is left.
    pub fn ports_of(&self, slice: &EndpointSlice) -> Option<Vec<EndpointPort>> {
        if self.import_type == ImportType::Headless {
            return Some(slice.ports.clone());
        }
        let ports = slice.ports.iter().filter_map(|published| {
            let name = published.name.as_deref().unwrap_or_default();
            let protocol = published.protocol.as_ref().unwrap_or(&Protocol::Tcp);
            let is_same = |port: &ServicePort| *port.name == *name && port.protocol == *protocol;
            let (_, served) = self.matched.iter().find(|(port, _)| is_same(port))?;
            let app_protocol = served.app_protocol.clone();
            Some(EndpointPort {
                name: Some(served.name.clone()),
                port: Some(published.port?),
                protocol: Some(protocol.clone()),
                app_protocol: app_protocol.or_else(|| published.app_protocol.clone()),
            })
        });
        let ports: Vec<EndpointPort> = ports.collect();
        (!ports.is_empty()).then_some(ports)
    }
}

/// As people write it: `http 80/TCP`.
fn label(port: &ServicePort) -> SharedStr {
    let number = format!("{}/{}", port.number, port.protocol);
    match port.name.is_empty() {
        true => number.into(),
        false => format!("{} {number}", port.name).into(),
    }
}
