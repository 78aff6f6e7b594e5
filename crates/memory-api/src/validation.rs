//! Validation (422) of the fields that endpointd writes.

use std::collections::BTreeSet;

use endpointd_model::{
    AddressType, EndpointSlice, Endpoints, Family, Object, is_forbidden_endpoint_ip, parse_ip,
};

const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const HINTS_MAX: usize = 8;

/// The reason to reject an object.
pub fn invalid(object: &Object) -> Option<String> {
    if object.meta().labels.iter().any(|(_, value)| value.len() > 63) {
        return Some("a label value is longer than 63 characters".into());
    }
    match object {
        Object::Slice(slice) => invalid_slice(slice),
        Object::Endpoints(endpoints) => invalid_endpoints(endpoints),
        Object::ServiceStatus(_) | Object::MultiCluster(_) => None,
    }
}

fn invalid_slice(slice: &EndpointSlice) -> Option<String> {
    if slice.endpoints.len() > ENDPOINTS_MAX {
        return Some(format!("{} endpoints are too many", slice.endpoints.len()));
    }
    let names: BTreeSet<&str> =
        slice.ports.iter().map(|port| port.name.as_deref().unwrap_or("")).collect();
    if names.len() < slice.ports.len() {
        return Some("two ports have the same name".into());
    }
    for endpoint in &slice.endpoints {
        let n = endpoint.addresses.len();
        if n == 0 || n > ADDRESSES_MAX {
            return Some(format!("an endpoint has {n} addresses"));
        }
        let hints = endpoint.hints.as_ref();
        if hints.is_some_and(|hints| hints.for_zones.len().max(hints.for_nodes.len()) > HINTS_MAX) {
            return Some("too many hints".into());
        }
        for address in &endpoint.addresses {
            if let Some(reason) = invalid_address(address, &slice.address_type) {
                return Some(reason);
            }
        }
    }
    None
}

fn invalid_address(address: &str, address_type: &AddressType) -> Option<String> {
    let family = match address_type {
        AddressType::IPv4 => Family::V4,
        AddressType::IPv6 => Family::V6,
        AddressType::Fqdn | AddressType::Other(_) => return None,
    };
    match parse_ip(address) {
        None => Some(format!("{address:?} is not an address")),
        Some(ip) if Family::of(ip) != family => Some(format!("{address} is not {family}")),
        Some(ip) if ip.to_string() != address => Some(format!("{address} is not canonical")),
        Some(ip) => is_forbidden_endpoint_ip(ip).map(|bad| format!("{address}: {bad}")),
    }
}

fn invalid_endpoints(endpoints: &Endpoints) -> Option<String> {
    for subset in &endpoints.subsets {
        if subset.addresses.is_empty() && subset.not_ready_addresses.is_empty() {
            return Some("a subset has no address".into());
        }
        let names: BTreeSet<&str> = subset.ports.iter().map(|port| port.name.as_ref()).collect();
        if names.len() < subset.ports.len() {
            return Some("two ports have the same name".into());
        }
        for address in subset.addresses.iter().chain(&subset.not_ready_addresses) {
            match parse_ip(&address.ip) {
                None => return Some(format!("{:?} is not an address", address.ip)),
                Some(ip) => {
                    if let Some(bad) = is_forbidden_endpoint_ip(ip) {
                        return Some(format!("{ip}: {bad}"));
                    }
                }
            }
        }
    }
    None
}
