//! The expected slices and Endpoints for the current pods: a simple computation, independent of the
//! controllers.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_apiserver::Server;
use serde_json::Value;

/// Address, serving, terminating, pod, node, zone.
type ResponseObject = (String, bool, bool, String, String, String);

/// The first Service that is not published as expected.
pub fn difference(server: &Server) -> Option<String> {
    let all = |resource: &str| -> Vec<Value> {
        server.store().list(resource, None).objects.iter().map(|one| one.value()).collect()
    };
    let (pods, nodes) = (all("pods"), all("nodes"));
    let (slices, endpoints) = (all("endpointslices"), all("endpoints"));
    let zones: BTreeMap<String, String> = nodes
        .iter()
        .map(|node| {
            let zone = &node["metadata"]["labels"]["topology.kubernetes.io/zone"];
            (text(&node["metadata"]["name"]), text(zone))
        })
        .collect();
    if let Some(difference) = difference_of_consumer(&all("services"), &slices) {
        return Some(difference);
    }
    for service in all("services") {
        let Some(selector) = service["spec"]["selector"].as_object() else { continue };
        let selected = |pod: &&Value| {
            let mut wanted = selector.iter();
            wanted.all(|(key, value)| pod["metadata"]["labels"][key] == *value)
        };
        let pods: Vec<&Value> = pods.iter().filter(selected).collect();
        let name = text(&service["metadata"]["name"]);
        for family in service["spec"]["ipFamilies"].as_array().into_iter().flatten() {
            let family = text(family);
            let expected = published(&pods, &zones, &family);
            let shown = shown(&slices, &name, &family);
            if shown != expected.iter().cloned().collect::<Vec<_>>() {
                return Some(format!("{family} slices of {name}: {shown:#?}, not {expected:#?}"));
            }
        }
        let expected: BTreeSet<String> = published(&pods, &zones, "IPv4")
            .into_iter()
            .filter(|(_, is_ready, is_terminating, ..)| *is_ready && !is_terminating)
            .map(|(ip, ..)| ip)
            .collect();
        let addresses = addresses(&endpoints, &name);
        if addresses != expected {
            return Some(format!("Endpoints of {name}: {addresses:#?}, not {expected:#?}"));
        }
    }
    None
}

/// The consumer has the endpoints of its source if that Service permits it.
fn difference_of_consumer(services: &[Value], slices: &[Value]) -> Option<String> {
    let named = |name: &str| services.iter().find(|one| one["metadata"]["name"] == name);
    let (consumer, source) = (named("storefront")?, named("web")?);
    let is_permitted = source["metadata"]["annotations"]["endpointd/endpoints-to"] == "partner";
    let expected = if is_permitted { shown(slices, "web", "IPv4") } else { Vec::new() };
    let shown = shown(slices, "storefront", "IPv4");
    if shown != expected {
        return Some(format!("slices of storefront: {shown:#?}, not {expected:#?}"));
    }
    let reason = if is_permitted { "Mirrored" } else { "RefNotPermitted" };
    let condition = &consumer["status"]["conditions"][0];
    (condition["reason"] != reason).then(|| format!("storefront has {condition}, not {reason}"))
}

fn published(
    pods: &[&Value],
    zones: &BTreeMap<String, String>,
    family: &str,
) -> BTreeSet<ResponseObject> {
    let of_pod = |pod: &&Value| -> Option<ResponseObject> {
        let ips = pod["status"]["podIPs"].as_array()?;
        let ip = ips.iter().map(|one| text(&one["ip"])).find(|ip| is_of(ip, family))?;
        let node = text(&pod["spec"]["nodeName"]);
        let zone = zones.get(&node)?.clone();
        let is_terminating = pod["metadata"]["deletionTimestamp"].is_string();
        let name = text(&pod["metadata"]["name"]);
        Some((ip, is_ready(pod), is_terminating, name, node, zone))
    };
    pods.iter().filter_map(of_pod).collect()
}

/// Sorted; duplicates are kept.
fn shown(slices: &[Value], service: &str, family: &str) -> Vec<ResponseObject> {
    let of_service = |slice: &&Value| {
        slice["metadata"]["labels"]["kubernetes.io/service-name"] == service
            && slice["addressType"] == family
    };
    let endpoints = slices.iter().filter(of_service).flat_map(|slice| items(&slice["endpoints"]));
    let mut all: Vec<ResponseObject> = endpoints
        .map(|endpoint| {
            (
                text(&endpoint["addresses"][0]),
                endpoint["conditions"]["serving"] == true,
                endpoint["conditions"]["terminating"] == true,
                text(&endpoint["targetRef"]["name"]),
                text(&endpoint["nodeName"]),
                text(&endpoint["zone"]),
            )
        })
        .collect();
    all.sort();
    all
}

/// Ready addresses of the first family only: Endpoints have no terminating addresses.
fn addresses(endpoints: &[Value], service: &str) -> BTreeSet<String> {
    let found = endpoints.iter().filter(|one| one["metadata"]["name"] == service);
    let subsets = found.flat_map(|one| items(&one["subsets"]));
    let addresses = subsets.flat_map(|subset| items(&subset["addresses"]));
    addresses.map(|address| text(&address["ip"])).collect()
}

fn is_of(ip: &str, family: &str) -> bool {
    ip.contains(':') == (family == "IPv6")
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = items(&pod["status"]["conditions"]);
    conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
