//! Services, Endpoints, EndpointSlices.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{AGE, Columns, NAME, age, int, name, or, text, wide};

const SHOWN_MAX: usize = 3;

pub(crate) static SERVICES: Columns = Columns {
    columns: &[
        NAME,
        text("Type"),
        text("Cluster-IP"),
        text("External-IP"),
        text("Port(s)"),
        AGE,
        wide("Selector"),
    ],
    cells: service,
};

fn service(it: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &it["spec"];
    let port = |port: &Value| {
        let protocol = port["protocol"].as_str().unwrap_or_default();
        match int(&port["nodePort"]) {
            0 => format!("{}/{protocol}", int(&port["port"])),
            node_port => format!("{}:{node_port}/{protocol}", int(&port["port"])),
        }
    };
    let ports: Vec<String> = spec["ports"].as_array().into_iter().flatten().map(port).collect();
    let ports = if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") };
    let selector = spec["selector"].as_object().into_iter().flatten();
    let selector: Vec<String> = selector
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    let selector = if selector.is_empty() { "<none>".to_owned() } else { selector.join(",") };
    vec![
        name(it),
        or(&spec["type"], ""),
        or(&spec["clusterIPs"][0], "<none>"),
        json!(external_ip(it)),
        json!(ports),
        age(it, now),
        json!(selector),
    ]
}

pub(crate) static IMPORTS: Columns =
    Columns { columns: &[NAME, text("Type"), text("IP"), AGE], cells: import };

fn import(it: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &it["spec"];
    let ips = match &spec["ips"] {
        Value::Null => String::new(),
        ips => ips.to_string(),
    };
    vec![name(it), or(&spec["type"], ""), json!(ips), age(it, now)]
}

fn external_ip(it: &Value) -> String {
    let spec = &it["spec"];
    let given = spec["externalIPs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let given: Vec<&str> = given.collect();
    match spec["type"].as_str() {
        Some("ExternalName") => spec["externalName"].as_str().unwrap_or_default().to_owned(),
        Some("LoadBalancer") => {
            let ingress = it["status"]["loadBalancer"]["ingress"].as_array().into_iter().flatten();
            let address =
                |one: &Value| one["ip"].as_str().or(one["hostname"].as_str()).map(str::to_owned);
            let found: BTreeSet<String> = ingress.filter_map(address).collect();
            let given = given.into_iter().map(str::to_owned);
            let all: Vec<String> = found.into_iter().chain(given).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        _ if given.is_empty() => "<none>".to_owned(),
        _ => given.join(","),
    }
}

pub(crate) static ENDPOINTS: Columns = Columns {
    columns: &[NAME, text("Endpoints"), AGE],
    cells: |it, now| vec![name(it), json!(addresses(it)), age(it, now)],
};

fn addresses(it: &Value) -> String {
    let Some(subsets) = it["subsets"].as_array() else { return "<none>".to_owned() };
    let mut all = Vec::new();
    for subset in subsets {
        let ips: Vec<&str> = subset["addresses"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| one["ip"].as_str())
            .collect();
        match subset["ports"].as_array() {
            None => all.extend(ips.iter().map(|ip| (*ip).to_owned())),
            Some(ports) => {
                for port in ports {
                    let port = int(&port["port"]);
                    all.extend(ips.iter().map(|ip| match ip.contains(':') {
                        true => format!("[{ip}]:{port}"),
                        false => format!("{ip}:{port}"),
                    }));
                }
            }
        }
    }
    first_few(&all, "")
}

pub(crate) static SLICES: Columns = Columns {
    columns: &[NAME, text("AddressType"), text("Ports"), text("Endpoints"), AGE],
    cells: slice,
};

fn slice(it: &Value, now: Timestamp) -> Vec<Value> {
    let port = |port: &Value| match (port["port"].as_i64(), port["name"].as_str()) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "*".to_owned(),
    };
    let ports: Vec<String> = it["ports"].as_array().into_iter().flatten().map(port).collect();
    let endpoints = it["endpoints"].as_array().into_iter().flatten();
    let addresses: Vec<String> = endpoints
        .flat_map(|one| one["addresses"].as_array().into_iter().flatten())
        .filter_map(|address| address.as_str().map(str::to_owned))
        .collect();
    vec![
        name(it),
        or(&it["addressType"], ""),
        json!(first_few(&ports, "<unset>")),
        json!(first_few(&addresses, "<unset>")),
        age(it, now),
    ]
}

fn first_few(all: &[String], none: &str) -> String {
    if all.is_empty() {
        return none.to_owned();
    }
    let shown = all[..all.len().min(SHOWN_MAX)].join(",");
    if shown.is_empty() {
        return none.to_owned();
    }
    match all.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}
