//! Services. Upstream: `validateService`, `ValidateServiceClusterIPsRelatedFields`.

use serde_json::{Value, json};

use super::endpoints::{VALID_IP, endpoint_ip, parse, protocol};
use super::{Causes, items, meta, names, text};
use crate::defaults::service::{is_external, is_headless};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

pub(crate) fn validate(object: &Value, causes: &mut Causes) {
    let spec = &object["spec"];
    let service_type = text(&spec["type"]);
    topology(object, causes);
    if spec["ports"].is_null() && !is_headless(spec) && service_type != "ExternalName" {
        causes.required("spec.ports", "");
    }
    by_type(spec, service_type, causes);
    ports(spec, causes);
    meta::labels(&spec["selector"], "spec.selector", causes);
    affinity(spec, causes);
    if service_type != "ExternalName" {
        cluster_ips(spec, causes);
    }
    for (index, ip) in items(&spec["externalIPs"]) {
        let path = format!("spec.externalIPs[{index}]");
        if parse(text(ip)).is_none() {
            causes.invalid(&path, ip, VALID_IP);
        } else {
            endpoint_ip(text(ip), &path, causes);
        }
    }
    if !TYPES.contains(&service_type) {
        causes.not_supported("spec.type", &spec["type"], &TYPES);
    }
    node_ports(spec, service_type, causes);
    traffic(spec, service_type, causes);
}

/// The two topology annotations are synonyms and must have the same value.
fn topology(object: &Value, causes: &mut Causes) {
    const MODE: &str = "service.kubernetes.io/topology-mode";
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let annotations = &object["metadata"]["annotations"];
    if let (Some(mode), Some(hints)) = (annotations[MODE].as_str(), annotations[HINTS].as_str())
        && mode != hints
    {
        let why = format!("must match annotations[{HINTS}] when both are specified");
        causes.invalid_text(&format!("metadata.annotations[{MODE}]"), mode, &why);
    }
}

fn by_type(spec: &Value, service_type: &str, causes: &mut Causes) {
    match service_type {
        "LoadBalancer" | "NodePort" if is_headless(spec) => {
            let why = format!("may not be set to 'None' for {service_type} services");
            causes.invalid_text("spec.clusterIPs[0]", "None", &why);
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if !spec[field].is_null() {
                    let why = "may not be set for ExternalName services";
                    causes.forbidden(&format!("spec.{field}"), why);
                }
            }
            let given = text(&spec["externalName"]);
            let name = given.strip_suffix('.').unwrap_or(given);
            if name.is_empty() {
                causes.required("spec.externalName", "");
            } else {
                for wrong in names::subdomain(name) {
                    causes.invalid_text("spec.externalName", name, &wrong);
                }
            }
        }
        _ => {}
    }
}

fn ports(spec: &Value, causes: &mut Causes) {
    let n_ports = items(&spec["ports"]).count();
    let mut seen: Vec<&str> = Vec::new();
    for (index, port) in items(&spec["ports"]) {
        let path = format!("spec.ports[{index}]");
        let name = text(&port["name"]);
        if name.is_empty() {
            if n_ports > 1 {
                causes.required(&format!("{path}.name"), "");
            }
        } else {
            for wrong in names::label(name) {
                causes.invalid_text(&format!("{path}.name"), name, &wrong);
            }
            if seen.contains(&name) {
                causes.duplicate(&format!("{path}.name"), &port["name"]);
            }
            seen.push(name);
        }
        if let Some(wrong) = names::port_number(port["port"].as_i64().unwrap_or_default()) {
            causes.invalid(&format!("{path}.port"), &port["port"], wrong);
        }
        protocol(&port["protocol"], &path, causes);
        target_port(&port["targetPort"], &path, causes);
        if let Some(name) = port["appProtocol"].as_str() {
            for wrong in names::qualified_name(name) {
                causes.invalid_text(&format!("{path}.appProtocol"), name, &wrong);
            }
        }
    }
}

fn target_port(target: &Value, path: &str, causes: &mut Causes) {
    let path = format!("{path}.targetPort");
    match target {
        Value::String(name) => {
            for wrong in names::port_name(name) {
                causes.invalid(&path, target, wrong);
            }
        }
        number => {
            if let Some(wrong) = names::port_number(number.as_i64().unwrap_or_default()) {
                causes.invalid(&path, number, wrong);
            }
        }
    }
}

fn affinity(spec: &Value, causes: &mut Causes) {
    const AFFINITIES: [&str; 2] = ["ClientIP", "None"];
    const TIMEOUT_SECS_MAX: i64 = 86_400;
    match text(&spec["sessionAffinity"]) {
        "ClientIP" => {
            let timeout = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
            if timeout.as_i64().is_none_or(|secs| !(1..=TIMEOUT_SECS_MAX).contains(&secs)) {
                let path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
                let why = format!("must be greater than 0 and less than {TIMEOUT_SECS_MAX}");
                causes.invalid(path, timeout, &why);
            }
        }
        "None" => {}
        _ => causes.not_supported("spec.sessionAffinity", &spec["sessionAffinity"], &AFFINITIES),
    }
}

/// Upstream: `ValidateServiceClusterIPsRelatedFields`.
pub(crate) fn cluster_ips(spec: &Value, causes: &mut Causes) {
    const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
    const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    let (ip, ips) = (&spec["clusterIP"], &spec["clusterIPs"]);
    if ip.is_string() && ips.is_array() && ips[0] != *ip {
        causes.invalid("spec.clusterIPs", ips, "first value must match `clusterIP`");
    } else if ip.is_null() && ips.is_array() {
        let why = "must be empty when `clusterIP` is not specified";
        causes.invalid("spec.clusterIPs", ips, why);
    }
    let mut seen: Vec<&Value> = Vec::new();
    for (index, family) in items(&spec["ipFamilies"]) {
        let path = format!("spec.ipFamilies[{index}]");
        if !FAMILIES.contains(&text(family)) {
            causes.not_supported(&path, family, &FAMILIES);
        }
        if seen.contains(&family) {
            causes.duplicate(&path, family);
        }
        seen.push(family);
    }
    let policy = &spec["ipFamilyPolicy"];
    if policy.is_string() && !POLICIES.contains(&text(policy)) {
        causes.not_supported("spec.ipFamilyPolicy", policy, &POLICIES);
    }
    if are_ips(ips, causes) {
        families_match(spec, causes);
    }
}

fn are_ips(ips: &Value, causes: &mut Causes) -> bool {
    let n_ips = items(ips).count();
    let mut all_valid = true;
    for (index, ip) in items(ips) {
        if index == 0 && ip == "None" {
            if n_ips > 1 {
                all_valid = false;
                causes.invalid("spec.clusterIPs", ips, "'None' must be the first and only value");
            }
            continue;
        }
        if parse(text(ip)).is_none() {
            all_valid = false;
            causes.invalid(&format!("spec.clusterIPs[{index}]"), ip, VALID_IP);
        }
    }
    if n_ips > 2 {
        causes.invalid("spec.clusterIPs", ips, "may only hold up to 2 values");
    }
    all_valid
}

fn families_match(spec: &Value, causes: &mut Causes) {
    let ips = &spec["clusterIPs"];
    let is_v6 = |ip: &Value| parse(text(ip)).is_some_and(|ip| ip.is_ipv6());
    if items(ips).count() == 2 && is_v6(&ips[0]) == is_v6(&ips[1]) {
        let why = "may specify no more than one IP for each IP family";
        causes.invalid("spec.clusterIPs", ips, why);
    }
    if is_headless(spec) {
        return;
    }
    for (index, ip) in items(ips) {
        let family = text(&spec["ipFamilies"][index]);
        let found = if is_v6(ip) { "IPv6" } else { "IPv4" };
        if !family.is_empty() && family != found {
            let why = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            causes.invalid(&format!("spec.clusterIPs[{index}]"), ip, &why);
        }
    }
}

fn node_ports(spec: &Value, service_type: &str, causes: &mut Causes) {
    let mut seen_node_ports: Vec<Value> = Vec::new();
    let mut seen_ports: Vec<Value> = Vec::new();
    for (index, port) in items(&spec["ports"]) {
        let path = format!("spec.ports[{index}]");
        let node_port = &port["nodePort"];
        if service_type == "ClusterIP" && !node_port.is_null() {
            let why = "may not be used when `type` is 'ClusterIP'";
            causes.forbidden(&format!("{path}.nodePort"), why);
        }
        let key = json!([port["protocol"], node_port]);
        if !node_port.is_null() && seen_node_ports.contains(&key) {
            causes.duplicate(&format!("{path}.nodePort"), node_port);
        }
        seen_node_ports.push(key);
        let key = json!({"port": port["port"], "protocol": port["protocol"], "targetPort": 0});
        if seen_ports.contains(&key) {
            causes.duplicate(&path, &key);
        }
        seen_ports.push(key);
    }
}

fn traffic(spec: &Value, service_type: &str, causes: &mut Causes) {
    const POLICIES: [&str; 2] = ["Cluster", "Local"];
    const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    let allocate = "allocateLoadBalancerNodePorts";
    if !spec[allocate].is_null() && service_type != "LoadBalancer" {
        let why = "may only be used when `type` is 'LoadBalancer'";
        causes.forbidden(&format!("spec.{allocate}"), why);
    }
    let external = &spec["externalTrafficPolicy"];
    if !is_external(spec) && external.is_string() {
        let why = "may only be set for externally-accessible services";
        causes.invalid("spec.externalTrafficPolicy", external, why);
    } else if external.is_string() && !POLICIES.contains(&text(external)) {
        causes.not_supported("spec.externalTrafficPolicy", external, &POLICIES);
    }
    let internal = &spec["internalTrafficPolicy"];
    if internal.is_string() && !POLICIES.contains(&text(internal)) {
        causes.not_supported("spec.internalTrafficPolicy", internal, &POLICIES);
    }
    let distribution = &spec["trafficDistribution"];
    if distribution.is_string() && !DISTRIBUTIONS.contains(&text(distribution)) {
        causes.not_supported("spec.trafficDistribution", distribution, &DISTRIBUTIONS);
    }
}

/// Allocated addresses are immutable, except from and to ExternalName. Upstream:
/// `validateUpgradeDowngradeClusterIPs`, `validateUpgradeDowngradeIPFamilies`.
pub(crate) fn validate_update(new: &Value, old: &Value, causes: &mut Causes) {
    let (spec, old_spec) = (&new["spec"], &old["spec"]);
    let is_name = |spec: &Value| spec["type"] == "ExternalName";
    if !is_name(spec) && !is_name(old_spec) {
        let headless = (is_headless(old_spec), is_headless(spec));
        if headless != (true, true) {
            check_addresses_unchanged(spec, old_spec, "clusterIPs", causes);
        }
        if headless == (false, false) {
            check_addresses_unchanged(spec, old_spec, "ipFamilies", causes);
        }
    }
    validate(new, causes);
}

/// Upstream: `ValidateLoadBalancerStatus`.
pub(crate) fn validate_status(object: &Value, causes: &mut Causes) {
    let ingress = &object["status"]["loadBalancer"]["ingress"];
    if object["spec"]["type"] != "LoadBalancer" && !ingress.is_null() {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        causes.forbidden("status.loadBalancer.ingress", why);
    }
}

fn check_addresses_unchanged(spec: &Value, old_spec: &Value, field: &str, causes: &mut Causes) {
    let (new, old) = (&spec[field], &old_spec[field]);
    let (n_new, n_old) = (items(new).count(), items(old).count());
    let path = |index: usize| format!("spec.{field}[{index}]");
    if n_old > n_new && n_new == 0 {
        let word = if field == "clusterIPs" { "clusterIP" } else { "ipFamily" };
        causes.invalid(&path(0), new, &format!("primary {word} can not be unset"));
    }
    for (index, before) in items(old).take(n_new) {
        let counts = index == 0 || n_old == n_new;
        if counts && new[index] != *before {
            // Upstream always names the first family.
            let index = if field == "clusterIPs" { index } else { 0 };
            causes.invalid(&path(index), new, "may not change once set");
        }
    }
    if n_old == 2 && n_new == 1 && spec["ipFamilyPolicy"] != "SingleStack" {
        let word = if field == "clusterIPs" { "clusterIP" } else { "ipFamily" };
        let why = format!("must be set to 'SingleStack' when releasing the secondary {word}");
        causes.invalid("spec.ipFamilyPolicy", &spec["ipFamilyPolicy"], &why);
    }
}
