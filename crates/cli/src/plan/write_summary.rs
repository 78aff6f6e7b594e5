//! A short description of a written object, such as `IPv4 8080/TCP: 3 endpoints, 2 ready`.

use std::fmt;

use endpointd_model::{
    EndpointSlice, Endpoints, Object, Protocol, PublishedResource, ServiceStatus, Subset, Write,
    names,
};
use endpointd_plan::{ClusterState, write_summary};

use super::counted;

pub struct WriteSummary {
    /// Address type and ports of a slice, or the ports of a single subset.
    place: String,
    pub counts: String,
}

impl fmt::Display for WriteSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, counts } = self;
        write!(f, "{place}: {counts}")
    }
}

impl WriteSummary {
    /// The object after the write.
    pub fn after(write: &Write) -> Option<Self> {
        write.object().map(|object| match object {
            Object::Slice(slice) => Self::of_slice(slice),
            Object::Endpoints(endpoints) => Self::of_endpoints(endpoints),
            Object::ServiceStatus(status) => Self::of_status(status),
            Object::MultiCluster(_) => Self { place: String::new(), counts: write_summary(write) },
        })
    }

    /// The object before the write.
    pub fn before(cluster: &ClusterState, write: &Write) -> Option<Self> {
        let key = write.key();
        match write.resource() {
            PublishedResource::Slices => cluster.slices.get(&key).map(Self::of_slice),
            PublishedResource::Endpoints => cluster.endpoints.get(&key).map(Self::of_endpoints),
            PublishedResource::ServiceStatus => {
                cluster.services.get(&key).map(|one| Self::of_status(&one.clone().into()))
            }
            PublishedResource::MultiCluster(_) => None,
        }
    }

    fn of_slice(slice: &EndpointSlice) -> Self {
        let ports = slice.ports.iter().map(|port| port_text(port.port, port.protocol.as_ref()));
        let n_ready = slice.endpoints.iter().filter(|endpoint| endpoint.is_ready()).count();
        Self {
            place: format!("{} {}", slice.address_type, ports_text(ports)),
            counts: counts(slice.endpoints.len(), "endpoint", n_ready),
        }
    }

    fn of_status(status: &ServiceStatus) -> Self {
        let condition = status.condition.as_ref();
        let counts = condition.map_or_else(
            || "none".to_owned(),
            |one| format!("{} {}: {}", one.status.as_str(), one.reason, one.message),
        );
        Self { place: format!("condition {}", names::SOURCE_CONDITION), counts }
    }

    fn of_endpoints(endpoints: &Endpoints) -> Self {
        let subsets = endpoints.subsets.as_slice();
        let n_ready = subsets.iter().map(|subset| subset.addresses.len()).sum();
        let n_not_ready: usize =
            subsets.iter().map(|subset| subset.not_ready_addresses.len()).sum();
        let place = match subsets {
            [Subset { ports, .. }] => ports_text(
                ports.iter().map(|port| port_text(Some(port.port), Some(&port.protocol))),
            ),
            subsets => counted(subsets.len(), "subset"),
        };
        Self { place, counts: counts(n_ready + n_not_ready, "address", n_ready) }
    }
}

fn ports_text(ports: impl Iterator<Item = String>) -> String {
    let ports: Vec<String> = ports.collect();
    if ports.is_empty() { "no ports".to_owned() } else { ports.join(",") }
}

fn port_text(number: Option<i32>, protocol: Option<&Protocol>) -> String {
    let number = number.map_or_else(|| "any".to_owned(), |number| number.to_string());
    format!("{number}/{}", protocol.unwrap_or(&Protocol::Tcp))
}

fn counts(n: usize, what: &str, n_ready: usize) -> String {
    match n {
        0 => format!("no {}", counted(n, what).trim_start_matches("0 ")),
        n => format!("{}, {n_ready} ready", counted(n, what)),
    }
}
