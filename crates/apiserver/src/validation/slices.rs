//! EndpointSlices. Upstream: pkg/apis/discovery/validation.

use std::net::IpAddr;

use serde_json::Value;

use super::endpoints::{PROTOCOLS, VALID_IP, endpoint_ip, parse};
use super::{Causes, IMMUTABLE, items, names, text};

const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;
const HINTS_MAX: usize = 8;
const ADDRESS_TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];

pub(crate) fn validate(object: &Value, causes: &mut Causes) {
    frame(object, causes);
    endpoints(object, causes);
}

pub(crate) fn validate_update(new: &Value, old: &Value, causes: &mut Causes) {
    frame(new, causes);
    // Unchanged endpoints are not validated again.
    if new["endpoints"] != old["endpoints"] {
        endpoints(new, causes);
    }
    if new["addressType"] != old["addressType"] {
        causes.invalid("addressType", &new["addressType"], IMMUTABLE);
    }
}

fn frame(object: &Value, causes: &mut Causes) {
    let address_type = &object["addressType"];
    match text(address_type) {
        "" => causes.required("addressType", ""),
        given if !ADDRESS_TYPES.contains(&given) => {
            causes.not_supported("addressType", address_type, &ADDRESS_TYPES);
        }
        _ => {}
    }
    ports(&object["ports"], causes);
}

fn ports(ports: &Value, causes: &mut Causes) {
    let n_ports = items(ports).count();
    if n_ports > PORTS_MAX {
        causes.too_many("ports", n_ports, PORTS_MAX);
        return;
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, port) in items(ports) {
        let path = format!("ports[{index}]");
        let name = text(&port["name"]);
        if !name.is_empty() {
            for wrong in names::label(name) {
                causes.invalid_text(&format!("{path}.name"), name, &wrong);
            }
        }
        if seen.contains(&name) {
            causes.duplicate(&format!("{path}.name"), &Value::from(name));
        }
        seen.push(name);
        let protocol = &port["protocol"];
        if !PROTOCOLS.contains(&text(protocol)) {
            causes.not_supported(&format!("{path}.protocol"), protocol, &PROTOCOLS);
        }
        if let Some(name) = port["appProtocol"].as_str() {
            for wrong in names::qualified_name(name) {
                causes.invalid_text(&format!("{path}.appProtocol"), name, &wrong);
            }
        }
    }
}

fn endpoints(object: &Value, causes: &mut Causes) {
    let n_endpoints = items(&object["endpoints"]).count();
    if n_endpoints > ENDPOINTS_MAX {
        causes.too_many("endpoints", n_endpoints, ENDPOINTS_MAX);
        return;
    }
    for (index, endpoint) in items(&object["endpoints"]) {
        let path = format!("endpoints[{index}]");
        addresses(&endpoint["addresses"], text(&object["addressType"]), &path, causes);
        if let Some(node) = endpoint["nodeName"].as_str() {
            for wrong in names::subdomain(node) {
                causes.invalid_text(&format!("{path}.nodeName"), node, &wrong);
            }
        }
        super::meta::labels(
            &endpoint["deprecatedTopology"],
            &format!("{path}.deprecatedTopology"),
            causes,
        );
        if let Some(hostname) = endpoint["hostname"].as_str() {
            for wrong in names::label(hostname) {
                causes.invalid_text(&format!("{path}.hostname"), hostname, &wrong);
            }
        }
        hints(&endpoint["hints"], &format!("{path}.hints"), causes);
    }
}

fn addresses(addresses: &Value, address_type: &str, path: &str, causes: &mut Causes) {
    let path = format!("{path}.addresses");
    let n_addresses = items(addresses).count();
    if n_addresses == 0 {
        causes.required(&path, "must contain at least 1 address");
    } else if n_addresses > ADDRESSES_MAX {
        causes.too_many(&path, n_addresses, ADDRESSES_MAX);
    }
    for (index, address) in items(addresses) {
        let field_path = format!("{path}[{index}]");
        let ip = text(address);
        let (is_family, why) = match (address_type, parse(ip)) {
            ("IPv4" | "IPv6", None) => {
                causes.invalid(&field_path, address, VALID_IP);
                continue;
            }
            ("IPv4", Some(it)) => (it.is_ipv4(), "must be an IPv4 address"),
            ("IPv6", Some(it)) => (matches!(it, IpAddr::V6(_)), "must be an IPv6 address"),
            ("FQDN", _) => {
                for wrong in fully_qualified(ip) {
                    causes.invalid(&field_path, address, &wrong);
                }
                continue;
            }
            _ => continue,
        };
        if !is_family {
            causes.invalid(&path, address, why);
        }
        endpoint_ip(ip, &field_path, causes);
    }
}

/// Upstream: `IsFullyQualifiedDomainName`.
fn fully_qualified(name: &str) -> Vec<String> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let wrong = names::subdomain(name);
    if !wrong.is_empty() {
        return wrong;
    }
    let parts: Vec<&str> = name.split('.').collect();
    if parts.len() < 2 {
        return vec!["should be a domain with at least two segments separated by dots".to_owned()];
    }
    parts.iter().flat_map(|label| names::label(label)).collect()
}

fn hints(hints: &Value, path: &str, causes: &mut Causes) {
    for (field, check) in [
        ("forZones", names::label_value as fn(&str) -> Vec<String>),
        ("forNodes", names::subdomain),
    ] {
        let n_hints = items(&hints[field]).count();
        if n_hints > HINTS_MAX {
            causes.too_many(&format!("{path}.{field}"), n_hints, HINTS_MAX);
            return;
        }
        let mut seen: Vec<&str> = Vec::new();
        for (index, hint) in items(&hints[field]) {
            let name = text(&hint["name"]);
            let field_path = format!("{path}.{field}[{index}].name");
            if seen.contains(&name) {
                causes.duplicate(&field_path, &hint["name"]);
            }
            seen.push(name);
            for wrong in check(name) {
                causes.invalid_text(&field_path, name, &wrong);
            }
        }
    }
}
