//! Endpoints, and the addresses that Endpoints and slices may not contain. Upstream:
//! `ValidateEndpoints`, `ValidateEndpointIP` in pkg/apis/core/validation.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::{Causes, items, names, text};

pub(crate) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(crate) fn validate(object: &Value, causes: &mut Causes) {
    for (index, subset) in items(&object["subsets"]) {
        let path = format!("subsets[{index}]");
        if subset["addresses"].is_null() && subset["notReadyAddresses"].is_null() {
            causes.required(&path, "must specify `addresses` or `notReadyAddresses`");
        }
        for field in ["addresses", "notReadyAddresses"] {
            for (at, one) in items(&subset[field]) {
                address(one, &format!("{path}.{field}[{at}]"), causes);
            }
        }
        let n_ports = items(&subset["ports"]).count();
        for (at, one) in items(&subset["ports"]) {
            port(one, n_ports > 1, &format!("{path}.ports[{at}]"), causes);
        }
    }
}

/// Unchanged subsets are not validated again. Upstream: `ValidateEndpoints`.
pub(crate) fn validate_update(new: &Value, old: &Value, causes: &mut Causes) {
    if new["subsets"] != old["subsets"] {
        validate(new, causes);
    }
}

fn address(address: &Value, path: &str, causes: &mut Causes) {
    let ip = text(&address["ip"]);
    if parse(ip).is_none() {
        causes.invalid_text(&format!("{path}.ip"), ip, VALID_IP);
    }
    if let Some(hostname) = address["hostname"].as_str() {
        for wrong in names::label(hostname) {
            causes.invalid_text(&format!("{path}.hostname"), hostname, &wrong);
        }
    }
    if let Some(node) = address["nodeName"].as_str() {
        for wrong in names::subdomain(node) {
            causes.invalid_text(&format!("{path}.nodeName"), node, &wrong);
        }
    }
    endpoint_ip(ip, &format!("{path}.ip"), causes);
}

fn port(port: &Value, name_required: bool, path: &str, causes: &mut Causes) {
    match text(&port["name"]) {
        "" if name_required => causes.required(&format!("{path}.name"), ""),
        "" => {}
        name => {
            for wrong in names::label(name) {
                causes.invalid_text(&format!("{path}.name"), name, &wrong);
            }
        }
    }
    let number = port["port"].as_i64().unwrap_or_default();
    if let Some(wrong) = names::port_number(number) {
        causes.invalid(&format!("{path}.port"), &json!(number), wrong);
    }
    protocol(&port["protocol"], path, causes);
    if let Some(name) = port["appProtocol"].as_str() {
        for wrong in names::qualified_name(name) {
            causes.invalid_text(&format!("{path}.appProtocol"), name, &wrong);
        }
    }
}

pub(crate) fn protocol(protocol: &Value, path: &str, causes: &mut Causes) {
    let path = format!("{path}.protocol");
    match text(protocol) {
        "" => causes.required(&path, ""),
        given if !PROTOCOLS.contains(&given) => causes.not_supported(&path, protocol, &PROTOCOLS),
        _ => {}
    }
}

pub(crate) const VALID_IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/// Go's `ParseIPSloppy`, which allows leading zeros.
pub(crate) fn parse(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| {
        let parts: Vec<&str> = text.split('.').collect();
        let digits = |part: &&str| {
            !part.is_empty() && part.len() <= 32 && part.bytes().all(|b| b.is_ascii_digit())
        };
        if parts.len() != 4 || !parts.iter().all(digits) {
            return None;
        }
        let plain: Vec<String> = parts
            .iter()
            .map(|part| match part.trim_start_matches('0') {
                "" => "0".to_owned(),
                rest => rest.to_owned(),
            })
            .collect();
        plain.join(".").parse().ok()
    })
}

/// Addresses that an endpoint may not have.
pub(crate) fn endpoint_ip(ip: &str, path: &str, causes: &mut Causes) {
    let Some(address) = parse(ip) else {
        causes.invalid_text(path, ip, "must be a valid IP address");
        return;
    };
    // Go treats an IPv4-mapped IPv6 address as IPv4.
    let address = address.to_canonical();
    if address.is_unspecified() {
        causes.invalid_text(path, ip, &format!("may not be unspecified ({ip})"));
    }
    if address.is_loopback() {
        let why = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
        causes.invalid_text(path, ip, why);
    }
    let (link_local, link_local_multicast) = match address {
        IpAddr::V4(it) => (it.is_link_local(), it.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(it) => {
            let head = it.segments()[0];
            (head & 0xffc0 == 0xfe80, head & 0xff0f == 0xff02)
        }
    };
    if link_local {
        let why = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        causes.invalid_text(path, ip, why);
    }
    if link_local_multicast {
        let why = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        causes.invalid_text(path, ip, why);
    }
}
