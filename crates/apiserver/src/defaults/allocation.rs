//! Cluster IPs and node ports: allocated when a Service is written, released when it is deleted.
//! Upstream: pkg/registry/core/service/storage/alloc.go.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use super::service::is_headless;
use crate::validation::Causes;
use crate::validation::service::cluster_ips;

const NETWORK_SIZE: u32 = 1 << 16;
/// Addresses below are for static assignment; dynamic ones come from above while there are any.
const FIRST_DYNAMIC: u32 = 256;
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;
/// Ports below are for static assignment.
const FIRST_DYNAMIC_PORT: u16 = 30_086;

pub(crate) struct Allocations {
    v4: Ipv4Addr,
    v6: Ipv6Addr,
    addresses: BTreeSet<IpAddr>,
    node_ports: BTreeSet<u16>,
    next_v4: u32,
    next_v6: u32,
}

impl Allocations {
    pub(crate) fn new(v4: Ipv4Addr, v6: Ipv6Addr) -> Self {
        Self {
            v4,
            v6,
            addresses: BTreeSet::new(),
            node_ports: BTreeSet::new(),
            next_v4: FIRST_DYNAMIC,
            next_v6: FIRST_DYNAMIC,
        }
    }

    /// Marks the addresses and ports of a stored Service as allocated.
    pub(crate) fn mark_allocated(&mut self, service: &Value) {
        self.addresses.extend(addresses(&service["spec"]));
        self.node_ports.extend(node_ports(&service["spec"]));
    }

    pub(crate) fn release(&mut self, service: &Value) {
        for address in addresses(&service["spec"]) {
            self.addresses.remove(&address);
        }
        for port in node_ports(&service["spec"]) {
            self.node_ports.remove(&port);
        }
    }

    /// Allocates missing addresses and ports. `old` is the Service before the write.
    pub(crate) fn allocate(&mut self, service: &mut Value, old: Option<&Value>) -> Causes {
        let mut causes = Causes::default();
        let spec = &mut service["spec"];
        if spec["type"] != "ExternalName" {
            cluster_ips(spec, &mut causes);
            if !causes.is_empty() {
                return causes;
            }
            families(spec, old.map(|old| &old["spec"]), &mut causes);
            if causes.is_empty() && !is_headless(spec) {
                self.cluster_ips(spec, old.map(|old| &old["spec"]), &mut causes);
            }
        }
        if causes.is_empty() && needs_node_ports(spec) {
            self.allocate_node_ports(spec, old.map(|old| &old["spec"]), &mut causes);
        }
        causes
    }

    fn cluster_ips(&mut self, spec: &mut Value, old: Option<&Value>, causes: &mut Causes) {
        let held: Vec<IpAddr> = old.map(addresses).unwrap_or_default();
        let given = spec["clusterIPs"].as_array().cloned().unwrap_or_default();
        let families = spec["ipFamilies"].as_array().cloned().unwrap_or_default();
        let mut all = Vec::new();
        for (index, family) in families.iter().enumerate() {
            let requested =
                given.get(index).and_then(Value::as_str).filter(|text| !text.is_empty());
            let address = match requested.map(|text| (text, text.parse::<IpAddr>())) {
                Some((text, Ok(address))) => {
                    if !held.contains(&address)
                        && let Some(why) = self.allocation_error(address)
                    {
                        let why = format!("failed to allocate IP {text}: {why}");
                        causes.invalid("spec.clusterIPs", &json!(given), &why);
                        return;
                    }
                    address
                }
                Some((_, Err(_))) => return,
                None => self.free_address(family == "IPv6"),
            };
            all.push(json!(address.to_string()));
        }
        spec["clusterIP"] = all.first().cloned().unwrap_or(Value::Null);
        spec["clusterIPs"] = Value::Array(all);
    }

    fn allocation_error(&self, address: IpAddr) -> Option<String> {
        let inside = match address {
            IpAddr::V4(it) => u32::from(it) >> 16 == u32::from(self.v4) >> 16,
            IpAddr::V6(it) => u128::from(it) >> 16 == u128::from(self.v6) >> 16,
        };
        if !inside {
            return Some("the provided network does not match the current range".to_owned());
        }
        self.addresses.contains(&address).then(|| "provided IP is already allocated".to_owned())
    }

    /// # Panics
    ///
    /// When all 65,000 addresses of a family are allocated.
    fn free_address(&mut self, is_v6: bool) -> IpAddr {
        for _ in 0..NETWORK_SIZE {
            let next = if is_v6 { &mut self.next_v6 } else { &mut self.next_v4 };
            let offset = *next;
            *next = if offset + 2 >= NETWORK_SIZE { 2 } else { offset + 1 };
            let address = if is_v6 {
                IpAddr::V6(Ipv6Addr::from(u128::from(self.v6) + u128::from(offset)))
            } else {
                IpAddr::V4(Ipv4Addr::from(u32::from(self.v4) + offset))
            };
            if !self.addresses.contains(&address) {
                return address;
            }
        }
        panic!("every cluster IP is taken: more than 65,000 Services");
    }

    fn allocate_node_ports(&mut self, spec: &mut Value, old: Option<&Value>, causes: &mut Causes) {
        let held: Vec<u16> = old.map(node_ports).unwrap_or_default();
        let mut given = held.clone();
        for (index, port) in spec["ports"].as_array_mut().into_iter().flatten().enumerate() {
            let Some(requested) = port["nodePort"].as_i64() else {
                let taken = &self.node_ports;
                let is_free = |port: &u16| !taken.contains(port) && !given.contains(port);
                let dynamic = FIRST_DYNAMIC_PORT..=*NODE_PORTS.end();
                let free = dynamic.chain(NODE_PORTS).find(is_free);
                let free = free.expect("fewer than 2,700 node ports are in use");
                given.push(free);
                port["nodePort"] = json!(free);
                continue;
            };
            let path = format!("spec.ports[{index}].nodePort");
            match u16::try_from(requested).ok().filter(|port| NODE_PORTS.contains(port)) {
                None => causes.invalid(
                    &path,
                    &json!(requested),
                    "provided port is not in the valid range. The range of valid ports is \
                     30000-32767",
                ),
                Some(port) if self.node_ports.contains(&port) && !held.contains(&port) => {
                    causes.invalid(&path, &json!(requested), "provided port is already allocated");
                }
                Some(port) => given.push(port),
            }
        }
    }
}

fn addresses(spec: &Value) -> Vec<IpAddr> {
    let all = spec["clusterIPs"].as_array().into_iter().flatten();
    all.filter_map(|ip| ip.as_str()?.parse().ok()).collect()
}

fn node_ports(spec: &Value) -> Vec<u16> {
    let all = spec["ports"].as_array().into_iter().flatten();
    all.filter_map(|port| u16::try_from(port["nodePort"].as_u64()?).ok()).collect()
}

fn needs_node_ports(spec: &Value) -> bool {
    spec["type"] == "NodePort"
        || (spec["type"] == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] != false)
}

/// Upstream: `initIPFamilyFields`, on a cluster with both families.
fn families(spec: &mut Value, old: Option<&Value>, causes: &mut Causes) {
    let selectorless = spec["clusterIP"] == "None" && spec["selector"].is_null();
    if spec["ipFamilyPolicy"].is_null() {
        let policy = match old.map(|old| &old["ipFamilyPolicy"]) {
            Some(policy) if policy.is_string() => policy.clone(),
            _ if selectorless => json!("RequireDualStack"),
            _ => json!("SingleStack"),
        };
        spec["ipFamilyPolicy"] = policy;
    }
    if let Some(old) = old {
        release_second_family(spec, old, causes);
    }
    let count = |spec: &Value, field: &str| spec[field].as_array().map_or(0, Vec::len);
    if spec["ipFamilyPolicy"] == "SingleStack" {
        let why = "must be 'RequireDualStack' or 'PreferDualStack' when multiple";
        for (field, words) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
            if count(spec, field) == 2 {
                let why = format!("{why} {words} are specified");
                causes.invalid("spec.ipFamilyPolicy", &spec["ipFamilyPolicy"], &why);
            }
        }
    }
    if !causes.is_empty() {
        return;
    }
    let mut families = spec["ipFamilies"].as_array().cloned().unwrap_or_default();
    for address in addresses(spec).iter().skip(families.len()) {
        families.push(json!(if address.is_ipv6() { "IPv6" } else { "IPv4" }));
    }
    if families.is_empty() {
        families.push(json!("IPv4"));
    }
    if spec["ipFamilyPolicy"] != "SingleStack" && families.len() == 1 {
        families.push(json!(if families[0] == "IPv4" { "IPv6" } else { "IPv4" }));
    }
    spec["ipFamilies"] = Value::Array(families);
}

/// A change to single stack releases the second address; fewer families than required are an
/// error.
fn release_second_family(spec: &mut Value, old: &Value, causes: &mut Causes) {
    let count = |value: &Value| value.as_array().map_or(0, Vec::len);
    let fields = [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")];
    for (field, words) in fields {
        if spec["ipFamilyPolicy"] == "SingleStack" {
            if spec[field] == old[field] && count(&spec[field]) > 1 {
                let first = spec[field][0].clone();
                spec[field] = json!([first]);
            }
        } else if count(&spec[field]) == 1 && count(&old[field]) == 2 {
            let why = format!("must be 'SingleStack' to release the secondary {words}");
            causes.invalid("spec.ipFamilyPolicy", &spec["ipFamilyPolicy"], &why);
        }
    }
}

/// `clusterIP` and `clusterIPs` mean the same; clients may send either. Upstream:
/// `normalizeClusterIPs`.
pub(crate) fn normalize(service: &mut Value, old: Option<&Value>) {
    let spec = &mut service["spec"];
    let Some(old) = old.map(|old| &old["spec"]) else {
        if spec["clusterIP"].is_string() && spec["clusterIPs"].is_null() {
            spec["clusterIPs"] = json!([spec["clusterIP"]]);
        }
        return;
    };
    let keeps_addresses = spec["type"] != "ExternalName" && old["type"] != "ExternalName";
    for field in ["clusterIP", "clusterIPs"] {
        if keeps_addresses && spec[field].is_null() {
            super::copy_field(spec, old, field);
        }
    }
    if needs_node_ports(spec) && needs_node_ports(old) {
        keep_node_ports(spec, old);
    }
    if spec["clusterIP"] != old["clusterIP"] && spec["clusterIPs"] == old["clusterIPs"] {
        // The client changed only `clusterIP`.
        match spec["clusterIP"].as_str() {
            None => super::remove(spec, "clusterIPs"),
            Some(_) => spec["clusterIPs"] = json!([spec["clusterIP"]]),
        }
    }
}

/// A port keeps its node port by its name. Upstream: `patchAllocatedValues`.
fn keep_node_ports(spec: &mut Value, old: &Value) {
    let used = node_ports(spec);
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        let before = old["ports"].as_array().into_iter().flatten();
        let before = before.into_iter().find(|one| one["name"] == port["name"]);
        let kept = before.and_then(|one| one["nodePort"].as_u64());
        let kept = kept.and_then(|kept| u16::try_from(kept).ok());
        if let Some(kept) = kept.filter(|kept| port["nodePort"].is_null() && !used.contains(kept)) {
            port["nodePort"] = json!(kept);
        }
    }
}
