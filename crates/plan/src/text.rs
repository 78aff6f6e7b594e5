//! The text form of a plan, in stable order: one line per write, and under it one line per endpoint
//! or subset. Tests compare it.

use std::fmt;

use endpointd_model::{
    Condition, Endpoint, EndpointAddress, EndpointPort, EndpointSlice, Endpoints, Hints, Object,
    ServiceStatus, Subset, SubsetPort, Write, names,
};

use crate::multicluster::multicluster_text;
use crate::{ExcludedPod, Plan};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let writes = self.writes.iter().map(write_line);
        let event_records = self.event_records.iter().map(|record| {
            format!(
                "{} {}: {}",
                record.event_type().as_str(),
                record.reason.as_str(),
                record.message
            )
        });
        let excluded_pods = self
            .excluded_pods
            .iter()
            .map(|ExcludedPod { pod, reason }| format!("excluded {pod}: {reason}"));
        let retry = self.retry.iter().map(|retry| format!("retry: {retry}"));
        let lines: Vec<String> =
            writes.chain(event_records).chain(excluded_pods).chain(retry).collect();
        f.write_str(&lines.join("\n"))
    }
}

fn write_line(write: &Write) -> String {
    let name = match write {
        // The derived part of a name carries no information for a reader.
        Write::Create(Object::Slice(slice)) => {
            format!("{}*", slice.meta.generate_name.as_deref().unwrap_or(""))
        }
        Write::Create(_) | Write::Update(_) | Write::Delete(_) => write.key().name.to_string(),
    };
    let content = write.object().map_or(String::new(), describe);
    format!("{} {} {name}{content}", write.verb(), write.resource().as_str())
}

fn describe(object: &Object) -> String {
    match object {
        Object::Slice(slice) => slice_text(slice),
        Object::Endpoints(endpoints) => endpoints_text(endpoints),
        Object::ServiceStatus(status) => status_text(status),
        Object::MultiCluster(object) => multicluster_text(object),
    }
}

pub fn slice_text(slice: &EndpointSlice) -> String {
    format!(" {}{}", slice_head(slice), indented(slice.endpoints.iter().map(endpoint_text)))
}

/// The addressType and the ports.
pub fn slice_head(slice: &EndpointSlice) -> String {
    let ports: Vec<String> = slice.ports.iter().map(port_text).collect();
    let ports = if ports.is_empty() { "no ports".to_owned() } else { ports.join(",") };
    format!("{} {ports}", slice.address_type)
}

fn status_text(status: &ServiceStatus) -> String {
    match &status.condition {
        Some(Condition { status, reason, message, .. }) => {
            format!(" {} {reason}: {message}", status.as_str())
        }
        None => " no condition".to_owned(),
    }
}

fn indented(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| format!("\n  {line}")).collect()
}

fn port_text(port: &EndpointPort) -> String {
    let EndpointPort { name, port, protocol, app_protocol } = port;
    let name = name.as_deref().filter(|name| !name.is_empty());
    let number = port.map_or("any".to_owned(), |port| port.to_string());
    let protocol = protocol.as_ref().map_or("", |protocol| protocol.as_str());
    let app = app_protocol.as_ref().map_or(String::new(), |app| format!("({app})"));
    format!("{}{number}/{protocol}{app}", name.map_or(String::new(), |name| format!("{name}:")))
}

fn endpoint_text(endpoint: &Endpoint) -> String {
    let mut words = vec![endpoint.addresses.join(",")];
    let conditions = &endpoint.conditions;
    let is = |condition: Option<bool>| condition == Some(true);
    words.push(if is(conditions.ready) { "ready" } else { "not-ready" }.to_owned());
    if is(conditions.serving) && !is(conditions.ready) {
        words.push("serving".to_owned());
    }
    if is(conditions.terminating) {
        words.push("terminating".to_owned());
    }
    words.extend(endpoint.hostname.as_ref().map(|name| format!("host={name}")));
    words.extend(endpoint.node_name.as_ref().map(|name| format!("on={name}")));
    words.extend(endpoint.zone.as_ref().map(|zone| format!("in={zone}")));
    words.extend(endpoint.hints.as_ref().map(hints_text));
    words.join(" ")
}

fn hints_text(hints: &Hints) -> String {
    let Hints { for_zones, for_nodes } = hints;
    let names: Vec<&str> = for_zones.iter().chain(for_nodes).map(AsRef::as_ref).collect();
    format!("for={}", names.join(","))
}

fn endpoints_text(endpoints: &Endpoints) -> String {
    let cut = endpoints.meta.annotations.contains_key(names::OVER_CAPACITY);
    let subsets = indented(endpoints.subsets.iter().map(subset_text));
    format!("{}{subsets}", if cut { " truncated" } else { "" })
}

fn subset_text(subset: &Subset) -> String {
    let list = |addresses: &[EndpointAddress], state: &str| {
        let ips: Vec<&str> = addresses.iter().map(|address| address.ip.as_ref()).collect();
        if ips.is_empty() { String::new() } else { format!(" {state} {}", ips.join(",")) }
    };
    let port = |port: &SubsetPort| format!("{}:{}/{}", port.name, port.port, port.protocol);
    let ports: Vec<String> = subset.ports.iter().map(port).collect();
    let ports = if ports.is_empty() { "no ports".to_owned() } else { ports.join(",") };
    let ready = list(&subset.addresses, "ready");
    format!("{ports}{ready}{}", list(&subset.not_ready_addresses, "not-ready"))
}
