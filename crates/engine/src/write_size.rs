//! The approximate size of a write on the wire, for the limit of bytes in flight.

use endpointd_model::{EndpointSlice, Endpoints, Object, Subset, Write};

/// Metadata, `managedFields` excluded.
const META_BYTES: usize = 1024;
/// Addresses, conditions, nodeName, zone, and targetRef of an endpoint.
const ENDPOINT_BYTES: usize = 256;
const PORT_BYTES: usize = 64;

pub fn approximate_bytes(write: &Write) -> usize {
    let (n_endpoints, n_ports) = match write.object() {
        Some(Object::Slice(EndpointSlice { endpoints, ports, .. })) => {
            (endpoints.len(), ports.len())
        }
        Some(Object::Endpoints(Endpoints { subsets, .. })) => {
            let n_addresses = |one: &Subset| one.addresses.len() + one.not_ready_addresses.len();
            (subsets.iter().map(n_addresses).sum(), subsets.iter().map(|one| one.ports.len()).sum())
        }
        Some(Object::ServiceStatus(_) | Object::MultiCluster(_)) | None => (0, 0),
    };
    META_BYTES + n_endpoints * ENDPOINT_BYTES + n_ports * PORT_BYTES
}
