//! What a write changes, in words: `+ 10.0.0.9 (web-9), ready`.

use std::collections::BTreeMap;
use std::fmt;

use endpointd_model::{
    AddressType, Condition, Endpoint, EndpointAddress, EndpointSlice, Endpoints, Hints, Meta,
    Object, ObjectRef, Protocol, ServiceStatus, Subset, Write, names,
};
use endpointd_plan::ClusterState;

/// The published object that a write replaces or deletes.
pub fn object_before(cluster: &ClusterState, write: &Write) -> Option<Object> {
    use endpointd_model::PublishedResource::{Endpoints, MultiCluster, ServiceStatus, Slices};

    let key = write.key();
    match write.resource() {
        Slices => cluster.slices.get(&key).cloned().map(Object::Slice),
        Endpoints => cluster.endpoints.get(&key).cloned().map(Object::Endpoints),
        ServiceStatus => {
            cluster.services.get(&key).cloned().map(|one| Object::ServiceStatus(one.into()))
        }
        // No plan for one cluster writes them.
        MultiCluster(_) => None,
    }
}

/// One difference between two versions of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub kind: ChangeKind,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Removed,
    Changed,
}

impl ChangeKind {
    pub fn sign(self) -> &'static str {
        match self {
            Self::Added => "+",
            Self::Removed => "-",
            Self::Changed => "~",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.sign(), self.text)
    }
}

/// From the object before, if there is one, to the object after, if it is not deleted. Order within
/// an object does not count.
pub fn changes(before: Option<&Object>, after: Option<&Object>) -> Vec<Change> {
    let (before, after) =
        (before.map(parts).unwrap_or_default(), after.map(parts).unwrap_or_default());
    let mut changes = Vec::new();
    for (subject, was) in &before {
        match after.get(subject) {
            None => changes.push(Change { kind: ChangeKind::Removed, text: whole(subject, was) }),
            Some(is) if is != was => {
                let text = format!("{}: {}", subject.text, difference(was, is));
                changes.push(Change { kind: ChangeKind::Changed, text });
            }
            Some(_) => {}
        }
    }
    for (subject, is) in &after {
        if !before.contains_key(subject) {
            changes.push(Change { kind: ChangeKind::Added, text: whole(subject, is) });
        }
    }
    changes
}

/// A part of an object: an endpoint, a port, a label. Endpoints come first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Subject {
    group: Group,
    text: String,
    /// Distinguishes parts with the same text.
    nth: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Endpoint,
    Port,
    Metadata,
}

/// What is said about a subject, as names and values; a value without a name stands for itself.
type Facts = Vec<(&'static str, String)>;
type Parts = BTreeMap<Subject, Facts>;

fn whole(subject: &Subject, facts: &Facts) -> String {
    let mut text = subject.text.clone();
    for (name, value) in facts {
        match *name {
            "" => text.push_str(&format!(", {value}")),
            "=" => text.push_str(&format!("={value}")),
            name => text.push_str(&format!(", {name} {value}")),
        }
    }
    text
}

/// `ready → not ready, zone a → b`.
fn difference(was: &Facts, is: &Facts) -> String {
    let value = |facts: &Facts, name: &str| {
        facts.iter().find(|(one, _)| *one == name).map_or("none", |(_, value)| value).to_owned()
    };
    let mut names: Vec<&str> = was.iter().chain(is).map(|(name, _)| *name).collect();
    let mut seen = Vec::new();
    names.retain(|name| {
        let is_new = !seen.contains(name);
        seen.push(*name);
        is_new
    });
    let texts = names.into_iter().filter_map(|name| {
        let (was, is) = (value(was, name), value(is, name));
        let prefix = if ["", "="].contains(&name) { String::new() } else { format!("{name} ") };
        (was != is).then(|| format!("{prefix}{was} → {is}"))
    });
    texts.collect::<Vec<_>>().join(", ")
}

fn parts(object: &Object) -> Parts {
    let mut parts = Parts::new();
    match object {
        Object::Slice(slice) => slice_parts(&mut parts, slice),
        Object::Endpoints(endpoints) => endpoints_parts(&mut parts, endpoints),
        Object::ServiceStatus(status) => status_parts(&mut parts, status),
        Object::MultiCluster(_) => {}
    }
    meta_parts(&mut parts, object.meta());
    parts
}

fn add(parts: &mut Parts, group: Group, text: String, facts: Facts) {
    let mut subject = Subject { group, text, nth: 0 };
    while parts.contains_key(&subject) {
        subject.nth += 1;
    }
    parts.insert(subject, facts);
}

fn slice_parts(parts: &mut Parts, slice: &EndpointSlice) {
    let EndpointSlice { meta: _, address_type, endpoints, ports } = slice;
    for endpoint in endpoints {
        let subject = named(&endpoint.addresses.join(" "), endpoint.target_ref.as_ref());
        add(parts, Group::Endpoint, subject, endpoint_facts(endpoint));
    }
    for port in ports {
        let number = port.port.map_or_else(|| "any".to_owned(), |number| number.to_string());
        let protocol = port.protocol.as_ref().unwrap_or(&Protocol::Tcp);
        let subject = port_name(port.name.as_deref().unwrap_or_default());
        let mut facts = vec![("=", format!("{number}/{protocol}"))];
        facts.extend(port.app_protocol.as_ref().map(|one| ("appProtocol", one.to_string())));
        add(parts, Group::Port, subject, facts);
    }
    match address_type {
        AddressType::IPv4 | AddressType::IPv6 => {}
        AddressType::Fqdn | AddressType::Other(_) => {
            let facts = vec![("=", address_type.to_string())];
            add(parts, Group::Metadata, "addressType".to_owned(), facts);
        }
    }
}

fn endpoint_facts(endpoint: &Endpoint) -> Facts {
    let Endpoint {
        addresses: _,
        conditions,
        hostname,
        node_name,
        target_ref: _,
        zone,
        hints,
        deprecated_topology: _,
    } = endpoint;
    let serving = conditions.serving.unwrap_or(conditions.ready.unwrap_or(true));
    let state = match (endpoint.is_ready(), conditions.terminating.unwrap_or(false), serving) {
        (true, _, _) => "ready",
        (false, false, _) => "not ready",
        (false, true, true) => "terminating and serving",
        (false, true, false) => "terminating",
    };
    let mut facts = vec![("", state.to_owned())];
    let named = [("hostname", hostname), ("zone", zone), ("node", node_name)];
    facts.extend(
        named.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?.to_string()))),
    );
    if let Some(Hints { for_zones, for_nodes }) = hints {
        let all: Vec<&str> = for_zones.iter().chain(for_nodes).map(AsRef::as_ref).collect();
        facts.push(("hints for", all.join(" ")));
    }
    facts
}

fn endpoints_parts(parts: &mut Parts, endpoints: &Endpoints) {
    let is_single = endpoints.subsets.len() == 1;
    for subset in &endpoints.subsets {
        let Subset { addresses, not_ready_addresses, ports } = subset;
        let port_text =
            |port: &endpointd_model::SubsetPort| format!("{}/{}", port.port, port.protocol);
        let all_ports: Vec<String> = ports.iter().map(port_text).collect();
        // With several subsets, the ports tell which one.
        let suffix = if is_single { String::new() } else { format!(" on {}", all_ports.join(",")) };
        let ready = addresses.iter().map(|one| (one, "ready"));
        let not_ready = not_ready_addresses.iter().map(|one| (one, "not ready"));
        for (address, state) in ready.chain(not_ready) {
            let EndpointAddress { ip, hostname, node_name, target_ref } = address;
            let mut facts = vec![("", state.to_owned())];
            let named_facts = [("hostname", hostname), ("node", node_name)];
            facts.extend(
                named_facts
                    .into_iter()
                    .filter_map(|(name, value)| Some((name, value.as_ref()?.to_string()))),
            );
            let subject = format!("{}{suffix}", named(ip, target_ref.as_ref()));
            add(parts, Group::Endpoint, subject, facts);
        }
        for port in ports {
            let mut facts = vec![("=", port_text(port))];
            facts.extend(port.app_protocol.as_ref().map(|one| ("appProtocol", one.to_string())));
            add(parts, Group::Port, port_name(&port.name), facts);
        }
    }
}

fn status_parts(parts: &mut Parts, status: &ServiceStatus) {
    if let Some(Condition { status, reason, message, .. }) = &status.condition {
        let subject = format!("condition {}", names::SOURCE_CONDITION);
        let facts = vec![("=", format!("{} ({reason}: {message})", status.as_str()))];
        add(parts, Group::Metadata, subject, facts);
    }
}

fn meta_parts(parts: &mut Parts, meta: &Meta) {
    for (key, value) in meta.labels.iter() {
        add(parts, Group::Metadata, format!("label {key}"), vec![("=", value.to_string())]);
    }
    for (key, value) in meta.annotations.iter() {
        add(parts, Group::Metadata, format!("annotation {key}"), vec![("=", value.to_string())]);
    }
    for owner in &meta.owners {
        let subject = format!("owner {} {}", owner.kind, owner.name);
        add(parts, Group::Metadata, subject, Facts::new());
    }
}

/// `10.0.0.1 (web-1)`.
fn named(address: &str, target: Option<&ObjectRef>) -> String {
    match target {
        Some(target) if !target.name.is_empty() => format!("{address} ({})", target.name),
        Some(_) | None => address.to_owned(),
    }
}

fn port_name(name: &str) -> String {
    if name.is_empty() { "port".to_owned() } else { format!("port {name}") }
}

#[cfg(test)]
mod tests {
    use endpointd_model::{Conditions, EndpointPort};

    use super::*;

    fn endpoint(ip: &str, ready: bool, zone: &str) -> Endpoint {
        Endpoint {
            addresses: vec![ip.into()],
            conditions: Conditions { ready: Some(ready), ..Conditions::default() },
            zone: Some(zone.into()),
            ..Endpoint::default()
        }
    }

    fn slice(endpoints: Vec<Endpoint>, port: i32) -> Object {
        let ports = vec![EndpointPort {
            name: Some("http".into()),
            port: Some(port),
            ..EndpointPort::default()
        }];
        Object::Slice(EndpointSlice { endpoints, ports, ..EndpointSlice::default() })
    }

    fn texts(before: Option<&Object>, after: Option<&Object>) -> Vec<String> {
        changes(before, after).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_change_names_what_differs() {
        let before =
            slice(vec![endpoint("10.0.0.1", true, "a"), endpoint("10.0.0.2", true, "b")], 80);
        let after =
            slice(vec![endpoint("10.0.0.3", true, "a"), endpoint("10.0.0.2", false, "c")], 81);
        assert_eq!(
            texts(Some(&before), Some(&after)),
            [
                "- 10.0.0.1, ready, zone a",
                "~ 10.0.0.2: ready → not ready, zone b → c",
                "~ port http: 80/TCP → 81/TCP",
                "+ 10.0.0.3, ready, zone a",
            ]
        );
        assert_eq!(texts(None, Some(&slice(vec![], 80))), ["+ port http=80/TCP"]);
    }

    #[test]
    fn order_does_not_count_and_copies_do() {
        let (one, other) = (endpoint("10.0.0.1", true, "a"), endpoint("10.0.0.2", true, "a"));
        let before = slice(vec![one.clone(), other.clone()], 80);
        assert_eq!(texts(Some(&before), Some(&slice(vec![other, one.clone()], 80))), [""; 0]);
        let twice = slice(vec![one.clone(), one.clone()], 80);
        let once = slice(vec![one], 80);
        assert_eq!(texts(Some(&twice), Some(&once)), ["- 10.0.0.1, ready, zone a"]);
    }
}
